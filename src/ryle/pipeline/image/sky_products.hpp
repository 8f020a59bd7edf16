// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ryle/engine/image/geometry.hpp"
#include "ryle/io/image/image_cube.hpp"
#include "ryle/io/image/image_file.hpp"
#include "ryle/io/image/light_curve.hpp"
#include "ryle/math/image_trigger.hpp"
#include "ryle/pipeline/base/image_summary.hpp"
#include "ryle/pipeline/base/product_hooks.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/image/sky_chain.hpp"
#include "ryle/pipeline/image/sky_stack.hpp"
#include "ryle/plot/sky.hpp"
#include "ryle/telescope/catalog.hpp"
#include "ryle/telescope/observation.hpp"

namespace ryle::pipeline {

/// Everything that is known before the first image.
struct SkyMetadata {
  image::AllSkyConfig sky;
  image::ArrayPlane plane;
  std::int64_t images_per_stack = 1;
  std::int64_t expected_images = 0;  ///< products; 0 = not known (live)
  double window_s = 0;               ///< first to last sample behind a spectrum
  std::vector<int> stokes;           ///< of the planes; empty = stokes_codes(sky)
  std::string unit;
  std::optional<SynthesizedBeam> beam;
  ImageMetadata metadata;
  std::vector<WatchTarget> targets;  ///< RawImages::watched_index refers to them
};

/// Before the input is opened: throws IoError for a name that is taken or cannot be made,
/// ConfigError for one that ends in no known suffix. Names that carry the time of their image are
/// not known yet.
void require_sky_outputs(const ObservationConfig& config);

/// Images as users get them: world coordinates, FITS, PNG, movie frames, light curves, trigger.
/// A file that fails does not stop the others (output.on_disk_full).
class SkyProducts {
 public:
  /// @param on_event is told of every event of the trigger, after it is stored; may be empty
  /// @param on_image gets every image, or stack of them, after it is written; may be empty
  SkyProducts(const ObservationConfig& config, Observation observation, SkyMetadata metadata,
              std::function<void(const ImageEvent&)> on_event = {}, ImageHook on_image = {});
  ~SkyProducts();

  void write(const RawImages& raw);
  /// Publishes what is open: a stack that is not full is published with its true weight.
  void finish();

  std::int64_t images_written() const { return images_written_; }
  const std::optional<SkyPeak>& peak() const { return peak_; }
  const std::vector<std::string>& published() const { return published_; }
  const std::vector<std::string>& errors() const { return errors_; }
  std::int64_t events() const { return events_; }
  /// The trigger skipped images with an empty bin or a NaN, and rejected what one bin alone showed.
  std::int64_t images_not_searched() const { return trigger_ ? trigger_->n_skipped() : 0; }
  std::int64_t events_in_one_bin() const { return trigger_ ? trigger_->n_narrow() : 0; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// State of the watch list in the last image.
  const std::vector<WatchedSummary>& watched() const { return watched_; }
  /// Pairs behind the first plane of the last image (or stack), over what all inputs that are not
  /// bad by the layout would have given.
  double weight_fraction() const { return weight_fraction_; }

 private:
  SkyImage describe(const image::Images& images, std::int64_t start_tai_ns,
                    std::int64_t centroid_tai_ns, double exposure_s) const;
  SkyPosition place_of_pixel(double x, double y, std::int64_t tai_ns) const;
  void finish_stack();
  void emit(const SkyImage& image);
  void write_fits(const SkyImage& image);
  void write_cube(const SkyImage& image);
  void write_pictures(const SkyImage& image);
  void write_latest(const SkyImage& image);
  SkyPictureOptions picture_options(const SkyImage& image) const;
  void search(const RawImages& raw, std::int64_t start_tai_ns);
  void note_events(std::span<const math::ImageTriggerEvent> events);
  void publish_event(const ImageEvent& event);
  std::string store_name() const;
  void find_peak(const SkyImage& image);
  void write_light_curves(const RawImages& raw, std::int64_t start_tai_ns,
                          std::int64_t centroid_tai_ns);
  void open_store();
  std::string picture_of(const SkyImage& image) const;
  bool single() const { return metadata_.expected_images == 1; }
  void publish_name(const std::string& name);
  template <class Action>
  void run_or_abandon(Action action);

  ObservationConfig config_;
  Observation observation_;
  SkyMetadata metadata_;
  std::unique_ptr<SkyStack> stack_;
  std::int64_t stack_start_tai_ns_ = 0;
  std::int64_t stack_end_tai_ns_ = 0;
  double stack_pairs_ = 0;
  double stack_full_pairs_ = 0;  // of all good inputs ...
  double stack_live_pairs_ = 0;  // ... and without the dead
  double stack_exposure_s_ = 0;
  double stack_centroid_s_ = 0;  // sum of exposure x time after the start
  SkyDirection stack_center_;
  std::int64_t stack_segment_ = -1;
  std::unique_ptr<FitsImageSeries> series_;
  std::unique_ptr<ImageCubeWriter> cube_;
  std::unique_ptr<SkyPictureSequence> frames_;
  std::unique_ptr<SkyMovie> movie_;
  std::unique_ptr<math::ImageTrigger> trigger_;
  std::function<void(const ImageEvent&)> on_event_;
  ImageHook on_image_;
  struct Instant {
    std::int64_t start_tai_ns = 0;
    double length_s = 0;
  };
  std::deque<Instant> instants_;  // of the images the trigger may still speak of
  std::int64_t first_instant_ = 0;
  std::int64_t events_ = 0;
  std::int64_t images_written_ = 0;
  std::int64_t latest_ns_ = 0;  // monotonic time of the newest NAME_latest.png
  std::optional<SkyPeak> peak_;
  std::vector<WatchedSummary> watched_;
  std::unique_ptr<LightCurveStore> light_curves_;
  std::vector<std::int64_t> source_ids_;  // of metadata_.targets in the store
  double weight_fraction_ = 0;
  double lost_fraction_ = 0;  // of the inputs that are not dead
  std::int64_t n_dead_ = 0;   // in the last image
  std::vector<std::string> published_, errors_, warnings_;
};

}  // namespace ryle::pipeline
