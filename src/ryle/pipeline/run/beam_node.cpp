// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/beam_node.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/device/free_memory.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"
#include "ryle/pipeline/beam/beam_files.hpp"
#include "ryle/pipeline/beam/beam_picture.hpp"
#include "ryle/pipeline/beam/beam_power.hpp"
#include "ryle/pipeline/run/outputs.hpp"
#include "ryle/pipeline/run/run_memory.hpp"
#include "ryle/pipeline/search/search_block_size.hpp"
#include "ryle/pipeline/search/search_consumers.hpp"
#include "ryle/pipeline/search/search_stream.hpp"
#include "ryle/pipeline/visibility/run_common.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::pipeline {
namespace {

// A name of the CPU keeps the beams there, whatever devices there are.
bool beams_on_devices(const ObservationConfig& config) {
  const std::string& name = config.beams.implementation;
  return (name == "auto" || name.rfind("cuda", 0) == 0) && !beam_devices(config.runtime).empty();
}

std::vector<Queue> beam_queues(const ObservationConfig& config) {
  if (!beams_on_devices(config)) return {Queue::cpu(static_cast<int>(config.runtime.threads))};
  std::vector<Queue> queues;
  for (const int device : beam_devices(config.runtime)) queues.push_back(Queue::cuda(device));
  return queues;
}

/// Power for whoever asked for it as it is made.
class HookedBeams final : public BeamConsumer {
 public:
  HookedBeams(const BeamHook& hook, const BeamStream& stream) : hook_(hook), stream_(stream) {}
  void take(const BeamChunk& chunk) override { hook_(chunk, stream_); }
  void finish(RunSummary& /*summary*/) override {}

 private:
  const BeamHook& hook_;
  BeamStream stream_;
};

}  // namespace

BeamNode::BeamNode(const ObservationConfig& config, const StreamBeams& beams, VoltageRing* ring,
                   const RunOptions& options)
    : config_(with_search_blocks(config, beams.setup)),
      beams_(beams),
      ring_(ring),
      options_(options),
      on_devices_(beams_on_devices(config)),
      samples_(beams.inputs.order, 0, beams.setup.frequency.n_channels),
      host_(Queue::cpu(static_cast<int>(config.runtime.threads))),
      absent_since_(beams.setup.frequency.n_channels) {
  require_distinct_outputs(config_, beam_names(beams_.setup));
  require_new_beam_files(config_, beam_names(beams_.setup));
  if (!config_.beams.spead.empty()) heaps_ = open_live_beam_streams(config_, beams_.setup);
  // With levels that the first samples set, the weights wait for them.
  if (beams_.setup.order == beamform::InputOrder::pairs) chain();
}

BeamChain& BeamNode::chain() {
  if (!chain_)
    chain_ = std::make_unique<BeamChain>(
        beam_queues(config_), beams_.setup,
        [this](const BeamStream& stream) { return make_consumers(stream); });
  return *chain_;
}

void BeamNode::set_levels(const std::vector<double>& scale,
                          const std::vector<correlate::SamplerGain>& /*samplers*/) {
  beams_.setup.scale.clear();
  for (const std::int64_t input : beams_.inputs.order)
    beams_.setup.scale.push_back(scale.empty() ? 1 : scale[input]);
}

void BeamNode::feed(const BeamInput& input) { chain().feed(input); }

void BeamNode::feed(const SpectraGulp& gulp, std::int64_t first, std::int64_t segment,
                    const SampleClock& clock) {
  BeamInput input;
  {
    const Stopwatch watch(copy_s_);
    const bool on_host = !on_devices_ || !config_.beams.spead.empty();
    if (on_devices_) {  // they are put in order there
      if (!on_host) samples_.load_masks(gulp);
      if (gulp.device == nullptr) own_blocks_.renew(gulp.blocks);
      input.blocks = gulp.device != nullptr ? gulp.device : &own_blocks_;
    }
    if (on_host) {
      samples_.load(gulp, host_);
      input.samples = samples_.data();
      input.channel_stride_bytes = samples_.channel_stride_bytes();
    }
    input.n_spectra = gulp.n_spectra;
    input.first_tick = first;
    input.segment = segment;
    input.clock = clock;
    input.clock.epoch_tai_ns += beams_.shift_ns;
    const std::int64_t slot = samples_.masks(present_);
    if (slot > 0) {
      input.present = present_.data();
      input.slot_spectra = slot;
      input.present_per_channel = samples_.mask_per_channel();
    }
    if (segment != segment_ || first != next_)
      std::fill(absent_since_.begin(), absent_since_.end(), first);
    absent_.clear();
    if (slot > 0) find_absent(first, gulp.n_spectra);
    if (slot == 0) std::fill(absent_since_.begin(), absent_since_.end(), first + gulp.n_spectra);
    segment_ = segment;
    next_ = first + gulp.n_spectra;
    input.absent = absent_;
  }
  feed(input);
}

