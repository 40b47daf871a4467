// SPDX-License-Identifier: Apache-2.0
// The version of rehearse, as in CMakeLists.txt: "0.1.0".
#pragma once

namespace rehearse {

[[nodiscard]] const char* version();

}  // namespace rehearse
