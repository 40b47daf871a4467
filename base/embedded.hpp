// SPDX-License-Identifier: Apache-2.0
// A file that is part of the program (base/cmake/embed.cmake): pages, scripts, styles.
#pragma once

#include <string_view>

namespace rehearse {

struct EmbeddedFile {
  std::string_view name;
  std::string_view bytes;  // as long as the program runs; a 0 byte follows
};

}  // namespace rehearse