// Runs of spectra of which nothing is there, channel by channel. One that the gulp before ended in
// began there.
void BeamNode::find_absent(Tick first, std::int64_t n) {
  for (std::size_t c = 0; c < absent_since_.size(); ++c) {
    const auto channel = static_cast<std::int64_t>(c);
    if (c == 0 || samples_.mask_per_channel()) samples_.absent_spectra(channel, absent_bits_);
    Tick begin = absent_since_[c];
    for (std::int64_t t = 0; t < n; ++t) {
      if (test_bit(absent_bits_.data(), t)) continue;
      if (begin < first + t) absent_.push_back({channel, begin, first + t});
      begin = first + t + 1;
    }
    if (begin < first + n) absent_.push_back({channel, begin, first + n});
    absent_since_[c] = begin;
  }
}

void BeamNode::finish(const std::map<std::string, std::string>& /*notes*/, RunSummary& summary) {
  chain().finish(summary);  // the last candidates
  summary.data_s = std::max(summary.data_s, data_s());
  chain_->report_loss(summary);
}

bool BeamNode::failed() const {
  return chain_ && (chain_->lost() || (config_.output.on_disk_full == "stop" && chain_->failed()));
}

std::string BeamNode::in_output_directory(const std::string& name) const {
  return (std::filesystem::path(config_.output.directory) / name).string();
}

void BeamNode::append_voltages(RunSummary& summary) {
  if (ring_ == nullptr || !wants_search(config_.search)) return;  // no search, no database
  const std::string path = in_output_directory(config_.output.name + ".sqlite");
  const VoltageRecords records = ring_->take_records();
  std::string reason = "the search has made no database";
  const auto& made = summary.products;  // else the file is of another run
  if (std::find(made.begin(), made.end(), path) != made.end()) {
    try {
      return append_voltage_records(path, records);
    } catch (const Error& e) {
      reason = e.what();
    }
  }
  if (records.empty()) return;
  std::string file;
  summary.errors.push_back("voltages: " + keep_unwritten(path, {}, records, reason, file));
  if (!file.empty() && std::find(made.begin(), made.end(), file) == made.end())
    summary.products.push_back(file);
}

std::vector<std::unique_ptr<BeamConsumer>> BeamNode::make_consumers(const BeamStream& stream) {
  std::vector<std::unique_ptr<BeamConsumer>> consumers;
  if (config_.beams.filterbank) consumers.push_back(std::make_unique<BeamFiles>(config_, stream));
  if (config_.output.pictures && config_.beams.pictures > 0)
    consumers.push_back(std::make_unique<BeamPictures>(config_, stream));
  if (config_.beams.power_s > 0) consumers.push_back(std::make_unique<BeamPower>(config_, stream));
  if (!config_.beams.spead.empty())
    consumers.push_back(std::make_unique<BeamHeaps>(config_, beams_.setup, std::move(heaps_)));
  if (options_.hooks.on_beams)
    consumers.push_back(std::make_unique<HookedBeams>(options_.hooks.on_beams, stream));
  // The search is the last: samples are made in its memory, which it changes.
  for (auto& consumer :
       search_consumers(config_, stream, beams_.setup.file.array, options_.command_line, hooks(),
                        beam_devices(config_.runtime)))
    consumers.push_back(std::move(consumer));
  return consumers;
}

