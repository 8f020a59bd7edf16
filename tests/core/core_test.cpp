// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <vector>

#include "ryle/core/baseline.hpp"
#include "ryle/core/bits.hpp"
#include "ryle/core/blocks.hpp"
#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/core/time.hpp"

namespace ryle {
namespace {

TEST(Baseline, TableOfTheConventions) {
  // conventions.md 5: autos at 0, 2, 5, 9.
  EXPECT_EQ(pair_index(0, 0), 0);
  EXPECT_EQ(pair_index(0, 1), 1);
  EXPECT_EQ(pair_index(1, 1), 2);
  EXPECT_EQ(pair_index(2, 3), 8);
  EXPECT_EQ(pair_index(3, 3), 9);
  EXPECT_EQ(n_pairs(64), 2080);
}

TEST(Baseline, PairOfInvertsPairIndex) {
  for (std::int64_t j = 0; j < 300; ++j) {
    for (std::int64_t i = 0; i <= j; ++i)
      EXPECT_EQ(pair_of(pair_index(i, j)), std::make_pair(i, j));
  }
  const std::int64_t large = 2'000'000'000;
  EXPECT_EQ(pair_of(pair_index(large, large)), std::make_pair(large, large));
  EXPECT_EQ(pair_of(pair_index(0, large)), std::make_pair(std::int64_t{0}, large));
}

TEST(SampleClock, RationalRatesAreExactOverAYear) {
  const SampleClock clock{1'000, {78125, 4}};  // 19 531.25 Hz: 51.2 us
  EXPECT_EQ(clock.tai_ns(0), 1'000);
  EXPECT_EQ(clock.tai_ns(1), 52'200);
  const Tick year = Tick{78125} * 8'000'000;  // 1.024 * 32e6 s
  EXPECT_EQ(clock.tai_ns(year), 1'000 + std::int64_t{32'000'000} * 1'000'000'000);
  EXPECT_EQ(clock.tai_ns(-1), 1'000 - 51'200);
}

TEST(SampleClock, FloorsBelowAsAboveZero) {
  const SampleClock clock{0, {3, 1}};  // a third of a second: not a whole number of ns
  EXPECT_EQ(clock.tai_ns(1), 333'333'333);
  EXPECT_EQ(clock.tai_ns(-1), -333'333'334);
}

TEST(Bits, RangesAcrossWords) {
  std::array<std::uint64_t, 3> row{};
  set_bits(row.data(), 60, 130);
  for (std::int64_t k = 0; k < 192; ++k)
    EXPECT_EQ(test_bit(row.data(), k), k >= 60 && k < 130) << k;
  clear_bits(row.data(), 64, 128);
  for (std::int64_t k = 0; k < 192; ++k)
    EXPECT_EQ(test_bit(row.data(), k), (k >= 60 && k < 64) || k == 128 || k == 129);
}

TEST(Checked, OverflowIsAConfigError) {
  EXPECT_EQ(checked_product({3, 5, 7}, "x"), 105);
  EXPECT_THROW(checked_product({std::int64_t{1} << 40, std::int64_t{1} << 40}, "x"), ConfigError);
  EXPECT_THROW(checked_product({-1, 5}, "x"), ConfigError);
}

TEST(IoError, ExitCodesFollowErrno) {
  EXPECT_EQ(IoError::from_errno("read", "a", ENOENT).exit_code(), ExitCode::no_input);
  EXPECT_EQ(IoError::from_errno("create", "a", ENOENT, true).exit_code(), ExitCode::cannot_create);
  EXPECT_EQ(IoError::from_errno("write", "a", EACCES).exit_code(), ExitCode::no_permission);
  EXPECT_EQ(IoError::from_errno("write", "a", ENOSPC).exit_code(), ExitCode::io);
  EXPECT_STREQ(IoError::from_errno("read", "/x", ENOENT).what(),
               "cannot read /x: No such file or directory");
}

TEST(Random, GaussianHasUnitVariance) {
  constexpr int kDraws = 200'000;
  double sum = 0;
  double squares = 0;
  for (int k = 0; k < kDraws; ++k) {
    const double g = gaussian(combine(5, static_cast<std::uint64_t>(k)));
    sum += g;
    squares += g * g;
  }
  // 5 sigma: mean 1/sqrt(n), variance sqrt(2/n).
  EXPECT_NEAR(sum / kDraws, 0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 5 * std::sqrt(2.0 / kDraws));
}

class Blocks : public ::testing::TestWithParam<SampleFormat> {};

// A unique value at every (channel, input, spectrum) must come back, and every other byte stay
// untouched.
TEST_P(Blocks, EveryCellHasItsOwnPlace) {
  const SampleFormat format = GetParam();
  const std::int64_t channels = 2;
  const std::int64_t inputs = 3;
  const std::int64_t spectra = spectra_per_block(format) + 5;
  std::vector<std::byte> memory(
      static_cast<std::size_t>(dense_blocks_bytes(format, channels, spectra, inputs)));
  const BlockView view = dense_blocks(memory.data(), format, channels, spectra, inputs);
  const double scale = format == SampleFormat::ci16 ? 200 : 1;
  const auto value = [&](std::int64_t c, std::int64_t i, std::int64_t t) {
    const int half = format == SampleFormat::ci4 ? 8 : 128;
    const auto key =
        static_cast<int>(mix64(static_cast<std::uint64_t>(c * 1000003 + i * 1009 + t)) & 0xffff);
    return cf64(scale * (key % (2 * half) - half), scale * (key / 256 % (2 * half) - half));
  };
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t i = 0; i < inputs; ++i)
      for (std::int64_t t = 0; t < spectra; ++t) set_sample(view, c, t, i, value(c, i, t));
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t i = 0; i < inputs; ++i)
      for (std::int64_t t = 0; t < spectra; ++t)
        EXPECT_EQ(get_sample(view, c, t, i), value(c, i, t)) << c << i << t;
}
INSTANTIATE_TEST_SUITE_P(Formats, Blocks,
                         ::testing::Values(SampleFormat::ci4, SampleFormat::ci8, SampleFormat::ci16,
                                           SampleFormat::cf32));

TEST(Blocks, LayoutOfTheContract) {
  // correlate.md 2: re of spectra 0-31, im 0-31, re 32-63, im 32-63.
  std::vector<std::byte> memory(128);
  const BlockView view = dense_blocks(memory.data(), SampleFormat::ci8, 1, 64, 1);
  set_sample(view, 0, 31, 0, {1, 2});
  set_sample(view, 0, 32, 0, {3, -128});
  EXPECT_EQ(memory[31], std::byte{1});
  EXPECT_EQ(memory[63], std::byte{2});
  EXPECT_EQ(memory[64], std::byte{3});
  EXPECT_EQ(memory[96], std::byte{0x80});
}

TEST(Samples, CodesOfEveryEncoding) {
  const std::array<unsigned char, 4> bytes{0x8f, 0x01, 0xc3, 0x7f};
  SampleLayout layout{.format = SampleFormat::ci4, .sample_stride_bits = 8};
  EXPECT_EQ(decode_sample(layout, bytes.data(), 0, 0), cf64(-8, -1));
  layout.imag_first = true;
  EXPECT_EQ(decode_sample(layout, bytes.data(), 0, 0), cf64(-1, -8));
  layout = {
      .format = SampleFormat::i8, .encoding = Encoding::offset_binary, .sample_stride_bits = 8};
  EXPECT_EQ(decode_sample(layout, bytes.data(), 0, 3), cf64(-1, 0));
  layout = {.format = SampleFormat::i1,
            .encoding = Encoding::levels,
            .msb_first = true,
            .sample_stride_bits = 1};
  EXPECT_EQ(decode_sample(layout, bytes.data(), 0, 0), cf64(1, 0));
  EXPECT_EQ(decode_sample(layout, bytes.data(), 0, 1), cf64(-1, 0));
  layout = {.format = SampleFormat::ci5, .re_shift = 0, .im_shift = 5, .sample_stride_bits = 16};
  const std::array<std::uint16_t, 1> word{static_cast<std::uint16_t>((0b10000 << 5) | 0b11111)};
  EXPECT_EQ(decode_sample(layout, word.data(), 0, 0), cf64(-1, -16));
}

TEST(Samples, UnknownNamesAreRejectedWithTheKnownOnes) {
  EXPECT_EQ(sample_format("ci8"), SampleFormat::ci8);
  try {
    sample_format("int8");
    FAIL();
  } catch (const UnsupportedError& e) {
    EXPECT_NE(std::string(e.what()).find("ci8"), std::string::npos);
  }
}

}  // namespace
}  // namespace ryle
