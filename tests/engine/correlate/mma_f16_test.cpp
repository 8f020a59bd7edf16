// SPDX-License-Identifier: BSD-3-Clause
// cuda:mma_f16 thread by thread on the host: its operands, stages and sums.
#include "tests/support/simt/cuda_names.hpp"
// The kernel follows the words of CUDA it is written in.
#include "ryle/core/baseline.hpp"
#include "ryle/engine/correlate/cuda/mma_f16.cuh"
#include "tests/engine/correlate/halves.hpp"

namespace ryle::correlate::test {
namespace {

/// A gulp, then the same on top of it, folded into doubles that were not 0.
std::vector<cf64> mma_f16(const Voltages& v, std::uint64_t seed) {
  const auto n = static_cast<int>(v.view.n_inputs), c = static_cast<int>(v.view.n_channels);
  const detail::CudaGulp gulp{v.view.data,
                              v.view.channel_stride_bytes,
                              v.view.block_stride_bytes,
                              v.view.input_stride_bytes,
                              n,
                              c,
                              0,
                              static_cast<int>(v.view.n_blocks)};
  const auto n_tiles = static_cast<int>(mma::Tiles::n_tiles(n));
  std::vector<float> sums(static_cast<std::size_t>(n_tiles * c * mma::Tiles::kSumsPerTile), 1e9f);
  for (const bool overwrite : {true, false}) {
    simt::launch({{static_cast<unsigned>(n_tiles * c)}, {mma::kThreads}, mma::kSharedBytes}, seed++,
                 [&] { mma::correlate_mma_f16(gulp, n_tiles, overwrite, sums.data()); });
  }
  std::vector<cf64> totals(static_cast<std::size_t>(c * n_pairs(n)), {1, 0});
  simt::launch({{static_cast<unsigned>(n * c)}, {32}}, seed, [&] {
    mma::fold_mma_f16(n, n_tiles, sums.data(), reinterpret_cast<double*>(totals.data()));
  });
  return totals;
}

// Integers, so that fp32 is exact. More blocks than stages; copies are done at once or as late as
// may be (a bit of the seed).
TEST(MmaF16, GivesTheReferenceAtAnyShape) {
  struct Shape {
    std::int64_t n, c, t;
  };
  std::uint64_t seed = 0;
  for (const Shape& s : {Shape{1, 2, 1}, Shape{5, 1, 170}, Shape{65, 1, 70}}) {
    const Voltages v = halves_of(s.n, s.c, s.t, true);
    const Sums want = expected(v);
    const std::vector<cf64> found = mma_f16(v, seed++);
    for (std::size_t p = 0; p < found.size(); ++p)
      ASSERT_EQ(found[p], 2.0 * want.real[p] + 1.0) << "N=" << s.n << " product " << p;
  }
}

}  // namespace
}  // namespace ryle::correlate::test
