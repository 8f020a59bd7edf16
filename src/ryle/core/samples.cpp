// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/core/samples.hpp"

#include <array>
#include <cstring>
#include <string>

#include "ryle/core/error.hpp"

namespace ryle {
namespace {

struct FormatMetadata {
  SampleFormat format;
  std::string_view name;
  bool complex;
  int bits;       // in memory
  int part_bits;  // per real or imaginary part
};

constexpr std::array<FormatMetadata, 14> kFormats{{
    {SampleFormat::i1, "i1", false, 1, 1},
    {SampleFormat::i2, "i2", false, 2, 2},
    {SampleFormat::i4, "i4", false, 4, 4},
    {SampleFormat::i8, "i8", false, 8, 8},
    {SampleFormat::i16, "i16", false, 16, 16},
    {SampleFormat::f32, "f32", false, 32, 32},
    {SampleFormat::ci1, "ci1", true, 2, 1},
    {SampleFormat::ci2, "ci2", true, 4, 2},
    {SampleFormat::ci4, "ci4", true, 8, 4},
    {SampleFormat::ci5, "ci5", true, 16, 5},
    {SampleFormat::ci8, "ci8", true, 16, 8},
    {SampleFormat::ci16, "ci16", true, 32, 16},
    {SampleFormat::cf16, "cf16", true, 32, 16},
    {SampleFormat::cf32, "cf32", true, 64, 32},
}};

const FormatMetadata& metadata(SampleFormat format) {
  return kFormats[static_cast<std::size_t>(format)];
}

double decode_code(std::uint32_t code, int bits, Encoding encoding) {
  if (encoding == Encoding::levels) {
    if (bits == 1) return code != 0 ? 1.0 : -1.0;
    if (bits == 2) return std::array<double, 4>{-10, -3, 3, 10}[code & 3];
  }
  const std::int64_t half = std::int64_t{1} << (bits - 1);
  if (encoding == Encoding::offset_binary) return static_cast<double>(std::int64_t{code} - half);
  return static_cast<double>((std::int64_t{code} ^ half) - half);
}

std::uint32_t read_bits(const unsigned char* bytes, std::int64_t bit, int count, bool msb_first) {
  std::uint32_t code = 0;
  for (int k = 0; k < count; ++k) {
    const std::int64_t b = bit + k;
    const unsigned byte = bytes[b >> 3];
    const int in_byte = static_cast<int>(b & 7);
    const std::uint32_t value = (byte >> (msb_first ? 7 - in_byte : in_byte)) & 1u;
    // msb_first: the first bit read is the most significant of the code.
    code |= msb_first ? value << (count - 1 - k) : value << k;
  }
  return code;
}

double half_to_double(std::uint16_t h) {
  const int exponent = (h >> 10) & 31;
  const double mantissa = h & 1023;
  double value = 0;
  if (exponent == 0) {
    value = mantissa / (1 << 24);
  } else {
    value = (1024 + mantissa) / 1024.0;
    for (int e = exponent; e < 15; ++e) value /= 2;
    for (int e = 15; e < exponent; ++e) value *= 2;
  }
  return (h & 0x8000) ? -value : value;
}

}  // namespace

bool is_complex(SampleFormat format) { return metadata(format).complex; }
int bits_per_sample(SampleFormat format) { return metadata(format).bits; }
std::string_view name(SampleFormat format) { return metadata(format).name; }

SampleFormat sample_format(std::string_view text) {
  std::string known;
  for (const auto& f : kFormats) {
    if (f.name == text) return f.format;
    known += known.empty() ? "" : ", ";
    known += f.name;
  }
  throw UnsupportedError("unknown sample format \"" + std::string(text) + "\"; known: " + known);
}

cf64 decode_sample(const SampleLayout& layout, const void* buffer, std::int64_t input,
                   std::int64_t tick) {
  const auto& f = metadata(layout.format);
  const auto* bytes = static_cast<const unsigned char*>(buffer);
  const std::int64_t bit = input * layout.input_stride_bits + tick * layout.sample_stride_bits;
  switch (layout.format) {
    case SampleFormat::f32: {
      float value;
      std::memcpy(&value, bytes + bit / 8, 4);
      return {value, 0};
    }
    case SampleFormat::cf32: {
      std::array<float, 2> value;
      std::memcpy(value.data(), bytes + bit / 8, 8);
      return {value[0], value[1]};
    }
    case SampleFormat::cf16: {
      std::array<std::uint16_t, 2> value;
      std::memcpy(value.data(), bytes + bit / 8, 4);
      return {half_to_double(value[0]), half_to_double(value[1])};
    }
    case SampleFormat::ci5: {
      std::uint16_t word;
      std::memcpy(&word, bytes + bit / 8, 2);
      return {decode_code((word >> layout.re_shift) & 31u, 5, layout.encoding),
              decode_code((word >> layout.im_shift) & 31u, 5, layout.encoding)};
    }
    case SampleFormat::i16: {
      std::uint16_t code;
      std::memcpy(&code, bytes + bit / 8, 2);
      return {decode_code(code, 16, layout.encoding), 0};
    }
    case SampleFormat::ci16: {
      std::array<std::uint16_t, 2> code;
      std::memcpy(code.data(), bytes + bit / 8, 4);
      return {decode_code(code[0], 16, layout.encoding), decode_code(code[1], 16, layout.encoding)};
    }
    case SampleFormat::i8:
      return {decode_code(bytes[bit / 8], 8, layout.encoding), 0};
    case SampleFormat::ci8:
      return {decode_code(bytes[bit / 8], 8, layout.encoding),
              decode_code(bytes[bit / 8 + 1], 8, layout.encoding)};
    case SampleFormat::ci4: {
      // Int4 have one meaning whatever the bit order of smaller samples: high = real unless
      // imag_first.
      const unsigned byte = bytes[bit / 8];
      const double high = decode_code(byte >> 4, 4, layout.encoding);
      const double low = decode_code(byte & 15u, 4, layout.encoding);
      return layout.imag_first ? cf64{low, high} : cf64{high, low};
    }
    default:
      break;
  }
  const double first = decode_code(read_bits(bytes, bit, f.part_bits, layout.msb_first),
                                   f.part_bits, layout.encoding);
  if (!f.complex) return {first, 0};
  const double second =
      decode_code(read_bits(bytes, bit + f.part_bits, f.part_bits, layout.msb_first), f.part_bits,
                  layout.encoding);
  return layout.imag_first ? cf64{second, first} : cf64{first, second};
}

}  // namespace ryle
