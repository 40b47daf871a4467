// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

namespace rehearse {

const char* name_of(Code code) {
  switch (code) {
    case Code::kFinding:
      return "finding";
    case Code::kUsage:
      return "usage";
    case Code::kBadInput:
      return "bad-input";
    case Code::kMissingInput:
      return "missing-input";
    case Code::kInternal:
      return "internal";
    case Code::kIo:
      return "io";
    case Code::kLimit:
      return "limit";
    case Code::kInterrupted:
      return "interrupted";
  }
  return "internal";
}

std::string Error::message() const {
  std::string text;
  if (!where.empty()) text += where + ": ";
  text += what;
  if (!fix.empty()) text += "; " + fix;
  return text;
}

}  // namespace rehearse
