// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "ryle/ingest/described_source.hpp"
#include "ryle/ingest/mwa32t_source.hpp"
#include "ryle/pipeline/base/device_loss.hpp"
#include "ryle/pipeline/run/graph.hpp"
#include "ryle/pipeline/run/live_loop.hpp"
#include "ryle/pipeline/run/run.hpp"
#include "ryle/pipeline/run/sample_path.hpp"
#include "ryle/pipeline/visibility/horizon.hpp"
#include "ryle/pipeline/visibility/live_described.hpp"
#include "ryle/pipeline/visibility/live_spectra.hpp"
#include "ryle/pipeline/visibility/run_common.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/pipeline/visibility/simulation.hpp"

/// The live path of every source: sockets -> chunks -> the nodes of graph.hpp, time samples through
/// the channelizer first, with the simulator on the other end of the sockets when asked.
namespace ryle::pipeline {
namespace {

wire::MarkerMode marker_mode(const std::string& name) {
  if (name == "counter") return wire::MarkerMode::counter;
  return name == "constant" ? wire::MarkerMode::constant : wire::MarkerMode::ignore;
}

Mwa32tSourceConfig source_config(const ObservationConfig& config, const SampleMetadata& metadata) {
  const auto& s = config.source;
  Mwa32tSourceConfig source;
  source.endpoints = s.listen;
  source.geometry.marker.mode = marker_mode(s.marker);
  source.clock = metadata.clock;
  source.time_source = metadata.time_source;
  source.chunk_ticks = metadata.max_feed_ticks;
  source.n_chunks = static_cast<int>(s.n_chunks + s.window_chunks);
  source.window_chunks = static_cast<int>(s.window_chunks);
  source.memory = config.runtime.device == "cpu" ? MemorySpace::host : MemorySpace::pinned;
  source.offline = s.lossless;
  static_cast<ReceiverConfig&>(source) = receiver_config(config);
  source.rate_factor *=
      metadata.clock.rate_hz.value() / static_cast<double>(wire::kMwa32tSampleRateHz);
  if (s.start_utc == "now") source.max_clock_error_s = 0;
  return source;
}

/// A receiver of time samples as the observation describes it; nothing is opened yet.
struct SampleReceiver {
  KeptChunks kept;
  std::function<std::unique_ptr<ChunkSource>()> open;
};

SampleReceiver sample_receiver(const ObservationConfig& config, const SampleMetadata& metadata) {
  if (is_described(config.source)) {
    auto receiver = live_described_config(config, metadata.n_inputs, metadata.clock.epoch_tai_ns);
    const auto kept =
        KeptChunks::add(config, receiver.chunk_ticks, described_source_chunk_bytes, receiver);
    return {kept, [receiver] { return std::make_unique<DescribedSampleSource>(receiver); }};
  }
  auto receiver = source_config(config, metadata);
  const auto kept =
      KeptChunks::add(config, receiver.chunk_ticks, mwa32t_source_chunk_bytes, receiver);
  return {kept, [receiver] { return make_mwa32t_source(receiver); }};
}

/// What a ring of voltages keeps of them. @param frequency of the channels made of the samples
VoltageStream sample_voltages(const SampleMetadata& metadata, const FrequencyAxis& frequency,
                              const std::string& telescope) {
  VoltageStream stream;
  VoltageForm& form = stream.chunks.form;
  form.content = VoltageForm::Content::samples;
  form.n_rows = 1;
  form.n_inputs = metadata.n_inputs;
  form.layout = metadata.layout;
  form.reference_hz = metadata.reference_hz;
  form.inverted_band = metadata.inverted_band;
  stream.chunks.chunk_ticks = metadata.max_feed_ticks;
  stream.frequency = frequency;
  stream.clock = metadata.clock;
  stream.telescope = telescope;
  return stream;
}

bool from_own_clock(const ObservationConfig& config) {
  return is_received(config.source) && config.source.start_utc == "now";
}

class LiveRun final : public LivePath {
 public:
  LiveRun(const ObservationConfig& config, const RunOptions& options)
      : config_(config), options_(options) {
    require_products(config);
    if (is_live_samples(config.source)) {
      open_samples();
    } else {
      open_spectra();
    }
  }

