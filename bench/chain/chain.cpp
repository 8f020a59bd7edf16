// SPDX-License-Identifier: BSD-3-Clause
// 32 antennas x 1,024 channels of 20 MHz, 4+4 bit, to beams, codes, dispersed sums, boxcars,
// clusters and refined candidates. Power never leaves the device.
#include "bench/chain/chain.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <complex>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/device/free_memory.hpp"
#include "ryle/device/on_device.hpp"
#include "ryle/engine/beamform/beamform.hpp"
#include "ryle/pipeline/search/search_block_size.hpp"
#include "ryle/pipeline/search/search_device.hpp"
#include "ryle/pipeline/search/search_stream.hpp"

namespace ryle::bench {
namespace {

constexpr std::int64_t kAntennas = 32, kChannels = 1024, kPacket = 128;
constexpr double kSpectrum_s = 51.2e-6, kRms_lsb = 2.3;
constexpr double kPulseDm = 20, kPulseTick = 1000;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Plan {
  const char* kind;
  std::int64_t n_trials;
  const char* implementation;
};

search::Band best2_band() {
  search::Band band;
  band.channel_width_hz = 20e6 / kChannels;
  for (std::int64_t c = 0; c < kChannels; ++c)
    band.center_hz.push_back(398e6 + (static_cast<double>(c) + 0.5) * band.channel_width_hz);
  band.sample_interval_s = kSpectrum_s;
  band.k_dm = search::dispersion_constant("best2");
  return band;
}

std::uint8_t packed(double re, double im) {
  const auto code = [](double x) {
    return static_cast<unsigned>(static_cast<int>(std::clamp(std::rint(x), -8.0, 7.0))) & 15u;
  };
  return static_cast<std::uint8_t>(code(re) << 4 | code(im));
}

/// Unit weights with random phases of 256 steps. @shape [beam][channel][antenna]
std::vector<cf32> random_weights(Queue& host, std::int64_t n_beams) {
  std::vector<cf32> phases;
  for (int k = 0; k < 256; ++k)
    phases.emplace_back(static_cast<float>(std::cos(k * 0.0245436926)),
                        static_cast<float>(std::sin(k * 0.0245436926)));
  std::vector<cf32> weights(n_beams * kChannels * kAntennas);
  host.parallel_for(n_beams, [&](std::int64_t b) {
    const std::int64_t first = b * kChannels * kAntennas;
    for (std::int64_t k = first; k < first + kChannels * kAntennas; ++k)
      weights[k] = phases[combine(77, static_cast<std::uint64_t>(k)) & 255];
  });
  return weights;
}

/// One gulp in heaps of BEST-2: noise; with a pulse of S/N near 25 in the beam of `weights`.
void fill_voltages(Queue& host, std::uint8_t* samples, std::int64_t n, std::uint64_t seed,
                   const cf32* weights, const search::Band& band) {
  std::vector<std::uint8_t> noise(65536);
  for (std::size_t k = 0; k < noise.size(); ++k)
    noise[k] =
        packed(kRms_lsb * gaussian(combine(1, 2 * k)), kRms_lsb * gaussian(combine(1, 2 * k + 1)));
  host.parallel_for(kChannels, [&](std::int64_t c) {
    std::uint8_t* row = samples + c * n * kAntennas;
    for (std::int64_t k = 0; k < n * kAntennas; k += 4) {
      const std::uint64_t bits = combine(seed, static_cast<std::uint64_t>(c * n * kAntennas + k));
      for (int j = 0; j < 4; ++j) row[k + j] = noise[bits >> (16 * j) & 65535];
    }
    if (weights == nullptr) return;
    const auto at = std::llround(kPulseTick + band.delay_samples(c, kPulseDm));
    for (std::int64_t t = at; t < at + 4; ++t)
      for (std::int64_t a = 0; a < kAntennas; ++a) {
        const auto w = std::conj(weights[c * kAntennas + a]);
        const std::uint64_t key =
            combine(seed + 1, static_cast<std::uint64_t>((c * n + t) * 32 + a));
        const double amplitude = 0.16 * kRms_lsb * std::sqrt(2.0);
        row[t / kPacket * kPacket * kAntennas + a / 2 * 2 * kPacket + t % kPacket * 2 + a % 2] =
            packed(
                kRms_lsb * gaussian(combine(key, 1)) + amplitude * static_cast<double>(w.real()),
                kRms_lsb * gaussian(combine(key, 2)) + amplitude * static_cast<double>(w.imag()));
      }
  });
}

pipeline::SearchChainConfig search_config(const search::Band& band, const Plan& plan) {
  search::DmPlanConfig dms;
  dms.kind = "linear";
  dms.step = std::string(plan.kind) == "native" ? 1 / band.sweep_samples_per_dm() : 0.1;
  dms.count = plan.n_trials;
  pipeline::SearchChainConfig c;
  c.band = band;
  c.dms = search::dm_trials(band, dms);
  c.normalize.n_channels = kChannels;
  c.implementation = plan.implementation;
  return c;
}

/// As a live run chooses it: power once, two gulps of samples, and what the search has.
std::int64_t chosen_block(const ChainOptions& o, pipeline::SearchChainConfig c) {
  std::int64_t free_bytes = free_device_bytes(o.devices.front());
  for (const int device : o.devices) free_bytes = std::min(free_bytes, free_device_bytes(device));
  const std::int64_t rows = pipeline::beam_range(o.n_beams, std::ssize(o.devices), 0).size() + 1;
  pipeline::BlockWish wish;
  wish.again_samples =
      static_cast<std::int64_t>(c.band.delay_samples(0, c.dms.back())) + 1 + c.max_width;
  wish.sample_interval_s = kSpectrum_s;
  wish.memory_bytes = pipeline::plannable_bytes(free_bytes);
  return pipeline::choose_block(wish, [&](std::int64_t block) {
    c.block_samples = block;
    std::int64_t bytes = kChannels * block * (rows * 4 + 2 * kAntennas);
    for (const auto& item : pipeline::device_search_memory(c, rows, o.n_streams))
      bytes += item.second;
    return bytes;
  });
}

/// The rows of one device.
struct Share {
  Queue queue;
  pipeline::BeamRange rows;
  std::unique_ptr<beamform::Beamformer> engine;
  Queue copies;  // of the next gulp's samples, beside the work on this one
  std::array<Buffer<std::uint8_t>, 2> samples;
  std::int64_t n_copied;  // gulps
  Buffer<float> power;
};

class Chain {
 public:
  Chain(const ChainOptions& o, const Plan& plan)
      : n_beams_(o.n_beams), host_(Queue::cpu()), band_(best2_band()) {
    config_.chain = search_config(band_, plan);
    block_ = o.block_samples > 0 ? o.block_samples : chosen_block(o, config_.chain);
    config_.chain.block_samples = block_;
    weights_ = random_weights(host_, n_beams_);
    pulse_beam_ = n_beams_ / 3;
    for (int k = 0; k < 2; ++k) {
      voltages_.emplace_back(kChannels * block_ * kAntennas, MemorySpace::pinned);
      const cf32* pulse = k == 0 ? weights_.data() + pulse_beam_ * kChannels * kAntennas : nullptr;
      fill_voltages(host_, voltages_.back().data(), block_, 10 + static_cast<std::uint64_t>(k),
                    pulse, band_);
    }
    config_.beams.n_beams = n_beams_;
    config_.devices = o.devices;
    config_.n_streams = o.n_streams;
    const auto n = static_cast<std::int64_t>(o.devices.size());
    for (std::int64_t k = 0; k < n; ++k)
      add_share(o.devices[k], pipeline::beam_range(n_beams_, n, k));
    search_ = std::make_unique<pipeline::BeamSearch>(config_);
  }

