// SPDX-License-Identifier: BSD-3-Clause
// Chunks through the ring give what the engines give of all samples at once.
#include "ryle/pipeline/visibility/fx_stream.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "ryle/core/baseline.hpp"
#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kInputs = 3, kChannels = 16, kTaps = 4;

FxStream::Setup stream_setup(std::int64_t chunk_ticks, std::int64_t max_delay = 0) {
  FxStream::Setup setup;
  auto& f = setup.channelize;
  f.n_inputs = kInputs;
  f.n_channels = kChannels;
  f.n_taps = kTaps;
  f.layout.format = SampleFormat::ci8;
  f.layout.input_stride_bits = 16;
  f.layout.sample_stride_bits = 16 * kInputs;
  f.sample_rate_hz = 1e6;
  f.reference_hz = 1e8;
  setup.chunk_ticks = chunk_ticks;
  setup.max_delay_samples = max_delay;
  setup.n_slots = 3;
  return setup;
}

std::vector<ci8> stream_noise(std::int64_t n_ticks) {
  std::vector<ci8> samples(static_cast<std::size_t>(n_ticks * kInputs));
  for (std::size_t k = 0; k < samples.size(); ++k) {
    samples[k] = {static_cast<std::int8_t>(20 * gaussian(2 * k)),
                  static_cast<std::int8_t>(20 * gaussian(2 * k + 1))};
  }
  return samples;
}

/// Spectra [first, first + n) of all samples by one call of either engine.
correlate::Sums at_once(const FxStream::Setup& setup, const std::vector<ci8>& samples,
                        const std::vector<AbsentSpan>& absent, std::int64_t first, std::int64_t n) {
  Queue queue = Queue::cpu(1);
  auto f = setup.channelize;
  f.max_spectra = n;
  auto channelizer = channelize::make_channelizer(queue, f);
  auto correlator =
      correlate::make_correlator(queue, {kInputs, kChannels, f.output, n, "reference"});
  Buffer<std::byte> memory(dense_blocks_bytes(f.output, kChannels, n, kInputs));
  const BlockView blocks = dense_blocks(memory.data(), f.output, kChannels, n, kInputs);
  const std::int64_t words = words_for_bits(n);
  std::vector<std::uint64_t> valid(static_cast<std::size_t>(kInputs * words));
  const auto n_ticks = static_cast<std::int64_t>(samples.size()) / kInputs;
  channelizer->execute(queue, {samples.data(), 0, n_ticks, absent}, first, n,
                       {blocks, valid.data(), words, nullptr});
  correlator->execute(queue, {blocks, n, valid.data(), words, 0});
  correlate::Sums sums;
  correlator->finish(queue, sums);
  return sums;
}

// Chunks shorter and longer than the filter, delays, absent samples across chunks, two dumps; as
// many chunks wait as the ring takes.
TEST(FxStream, ChunksGiveTheSumsOfAllSamplesAtOnce) {
  constexpr std::int64_t kLength = kTaps * kChannels;
  for (const std::int64_t chunk : {64, 192, 448}) {
    for (const std::int64_t delay : {0, 5}) {
      const bool turned = (delay == 0) == (chunk == 192);
      SCOPED_TRACE(std::to_string(chunk) + " ticks, delay " + std::to_string(delay) +
                   (turned ? ", turned" : ""));
      const std::int64_t n_chunks = 4032 / chunk, half = n_chunks / 2;
      const auto samples = stream_noise(n_chunks * chunk);
      const std::vector<AbsentSpan> absent{{1, 3 * chunk - 20, 3 * chunk + 30}};
      FxStream::Setup setup = stream_setup(chunk, delay);
      setup.always_transposed = turned;
      FxStream stream(Queue::cpu(1), setup);
      EXPECT_TRUE(stream.empty());
      std::vector<std::int64_t> done;
      std::vector<correlate::Sums> dumps;
      std::vector<ci8> buffer(static_cast<std::size_t>(chunk * kInputs));
      std::int64_t pushed = 0;
      for (std::int64_t k = 0; k < n_chunks; ++k) {
        while (!stream.full() && pushed < n_chunks) {
          stream.wait_copied();
          std::copy_n(samples.begin() + pushed * chunk * kInputs, buffer.size(), buffer.begin());
          stream.push(buffer.data(), pushed == 2 ? absent : std::vector<AbsentSpan>{});
          ++pushed;
        }
        stream.advance();
        if (k + 1 != half && k + 1 != n_chunks) continue;
        stream.begin_dump();
        const FxStream::Dump d = stream.wait_dump();
        done.push_back(stream.spectra_done());
        dumps.push_back({{d.integer.begin(), d.integer.end()},
                         {},
                         {d.counts.begin(), d.counts.end()},
                         d.n_spectra});
      }
      const std::int64_t first = (delay + kChannels - 1) / kChannels;
      // (ticks - L - delay) / M + 1 windows end in time; those that begin before the data are not.
      ASSERT_EQ(done[1], (n_chunks * chunk - kLength - delay) / kChannels + 1 - first);
      const std::int64_t begin[] = {first, first + done[0]};
      const std::int64_t n[] = {done[0], done[1] - done[0]};
      for (std::size_t k = 0; k < 2; ++k) {
        const correlate::Sums want = at_once(setup, samples, absent, begin[k], n[k]);
        EXPECT_EQ(dumps[k].n_spectra, n[k]);
        EXPECT_EQ(dumps[k].integer, want.integer) << "dump " << k;
        EXPECT_EQ(dumps[k].counts, want.counts) << "dump " << k;
      }
      EXPECT_LT(dumps[0].counts[static_cast<std::size_t>(pair_index(1, 1))], dumps[0].counts[0]);
    }
  }
}

TEST(FxStream, RefusesPartsOfGroups) {
  EXPECT_THROW(FxStream(Queue::cpu(1), stream_setup(100)), ConfigError);
  EXPECT_THROW(FxStream(Queue::cpu(1), stream_setup(0)), ConfigError);
  auto setup = stream_setup(64);
  setup.n_slots = 1;
  EXPECT_THROW(FxStream(Queue::cpu(1), setup), ConfigError);
}

}  // namespace
}  // namespace ryle::pipeline