  RunSummary run() {
    RunSummary summary;
    summary.planned_memory_bytes = planned_bytes_;  // and what SamplePath adds in finish()
    LiveLoop loop(config_, options_, *source_, *this, simulation_.get(), bits_per_s_);
    loop.run(summary);
    finish(summary);
    loop.require_balance();
    summary.engine_margin = busy_s() > 0 ? summary.data_s / busy_s() : 0;
    summary.real_time_factor = summary.elapsed_s > 0 ? summary.data_s / summary.elapsed_s : 0;
    note_peak_memory(summary);
    if (!low_center_.empty()) summary.warnings.push_back(low_center_);
    if (samples_ && samples_->tracks_late())
      summary.warnings.emplace_back(
          "delays are applied to the visibilities after the correlator, not in the channelizer, "
          "because images or beams read the same spectra (correlate.fringe_stopping)");
    if (time_source_ == TimeSource::arrival)
      summary.warnings.emplace_back(
          "times rest on this host's clock: set source.start_utc to the instant of sample, or "
          "sequence number, 0");
    if (!loop.started())
      summary.warnings.push_back("nothing was made: " + loop.nothing_came());
    else if (samples_ && makes_visibilities(config_) && summary.integrations == 0)
      summary.warnings.emplace_back("no integration was made: the data are shorter than one");
    return summary;
  }

  void take(Chunk* chunk) override {
    const SampleClock clock =
        spectra_source_ != nullptr ? spectra_source_->clock(chunk->segment) : source_->info().clock;
    data_tai_ns_ = clock.tai_ns(chunk->first_tick + chunk->n_ticks);
    received_s_ += clock.seconds(chunk->n_ticks);
    if (spectra_source_ == nullptr) {
      if (samples_)
        samples_->feed(chunk->payload.data(), chunk->first_tick, chunk->n_ticks, chunk->absent,
                       chunk->segment, clock);
      return keep(chunk, clock);
    }
    SpectraGulp gulp;
    if (spectra_) {
      spectra_source_->unpack(*chunk, *spectra_);
      gulp.blocks = spectra_->blocks();
      if (!fine_) share(gulp);
    }
    if (input_->beams_of_pairs() && nodes_.beams != nullptr) feed_pairs(*chunk, gulp.device);
    keep(chunk, clock);
    if (!spectra_) return;
    gulp.n_spectra = spectra_->n_spectra;
    gulp.valid = spectra_->valid();
    gulp.valid_words = spectra_->mask.words;
    gulp.valid_channel_stride_words = spectra_->mask.channel_stride_words;
    if (fine_) return fine_->feed(gulp, spectra_->first_spectrum, spectra_->segment, clock);
    for (const auto& node : nodes_.all)
      if (!input_->beams_of_pairs() || node.get() != nodes_.beams)
        node->feed(gulp, spectra_->first_spectrum, spectra_->segment, clock);
  }
  // One of them that has failed ends the run: the observation asks for all.
  bool failed() const override {
    return (samples_ && samples_->failed()) ||
           std::any_of(nodes_.all.begin(), nodes_.all.end(), [](auto& n) { return n->failed(); });
  }
  double data_s() const override {
    if (samples_) return samples_->data_s();
    return nodes_.all.empty() ? received_s_ : nodes_.all.front()->data_s();
  }
  double busy_s() const override {
    if (samples_) return samples_->busy_s();
    double busy_s = fine_ ? fine_->busy_s() : 0;
    for (const auto& node : nodes_.all) busy_s += node->busy_s();
    return busy_s;
  }
  void count(Progress& progress) const override {
    if (samples_) {
      progress.integrations = samples_->integrations();
      progress.warning = samples_->warning();
    }
    for (const auto& node : nodes_.all) node->count(progress);
  }

  std::int64_t data_tai_ns() const override { return data_tai_ns_; }
  void mark(const OperatorMark& mark) override {
    if (samples_) samples_->mark(mark);
    if (nodes_.visibilities != nullptr) nodes_.visibilities->mark(mark);
  }
  CommandResult rotate() override {
    if (samples_) return samples_->rotate();
    return nodes_.visibilities != nullptr ? nodes_.visibilities->rotate(data_tai_ns_)
                                          : LivePath::rotate();
  }
  CommandResult set_gains(const std::string& file) override {
    // No gains for one product alone: what cannot follow says so.
    if (nodes_.all.size() + (samples_ ? 1 : 0) > 1)
      return CommandResult::refused(
          "this run makes several products of the same data, of which not all can take new gains "
          "while it goes on; set calibration.gains and start it again");
    if (nodes_.beams != nullptr && input_ && input_->beams_of_pairs())
      return nodes_.beams->steer(with_gains(*input_->pairs, nodes_.beams->file(), file));
    if (samples_) return samples_->set_gains(file);
    return nodes_.visibilities != nullptr ? nodes_.visibilities->set_gains(file, data_tai_ns_)
                                          : LivePath::set_gains(file);
  }
  CommandResult set_beams(const std::string& file) override {
    if (nodes_.beams == nullptr) return LivePath::set_beams(file);
    if (input_ && input_->beams_of_pairs())
      return nodes_.beams->steer(ordered_beams(config_, file));
    ObservationConfig config = config_;
    config.beams.file = file;
    return nodes_.beams->steer(input_ ? beams_of(config, *input_).setup.file
                                      : stream_beams(config, array_, beams_read_).setup.file);
  }
  CommandResult dump(double seconds) override {
    return voltages_ ? voltages_->dump(seconds, data_tai_ns_) : LivePath::dump(seconds);
  }
  CommandResult switch_product(const std::string& product, bool on) override {
    if (samples_) return samples_->switch_product(product, on);
    return nodes_.visibilities != nullptr
               ? nodes_.visibilities->switch_product(product, on, data_tai_ns_)
               : LivePath::switch_product(product, on);
  }

