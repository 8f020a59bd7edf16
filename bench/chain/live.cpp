// SPDX-License-Identifier: BSD-3-Clause
#include "bench/chain/live.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"
#include "ryle/pipeline/beam/beam_chain.hpp"
#include "ryle/pipeline/beam/live_beams.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/search/search_consumers.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::bench {
namespace {

constexpr std::int64_t kInputs = 32;
constexpr std::int64_t kLap = 8192;  // spectra of noise, then again
constexpr double kNoiseRms_lsb = 2.3;

std::uint8_t noise_sample(std::uint64_t key) {
  const auto code = [](double x) {
    return static_cast<unsigned>(static_cast<int>(std::clamp(std::rint(x), -8.0, 7.0))) & 15u;
  };
  return static_cast<std::uint8_t>(code(kNoiseRms_lsb * gaussian(combine(key, 1))) << 4 |
                                   code(kNoiseRms_lsb * gaussian(combine(key, 2))));
}

/// Chunks as the receiver hands them on. @shape [channel][spectrum / 128][pair][128][2]
std::vector<Buffer<std::uint8_t>> noise_chunks(std::int64_t n_channels, std::int64_t n_spectra,
                                               MemorySpace space) {
  std::vector<std::uint8_t> noise(65536);
  for (std::size_t k = 0; k < noise.size(); ++k) noise[k] = noise_sample(k);
  std::vector<Buffer<std::uint8_t>> chunks;
  for (std::int64_t k = 0; k * n_spectra < kLap; ++k) {
    chunks.emplace_back(n_channels * n_spectra * kInputs, space);
    std::uint8_t* samples = chunks.back().data();
    Queue::cpu().parallel_for(n_channels, [&](std::int64_t c) {
      std::uint8_t* row = samples + c * n_spectra * kInputs;
      const auto first = static_cast<std::uint64_t>(k * n_channels + c) << 32;
      for (std::int64_t i = 0; i < n_spectra * kInputs; i += 4) {
        const std::uint64_t bits = combine(5, first + static_cast<std::uint64_t>(i));
        for (int j = 0; j < 4; ++j) row[i + j] = noise[bits >> (16 * j) & 65535];
      }
    });
  }
  return chunks;
}

class Live {
 public:
  explicit Live(const LiveOptions& o)
      : config_(pipeline::load_observation(o.observation, {})),
        beams_(pipeline::live_beams(config_)),
        planned_(pipeline::with_search_blocks(config_, pipeline::beam_setup(config_, beams_))),
        setup_(pipeline::beam_setup(planned_, beams_)),
        n_spectra_(beams_.receiver.chunk_ticks) {
    devices_ = pipeline::beam_devices(planned_.runtime);
    std::vector<Queue> queues;
    for (const int device : devices_) queues.push_back(Queue::cuda(device));
    if (queues.empty()) queues.push_back(Queue::cpu());
    chunks_ = noise_chunks(setup_.frequency.n_channels, n_spectra_,
                           devices_.empty() ? MemorySpace::host : MemorySpace::pinned);
    chain_ = std::make_unique<pipeline::BeamChain>(
        std::move(queues), setup_,
        [this](const pipeline::BeamStream& stream) { return consumers(stream); });
  }

  /// Until so many samples have been fed.
  void feed_until(std::int64_t n_samples) {
    while (chain_->samples() < n_samples) {
      pipeline::BeamInput input;
      input.samples = chunks_[static_cast<std::size_t>(n_fed_) % chunks_.size()].data();
      input.channel_stride_bytes = n_spectra_ * kInputs;
      input.n_spectra = n_spectra_;
      input.first_tick = n_fed_++ * n_spectra_;
      input.clock = setup_.clock;
      chain_->feed(input);
    }
  }
  std::int64_t block() const { return planned_.search.block_samples; }
  std::int64_t n_beams() const { return static_cast<std::int64_t>(setup_.file.beams.size()); }
  std::int64_t n_channels() const { return setup_.frequency.n_channels; }
  std::int64_t integration() const { return setup_.beams.integration_spectra; }
  double sample_s() const {
    return static_cast<double>(setup_.beams.integration_spectra) / setup_.clock.rate_hz.value();
  }
  const std::vector<int>& devices() const { return devices_; }
  pipeline::LiveSearchProgress progress() const { return search_->progress(); }
  double busy_s() const { return chain_->busy_s(); }
  std::int64_t samples() const { return chain_->samples(); }
  pipeline::RunSummary finish() {
    pipeline::RunSummary summary;
    chain_->finish(summary);
    return summary;
  }

