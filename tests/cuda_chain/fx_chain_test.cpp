// SPDX-License-Identifier: BSD-3-Clause
// F and X on the device: the reference's visibilities, and copies beside work give the bits of one
// after the other.
#include "ryle/pipeline/visibility/fx_chain.hpp"

#include <cmath>

#include "ryle/core/baseline.hpp"
#include "ryle/core/bits.hpp"
#include "tests/cuda/cuda_test.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kInputs = 5, kChannels = 32, kTaps = 4;
constexpr std::int64_t kTicks = 64 * 192;

channelize::Config channels_of_chain() {
  channelize::Config f;
  f.n_inputs = kInputs;
  f.n_channels = kChannels;
  f.n_taps = kTaps;
  f.layout.format = SampleFormat::ci8;
  f.layout.input_stride_bits = 16;
  f.layout.sample_stride_bits = 16 * kInputs;
  f.sample_rate_hz = 1e6;
  f.reference_hz = 1e8;
  return f;
}

/// Power 512 in each channel: 16 LSB a part.
std::vector<std::byte> stream_samples() {
  std::vector<std::byte> bytes(static_cast<std::size_t>(2 * kInputs * kTicks));
  for (std::size_t k = 0; k < bytes.size(); ++k)
    bytes[k] = static_cast<std::byte>(static_cast<std::int8_t>(16 * gaussian(k)));
  return bytes;
}

class CudaFxChain : public test::CudaTest {
 protected:
  /// All spectra at once by the engines of a queue.
  correlate::Sums at_once(Queue& on, const void* samples, const std::string& name) {
    channelize::Config f = channels_of_chain();
    const std::int64_t n = (kTicks - kTaps * kChannels) / kChannels + 1;
    f.max_spectra = n;
    f.implementation = name;
    auto channelizer = channelize::make_channelizer(on, f);
    auto correlator = correlate::make_correlator(on, {kInputs, kChannels, f.output, n, name});
    const bool cuda = on.back_end() == BackEnd::cuda;
    Buffer<std::byte> memory(dense_blocks_bytes(f.output, kChannels, n, kInputs),
                             cuda ? MemorySpace::device : MemorySpace::host);
    const BlockView blocks = dense_blocks(memory.data(), f.output, kChannels, n, kInputs);
    const std::int64_t words = words_for_bits(n);
    std::vector<std::uint64_t> valid(static_cast<std::size_t>(kInputs * words));
    channelizer->execute(on, {samples, 0, kTicks, {}}, 0, n,
                         {blocks, valid.data(), words, nullptr});
    correlator->execute(on, {blocks, n, valid.data(), words, 0});
    correlate::Sums sums;
    correlator->finish(on, sums);
    return sums;
  }
};

// The codes of the GPU's channelizer are at most 1 LSB off in 1e-4 of the samples (T-FE-02): of the
// 4 x 381 parts behind a product less than one in five products has one, of 2 the other's magnitude
// is below 5 x 23 LSB, so 4e-3 of sqrt(P_i P_j) = 381 x 512 is ten such.
TEST_F(CudaFxChain, VisibilitiesAreTheReference) {
  const auto samples = stream_samples();
  const Buffer<std::byte> uploaded = upload(samples);
  Queue host = Queue::cpu(1);
  const correlate::Sums found = at_once(queue(), uploaded.data(), "cuda");
  const correlate::Sums want = at_once(host, samples.data(), "reference");
  ASSERT_EQ(found.counts, want.counts);
  const auto pairs = static_cast<std::size_t>(n_pairs(kInputs));
  for (std::size_t p = 0; p < want.integer.size(); ++p) {
    const auto [i, j] = pair_of(static_cast<std::int64_t>(p % pairs));
    const ci64* channel = want.integer.data() + p / pairs * pairs;
    const double scale = std::sqrt(static_cast<double>(channel[pair_index(i, i)].re) *
                                   static_cast<double>(channel[pair_index(j, j)].re));
    EXPECT_NEAR(static_cast<double>(found.integer[p].re), static_cast<double>(want.integer[p].re),
                4e-3 * scale);
    EXPECT_NEAR(static_cast<double>(found.integer[p].im), static_cast<double>(want.integer[p].im),
                4e-3 * scale);
  }
}

// Gulps are copied beside the work on those before, straight from page-locked memory or by way of
// it, and two queues share the channels: the dumps are those of samples that come all at once, on
// one.
TEST_F(CudaFxChain, ChainsOfOneAndTwoQueuesGiveTheSameDumps) {
  const auto samples = stream_samples();
  const Buffer<std::byte> pinned(static_cast<std::int64_t>(samples.size()), MemorySpace::pinned);
  std::memcpy(pinned.data(), samples.data(), samples.size());
  const std::vector<AbsentSpan> lost{{1, 7000, 7400}, {4, 7300, 7310}};  // of the third dump
  const auto run = [&](int n_queues, std::int64_t piece, const std::byte* from) {
    std::vector<Queue> queues;
    for (int k = 0; k < n_queues; ++k) queues.push_back(Queue::cuda(0));
    FxChain::Setup setup;
    setup.channelize = channels_of_chain();
    setup.spectra_per_dump = 100;
    setup.spectra_per_gulp = 16;
    setup.max_feed_ticks = 1024;
    std::vector<RawDump> dumps;
    FxChain chain(
        queues, setup, [](channelize::Channelizer&, const SampleClock&, Tick, Tick) {},
        [&](RawDump&& dump) { dumps.push_back(std::move(dump)); });
    EXPECT_EQ(chain.n_parts(), n_queues);
    for (Tick t = 0; t < kTicks; t += t == 0 ? 1024 : piece) {
      const std::int64_t n = std::min<std::int64_t>(t == 0 ? 1024 : piece, kTicks - t);
      std::vector<AbsentSpan> absent;
      for (const AbsentSpan& a : lost) {
        const AbsentSpan here{a.input, std::max(a.begin, t), std::min(a.end, t + n)};
        if (here.begin < here.end) absent.push_back(here);
      }
      chain.feed(from + 2 * kInputs * t, t, n, absent, 0, {0, {1000000, 1}});
    }
    chain.flush();
    return dumps;
  };
  const auto want = run(1, 1024, samples.data());
  ASSERT_EQ(want.size(), 4u);
  // 400 ticks of an input cost the spectra whose windows of 128 touch them, of 32 ticks each.
  EXPECT_EQ(want[1].sums.counts[static_cast<std::size_t>(pair_index(1, 1))], 100u);
  EXPECT_EQ(want[2].sums.counts[static_cast<std::size_t>(pair_index(0, 0))], 100u);
  EXPECT_EQ(want[2].sums.counts[static_cast<std::size_t>(pair_index(1, 1))], 100u - 17u);
  EXPECT_EQ(want[2].statistics[1].n_samples, 100 - 17);
  for (const int n_queues : {1, 2, 3}) {
    for (const bool locked : {false, true}) {
      const auto found = run(n_queues, 320, locked ? pinned.data() : samples.data());
      ASSERT_EQ(found.size(), want.size());
      for (std::size_t d = 0; d < want.size(); ++d) {
        EXPECT_EQ(found[d].sums.integer, want[d].sums.integer) << n_queues << " queues, dump " << d;
        EXPECT_EQ(found[d].sums.counts, want[d].sums.counts);
        for (std::size_t k = 0; k < want[d].statistics.size(); ++k) {
          ASSERT_EQ(found[d].statistics[k].n_samples, want[d].statistics[k].n_samples);
          ASSERT_EQ(found[d].statistics[k].sum_of_squares, want[d].statistics[k].sum_of_squares);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ryle::pipeline