 private:
  template <class Sky>
  void simulate(std::unique_ptr<Sky> sky) {
    if (samples_) {
      samples_->set_marks(sky->marks());
      samples_->set_flux_scale(sky->jy_per_count2());
    }
    simulation_ = std::move(sky);
  }

  void open_samples() {
    SampleMetadata metadata = live_sample_metadata(config_);
    metadata.clock.epoch_tai_ns = simulation_start_tai_ns(config_);
    // Counters say how much time has passed; "now" is the clock of this machine.
    if (!is_described(config_.source))
      metadata.time_source = from_own_clock(config_) ? TimeSource::arrival : TimeSource::configured;
    time_source_ = metadata.time_source;
    const ArrayLayout array = load_array(config_, metadata.n_inputs);
    if (makes_visibilities(config_))
      low_center_ = require_live_phase_center(config_, array, metadata.clock.epoch_tai_ns);
    const SampleReceiver receiver = sample_receiver(config_, metadata);
    planned_bytes_ = receiver.kept.receiver_bytes + receiver.kept.voltages_bytes;
    require_memory(config_, planned_bytes_);
    const SpectraUse use{makes_visibilities(config_),
                         wants_images(config_) || wants_beams(config_)};
    samples_ = std::make_unique<SamplePath>(config_, metadata, array, is_real_time(config_),
                                            options_.command_line, use);
    require_memory(config_, planned_bytes_ + samples_->memory_bytes());
    samples_->set_on_dump(options_.hooks.on_dump);
    SpectraMetadata spectra = samples_->spectra();
    require_voltage_ring(config_, spectra.frequency, spectra.clock.rate_hz.value());
    if (!use.visibilities && !use.nodes) samples_.reset();  // voltages alone need no channels
    if (config_.source.kind == "simulator") {
      const std::int64_t start = metadata.clock.epoch_tai_ns;
      if (is_described(config_.source))
        simulate(std::make_unique<DescribedSimulation>(config_, array, start));
      else
        simulate(std::make_unique<Simulation>(config_, start));
      spectra.jy_per_count2 = simulation_->jy_per_count2();
    }
    source_ = receiver.open();
    if (keeps_voltages(config_))
      open_voltages(sample_voltages(metadata, spectra.frequency, array.name));
    if (use.nodes) {
      std::optional<StreamBeams> beams;
      if (wants_beams(config_)) beams = stream_beams(config_, array, spectra);
      array_ = array;
      beams_read_ = spectra;
      nodes_ = make_nodes(config_, array, spectra, beams ? &*beams : nullptr, voltages_.get(),
                          false, options_);
      std::vector<SpectraNode*> readers;
      for (const auto& node : nodes_.all) readers.push_back(node.get());
      samples_->set_nodes(std::move(readers));
    }
    bits_per_s_ =
        static_cast<double>(metadata.layout.sample_stride_bits) * metadata.clock.rate_hz.value();
  }

  void open_spectra() {
    SpectraInput& input = input_.emplace(spectra_input(config_));
    time_source_ = input.metadata.time_source;
    // Before anything is opened: a run that does not fit must not take the ports of one that does.
    planned_bytes_ = total_bytes(
        graph_memory(config_, input, plan_live_images(config_, input.array, input.metadata)));
    require_memory(config_, planned_bytes_);
    std::optional<StreamBeams> beams;
    if (wants_beams(config_)) beams = beams_of(config_, input);
    auto source = input.open();
    spectra_source_ = source.get();
    pairs_ = dynamic_cast<const DescribedSpectraSource*>(source.get());
    source_ = std::move(source);
    if (keeps_voltages(config_)) open_voltages(input.voltages(*spectra_source_));
    if (config_.source.kind == "simulator") {
      simulation_ = input.simulate();
      input.metadata.jy_per_count2 = simulation_->jy_per_count2();
    }
    nodes_ = make_nodes(config_, input.array, input.metadata, beams ? &*beams : nullptr,
                        voltages_.get(), true, options_);
    if (input.fine) open_fine(input);
    const auto memory = config_.runtime.device == "cpu" ? MemorySpace::host : MemorySpace::pinned;
    if (nodes_.reads_blocks()) spectra_ = std::make_unique<SpectraBlocks>(input.shape, memory);
    bits_per_s_ = input.bits_per_s();
  }