SearchHooks BeamNode::hooks() {
  SearchHooks hooks;
  hooks.on_candidate = [this](const SearchCandidate& c, const std::string& beam) {
    ++candidates_;
    if (options_.hooks.on_candidate) options_.hooks.on_candidate(c, beam);
    if (ring_ != nullptr && c.snr >= config_.voltages.trigger_snr)
      ring_->trigger({c.tai_ns, c.dm_pc_cm3, c.dm_error, c.width_s + 6 * c.scattering_s, c.snr,
                      beam, c.number});
  };
  if (ring_ == nullptr) return hooks;
  hooks.voltage_records = [this] { return ring_->take_records(); };
  return hooks;
}

std::vector<std::pair<std::string, std::int64_t>> beams_memory(const ObservationConfig& config,
                                                               const BeamSetup& setup) {
  const auto c = beamformer_config(setup);
  std::vector<std::pair<std::string, std::int64_t>> items{{"beamformer", beam_chain_bytes(setup)}};
  if (setup.order != beamform::InputOrder::pairs)
    items.emplace_back(
        "samples in the order of the beamformer",
        setup.max_spectra * c.n_channels * c.n_inputs() * bits_per_sample(setup.format) / 8);
  const double rate_hz = setup.clock.rate_hz.value() / static_cast<double>(c.integration);
  if (const auto bytes = search_bytes(config, setup.frequency, 1 / rate_hz, c.n_rows()); bytes > 0)
    items.emplace_back("search of beams", bytes);
  if (config.beams.filterbank) {
    const double scale_samples =
        config.beams.scale_s * setup.clock.rate_hz.value() / static_cast<double>(c.integration);
    items.emplace_back("power that waits for the disk",
                       c.n_rows() * c.n_channels * 4 *
                           ((config.beams.queue + 2) * c.max_windows() +
                            static_cast<std::int64_t>(scale_samples)));
  }
  if (!config.beams.spead.empty())
    items.emplace_back("voltages of beams that wait for the network",
                       beam_heaps_bytes(config, setup));
  return items;
}

namespace {

/// Voltages of beams that nobody takes: the time to make them.
class NoVoltages final : public BeamConsumer {
 public:
  bool wants_host_values() const override { return false; }
  bool wants_voltages() const override { return true; }
  void take(const BeamChunk& /*chunk*/) override {}
  void finish(RunSummary& /*summary*/) override {}
};

/// The device with the most rows.
struct FullestDevice {
  BeamStream stream;
  std::int64_t n_rows;
  MemoryItems beams;  // without the search

  FullestDevice(const ObservationConfig& config, const BeamSetup& setup) {
    auto c = beamformer_config(setup);
    const auto n_devices = static_cast<std::int64_t>(beam_devices(config.runtime).size());
    n_rows = (c.n_rows() + n_devices - 1) / n_devices;  // shares differ by one row
    stream.frequency = setup.frequency;
    stream.clock = setup.clock;
    stream.clock.rate_hz.den *= c.integration;
    stream.clock.rate_hz = stream.clock.rate_hz.reduced();
    stream.beams.resize(c.n_rows());
    c.n_beams = n_rows;
    c.incoherent.clear();
    beams = {{"samples of a chunk",
              c.n_channels * setup.max_spectra * c.n_inputs() * bits_per_sample(setup.format) / 8},
             {"weights, open windows", beamform::cost(c).state_bytes},
             {"power of beams", beamform::dense_output_bytes(c, c.max_windows())}};
  }
};

/// Of the device that has the least; 0 where they are not here.
std::int64_t min_free_bytes(const ObservationConfig& config) {
  if (!cuda_unavailable_reason().empty()) return 0;
  std::int64_t minimum = 0;
  for (const int device : beam_devices(config.runtime)) {
    const std::int64_t bytes = free_device_bytes(device);
    minimum = minimum == 0 ? bytes : std::min(minimum, bytes);
  }
  return minimum;
}

}  // namespace

