// SPDX-License-Identifier: BSD-3-Clause
// Finished pieces of codes to whole cells, and their sum of squares. Included after
// kernel_finish.inc.hpp.

/// Sums of squares of 128 codes in -127..127, spread over the lanes. |x| is both an unsigned and a
/// signed byte, and 2 * 127^2 fits 16 bits.
RYLE_INLINE I squares_of_bytes(const std::byte* cell) {
#if defined(__AVX512BW__)
  __m512i sum = _mm512_setzero_si512();
  for (int half = 0; half < 2; ++half) {
    const __m512i a = _mm512_abs_epi8(_mm512_loadu_si512(cell + 64 * half));
    sum =
        _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(a, a), _mm512_set1_epi16(1)));
  }
  return (I)sum;
#elif defined(__AVX2__)
  __m256i sum = _mm256_setzero_si256();
  for (int quarter = 0; quarter < 4; ++quarter) {
    __m256i a;
    __builtin_memcpy(&a, cell + 32 * quarter, 32);
    a = _mm256_abs_epi8(a);
    sum =
        _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, a), _mm256_set1_epi16(1)));
  }
  return (I)sum;
#else
  I sum{};
  for (int i = 0; i < 128; i += kLanes) {
    Byte codes;
    __builtin_memcpy(&codes, cell + i, sizeof codes);
    const I wide = __builtin_convertvector(codes, I);
    sum += wide * wide;
  }
  return sum;
#endif
}

inline double squares_of_nibbles(const std::byte* cell) {
  std::int32_t sum = 0;
  for (int i = 0; i < 128; ++i) {
    const auto re = static_cast<std::int32_t>(static_cast<std::int8_t>(cell[i])) >> 4;
    const std::int32_t im =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(cell[i]) << 28) >> 28;
    sum += re * re + im * im;
  }
  return sum;
}

/// Squares in double, in the order of the cell.
inline double squares_of_floats(const std::byte* cell) {
  double sum = 0;
  for (int i = 0; i < 32; ++i) {
    float single;
    __builtin_memcpy(&single, cell + 4 * i, 4);
    sum += static_cast<double>(single) * static_cast<double>(single);
  }
  return sum;
}

inline double squares_of_halves(const std::byte* cell) {
  double sum = 0;
  for (int i = 0; i < 64; ++i) {
    std::uint16_t half;
    __builtin_memcpy(&half, cell + 2 * i, 2);
    // A half is a float with another exponent bias: scale instead of assembling (exact, subnormals
    // too).
    const std::uint32_t bits = static_cast<std::uint32_t>(half & 0x7fffu) << 13;
    float single;
    __builtin_memcpy(&single, &bits, 4);
    const double value = static_cast<double>(single) * 0x1p112;
    sum += value * value;
  }
  return sum;
}

/// Puts the pieces of one bin, `plane` bytes apart, in the order of a cell (core/blocks.hpp).
template <KernelFormat kFormat>
RYLE_INLINE void gather(const std::byte* piece, std::int64_t plane, std::byte* cell) {
#if defined(__AVX512F__)
  if constexpr (kFormat == KernelFormat::ci8) {
    for (int half = 0; half < 2; ++half, piece += 2 * plane) {
      const __m512i first =
          _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(piece)));
      const __m512i both = _mm512_inserti64x4(
          first, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(piece + plane)), 1);
      _mm512_store_si512(cell + 64 * half, _mm512_shuffle_i64x2(both, both, 0xd8));
    }
    return;
  }
#endif
  if constexpr (kFormat == KernelFormat::ci4) {
    static_for<0, 128 / kLanes>([&](auto g) RYLE_ALWAYS {
      __builtin_memcpy(cell + g * kLanes, piece + g * plane, kLanes);
    });
  } else {
    constexpr int kPart = kFormat == KernelFormat::ci8 ? 1 : kFormat == KernelFormat::cf16 ? 2 : 4;
    constexpr int kRun = kFormat == KernelFormat::cf32 ? 64 : 32;  // bytes of real parts in a row
    static_for<0, 64 / kPart / kLanes>([&](auto g) RYLE_ALWAYS {
      constexpr int kBytes = kPart * kLanes;
      constexpr int kAt = g * kBytes / kRun * 2 * kRun + g * kBytes % kRun;
      __builtin_memcpy(cell + kAt, piece + g * plane, kBytes);
      __builtin_memcpy(cell + kAt + kRun, piece + g * plane + kBytes, kBytes);
    });
  }
}

template <KernelFormat kFormat>
RYLE_INLINE double squares(const std::byte* cell) {
  if constexpr (kFormat == KernelFormat::ci8) {
    const I sum = squares_of_bytes(cell);
#if defined(__AVX512F__)
    return _mm512_reduce_add_epi32((__m512i)sum);
#else
    std::int32_t total = 0;
    for (int l = 0; l < kLanes; ++l) total += sum[l];
    return total;
#endif
  }
  if constexpr (kFormat == KernelFormat::ci4) return squares_of_nibbles(cell);
  if constexpr (kFormat == KernelFormat::cf16) return squares_of_halves(cell);
  return squares_of_floats(cell);
}

/// Whole lines that nobody reads soon: past the caches where the address allows it.
RYLE_INLINE void copy_cell(const std::byte* from, std::byte* to) {
#if defined(__AVX512F__)
  if ((reinterpret_cast<std::uintptr_t>(to) & 63) == 0) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_load_si512(from));
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 64), _mm512_load_si512(from + 64));
    return;
  }
#endif
  __builtin_memcpy(to, from, 128);
}

template <KernelFormat kFormat>
void flush_format(const KernelPlan& plan, const std::byte* piece, std::byte* cells,
                  std::int64_t channel_stride_bytes, KernelCounts* counts) {
  constexpr std::int64_t kPiece = piece_bytes(kFormat);
  const std::int64_t plane = plan.n_points * kPiece;
  alignas(64) std::byte cell[128];
  for (std::int64_t at = 0; at < plan.n_points; ++at, piece += kPiece) {
    gather<kFormat>(piece, plane, cell);
    copy_cell(cell, cells + plan.channel_of[at] * channel_stride_bytes);
    if (counts != nullptr) counts[at].sum_of_squares += squares<kFormat>(cell);
  }
}

inline void flush(const KernelPlan& plan, const std::byte* codes, std::byte* cells,
                  std::int64_t channel_stride_bytes, KernelCounts* counts) {
  switch (plan.format) {
    case KernelFormat::ci8:
      flush_format<KernelFormat::ci8>(plan, codes, cells, channel_stride_bytes, counts);
      break;
    case KernelFormat::ci4:
      flush_format<KernelFormat::ci4>(plan, codes, cells, channel_stride_bytes, counts);
      break;
    case KernelFormat::cf16:
      flush_format<KernelFormat::cf16>(plan, codes, cells, channel_stride_bytes, counts);
      break;
    default:
      flush_format<KernelFormat::cf32>(plan, codes, cells, channel_stride_bytes, counts);
      break;
  }
#if defined(__AVX512F__)
  _mm_sfence();  // streaming stores are not ordered by the locks that hand the blocks on
#endif
}
