// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/device/free_memory.hpp"
#include "ryle/ingest/best2_source.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"
#include "ryle/pipeline/beam/beam_chain.hpp"
#include "ryle/pipeline/beam/beam_files.hpp"
#include "ryle/pipeline/beam/beam_picture.hpp"
#include "ryle/pipeline/beam/beam_power.hpp"
#include "ryle/pipeline/beam/live_beams.hpp"
#include "ryle/pipeline/beam/voltage_ring.hpp"
#include "ryle/pipeline/run/live_loop.hpp"
#include "ryle/pipeline/run/run.hpp"
#include "ryle/pipeline/run/run_memory.hpp"
#include "ryle/pipeline/run/trigger_socket.hpp"
#include "ryle/pipeline/search/search_block_size.hpp"
#include "ryle/pipeline/search/search_consumers.hpp"
#include "ryle/pipeline/search/search_stream.hpp"
#include "ryle/pipeline/visibility/run_common.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

/// The live path of BEST-2: sockets -> chunks of packets -> beams -> filterbanks and pictures.
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

class LiveBeamRun final : public LivePath {
 public:
  LiveBeamRun(const ObservationConfig& asked, const RunOptions& options)
      : beams_(live_beams(asked)), config_(with_search_blocks(asked, beams_)), options_(options) {
    const ObservationConfig& config = config_;
    const BeamSetup setup = beam_setup(config, beams_);
    // Before anything is opened: a run that does not fit must not take the ports of one that does.
    planned_bytes_ = total_bytes(live_beams_memory(config, beams_));
    require_memory(config, planned_bytes_);
    require_new_beam_files(config, beam_names(setup));
    chain_ = std::make_unique<BeamChain>(
        beam_queues(config), setup,
        [this](const BeamStream& stream) { return make_consumers(stream); });
    source_ = std::make_unique<Best2Source>(beams_.receiver);
    if (voltage_ring_chunks(config, beams_) > 0) {
      ring_ =
          std::make_unique<VoltageRing>(voltage_ring_config(config, beams_, options.command_line));
      // The first lap through gigabytes must not wait for the system to give them.
      source_->poison(std::byte{0});
      if (!config.search.trigger_socket.empty()) open_trigger_socket();
    }
    if (config.source.kind == "simulator")
      simulation_ = std::make_unique<BeamSimulation>(config, beams_);
  }

  RunSummary run() {
    RunSummary summary;
    summary.planned_memory_bytes = planned_bytes_;
    const auto& r = beams_.receiver;
    const double bits_per_s =
        8.0 * static_cast<double>(wire::kBest2Antennas * r.n_channels) * r.clock.rate_hz.value();
    LiveLoop loop(config_, options_, *source_, *this, simulation_.get(), bits_per_s);
    loop.run(summary);
    chain_->finish(summary);  // the last candidates
    trigger_socket_.reset();
    if (ring_ != nullptr) finish_ring(summary);
    summary.data_s = data_s();
    loop.require_balance();
    summary.engine_margin = busy_s() > 0 ? data_s() / busy_s() : 0;
    summary.real_time_factor = summary.elapsed_s > 0 ? summary.data_s / summary.elapsed_s : 0;
    note_peak_memory(summary);
    if (!loop.started()) summary.warnings.push_back("nothing was made: " + loop.nothing_came());
    chain_->report_loss(summary);
    return summary;
  }

  void take(Chunk* chunk) override {
    BeamInput input;
    input.samples = chunk->payload.data();
    input.channel_stride_bytes = source_->channel_stride_bytes();
    input.n_spectra = chunk->n_ticks;
    input.first_tick = chunk->first_tick;
    input.segment = chunk->segment;
    input.clock = source_->config().clock;
    if (best2_presence(source_->config(), *chunk, present_)) input.present = present_.data();
    input.absent = chunk->absent;
    chain_->feed(input);
    if (ring_ == nullptr) {
      source_->release(chunk);
      return;
    }
    freed_.clear();
    ring_->take(chunk, freed_);
    for (Chunk* old : freed_) source_->release(old);
  }
  bool failed() const override {
    return chain_->lost() || (config_.output.on_disk_full == "stop" && chain_->failed());
  }
  double data_s() const override { return chain_->data_s(); }
  double busy_s() const override { return chain_->busy_s(); }
  void count(Progress& progress) const override {
    progress.beam_samples = chain_->samples();
    progress.candidates = candidates_;
  }
  std::int64_t data_tai_ns() const override { return chain_->data_tai_ns(); }
  CommandResult set_gains(const std::string& file) override {
    return chain_->steer(with_gains(beams_, chain_->file(), file));
  }
  CommandResult set_beams(const std::string& file) override {
    return chain_->steer(ordered_beams(config_, file));
  }

 private:
  std::string in_output_directory(const std::string& name) const {
    return (std::filesystem::path(config_.output.directory) / name).string();
  }

  void open_trigger_socket() {
    std::error_code ignored;
    std::filesystem::create_directories(config_.output.directory, ignored);
    trigger_socket_ = std::make_unique<TriggerSocket>(
        in_output_directory(config_.search.trigger_socket), voltage_shape(config_, beams_), *ring_);
  }

