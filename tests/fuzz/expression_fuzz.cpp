// SPDX-License-Identifier: Apache-2.0
// Any text as a condition of the static check, over ranks whose facts are partly not known.
#include <string>

#include "faults/check/expression.hpp"
#include "tests/fuzz/reader_fuzz.hpp"

using namespace rehearse;
using namespace rehearse::faults;

namespace {

class Facts final : public Scope {
 public:
  explicit Facts(const char* text) : text_(text) {}
  [[nodiscard]] Value get(std::string_view name) const override {
    if (name.size() % 3 == 0) return std::nullopt;
    return name.size() % 3 == 1 ? text_ : "12";
  }
  [[nodiscard]] std::vector<const Scope*> ranks() const override;

 private:
  std::string text_;
};

const Facts kFirst("eth0,ib0"), kSecond("2.18.3");
std::vector<const Scope*> Facts::ranks() const { return {&kFirst, &kSecond}; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto expression = Expression::parse(traces::fuzz_bytes(data, size));
  if (!expression) {
    if (expression.error().what.empty()) __builtin_trap();
    return 0;
  }
  (void)expression->evaluate(kFirst);
  return 0;
}
