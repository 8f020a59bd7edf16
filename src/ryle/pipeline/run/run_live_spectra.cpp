// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "ryle/ingest/fengine_blocks.hpp"
#include "ryle/pipeline/image/voltage_imaging.hpp"
#include "ryle/pipeline/run/live_loop.hpp"
#include "ryle/pipeline/run/run.hpp"
#include "ryle/pipeline/run/run_memory.hpp"
#include "ryle/pipeline/visibility/live_spectra.hpp"
#include "ryle/pipeline/visibility/run_common.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/pipeline/visibility/spectra_dumps.hpp"

/// The live path of an F-engine: sockets -> chunks of packets -> planar blocks -> images
/// and visibilities.
namespace ryle::pipeline {
namespace {

class LiveSpectraRun final : public LivePath {
 public:
  LiveSpectraRun(const ObservationConfig& config, const RunOptions& options)
      : config_(config),
        options_(options),
        array_(load_array(config, 0)),
        receiver_(is_live_spead(config.source) ? FengineSourceConfig{}
                                               : live_spectra_config(config, array_)) {
    require_products(config);
    SpectraMetadata metadata;
    if (is_live_spead(config.source)) {
      const SpeadSourceConfig spead = live_spead_config(config, array_);
      metadata = live_spead_metadata(spead);
      metadata.live = is_real_time(config);
      planned_bytes_ = spead_source_chunk_bytes(spead) + spectra_blocks_bytes(spead.shape());
      require_memory(config_, planned_bytes_);
      source_ = std::make_unique<SpeadSource>(spead);
    } else {
      metadata = live_spectra_metadata(receiver_);
      metadata.live = is_real_time(config);
      // Before anything is opened: a run that does not fit must not take the ports of one that
      // does.
      planned_bytes_ = total_bytes(
          live_run_memory(config_, receiver_, plan_live_images(config_, array_, metadata)));
      require_memory(config_, planned_bytes_);
      source_ = make_fengine_source(receiver_);
    }
    if (config.source.kind == "simulator") {
      simulation_ = std::make_unique<SpectraSimulation>(config, array_, receiver_);
      metadata.jy_per_count2 = simulation_->jy_per_count2();
    }
    if (wants_images(config))
      images_ = std::make_unique<SkyPath>(config, array_, metadata, options.command_line);
    if (wants_visibilities(config))
      dumps_ = std::make_unique<SpectraDumps>(config, array_, metadata, options.command_line);
    spectra_ = std::make_unique<SpectraBlocks>(source_->shape());
  }

  RunSummary run() {
    RunSummary summary;
    summary.planned_memory_bytes = planned_bytes_;
    const SpectraShape shape = source_->shape();
    const double bits_per_s =
        static_cast<double>(bits_per_sample(shape.format) * shape.n_inputs * shape.n_channels) *
        source_->info().clock.rate_hz.value();
    LiveLoop loop(config_, options_, *source_, *this, simulation_.get(), bits_per_s);
    loop.run(summary);
    DeviceLoss lost;  // both are published first
    if (images_) lost.guard([&] { images_->finish(summary); });
    if (dumps_) dumps_->finish({{"ingest_state", summary.state}}, summary);
    lost.report(summary);
    loop.require_balance();
    summary.engine_margin = busy_s() > 0 ? summary.data_s / busy_s() : 0;
    summary.real_time_factor = summary.elapsed_s > 0 ? summary.data_s / summary.elapsed_s : 0;
    note_peak_memory(summary);
    if (receiver_.time_source == TimeSource::arrival) {
      summary.warnings.emplace_back(
          "times rest on this host's clock: set source.start_utc to the instant of sequence 1");
    }
    if (!loop.started()) {
      summary.warnings.push_back("nothing was made: " + loop.nothing_came());
    }
    return summary;
  }

  void take(Chunk* chunk) override {
    const SampleClock clock = source_->clock(chunk->segment);
    source_->unpack(*chunk, *spectra_);
    source_->release(chunk);
    SpectraGulp gulp;
    gulp.blocks = spectra_->blocks();
    gulp.n_spectra = spectra_->n_spectra;
    gulp.valid = spectra_->valid();
    gulp.valid_words = spectra_->mask.words;
    gulp.valid_channel_stride_words = spectra_->mask.channel_stride_words;
    if (images_) images_->feed(gulp, spectra_->first_spectrum, spectra_->segment, clock);
    if (dumps_) dumps_->feed(gulp, spectra_->first_spectrum, spectra_->segment, clock);
    data_tai_ns_ = clock.tai_ns(spectra_->first_spectrum + spectra_->n_spectra);
  }
  // One of them that has failed ends the run: the observation asks for both.
  bool failed() const override {
    return (images_ && images_->failed()) || (dumps_ && dumps_->failed());
  }
  double data_s() const override { return images_ ? images_->data_s() : dumps_->data_s(); }
  double busy_s() const override {
    return (images_ ? images_->busy_s() : 0) + (dumps_ ? dumps_->busy_s() : 0);
  }
  void count(Progress& progress) const override {
    if (images_) progress.images = images_->images();
    if (dumps_) progress.integrations = dumps_->integrations();
  }
  std::int64_t data_tai_ns() const override { return data_tai_ns_; }
  void mark(const OperatorMark& mark) override {
    if (dumps_) dumps_->mark(mark);
  }
  CommandResult rotate() override {
    if (!dumps_) return LivePath::rotate();
    return dumps_->rotate(data_tai_ns_);
  }
  CommandResult set_gains(const std::string& file) override {
    return dumps_ ? dumps_->set_gains(file, data_tai_ns_) : LivePath::set_gains(file);
  }
  CommandResult switch_product(const std::string& product, bool on) override {
    return dumps_ ? dumps_->switch_product(product, on, data_tai_ns_)
                  : LivePath::switch_product(product, on);
  }

 private:
  const ObservationConfig& config_;
  const RunOptions& options_;
  ArrayLayout array_;
  FengineSourceConfig receiver_;
  std::int64_t planned_bytes_ = 0, data_tai_ns_ = 0;
  std::unique_ptr<SpectraSource> source_;
  std::unique_ptr<SpectraSimulation> simulation_;
  std::unique_ptr<SkyPath> images_;
  std::unique_ptr<SpectraDumps> dumps_;
  std::unique_ptr<SpectraBlocks> spectra_;
};

}  // namespace

RunSummary run_live_spectra(const ObservationConfig& config, const RunOptions& options) {
  return LiveSpectraRun(config, options).run();
}

}  // namespace ryle::pipeline
