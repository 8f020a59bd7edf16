// SPDX-License-Identifier: BSD-3-Clause
// T-FE-01: every format, encoding, stride and alignment against decode_sample.
#include "ryle/engine/channelize/unpack.hpp"

#include "tests/engine/channelize/harness.hpp"

namespace ryle::channelize::test {
namespace {

using detail::Unpacker;

/// Every sample of a random buffer, from every offset 0..17, must decode as decode_sample says;
/// sentinels stay.
void expect_exact(const SampleLayout& layout, std::int64_t n_inputs, const std::string& what) {
  constexpr std::int64_t kSamples = 151;
  const Unpacker unpacker(layout);
  const auto bytes = random_samples(layout, n_inputs, kSamples, 30, 11);
  const int parts = is_complex(layout.format) ? 2 : 1;
  for (const std::int64_t from : {0, 1, 2, 3, 5, 7, 8, 13, 17}) {
    const std::int64_t count = kSamples - from - (from % 3);
    const std::int64_t row_bytes = count * unpacker.sample_bytes() + 8;
    std::vector<std::byte> out(static_cast<std::size_t>(n_inputs * row_bytes), std::byte{0xCD});
    unpacker.unpack(bytes.data(), 0, n_inputs, from, count, out.data(), row_bytes);
    for (std::int64_t p = 0; p < n_inputs; ++p) {
      const std::byte* row = out.data() + p * row_bytes;
      for (std::int64_t t = 0; t < count; ++t) {
        const cf64 want = decode_sample(layout, bytes.data(), p, from + t);
        for (int part = 0; part < parts; ++part) {
          double got = 0;
          if (unpacker.floats()) {
            float value;
            std::memcpy(&value, row + 4 * (parts * t + part), 4);
            got = value;
          } else {
            got = static_cast<double>(static_cast<std::int8_t>(row[parts * t + part]));
          }
          ASSERT_EQ(got, part == 0 ? want.real() : want.imag())
              << what << " input " << p << " sample " << from + t;
        }
      }
      for (std::int64_t b = count * unpacker.sample_bytes(); b < row_bytes; ++b) {
        ASSERT_EQ(row[b], std::byte{0xCD}) << what << " wrote past the end";
      }
    }
  }
}

std::vector<Encoding> encodings(SampleFormat format) {
  switch (format) {
    case SampleFormat::f32:
    case SampleFormat::cf16:
    case SampleFormat::cf32:
      return {Encoding::twos_complement};
    case SampleFormat::i1:
    case SampleFormat::i2:
    case SampleFormat::ci1:
    case SampleFormat::ci2:
      return {Encoding::twos_complement, Encoding::offset_binary, Encoding::levels};
    default:
      return {Encoding::twos_complement, Encoding::offset_binary};
  }
}

TEST(Unpack, every_format_and_alignment_is_exact) {
  for (int f = 0; f <= static_cast<int>(SampleFormat::cf32); ++f) {
    const auto format = static_cast<SampleFormat>(f);
    for (const Encoding encoding : encodings(format)) {
      for (int order = 0; order < 4; ++order) {
        SampleLayout layout;
        layout.format = format;
        layout.encoding = encoding;
        layout.msb_first = (order & 1) != 0;
        layout.imag_first = (order & 2) != 0;
        const int bits = bits_per_sample(format);
        const std::string what = std::string(name(format)) + " encoding " +
                                 std::to_string(static_cast<int>(encoding)) + " order " +
                                 std::to_string(order);
        layout.sample_stride_bits = bits;  // each input on its own, packed
        layout.input_stride_bits = 200 * bits;
        expect_exact(layout, 3, what + " packed");
        layout.input_stride_bits = bits;  // [time][input], 19 inputs: two groups of eight and three
        layout.sample_stride_bits = 19 * bits;
        if (bits >= 8) expect_exact(layout, 19, what + " interleaved");
        layout.sample_stride_bits = 3 * std::max(bits, 8);  // gaps between samples
        layout.input_stride_bits = 1024 * std::max(bits, 8);
        expect_exact(layout, 2, what + " sparse");
      }
    }
  }
}

TEST(Unpack, bits_that_straddle_bytes_are_exact) {
  for (const auto format :
       {SampleFormat::i2, SampleFormat::i4, SampleFormat::ci2, SampleFormat::i1}) {
    SampleLayout layout;
    layout.format = format;
    layout.sample_stride_bits = bits_per_sample(format) + 1;
    layout.input_stride_bits = 1999;
    expect_exact(layout, 2, std::string(name(format)) + " odd stride");
  }
}

TEST(Unpack, all_codes_of_five_in_sixteen_at_all_shifts) {
  for (const int re : {0, 3, 5, 11}) {
    for (const int im : {0, 5, 8, 11}) {
      for (const auto encoding : {Encoding::twos_complement, Encoding::offset_binary}) {
        SampleLayout layout;
        layout.format = SampleFormat::ci5;
        layout.encoding = encoding;
        layout.re_shift = re;
        layout.im_shift = im;
        layout.input_stride_bits = 16;
        layout.sample_stride_bits = 64 * 16;
        expect_exact(layout, 64, "ci5 " + std::to_string(re) + " " + std::to_string(im));
        layout.sample_stride_bits = 16;
        layout.input_stride_bits = 16 * 200;
        expect_exact(layout, 2, "ci5 packed");
      }
    }
  }
}

}  // namespace
}  // namespace ryle::channelize::test
