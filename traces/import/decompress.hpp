// SPDX-License-Identifier: Apache-2.0
// Decoders of compressed inputs and the thread that runs them ahead of the reader.
#pragma once

#include <atomic>
#include <memory>

#include "traces/import/source.hpp"

namespace rehearse::traces {

// Set beside the error of a stream that ends early.
struct DecodeState {
  std::atomic<bool> cut{false};
};

// `raw` and `state` outlive the decoder; `name` is for messages.
[[nodiscard]] std::unique_ptr<ByteReader> gzip_reader(ByteReader& raw, std::string name,
                                                      DecodeState& state);
[[nodiscard]] std::unique_ptr<ByteReader> zstd_reader(ByteReader& raw, std::string name,
                                                      DecodeState& state);
// Runs `inner` on its own thread, at most 8 blocks of 1 MiB ahead.
[[nodiscard]] std::unique_ptr<ByteReader> read_ahead(std::unique_ptr<ByteReader> inner);

}  // namespace rehearse::traces
