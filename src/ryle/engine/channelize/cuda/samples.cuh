// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_fp16.h>

#include "ryle/core/samples.hpp"

/// core/samples.cpp's decode_sample() on the device: the value of one sample in LSB units.
namespace ryle::channelize::detail {

__device__ inline float decode_code(unsigned code, int bits, Encoding encoding) {
  if (encoding == Encoding::levels) {
    if (bits == 1) return code != 0 ? 1.0f : -1.0f;
    if (bits == 2)
      return (code & 2u) != 0 ? ((code & 1u) != 0 ? 10.0f : 3.0f)
                              : ((code & 1u) != 0 ? -3.0f : -10.0f);
  }
  const int half = 1 << (bits - 1);
  const int word = static_cast<int>(code);
  return static_cast<float>(encoding == Encoding::offset_binary ? word - half
                                                                : (word ^ half) - half);
}

__device__ inline unsigned read_bits(const unsigned char* bytes, long long bit, int count,
                                     bool msb_first) {
  unsigned code = 0;
  for (int k = 0; k < count; ++k) {
    const long long b = bit + k;
    const int in_byte = static_cast<int>(b & 7);
    const unsigned value = (bytes[b >> 3] >> (msb_first ? 7 - in_byte : in_byte)) & 1u;
    code |= msb_first ? value << (count - 1 - k) : value << k;
  }
  return code;
}

__device__ inline unsigned read_word(const unsigned char* bytes) {
  return bytes[0] | static_cast<unsigned>(bytes[1]) << 8;
}
__device__ inline float read_float(const unsigned char* bytes) {
  return __uint_as_float(read_word(bytes) | read_word(bytes + 2) << 16);
}

__device__ inline float2 small_complex(const SampleLayout& layout, const unsigned char* bytes,
                                       long long bit, int part_bits) {
  const float first =
      decode_code(read_bits(bytes, bit, part_bits, layout.msb_first), part_bits, layout.encoding);
  const float second = decode_code(read_bits(bytes, bit + part_bits, part_bits, layout.msb_first),
                                   part_bits, layout.encoding);
  return layout.imag_first ? float2{second, first} : float2{first, second};
}

/// Any format, byte by byte, so that any alignment works. Real formats give {value, 0}.
__device__ inline float2 decode_any(const SampleLayout& layout, const unsigned char* bytes,
                                    long long bit) {
  const unsigned char* at = bytes + (bit >> 3);
  const Encoding encoding = layout.encoding;
  switch (layout.format) {
    case SampleFormat::i8:
      return {decode_code(at[0], 8, encoding), 0};
    case SampleFormat::ci8:
      return {decode_code(at[0], 8, encoding), decode_code(at[1], 8, encoding)};
    case SampleFormat::i16:
      return {decode_code(read_word(at), 16, encoding), 0};
    case SampleFormat::ci16:
      return {decode_code(read_word(at), 16, encoding),
              decode_code(read_word(at + 2), 16, encoding)};
    case SampleFormat::ci4: {
      const float high = decode_code(at[0] >> 4, 4, encoding);
      const float low = decode_code(at[0] & 15u, 4, encoding);
      return layout.imag_first ? float2{low, high} : float2{high, low};
    }
    case SampleFormat::ci5: {
      const unsigned word = read_word(at);
      return {decode_code((word >> layout.re_shift) & 31u, 5, encoding),
              decode_code((word >> layout.im_shift) & 31u, 5, encoding)};
    }
    case SampleFormat::f32:
      return {read_float(at), 0};
    case SampleFormat::cf32:
      return {read_float(at), read_float(at + 4)};
    case SampleFormat::cf16:
      return {__half2float(__ushort_as_half(static_cast<unsigned short>(read_word(at)))),
              __half2float(__ushort_as_half(static_cast<unsigned short>(read_word(at + 2))))};
    case SampleFormat::i1:
      return {decode_code(read_bits(bytes, bit, 1, layout.msb_first), 1, encoding), 0};
    case SampleFormat::i2:
      return {decode_code(read_bits(bytes, bit, 2, layout.msb_first), 2, encoding), 0};
    case SampleFormat::i4:
      return {decode_code(read_bits(bytes, bit, 4, layout.msb_first), 4, encoding), 0};
    case SampleFormat::ci1:
      return small_complex(layout, bytes, bit, 1);
    default:
      return small_complex(layout, bytes, bit, 2);
  }
}

/// How the spectra kernel gets the pair it filters at point n: a complex sample, or two successive
/// real ones. A cursor is the place of one (input, tick), made once per window, so that a sample
/// costs one multiply-add of addressing. kFinite: no value is NaN or infinite, so a tap of weight 0
/// may be applied to a sample outside the window.
struct ReadCi8 {  // two's complement, 2-byte aligned: the common case in one load
  static constexpr bool kReal = false;
  static constexpr bool kFinite = true;
  const unsigned char* start;
  int stride_bytes;

  __device__ ReadCi8(const SampleLayout& layout, const unsigned char* samples, long long input,
                     long long tick)
      : start(samples +
              ((input * layout.input_stride_bits + tick * layout.sample_stride_bits) >> 3)),
        stride_bytes(static_cast<int>(layout.sample_stride_bits >> 3)) {}
  __device__ float2 at(const SampleLayout&, int offset) const {
    const char2 code =
        *reinterpret_cast<const char2*>(start + static_cast<long long>(offset) * stride_bytes);
    return {static_cast<float>(code.x), static_cast<float>(code.y)};
  }
};
template <bool Real, bool Finite>
struct ReadAny {
  static constexpr bool kReal = Real;
  static constexpr bool kFinite = Finite;
  const unsigned char* bytes;
  long long first_bit;

  __device__ ReadAny(const SampleLayout& layout, const unsigned char* samples, long long input,
                     long long tick)
      : bytes(samples),
        first_bit(input * layout.input_stride_bits + tick * layout.sample_stride_bits) {}
  __device__ float2 at(const SampleLayout& layout, int offset) const {
    const long long bit = first_bit + offset * layout.sample_stride_bits;
    if constexpr (!Real) return decode_any(layout, bytes, bit);
    return {decode_any(layout, bytes, bit).x,
            decode_any(layout, bytes, bit + layout.sample_stride_bits).x};
  }
};

}  // namespace ryle::channelize::detail
