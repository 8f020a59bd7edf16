// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/correlate/cpu/fold.hpp"

#include <algorithm>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ryle::correlate::detail {
namespace {

// Rows of a panel follow each other, but 32 panels are more streams than the hardware follows.
constexpr std::int64_t kRowsAhead = 4;

struct Words {
  const std::uint32_t* re;
  const std::uint32_t* im;
  std::uint32_t add_re, add_im;
  ci64 at(std::int64_t k) const {
    return {static_cast<std::int32_t>(re[k] + add_re), static_cast<std::int32_t>(im[k] + add_im)};
  }
};

#if defined(__SSE2__)
// Four pairs; SSE2 belongs to the baseline of x86-64.
template <bool kStream>
void widen_four(const Words& w, std::int64_t k, ci64* to) {
  const auto load = [k](const std::uint32_t* from, std::uint32_t add) {
    return _mm_add_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k)),
                         _mm_set1_epi32(static_cast<int>(add)));
  };
  const auto store = [](ci64* at, __m128i value) {
    auto* words = reinterpret_cast<__m128i*>(at);
    if constexpr (kStream) {
      _mm_stream_si128(words, value);
    } else {
      _mm_storeu_si128(words, value);
    }
  };
  const __m128i re = load(w.re, w.add_re), im = load(w.im, w.add_im);
  const __m128i low = _mm_unpacklo_epi32(re, im), high = _mm_unpackhi_epi32(re, im);
  const __m128i low_sign = _mm_srai_epi32(low, 31), high_sign = _mm_srai_epi32(high, 31);
  store(to + k, _mm_unpacklo_epi32(low, low_sign));
  store(to + k + 1, _mm_unpackhi_epi32(low, low_sign));
  store(to + k + 2, _mm_unpacklo_epi32(high, high_sign));
  store(to + k + 3, _mm_unpackhi_epi32(high, high_sign));
}
#endif

template <bool kStream>
void widen(const Words& w, std::int64_t n, ci64* to) {
  std::int64_t k = 0;
#if defined(__SSE2__)
  for (; k + 4 <= n; k += 4) widen_four<kStream>(w, k, to);
#endif
  for (; k < n; ++k) {
    const ci64 value = w.at(k);
#if defined(__SSE2__)
    if constexpr (kStream) {
      // All stores of a line on the same way, or it would be read first.
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + k), _mm_set_epi64x(value.im, value.re));
      continue;
    }
#endif
    to[k] = value;
  }
}

// body(sums of the row, number of columns, first column) for the panels of row j; zeroes them.
template <class T, class Body>
void for_each_panel(const Accumulators<T>& acc, std::int64_t j, const Body& body) {
  const std::int64_t elements = 2 * acc.columns;
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t first = 0, panel = 0; first <= j; first += acc.columns, ++panel) {
    T* sums = acc.first + acc.panel_first[panel] + (j - first) * elements;
    for (std::int64_t e = 0; e < elements; e += kLine) {
      __builtin_prefetch(sums + kRowsAhead * elements + e, 0);
    }
    body(sums, std::min(acc.columns, j - first + 1), first);
    std::fill_n(sums, elements, T{0});
  }
}

}  // namespace

void fold_row(const Accumulators<std::uint32_t>& acc, std::int64_t j, ci32 correction,
              Output output, ci64* to) {
  for_each_panel(acc, j, [&](const std::uint32_t* sums, std::int64_t n, std::int64_t first) {
    const Words words{sums, sums + acc.columns, static_cast<std::uint32_t>(correction.re),
                      static_cast<std::uint32_t>(correction.im)};
    switch (output) {
      case Output::stored:
        return widen<false>(words, n, to + first);
      case Output::streamed:
        return widen<true>(words, n, to + first);
      case Output::added:
        for (std::int64_t k = 0; k < n; ++k) {
          const ci64 sum = words.at(k);
          to[first + k] = {to[first + k].re + sum.re, to[first + k].im + sum.im};
        }
    }
  });
}

void fold_row(const Accumulators<double>& acc, std::int64_t j, Output output, cf64* to) {
  for_each_panel(acc, j, [&](const double* sums, std::int64_t n, std::int64_t first) {
    for (std::int64_t k = 0; k < n; ++k) {
      const cf64 sum{sums[k], sums[acc.columns + k]};
      to[first + k] = output == Output::added ? to[first + k] + sum : sum;
    }
  });
}

bool can_stream([[maybe_unused]] const ci64* to) {
#if defined(__SSE2__)
  return reinterpret_cast<std::uintptr_t>(to) % 16 == 0;
#else
  return false;
#endif
}

void fence_streams() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace ryle::correlate::detail
