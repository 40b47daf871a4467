// SPDX-License-Identifier: Apache-2.0
// Text for pages and drawings. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

// At most `bytes` bytes of UTF-8, cut between characters, with an ellipsis where something was cut.
[[nodiscard]] std::string shortened(std::string_view text, size_t bytes);

// Text as content or attribute of HTML, SVG and XML: < > & and both quotes as entities, control characters left out.
[[nodiscard]] std::string escape_markup(std::string_view text);

}  // namespace rehearse
