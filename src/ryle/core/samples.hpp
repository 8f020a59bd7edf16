// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <complex>
#include <cstdint>
#include <string_view>

namespace ryle {

/// Complex integer sample, real first.
template <class T>
struct ComplexInt {
  T re{};
  T im{};
  friend bool operator==(const ComplexInt&, const ComplexInt&) = default;
};
using ci8 = ComplexInt<std::int8_t>;
using ci16 = ComplexInt<std::int16_t>;
using ci32 = ComplexInt<std::int32_t>;
using ci64 = ComplexInt<std::int64_t>;
using cf32 = std::complex<float>;
using cf64 = std::complex<double>;

/// Sample types of conventions.md section 9: i* f32 are real, c* are complex (real first).
enum class SampleFormat : std::uint8_t {
  i1,
  i2,
  i4,
  i8,
  i16,
  f32,
  ci1,
  ci2,
  ci4,
  ci5,
  ci8,
  ci16,
  cf16,
  cf32
};

/// How an integer code becomes a value.
enum class Encoding : std::uint8_t {
  twos_complement,
  offset_binary,  ///< value = code - 2^(bits-1)
  levels,         ///< 1 bit: {-1,+1}; 2 bit: {-10,-3,+3,+10} (ratio 3.333, ingest.md 2.7)
};

bool is_complex(SampleFormat format);
/// Bits one sample occupies in memory (complex: both parts). ci5 is 5+5 bits in a 16-bit word: 16.
int bits_per_sample(SampleFormat format);
std::string_view name(SampleFormat format);
/// Inverse of name(); throws UnsupportedError that lists the known names.
SampleFormat sample_format(std::string_view name);

/// Where the sample of input p at tick t lies, counted in bits from the start of a buffer:
/// p * input_stride_bits + t * sample_stride_bits. Multi-byte words are little endian.
struct SampleLayout {
  SampleFormat format = SampleFormat::ci8;
  Encoding encoding = Encoding::twos_complement;
  bool msb_first = false;  ///< order of samples inside a byte, formats under 8 bits
  bool imag_first =
      false;         ///< ci4 and smaller: real part in the low bits (conventions.md: real high)
  int re_shift = 0;  ///< ci5: lowest bit of the real part in the 16-bit word
  int im_shift = 5;  ///< ci5: lowest bit of the imaginary part
  std::int64_t input_stride_bits = 0;
  std::int64_t sample_stride_bits = 0;
  friend bool operator==(const SampleLayout&, const SampleLayout&) = default;
};

/// Value of one sample in LSB units, the slow textbook way (reference and tests).
/// 1-bit `levels` give +-1, 2-bit give -10 -3 +3 +10.
cf64 decode_sample(const SampleLayout& layout, const void* buffer, std::int64_t input,
                   std::int64_t tick);

}  // namespace ryle