  /// One gulp; `kept` gets the power of the beam with the pulse.
  void gulp(std::vector<std::vector<float>>* kept) {
    const double begin = now_s();
    beamform::Input in;
    in.n_spectra = block_;
    in.first_tick = n_gulps_ * block_;
    for (auto& share : shares_) {
      if (share.n_copied == n_gulps_) copy_next(share);
      share.copies.synchronize();
      in.samples = share.samples[n_gulps_ % 2].data();
      share.engine->execute(
          share.queue, in,
          beamform::dense_output(share.engine->config(), share.power.data(), block_));
      copy_next(share);
    }
    std::vector<const float*> power;
    for (auto& share : shares_) {
      share.queue.synchronize();
      power.push_back(share.power.data());
      if (kept != nullptr && pulse_beam_ >= share.rows.first && pulse_beam_ < share.rows.end) {
        kept->emplace_back(static_cast<std::size_t>(kChannels * block_));
        copy_bytes(share.queue, kept->back().data(),
                   share.power.data() + (pulse_beam_ - share.rows.first) * kChannels * block_,
                   kChannels * block_ * 4);
        share.queue.synchronize();
      }
    }
    beams_s += now_s() - begin;
    search_->feed_devices(power, kChannels * block_, block_, block_, events);
    total_s += now_s() - begin;
    ++n_gulps_;
  }

