// SPDX-License-Identifier: Apache-2.0
#include "base/version.hpp"

namespace rehearse {

const char* version() { return REHEARSE_VERSION; }

}  // namespace rehearse
