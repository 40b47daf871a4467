// SPDX-License-Identifier: Apache-2.0
#include "traces/import/json_scan.hpp"

#include <bit>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace rehearse::traces {
namespace {

struct Masks {
  uint64_t quote = 0, backslash = 0, open = 0, close = 0;
};

#if defined(__SSE2__)
Masks masks_of(const char* p) {
  const __m128i quote = _mm_set1_epi8('"'), back = _mm_set1_epi8('\\');
  // '[' | 0x20 is '{' and ']' | 0x20 is '}', and no other bytes map there.
  const __m128i bit = _mm_set1_epi8(0x20), open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}');
  Masks m;
  for (int i = 0; i < 4; ++i) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * i));
    const __m128i folded = _mm_or_si128(v, bit);
    const auto at = [&](__m128i hit) {
      return static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(hit))) << (16 * i);
    };
    m.quote |= at(_mm_cmpeq_epi8(v, quote));
    m.backslash |= at(_mm_cmpeq_epi8(v, back));
    m.open |= at(_mm_cmpeq_epi8(folded, open));
    m.close |= at(_mm_cmpeq_epi8(folded, close));
  }
  return m;
}
#else
Masks masks_of(const char* p) {
  Masks m;
  for (int i = 0; i < 64; ++i) {
    const uint64_t bit = uint64_t{1} << i;
    if (p[i] == '"') m.quote |= bit;
    if (p[i] == '\\') m.backslash |= bit;
    if ((p[i] | 0x20) == '{') m.open |= bit;
    if ((p[i] | 0x20) == '}') m.close |= bit;
  }
  return m;
}
#endif

uint64_t prefix_xor(uint64_t bits) {
  for (int shift = 1; shift < 64; shift <<= 1) bits ^= bits << shift;
  return bits;
}

// Bits of bytes that a backslash before them escapes.
uint64_t escaped_bytes(uint64_t backslash, int valid, bool& carry) {
  uint64_t escaped = 0;
  bool next = carry;
  for (int i = 0; i < valid; ++i) {
    const uint64_t bit = uint64_t{1} << i;
    if (next) {
      escaped |= bit;
      next = false;
    } else {
      next = (backslash & bit) != 0;
    }
  }
  carry = next;
  return escaped;
}

}  // namespace

const char* scan_value(const char* begin, const char* end, ScanState& state) {
  uint64_t in_string = state.in_string;
  uint32_t depth = state.depth;
  for (const char* p = begin; p < end; p += 64) {
    Masks m = masks_of(p);
    const auto left = static_cast<size_t>(end - p);
    if (left < 64) {
      const uint64_t valid = (uint64_t{1} << left) - 1;
      m.quote &= valid;
      m.backslash &= valid;
      m.open &= valid;
      m.close &= valid;
    }
    if (m.backslash != 0 || state.escaped) {
      m.quote &=
          ~escaped_bytes(m.backslash, left < 64 ? static_cast<int>(left) : 64, state.escaped);
    }
    const uint64_t strings = prefix_xor(m.quote) ^ in_string;
    in_string = 0 - (strings >> 63);
    if (left < 64) in_string = 0 - ((strings >> (left - 1)) & 1);
    m.open &= ~strings;
    m.close &= ~strings;
    // A block holds few brackets or none, so that looking at each is cheaper than counting them.
    for (uint64_t both = m.open | m.close; both != 0; both &= both - 1) {
      const uint64_t bit = both & (0 - both);
      if ((m.open & bit) != 0) {
        ++depth;
      } else if (--depth == 0) {
        state = ScanState{.deepest = state.deepest};
        return p + std::countr_zero(bit) + 1;
      }
    }
    if (depth > state.deepest) state.deepest = depth;
  }
  state.in_string = in_string;
  state.depth = depth;
  return nullptr;
}

}  // namespace rehearse::traces