  /// Voltages in host memory to the device, not waited for.
  void copy_next(Share& share) {
    const auto k = static_cast<std::size_t>(share.n_copied++ % 2);
    copy_bytes(share.copies, share.samples[k].data(), voltages_[k].data(), voltages_[k].bytes());
  }

  void reset_times() {
    beams_s = total_s = 0;
    before_ = search_->counts();
  }

  /// Candidates of the pulse's beam against the CPU's of the same power; none in other beams.
  bool verify(const std::vector<std::vector<float>>& kept, std::int64_t& n_expected) {
    pipeline::BeamSearchConfig on_cpu = config_;
    on_cpu.devices.clear();
    on_cpu.beams = {};
    pipeline::BeamSearch search(on_cpu);
    std::vector<pipeline::BeamEvent> expected;
    for (const auto& power : kept)
      search.feed(power.data(), kChannels * block_, block_, block_, expected);
    n_expected = static_cast<std::int64_t>(expected.size());
    std::size_t k = 0;
    for (const auto& e : events) {
      if (e.beam != pulse_beam_) {
        if (e.event.pulse.snr > 9) return false;
        continue;
      }
      if (k == expected.size()) break;  // later gulps
      const auto &a = e.event, &b = expected[k++].event;
      if (a.pulse.tick != b.pulse.tick || a.pulse.snr != b.pulse.snr ||
          a.cluster.best.trial != b.cluster.best.trial || a.codes != b.codes)
        return false;
      const double at = std::fmod(a.pulse.tick, 2 * static_cast<double>(block_));
      if (std::abs(a.pulse.dm_pc_cm3 - kPulseDm) > 0.2 || std::abs(at - kPulseTick - 1.5) > 3)
        return false;
    }
    return k > 0 && k == expected.size();
  }

  const pipeline::BeamSearch& search() const { return *search_; }
  std::int64_t block() const { return block_; }
  pipeline::SearchCounts counts() const {
    pipeline::SearchCounts c = search_->counts();
    c.normalize_s -= before_.normalize_s;
    c.dedisperse_s -= before_.dedisperse_s;
    return c;
  }
  std::string beam_implementation() const {
    return std::string(shares_.front().engine->implementation());
  }

  std::vector<pipeline::BeamEvent> events;
  double beams_s = 0, total_s = 0;

 private:
  void add_share(int device, pipeline::BeamRange rows) {
    Share share{Queue::cuda(device), rows, nullptr, Queue::cuda(device), {}, 0, {}};
    const OnDevice scope(share.queue);
    beamform::Config c;
    c.n_antennas = kAntennas;
    c.n_beams = rows.size();
    c.n_channels = kChannels;
    c.max_spectra = block_;
    c.order = beamform::InputOrder::pairs;
    share.engine = beamform::make_beamformer(share.queue, c);
    share.engine->set_weights(
        share.queue, View<const cf32, 3>(weights_.data() + rows.first * kChannels * kAntennas,
                                         {rows.size(), kChannels, kAntennas}));
    for (auto& samples : share.samples)
      samples = Buffer<std::uint8_t>(kChannels * block_ * kAntennas, MemorySpace::device);
    share.power = Buffer<float>(rows.size() * kChannels * block_, MemorySpace::device);
    shares_.push_back(std::move(share));
  }

