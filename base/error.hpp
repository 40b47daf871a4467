// SPDX-License-Identifier: Apache-2.0
// What can go wrong and how it is told: every fallible function returns Result<T>, whose Error says
// what happened, where, and what to do. Libraries never print and never throw across their boundary.
// Values only; safe to copy between threads.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace rehearse {

// One code per way of failing; the number is the exit code of the program.
enum class Code {
  kFinding = 1,        // a finding or threshold failed; not an error of ours
  kUsage = 2,          // the command line makes no sense
  kBadInput = 65,      // the input was read and is wrong
  kMissingInput = 66,  // the input is not there or cannot be opened
  kInternal = 70,      // a bug in rehearse
  kIo = 74,            // the operating system refused to read or write
  kLimit = 75,         // a stated limit was reached (memory, events, depth, time)
  kInterrupted = 130,  // Ctrl-C
};

// The stable name of a code as it appears in JSON (`error.code`), e.g. "bad-input".
[[nodiscard]] const char* name_of(Code code);

struct Error {
  Code code = Code::kInternal;
  std::string what;   // what happened: lower case, no trailing dot
  std::string where;  // "file.yaml:12:5", "rank3.json.gz: byte 18221004, event 40112"; may be empty
  std::string fix;    // what the user can do about it; may be empty

  // "where: what; fix" on one line.
  [[nodiscard]] std::string message() const;
};

template <typename T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(Code code, std::string what, std::string where = {},
                                                std::string fix = {}) {
  return tl::unexpected<Error>(Error{code, std::move(what), std::move(where), std::move(fix)});
}

// The commonest failure: an input that was read and is wrong.
[[nodiscard]] inline tl::unexpected<Error> bad_input(std::string what, std::string where = {},
                                                     std::string fix = {}) {
  return fail(Code::kBadInput, std::move(what), std::move(where), std::move(fix));
}

}  // namespace rehearse

// RH_TRY(auto x, f()) binds the value of a Result or returns its error from the enclosing function.
#define RH_CONCAT_INNER(a, b) a##b
#define RH_CONCAT(a, b) RH_CONCAT_INNER(a, b)
// NOLINTBEGIN(bugprone-macro-parentheses): `var` may be a declaration
#define RH_TRY_IMPL(tmp, var, expr)                        \
  auto tmp = (expr);                                       \
  if (!tmp) return tl::unexpected(std::move(tmp).error()); \
  var = std::move(*tmp)
#define RH_TRY(var, expr) RH_TRY_IMPL(RH_CONCAT(rh_try_, __LINE__), var, expr)
// NOLINTEND(bugprone-macro-parentheses)
