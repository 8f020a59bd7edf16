// SPDX-License-Identifier: BSD-3-Clause
// The levels (bench/levels) thread by thread on the host: exact, for any number of
// inputs, channels and spectra, in whatever order threads run between barriers.
#include "tests/support/simt/cuda_names.hpp"
// The kernels follow the words of CUDA they are written in.
#include "bench/levels/launch.cuh"
#include "ryle/core/baseline.hpp"
#include "tests/engine/correlate/voltages.hpp"

namespace ryle::correlate::levels {
namespace {

using test::Voltages;

Gulp gulp_of(const Voltages& v) {
  return {v.view.data,
          v.view.channel_stride_bytes,
          v.view.block_stride_bytes,
          v.view.input_stride_bytes,
          static_cast<int>(v.view.n_inputs),
          static_cast<int>(v.view.n_channels),
          static_cast<int>(v.view.n_blocks)};
}

std::vector<int2> run(const Level& level, const Voltages& v, std::uint64_t seed) {
  const Gulp gulp = gulp_of(v);
  const Launch l = level.launch(gulp);
  // Every sum is set, whatever was there; what lies behind the last one stays.
  const auto n = static_cast<std::size_t>(v.view.n_channels * n_pairs(v.view.n_inputs));
  std::vector<int2> sums(n + 64, int2{-0x32323233, -0x32323233});
  simt::launch({{l.blocks_x, l.blocks_y},
                {l.threads_x, l.threads_y},
                static_cast<std::size_t>(l.dynamic_shared_bytes)},
               seed, [&] { l.kernel(gulp, sums.data()); });
  for (std::size_t k = n; k < sums.size(); ++k) EXPECT_EQ(sums[k].x, -0x32323233) << level.name;
  sums.resize(n);
  return sums;
}

void expect_exact(const Level& level, const Voltages& v, const Sums& want, std::uint64_t seed) {
  const std::vector<int2> got = run(level, v, seed);
  ASSERT_EQ(got.size(), want.integer.size());
  for (std::size_t p = 0; p < got.size(); ++p) {
    ASSERT_EQ((ci64{got[p].x, got[p].y}), want.integer[p])
        << level.name << " N=" << v.view.n_inputs << " C=" << v.view.n_channels
        << " T=" << v.n_spectra << " product " << p << " seed " << seed;
  }
}

struct Shape {
  std::int64_t n_inputs, n_channels, n_spectra;
};

class Levels : public ::testing::TestWithParam<Level> {};

// Sizes on both sides of every tile (2, 4, 32, 64, 128 inputs; 32, 64 channels; 16, 32, 64
// spectra).
TEST_P(Levels, AreExactAtAnyShape) {
  constexpr Shape kShapes[] = {{1, 1, 1},   {2, 3, 63},  {3, 2, 64},   {5, 1, 65}, {31, 1, 9},
                               {33, 1, 70}, {65, 1, 33}, {129, 1, 40}, {4, 67, 20}};
  std::uint64_t seed = 1;
  for (const Shape& s : kShapes) {
    Voltages v(SampleFormat::ci8, s.n_channels, s.n_spectra, s.n_inputs, s.n_inputs % 2 == 1);
    // Small tiles have met their edges by then; a block is a channel, or many are.
    const Launch launch = GetParam().launch(gulp_of(v));
    if ((s.n_inputs > 64 && launch.blocks_x > 10) || launch.blocks_y > 10) continue;
    v.fill_random(seed);
    expect_exact(GetParam(), v, test::expected(v), seed++);
  }
}

// More blocks than wgmma has stages, whether the units do their work at once or when it is waited
// for (two bits of the seed).
TEST(LevelsAsync, AreExactHoweverLateCopiesAndProductsAre) {
  const Level& wgmma = std::end(kLevels)[-1];
  ASSERT_STREQ(wgmma.name, "wgmma");
  Voltages v(SampleFormat::ci8, 1, 390, 5);
  v.fill_random(9);
  const Sums want = test::expected(v);
  for (std::uint64_t seed = 0; seed < 4; ++seed) expect_exact(wgmma, v, want, seed);
  // Rows and columns of different inputs, each with a part of the ring of its own.
  Voltages wide(SampleFormat::ci8, 1, 390, 129);
  wide.fill_random(10);
  expect_exact(wgmma, wide, test::expected(wide), 4);
}

// The order of threads changes nothing, and no sum is too large for the parts it is made of.
TEST_P(Levels, AreExactForTheMostNegativeCodes) {
  Voltages v(SampleFormat::ci8, 1, 192, 6);
  v.fill([](std::int64_t, std::int64_t t, std::int64_t p) {
    return p < 3 ? cf64{-128, p == 1 ? 127.0 : -128.0}
                 : cf64{t % 2 == 0 ? -128.0 : 127.0, p == 4 ? -128.0 : 127.0};
  });
  const Sums want = test::expected(v);
  ASSERT_EQ(want.integer[0], (ci64{192 * 32768, 0}));
  for (std::uint64_t seed = 0; seed < 2; ++seed) expect_exact(GetParam(), v, want, seed);
}

INSTANTIATE_TEST_SUITE_P(All, Levels, ::testing::ValuesIn(kLevels),
                         [](const auto& level) { return std::string(level.param.name); });

}  // namespace
}  // namespace ryle::correlate::levels
