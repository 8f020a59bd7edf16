// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ryle/pipeline/base/device_loss.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/image/image_setup.hpp"
#include "ryle/pipeline/image/sky_chain.hpp"
#include "ryle/pipeline/image/sky_writer.hpp"
#include "ryle/pipeline/visibility/spectra_metadata.hpp"
#include "ryle/pipeline/visibility/spectra_node.hpp"
#include "ryle/pipeline/visibility/spectra_reader.hpp"
#include "ryle/telescope/catalog.hpp"

namespace ryle::pipeline {

/// Channelized voltages to published images: levels, gains, plan, SkyChain, SkyWriter.
/// - Thread: the engine's thread calls feed() and finish(); the writer has a thread of its own.
/// - Reads gulps of any length, and cuts them where images end. The first spectra decide which
/// inputs
///   are dead and how they are equalized; inputs that die or come back later are dropped or taken
///   up from the next image on.
/// - Ends with finish(), or early: failed() is true once a device is lost or the writer has thrown.
/// - Gaps are those of SkyChain.
class SkyPath final : public SpectraNode {
 public:
  SkyPath(const ObservationConfig& config, const ArrayLayout& array, SpectraMetadata metadata,
          const std::string& command_line);
  ~SkyPath() override;

  std::string node() const override { return "images"; }
  /// Called on the writer's thread with every event of the trigger; before the first feed().
  void set_on_event(std::function<void(const ImageEvent&)> on_event) {
    on_event_ = std::move(on_event);
  }
  /// The same with every image.
  void set_on_image(ImageHook on_image) { on_image_ = std::move(on_image); }
  void set_levels(const std::vector<double>& scale,
                  const std::vector<correlate::SamplerGain>& samplers) override;

  /// Adds a gulp to the levels of the inputs before the first feed(): a recording of short images
  /// is judged by more than the first of them. Without it the first gulp fed is all there is.
  void measure(const SpectraGulp& gulp);
  /// Cut where images end.
  void feed(const SpectraGulp& gulp, std::int64_t first, std::int64_t segment,
            const SampleClock& clock) override;
  /// Spectra until the open image is full: recordings are read so that no gulp needs cutting.
  std::int64_t room(std::int64_t first);
  void finish(const std::map<std::string, std::string>& notes, RunSummary& summary) override;

  double data_s() const override;
  double busy_s() const override { return chain_ ? chain_->busy_s() : 0; }
  bool failed() const override { return loss_.lost() || (writer_ && writer_->failed()); }
  void count(Progress& progress) const override {
    progress.images = writer_ ? writer_->images_written() : 0;
  }
  const Cadence& cadence() const { return cadence_; }

 private:
  void begin(const SpectraGulp& gulp, std::int64_t first, const SampleClock& clock);
  void check_inputs(const SpectraGulp& gulp);
  bool arrived(const SpectraGulp& gulp) const;
  SkyChain::Watch watch_at(std::int64_t tai_ns) const;
  DeadInputs dead_inputs(const InputLevels& scaled, std::span<const std::uint8_t> before) const;
  std::vector<cf32> gains() const;
  std::vector<correlate::SamplerGain> quantization() const;
  double flux_scale() const;

  ObservationConfig config_;
  ArrayLayout array_;
  SpectraMetadata metadata_;
  std::string command_line_;
  std::function<void(const ImageEvent&)> on_event_;
  ImageHook on_image_;
  Cadence cadence_;
  Queue queue_;
  std::vector<WatchTarget> targets_;
  // Of the first gulp, later for inputs without power in it: amplitudes stay as they were.
  InputLevels levels_;
  DeadInputs dead_;
  SkyPlan plan_;
  image::AllSkyConfig sky_;
  std::unique_ptr<SkyChain> chain_;
  std::unique_ptr<SkyWriter> writer_;
  DeviceLoss loss_;
  SpectraSlice slice_;
  std::vector<std::string> warnings_;
  std::int64_t checked_image_ = 0;
};

/// Measures the levels of a recording before it is imaged: a handful of samples would call living
/// inputs dead, so that more than the first image is read, to the end of the recording or of 256
/// spectra.
void measure_levels(SpectraReader& reader, SkyPath& path);

}  // namespace ryle::pipeline