ObservationConfig with_search_blocks(const ObservationConfig& config, const BeamSetup& setup) {
  ObservationConfig out = config;
  if (beam_devices(config.runtime).empty()) {
    out.search = planned_search(config, {}, 1, 0);
    return out;
  }
  const FullestDevice device(config, setup);
  const std::int64_t made = beams_on_devices(config) ? total_bytes(device.beams) : 0;
  const std::int64_t free_bytes = config.search.block_samples > 0 ? 0 : min_free_bytes(config);
  const std::int64_t left = free_bytes == 0 ? 0 : plannable_bytes(free_bytes) - made;
  out.search = planned_search(config, device.stream, device.n_rows,
                              free_bytes == 0 ? 0 : std::max<std::int64_t>(1, left));
  return out;
}

std::vector<std::pair<std::string, std::int64_t>> beams_device_memory(
    const ObservationConfig& config, const BeamSetup& setup) {
  if (!beams_on_devices(config)) return {};
  const FullestDevice device(config, setup);
  MemoryItems items = device.beams;
  for (auto& item : device_search_items(config, device.stream, device.n_rows))
    items.push_back(std::move(item));
  return items;
}

namespace {

constexpr double kMeasured_s = 0.4;

/// Adds rounds of `work`, which returns the seconds of data it took, until they have lasted.
template <class Work>
double data_per_second(Work work) {
  work();  // memory and tables
  const auto begin = std::chrono::steady_clock::now();
  double data_s = 0;
  while (seconds_since(begin) < kMeasured_s) data_s += work();
  return data_s / seconds_since(begin);
}

double measure_search(const ObservationConfig& config, const BeamStream& stream) {
  constexpr std::int64_t kMaxBeams = 4;
  const LiveSearchConfig live = live_search_config(config, "");
  BeamSearchConfig search_config;
  search_config.chain = live_search_chain(stream, live);
  search_config.beams.n_beams = std::min(kMaxBeams, stream.n_beams());
  search_config.n_workers = live.n_workers;
  BeamSearch search(search_config);
  const std::int64_t n = search_config.chain.block_samples;
  const std::int64_t n_channels = stream.frequency.n_channels;
  std::vector<float> power(search_config.beams.n_beams * n_channels * n);
  for (std::size_t k = 0; k < power.size(); ++k) {  // about normal, as mean powers are
    const std::uint64_t bits = mix64(k);
    const auto parts =
        (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
    power[k] = 100 + 10 * (static_cast<float>(parts) / 65536 - 2);
  }
  std::vector<BeamEvent> events;
  const double share =
      static_cast<double>(search_config.beams.n_beams) / static_cast<double>(stream.n_beams());
  return data_per_second([&] {
    search.feed(power.data(), n_channels * n, n, n, events);
    return share * static_cast<double>(n) * stream.sample_interval_s();
  });
}

}  // namespace

double BeamMargins::both() const {
  if (!(beams > 0)) return 0;
  return search > 0 ? 1 / (1 / beams + 1 / search) : beams;
}

BeamMargins measure_beam_margins(const ObservationConfig& config, const BeamSetup& setup) {
  BeamMargins margins;
  if (beams_on_devices(config)) return margins;
  BeamStream stream;
  BeamChain chain(beam_queues(config), setup, [&](const BeamStream& s) {
    stream = s;
    std::vector<std::unique_ptr<BeamConsumer>> consumers;
    if (!config.beams.spead.empty()) consumers.push_back(std::make_unique<NoVoltages>());
    return consumers;
  });
  // Packets in pairs of antennas come whole.
  const std::int64_t packet_spectra = setup.order == beamform::InputOrder::pairs ? 128 : 1;
  BeamInput input;
  input.n_spectra = setup.max_spectra / packet_spectra * packet_spectra;
  const auto c = beamformer_config(setup);
  input.channel_stride_bytes = input.n_spectra * c.n_inputs() * bits_per_sample(setup.format) / 8;
  input.clock = setup.clock;
  std::vector<std::uint64_t> samples(c.n_channels * input.channel_stride_bytes / 8);
  for (std::size_t k = 0; k < samples.size(); ++k) samples[k] = mix64(k);
  input.samples = samples.data();
  margins.beams = data_per_second([&] {
    chain.feed(input);
    input.first_tick += input.n_spectra;
    return input.clock.seconds(input.n_spectra);
  });
  if (wants_search(config.search)) margins.search = measure_search(config, stream);
  return margins;
}

}  // namespace ryle::pipeline
