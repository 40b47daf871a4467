// SPDX-License-Identifier: Apache-2.0
// A published pair as something to predict, from its own words alone: machine, ports, collective, size, version and what
// was wrong (vocabulary: validation/figures/pair_words.yaml). For pairs that nobody has looked at: the vocabulary is
// written before they are seen. A pair whose words do not say enough is refused with what is missing. Pure but for
// reading the vocabulary and the catalogue.
#pragma once

#include "base/error.hpp"
#include "platforms/model/catalogue.hpp"
#include "validation/pairs/published.hpp"
#include "validation/proto/fault_pairs.pb.h"

namespace rehearse::validation {

class PairReader {
 public:
  [[nodiscard]] static Result<PairReader> shipped_words();

  // kBadInput: what the pair does not say, in words.
  [[nodiscard]] Result<pb::PairModel> read(const PublishedPair& pair) const;

 private:
  PairReader(pb::PairWords words, platforms::PlatformCatalogue catalogue)
      : words_(std::move(words)), catalogue_(std::move(catalogue)) {}

  pb::PairWords words_;
  platforms::PlatformCatalogue catalogue_;
};

}  // namespace rehearse::validation