  /// The search has closed its database before the last dumps were written.
  void finish_ring(RunSummary& summary) {
    ring_->finish(summary);
    if (!wants_search(config_.search)) return;  // no search, no database
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

  std::vector<std::unique_ptr<BeamConsumer>> make_consumers(const BeamStream& stream) {
    std::vector<std::unique_ptr<BeamConsumer>> consumers;
    if (config_.beams.filterbank) consumers.push_back(std::make_unique<BeamFiles>(config_, stream));
    if (config_.output.pictures && config_.beams.pictures > 0)
      consumers.push_back(std::make_unique<BeamPictures>(config_, stream));
    if (config_.beams.power_s > 0)
      consumers.push_back(std::make_unique<BeamPower>(config_, stream));
    for (auto& consumer :
         search_consumers(config_, stream, beams_.file.array, options_.command_line, hooks(),
                          beam_devices(config_.runtime)))
      consumers.push_back(std::move(consumer));
    return consumers;
  }

  SearchHooks hooks() {
    SearchHooks hooks;
    hooks.on_candidate = [this](const SearchCandidate& c, const std::string& beam) {
      ++candidates_;
      if (ring_ != nullptr && c.snr >= config_.search.voltage_trigger_snr)
        ring_->trigger({c.tai_ns, c.dm_pc_cm3, c.dm_error, c.width_s + 6 * c.scattering_s, c.snr,
                        beam, c.number});
    };
    if (ring_ == nullptr) return hooks;
    hooks.voltage_records = [this] { return ring_->take_records(); };
    return hooks;
  }

  LiveBeams beams_;
  ObservationConfig config_;
  const RunOptions& options_;
  std::int64_t planned_bytes_ = 0;
  std::unique_ptr<Best2Source> source_;
  std::unique_ptr<VoltageRing> ring_;  // has chunks of the source
  std::unique_ptr<TriggerSocket> trigger_socket_;
  std::unique_ptr<BeamChain> chain_;  // its search has the ring
  std::unique_ptr<BeamSimulation> simulation_;
  std::atomic<std::int64_t> candidates_{0};
  std::vector<std::uint64_t> present_;
  std::vector<Chunk*> freed_;
};

}  // namespace

BeamSetup beam_setup(const ObservationConfig& config, const LiveBeams& beams) {
  return {config.beams,
          beams.file,
          beams.frequency,
          beams.receiver.clock,
          beams.receiver.chunk_spectra,
          TimeSource::configured};
}

std::vector<std::pair<std::string, std::int64_t>> live_beams_memory(const ObservationConfig& config,
                                                                    const LiveBeams& beams) {
  const BeamSetup setup = beam_setup(config, beams);
  Best2SourceConfig receiver = beams.receiver;
  receiver.n_chunks -= static_cast<int>(voltage_ring_chunks(config, beams));
  const std::int64_t chunk_bytes = best2_source_chunk_bytes(receiver);
  std::vector<std::pair<std::string, std::int64_t>> items{{"ring of chunks", chunk_bytes},
                                                          {"beamformer", beam_chain_bytes(setup)}};
  if (receiver.n_chunks < beams.receiver.n_chunks)
    items.emplace_back("ring of voltages", best2_source_chunk_bytes(beams.receiver) - chunk_bytes);
  const auto c = beamformer_config(setup);
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
  return items;
}

namespace {

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
    beams = {{"samples of a chunk", c.n_channels * setup.max_spectra * c.n_inputs()},
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

ObservationConfig with_search_blocks(const ObservationConfig& config, const LiveBeams& beams) {
  ObservationConfig out = config;
  if (beam_devices(config.runtime).empty()) {
    out.search = planned_search(config, {}, 1, 0);
    return out;
  }
  const FullestDevice device(config, beam_setup(config, beams));
  const std::int64_t made = beams_on_devices(config) ? total_bytes(device.beams) : 0;
  const std::int64_t free_bytes = config.search.block_samples > 0 ? 0 : min_free_bytes(config);
  const std::int64_t left = free_bytes == 0 ? 0 : plannable_bytes(free_bytes) - made;
  out.search = planned_search(config, device.stream, device.n_rows,
                              free_bytes == 0 ? 0 : std::max<std::int64_t>(1, left));
  return out;
}

std::vector<std::pair<std::string, std::int64_t>> live_beams_device_memory(
    const ObservationConfig& config, const LiveBeams& beams) {
  if (!beams_on_devices(config)) return {};
  const FullestDevice device(config, beam_setup(config, beams));
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

BeamMargins measure_beam_margins(const ObservationConfig& config, const LiveBeams& beams) {
  BeamMargins margins;
  if (beams_on_devices(config)) return margins;
  BeamStream stream;
  BeamChain chain(beam_queues(config), beam_setup(config, beams), [&](const BeamStream& s) {
    stream = s;
    return std::vector<std::unique_ptr<BeamConsumer>>();
  });
  const auto& r = beams.receiver;
  BeamInput input;
  input.channel_stride_bytes = r.chunk_spectra * wire::kBest2Antennas;
  input.n_spectra = r.chunk_spectra;
  input.clock = r.clock;
  std::vector<std::uint64_t> samples(r.n_channels * input.channel_stride_bytes / 8);
  for (std::size_t k = 0; k < samples.size(); ++k) samples[k] = mix64(k);
  input.samples = samples.data();
  margins.beams = data_per_second([&] {
    chain.feed(input);
    input.first_tick += input.n_spectra;
    return r.clock.seconds(input.n_spectra);
  });
  if (wants_search(config.search)) margins.search = measure_search(config, stream);
  return margins;
}

RunSummary run_live_beams(const ObservationConfig& config, const RunOptions& options) {
  return LiveBeamRun(config, options).run();
}

}  // namespace ryle::pipeline
