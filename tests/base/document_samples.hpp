// SPDX-License-Identifier: Apache-2.0
// Random machines for tests that must hold for any message.
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cmath>
#include <iterator>
#include <string>

#include "base/random.hpp"
#include "tests/base/document_test.pb.h"

namespace rehearse::test {

inline std::string random_text(Random& random) {
  static const char* kParts[] = {
      "a",  "Z",  "0",   "1.5",  "true", "null", "~",        " ",        ":",      ": ",
      "#",  " #", "\n",  "\t",   "\r",   "\"",   "'",        "\\",       "- ",     "[",
      "]",  "{",  "}",   ",",    "&",    "*",    "!",        "|",        ">",      "%",
      "@",  "`",  "?",   "\x01", "\x7f", "é",    "\u00a0",   "\u0085",   "\u2028", "\ufeff",
      "漢", "😀",  "---", "...",  "<<",   "=",    "/dev/shm", "10.0.0.1", "no",     "0x1f"};
  std::string text;
  for (uint64_t n = random.below(6); n > 0; --n) text += kParts[random.below(std::size(kParts))];
  return text;
}

inline double random_real(Random& random) {
  return random.uniform() * std::pow(10.0, static_cast<double>(random.below(25)) - 6);
}

inline void fill(pb::test::Card& card, Random& random) {
  if (random.below(2)) card.set_name(random_text(random));
  if (random.below(2)) card.set_bandwidth(random_real(random) + 1e-9);
  if (random.below(2))
    card.set_latency(static_cast<int64_t>(random.next() >> (1 + random.below(63))));
  if (random.below(2)) card.set_down(true);
  for (uint64_t n = random.below(4); n > 0; --n)
    card.add_lanes(static_cast<uint32_t>(random.next()));
}

inline void fill(pb::test::Machine& m, Random& random, int depth = 0) {
  m.set_name(random_text(random));
  for (uint64_t n = random.below(3); n > 0; --n) fill(*m.add_cards(), random);
  if (random.below(2)) fill(*m.mutable_spare(), random);
  for (uint64_t n = random.below(4); n > 0; --n)
    (*m.mutable_env())[random_text(random)] = random_text(random);
  for (uint64_t n = random.below(3); n > 0; --n)
    fill((*m.mutable_slots())[random_text(random)], random);
  for (uint64_t n = random.below(3); n > 0; --n) {
    (*m.mutable_weights())[static_cast<uint32_t>(random.next())] = random_real(random);
  }
  if (random.below(2)) m.set_memory(static_cast<int64_t>(random.next() >> (1 + random.below(63))));
  if (random.below(2)) m.set_timeout(static_cast<int64_t>(random.next() >> (1 + random.below(63))));
  if (random.below(2)) m.set_flops(random.normal() * 1e12);
  if (random.below(2)) m.set_clock(random_real(random));
  for (uint64_t n = random.below(3); n > 0; --n) m.add_addresses(random_text(random));
  for (uint64_t n = random.below(3); n > 0; --n)
    m.add_ports(static_cast<uint32_t>(random.below(65536)));
  for (uint64_t n = random.below(3); n > 0; --n) {
    m.add_colours(random.below(2) ? pb::test::RED : pb::test::DARK_BLUE);
  }
  if (random.below(2)) m.set_colour(pb::test::DARK_BLUE);
  if (random.below(2)) m.set_rank(static_cast<uint32_t>(random.below(2)));
  if (random.below(2)) m.set_label(random_text(random));
  if (random.below(2)) m.set_command(random_text(random));
  if (random.below(3) == 0) m.mutable_slow_down();
  if (random.below(2)) m.set_share(random.uniform());
  if (random.below(2)) m.set_offset(static_cast<int32_t>(random.next()));
  if (random.below(2)) m.set_seed(random.next());
  if (random.below(2)) m.set_ratio(static_cast<float>(random.normal()));
  for (uint64_t n = random.below(3); n > 0; --n) m.add_sizes(static_cast<int64_t>(random.next()));
  for (uint64_t n = depth < 2 ? random.below(3) : 0; n > 0; --n)
    fill(*m.add_parts(), random, depth + 1);
}

// Bytes that are equal for equal messages, maps included.
inline std::string canonical(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace rehearse::test
