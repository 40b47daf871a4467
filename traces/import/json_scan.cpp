// SPDX-License-Identifier: Apache-2.0
#include "traces/import/json_scan.hpp"

#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rehearse::traces {
namespace {

struct Masks {
  uint64_t quote = 0, backslash = 0, open = 0, close = 0;
};

// Which of 64 bytes are special, and for each bit whether the number of bits up to it is odd: what
// instruction sets do in ways of their own.
#if !defined(__x86_64__)
struct Portable {
  static inline Masks masks_of(const char* p) {
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
  static inline uint64_t odd_up_to(uint64_t bits) {
    for (int shift = 1; shift < 64; shift <<= 1) bits ^= bits << shift;
    return bits;
  }
};
#else
struct Sse2 {
  static inline Masks masks_of(const char* p) {
    const __m128i quote = _mm_set1_epi8('"'), back = _mm_set1_epi8('\\');
    // '[' | 0x20 is '{' and ']' | 0x20 is '}', and no other bytes map there.
    const __m128i bit = _mm_set1_epi8(0x20), open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}');
    Masks m;
    for (ptrdiff_t i = 0; i < 4; ++i) {
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
  static inline uint64_t odd_up_to(uint64_t bits) {
    for (int shift = 1; shift < 64; shift <<= 1) bits ^= bits << shift;
    return bits;
  }
};

// Not forced inline: the compiler refuses that before the loop is part of a function that may use them.
struct Avx2 {
  __attribute__((target("avx2,pclmul"))) static inline uint64_t equal(__m256i low, __m256i high,
                                                                      __m256i to) {
    const auto a = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, to)));
    const auto b = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, to)));
    return uint64_t{b} << 32 | a;
  }
  __attribute__((target("avx2,pclmul"))) static inline Masks masks_of(const char* p) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
    const __m256i bit = _mm256_set1_epi8(0x20);
    const __m256i folded_low = _mm256_or_si256(low, bit), folded_high = _mm256_or_si256(high, bit);
    return {equal(low, high, _mm256_set1_epi8('"')), equal(low, high, _mm256_set1_epi8('\\')),
            equal(folded_low, folded_high, _mm256_set1_epi8('{')),
            equal(folded_low, folded_high, _mm256_set1_epi8('}'))};
  }
  // A carry-less product with all ones.
  __attribute__((target("avx2,pclmul"))) static inline uint64_t odd_up_to(uint64_t bits) {
    const __m128i value = _mm_set_epi64x(0, static_cast<int64_t>(bits));
    return static_cast<uint64_t>(
        _mm_cvtsi128_si64(_mm_clmulepi64_si128(value, _mm_set1_epi8('\xff'), 0)));
  }
};
#endif

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

template <typename Instructions>
[[gnu::always_inline]] inline const char* scan_with(const char* begin, const char* end,
                                                    ScanState& state) {
  uint64_t in_string = state.in_string;
  uint32_t depth = state.depth;
  for (const char* p = begin; p < end; p += 64) {
    Masks m = Instructions::masks_of(p);
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
    const uint64_t strings = Instructions::odd_up_to(m.quote) ^ in_string;
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

#if defined(__x86_64__)
const char* scan_sse2(const char* begin, const char* end, ScanState& state) {
  return scan_with<Sse2>(begin, end, state);
}

__attribute__((target("avx2,pclmul"))) const char* scan_avx2(const char* begin, const char* end,
                                                             ScanState& state) {
  return scan_with<Avx2>(begin, end, state);
}
#endif

}  // namespace

const char* scan_value(const char* begin, const char* end, ScanState& state) {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("pclmul");
  return wide ? scan_avx2(begin, end, state) : scan_sse2(begin, end, state);
#else
  return scan_with<Portable>(begin, end, state);
#endif
}

}  // namespace rehearse::traces
