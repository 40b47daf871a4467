// SPDX-License-Identifier: Apache-2.0
// rapidcheck inside Catch2: the same cases in every run unless RC_PARAMS says otherwise
// (RC_PARAMS="seed=7 max_success=1000").
#pragma once

#include <rapidcheck.h>
#include <stdlib.h>

#include <catch2/catch.hpp>
#include <string>

namespace rehearse::tests {

// Any value of [least, end), as likely in the first case as in the last: rapidcheck's inRange begins with the lowest few
// and, within gen::resize(n), never gets beyond n % of the range.
template <typename T>
rc::Gen<T> in_range(T least, T end) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(least, end));
}

template <typename Testable>
void holds(const std::string& what, Testable&& testable) {
  static const bool seeded = ::setenv("RC_PARAMS", "seed=2024 max_success=20", 0) == 0;
  REQUIRE(seeded);
  CHECK(rc::check(what, std::forward<Testable>(testable)));
}

}  // namespace rehearse::tests