  // Packets as they came are what the beamformer takes; a device that has the blocks of all nodes
  // makes that order of them.
  void feed_pairs(const Chunk& chunk, DeviceBlocks* blocks) {
    BeamInput input;
    input.blocks = blocks;
    input.samples = chunk.payload.data();
    input.channel_stride_bytes = described_stream_bytes(pairs_->config());
    input.n_spectra = chunk.n_ticks;
    input.first_tick = chunk.first_tick;
    input.segment = chunk.segment;
    input.clock = pairs_->clock(chunk.segment);
    if (packet_presence(pairs_->config(), chunk, present_)) input.present = present_.data();
    input.absent = chunk.absent;
    nodes_.beams->feed(input);
  }

  // Finer channels of the spectra, for all nodes.
  void open_fine(const SpectraInput& input) {
    auto to_nodes = [this](SpectraGulp gulp, std::int64_t first, std::int64_t segment,
                           const SampleClock& clock) {
      share(gulp);
      for (const auto& node : nodes_.all) {
        if (!fine_begun_) node->set_levels(fine_->scale(), fine_->samplers());
        node->feed(gulp, first, segment, clock);
      }
      fine_begun_ = true;
    };
    fine_ = std::make_unique<FineSpectra>(Queue::cpu(static_cast<int>(config_.runtime.threads)),
                                          *input.fine, std::move(to_nodes));
  }

  // Blocks go to a device once, whoever reads them.
  void share(SpectraGulp& gulp) {
    gulp.device = &device_blocks_;
    device_blocks_.renew(gulp.blocks);
  }

  void open_voltages(const VoltageStream& stream) {
    voltages_ = std::make_unique<VoltageNode>(
        config_, voltage_ring_config(config_, stream, options_.command_line), *source_);
  }

  // In the ring of voltages, or back to the receiver.
  void keep(Chunk* chunk, const SampleClock& clock) {
    if (voltages_) return voltages_->take(chunk, clock);
    source_->release(chunk);
  }

  void finish(RunSummary& summary) {
    const std::map<std::string, std::string> notes = ingest_notes(summary);
    DeviceLoss lost;  // all are published first
    if (fine_) {
      lost.guard_end([&] { fine_->flush(); });
      summary.implementations.emplace_back(fine_->implementation());
    }
    if (samples_) lost.guard_end([&] { samples_->finish(summary, notes); });
    for (const auto& node : nodes_.all) lost.guard_end([&] { node->finish(notes, summary); });
    if (voltages_) finish_voltages(summary);
    lost.report(summary);
  }

  // After the last candidates and events.
  void finish_voltages(RunSummary& summary) {
    voltages_->finish(summary);
    if (nodes_.beams != nullptr) nodes_.beams->append_voltages(summary);
    summary.data_s = std::max(summary.data_s, data_s());
  }

  std::map<std::string, std::string> ingest_notes(const RunSummary& summary) const {
    std::map<std::string, std::string> notes{{"ingest_state", summary.state}};
    if (!samples_) return notes;
    const SourceInfo info = source_->info();
    const double slots =
        static_cast<double>(info.n_inputs) * samples_->data_s() * info.clock.rate_hz.value();
    const double lost_ppm = slots > 0 ? 1e6 * static_cast<double>(summary.lost_samples) / slots : 0;
    notes["loss_ppm"] = std::to_string(lost_ppm);
    return notes;
  }

  const ObservationConfig& config_;
  const RunOptions& options_;
  std::string low_center_;  // a warning about the phase center, or ""
  TimeSource time_source_ = TimeSource::configured;
  std::int64_t planned_bytes_ = 0, data_tai_ns_ = 0;
  double bits_per_s_ = 0, received_s_ = 0;
  ArrayLayout array_;
  SpectraMetadata beams_read_;         // spectra that beams are made of
  std::optional<SpectraInput> input_;  // a source of spectra
  std::unique_ptr<ChunkSource> source_;
  SpectraSource* spectra_source_ = nullptr;        // the same, of spectra
  const DescribedSpectraSource* pairs_ = nullptr;  // the same, of described packets
  std::unique_ptr<VoltageNode> voltages_;          // has chunks of the source
  std::unique_ptr<PacketSimulation> simulation_;
  Nodes nodes_;
  std::unique_ptr<SamplePath> samples_;  // feeds the nodes
  std::unique_ptr<SpectraBlocks> spectra_;
  DeviceBlocks device_blocks_;         // of spectra_, or of what fine_ makes of it
  std::unique_ptr<FineSpectra> fine_;  // feeds the nodes
  bool fine_begun_ = false;
  std::vector<std::uint64_t> present_;
};

}  // namespace

RunSummary run_live(const ObservationConfig& config, const RunOptions& options) {
  return LiveRun(config, options).run();
}

}  // namespace ryle::pipeline
