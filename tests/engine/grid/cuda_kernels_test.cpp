// SPDX-License-Identifier: BSD-3-Clause
// The gridder's kernels on the host, with their barriers and shared memory (tests/support/simt):
// the bits of the same functions run one after the other.
#include <gtest/gtest.h>

#include "tests/support/simt/cuda_names.hpp"
// After the words of CUDA.
#include "ryle/engine/grid/cuda/gather.cuh"
#include "tests/engine/grid/cuda_on_host.hpp"
#include "tests/engine/grid/grid_table.hpp"

namespace ryle::grid {
namespace {

using namespace cases;

template <class Real, int kChannels>
void emulate(const detail::GridArgs<Real>& a, std::uint64_t seed) {
  const unsigned blocks = (a.chunk.n_jobs + detail::kWarpsPerBlock - 1) / detail::kWarpsPerBlock;
  const simt::Grid grid{{blocks}, {detail::kWarpsPerBlock * detail::kWarp}};
  detail::with_weighing<Real>(a.function.weighing, [&](auto weighing) {
    constexpr detail::Weighing kWeighing = decltype(weighing)::value;
    simt::launch(grid, seed, [&] { detail::grid_jobs<Real, kChannels, kWeighing>(a); });
  });
}

template <class Real>
HostKernels<Real> emulated(std::uint64_t seed) {
  HostKernels<Real> kernels;
  kernels.grid = [seed](int width, const detail::GridArgs<Real>& a) {
    if (a.chunk.n_jobs == 0) return;
    switch (width) {
      case 1:
        return emulate<Real, 1>(a, seed);
      case 4:
        return emulate<Real, 4>(a, seed);
      case 8:
        return emulate<Real, 8>(a, seed);
      default:
        return emulate<Real, 12>(a, seed);
    }
  };
  kernels.reduce = [seed](const detail::ReduceArgs& a) {
    const auto blocks = static_cast<unsigned>(
        (a.map.n_tiles * detail::kWarp + detail::kThreads - 1) / detail::kThreads);
    simt::launch({{blocks}, {detail::kThreads}}, seed, [&] { detail::reduce_jobs(a); });
  };
  return kernels;
}

template <class Real>
std::unique_ptr<CudaOnHost<Real>> run(const Case& c, const Samples& samples, std::uint64_t seed) {
  Queue queue = Queue::cpu(1);
  auto gridder = std::make_unique<CudaOnHost<Real>>(c.config, c.field.cells, 400, 12);
  if (seed > 0) gridder->run_kernels(emulated<Real>(seed));
  const auto plan =
      gridder->plan(queue, positions(queue, c.field.lon_deg.data(), c.field.lat_deg.data(),
                                     static_cast<std::int64_t>(c.field.lon_deg.size())));
  gridder->execute(queue, *plan, samples);
  return gridder;
}

template <class Real>
void expect_same_bits(const Case& c, const Samples& samples) {
  const auto want = run<Real>(c, samples, 0);
  for (const std::uint64_t seed : {1U, 2U}) {
    const auto got = run<Real>(c, samples, seed);
    for (std::int64_t e = 0; e < c.config.n_channels; ++e)
      for (std::int64_t i = 0; i < want->sums().n_cells(); ++i) {
        const Moments &m = got->sums().moments(e, i), &n = want->sums().moments(e, i);
        ASSERT_EQ(got->sums().weighted(e, i), want->sums().weighted(e, i)) << e << " " << i;
        ASSERT_EQ(m.weight, n.weight) << e << " " << i;
        ASSERT_EQ(m.square, n.square) << e << " " << i;
        ASSERT_EQ(m.magnitude, n.magnitude) << e << " " << i;
        ASSERT_EQ(m.count, n.count) << e << " " << i;
      }
  }
}

TEST(CudaGridKernels, AreTheirFunctionsWithBarriers) {
  for (const std::int64_t n_channels : {1, 3, 8, 12}) {
    SCOPED_TRACE(n_channels);
    Case c = make_case(field(60, 30, 11, 7, 500), gauss(), n_channels);
    Samples samples = c.samples;
    samples.values = c.data.data();
    expect_same_bits<float>(c, samples);
    if (n_channels == 3) expect_same_bits<double>(c, samples);
  }
}

TEST(CudaGridKernels, SayWhatIsAbsent) {
  Case c = make_case(field(60, 30, 11, 7, 500), gauss(), 9);
  for (std::size_t k = 100; k < 4'500; k += 450) c.data[k] = kNaN;
  std::vector<float> weights(500, 2);
  weights[3] = 0;
  Samples samples = c.samples;
  samples.values = c.data.data();
  samples.weights = weights.data();
  expect_same_bits<float>(c, samples);
}

}  // namespace
}  // namespace ryle::grid