 private:
  std::vector<std::unique_ptr<pipeline::BeamConsumer>> consumers(
      const pipeline::BeamStream& stream) {
    auto all =
        pipeline::search_consumers(planned_, stream, beams_.file.array, "bench live", {}, devices_);
    for (auto& consumer : all)
      if (auto* search = dynamic_cast<pipeline::LiveSearch*>(consumer.get())) search_ = search;
    if (search_ == nullptr) throw ConfigError("bench live: the observation has no [search] dm_max");
    search_->wait_when_full(true);
    return all;
  }

  pipeline::ObservationConfig config_;
  pipeline::LiveBeams beams_;
  pipeline::ObservationConfig planned_;
  pipeline::BeamSetup setup_;
  std::int64_t n_spectra_, n_fed_ = 0;
  std::vector<int> devices_;
  std::vector<Buffer<std::uint8_t>> chunks_;
  std::unique_ptr<pipeline::BeamChain> chain_;
  pipeline::LiveSearch* search_ = nullptr;  // the chain's
};

}  // namespace

void bench_live(const LiveOptions& o, const Emit& emit) {
  if (o.n_blocks < 1) throw ConfigError("bench live: --blocks must be 1 or more");
  Live live(o);
  constexpr std::int64_t kFirst = 4;
  live.feed_until(kFirst * live.block());
  std::vector<double> times;
  const double busy_before_s = live.busy_s(), search_before_s = live.progress().busy_s;
  for (int k = 0; k < o.n_blocks; ++k) {
    const auto begin = std::chrono::steady_clock::now();
    live.feed_until((kFirst + 1 + k) * live.block());
    times.push_back(pipeline::seconds_since(begin));
  }
  const double beams_s = (live.busy_s() - busy_before_s) / o.n_blocks;
  const double search_s = (live.progress().busy_s - search_before_s) / o.n_blocks;
  const pipeline::RunSummary summary = live.finish();
  const pipeline::LiveSearchProgress p = live.progress();
  Result r;
  r.engine = "live";
  for (const auto& name : summary.implementations)
    r.implementation += (r.implementation.empty() ? "" : ", ") + name;
  r.device =
      live.devices().empty()
          ? list_devices().front().description
          : list_devices().at(1 + static_cast<std::size_t>(live.devices().front())).description;
  r.sizes = {{"n_antennas", static_cast<double>(kInputs)},
             {"n_beams", static_cast<double>(live.n_beams())},
             {"n_channels", static_cast<double>(live.n_channels())},
             {"block_samples", static_cast<double>(live.block())},
             {"n_devices", static_cast<double>(live.devices().size())},
             {"n_blocks", static_cast<double>(o.n_blocks)},
             {"beams_thread_s", beams_s},
             {"search_thread_s", search_s},
             {"dropped_blocks", static_cast<double>(p.dropped_blocks)},
             {"events", static_cast<double>(p.events)},
             {"weight_updates", static_cast<double>(summary.beams->weight_updates)}};
  // Blocks differ by what of the next one was ready; their mean is what lasts.
  double sum = 0;
  for (const double t : times) sum += t;
  r.median_s = sum / static_cast<double>(times.size());
  r.min_s = *std::min_element(times.begin(), times.end());
  r.bytes = static_cast<double>(kInputs * live.n_channels() * live.block() * live.integration());
  r.rate_unit = "x real time";
  const double searched = p.data_s / live.sample_s();
  r.verified = summary.errors.empty() && p.dropped_blocks == 0 && p.candidates == 0 &&
               std::abs(searched - static_cast<double>(live.samples())) < 0.5;
  if (r.verified) r.rate = static_cast<double>(live.block()) * live.sample_s() / r.median_s;
  emit(r);
}

}  // namespace ryle::bench