  std::int64_t n_beams_, block_ = 0, pulse_beam_ = 0, n_gulps_ = 0;
  Queue host_;
  search::Band band_;
  std::vector<cf32> weights_;
  std::vector<Buffer<std::uint8_t>> voltages_;
  pipeline::BeamSearchConfig config_;
  std::vector<Share> shares_;
  std::unique_ptr<pipeline::BeamSearch> search_;
  pipeline::SearchCounts before_;
};

void measure(const Options& options, const ChainOptions& o, const Plan& plan, const Emit& emit) {
  Chain chain(o, plan);
  std::vector<std::vector<float>> kept;
  const int n_checked = options.quick ? 6 : 5;
  for (int k = 0; k < n_checked; ++k) chain.gulp(&kept);
  std::vector<double> times;
  chain.reset_times();
  const double begin = now_s();
  const std::int64_t n_timed = options.quick ? 2 : 6;  // 2.52 s of data
  for (std::int64_t k = 0; k < n_timed || now_s() - begin < options.seconds_per_case; ++k) {
    const double before = chain.total_s;
    chain.gulp(nullptr);
    times.push_back(chain.total_s - before);
  }
  const auto n = static_cast<double>(times.size());
  const double beams_s = chain.beams_s / n;
  const pipeline::SearchCounts counts = chain.counts();
  Result r;
  std::int64_t n_expected = 0;
  r.engine = "chain";
  r.verified = chain.verify(kept, n_expected);
  for (const auto& name : chain.search().implementations()) r.implementation += ", " + name;
  r.implementation = chain.beam_implementation() + r.implementation;
  r.device = list_devices().at(1).description;
  if (o.devices.size() > 1) r.device = std::to_string(o.devices.size()) + " x " + r.device;
  r.sizes = {
      {"n_antennas", kAntennas},
      {"n_beams", static_cast<double>(o.n_beams)},
      {"n_channels", kChannels},
      {"n_trials", static_cast<double>(plan.n_trials)},
      {"block_samples", static_cast<double>(chain.block())},
      {"max_width", 256},
      {"n_devices", static_cast<double>(o.devices.size())},
      {"candidates_checked", static_cast<double>(n_expected)},
      {"beams_s", beams_s},
      {"normalize_s", counts.normalize_s / n},
      {"search_s", counts.dedisperse_s / n},
      {"device_memory_gib", static_cast<double>(chain.search().memory_bytes()) / 1073741824.0}};
  std::sort(times.begin(), times.end());
  r.median_s = times[times.size() / 2];
  r.min_s = times.front();
  r.useful_ops = 8.0 * kAntennas * kChannels * static_cast<double>(o.n_beams * chain.block());
  r.bytes = static_cast<double>(kAntennas * kChannels * chain.block());
  r.rate_unit = "x real time";
  if (r.verified) r.rate = static_cast<double>(chain.block()) * kSpectrum_s / r.median_s;
  emit(r);
}

}  // namespace

void bench_chain(const Options& options, const ChainOptions& chain, const Emit& emit) {
  if (const std::string reason = cuda_unavailable_reason(); !reason.empty()) {
    if (options.implementation.rfind("cuda", 0) == 0) throw DeviceError("bench chain: " + reason);
    options.notice("chain: nothing measured: " + reason);
    return;
  }
  ChainOptions o = chain;
  if (options.quick) {
    o.n_beams = std::min<std::int64_t>(o.n_beams, 16);
    measure(options, o, {"native", 1200, "fdmt"}, emit);
    return;
  }
  for (const Plan& plan : {Plan{"native", 4161, "fdmt"}, Plan{"linear", 864, "fdmt"}})
    if (o.n_trials == 0 || o.n_trials == plan.n_trials) measure(options, o, plan, emit);
}

}  // namespace ryle::bench
