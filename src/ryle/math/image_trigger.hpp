// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

/// Finds short flashes in a stream of all-sky images. No input, no output, no clock.
namespace ryle::math {

struct ImageTriggerConfig {
  std::int64_t n_pixels = 128;
  std::int64_t n_bins = 1;
  std::int64_t n_planes = 4;                        ///< Stokes I, Q, U, V, or fewer
  double cell_direction_cosine = 0;                 ///< of a pixel; zenith at (N/2, N/2)
  double threshold = 8;                             ///< Gaussian standard deviations, both signs
  double min_elevation_rad = 0.349065850398865915;  ///< 20 degrees
  std::vector<std::int64_t> windows{1, 8, 64};      ///< images averaged; ascending
  /// Memory of the running mean and variance: this many images, but at least 64 windows.
  std::int64_t history_images = 512;
  std::int64_t min_history = 32;  ///< windows before the first event
  /// Pixels whose running mean of plane 0 exceeds this many robust deviations of the sky are not
  /// searched, nor what lies within mask_radius_px of them; 0 = search everywhere.
  double bright_limit = 20;
  std::int64_t mask_radius_px = 3;
  /// The bins without the strongest one must show at least this part of what a flat spectrum would.
  double broadband_fraction = 0.5;
  /// Fainter (in flux) than this part of the strongest in the same image: taken for its side lobes.
  double side_lobe_fraction = 0.3;
};

struct ImageTriggerEvent {
  std::int64_t first_image = 0;  ///< of the best window, counted by add(); skipped ones included
  std::int64_t n_images = 0;     ///< of the best window (1, 8 or 64)
  std::int64_t x = 0, y = 0;     ///< pixel of the peak: the brightest within 2 of the best S/N
  double l = 0, m = 0;           ///< of its center (slant of the array plane left in)
  int plane = 0;                 ///< with the largest |S/N|
  std::vector<double> snr;       ///< [plane] in Gaussian standard deviations, signed
  double peak = 0;               ///< deviation from the running mean, units of the image
  /// S/N of `plane` without the strongest bin; NaN with a single bin (nothing could be tested).
  double snr_without_strongest_bin = 0;
};

/// @eq x_w = mean of the last w images, averaged over bins; t = (x_w - mu_w) / (s_w sqrt(1 +
///     sum h^2)), mu_w and s_w of disjoint earlier windows with exponential weights h; z = sqrt(nu
///     ln(1 + t^2 / nu)), nu = 1 / sum h^2 - 1 (Wallace 1959): |z| has the tail of a Gaussian
///     although s is an estimate. Event: |z| >= threshold, largest of its 5 x 5 pixels, in more
///     than one bin.
/// Outliers count as 4 deviations in mu and s. Planes are searched one by one.
class ImageTrigger {
 public:
  /// Throws ConfigError. The elevation mask follows from the cell.
  explicit ImageTrigger(const ImageTriggerConfig& config);

  /// Adds one image. @shape pixels [bin][plane][y][x]; weights [bin] (empty: all valid), an image
  /// with a bin of weight 0 or a NaN above the elevation limit is skipped and counted.
  /// Returns the events that ended; the span is valid until the next call.
  std::span<const ImageTriggerEvent> add(std::span<const float> pixels,
                                         std::span<const double> weights = {});
  /// Events still open, at the end of the data.
  std::span<const ImageTriggerEvent> flush();
  /// An event began with the last image: the moment to freeze a voltage ring.
  bool fired() const { return fired_; }

  /// Pixels of the last images round a place, averaged over bins, NaN where nothing is searched.
  /// @shape [image][plane][row][column], n_before images before event.first_image to n_after after
  /// its end, clipped to what is still held (32 images more than the longest window)
  struct Cutout {
    std::array<std::int64_t, 4> shape{};
    std::int64_t first_image = 0;
    std::vector<float> values;
  };
  Cutout cutout(const ImageTriggerEvent& event, std::int64_t half_px = 5,
                std::int64_t n_before = 10, std::int64_t n_after = 10) const;

  std::int64_t n_images() const { return n_added_; }
  std::int64_t n_skipped() const { return n_skipped_; }
  std::int64_t n_narrow() const { return n_narrow_; }  ///< rejected: seen in one bin only
  /// Pixels searched now.
  std::int64_t n_searched() const;
  /// Values compared with the threshold so far (for the expected number of false events).
  std::int64_t n_trials() const { return n_trials_; }
  std::int64_t n_bytes() const;
  /// What n_bytes() will be, before anything is allocated.
  static std::int64_t n_bytes(const ImageTriggerConfig& config);

 private:
  /// Running statistics of one window length; arrays [plane][place].
  struct Scale {
    std::int64_t window = 1;
    double lambda_min = 0;
    std::int64_t n_blocks = 0;
    double sum_h2 = 1;  ///< of the exponential weights
    std::vector<double> sum, mean, variance;
  };
  struct Open {
    ImageTriggerEvent event;
    std::int64_t last_seen = 0;
  };
  struct Candidate {
    std::size_t scale = 0;
    int plane = 0;
    std::int64_t place = 0;
    double z = 0;
  };

  static std::vector<std::int64_t> places(const ImageTriggerConfig& config);
  bool take(std::span<const float> pixels, std::span<const double> weights);
  void slide(Scale& scale);
  void search(std::size_t scale, std::vector<Candidate>& candidates);
  void learn(Scale& scale) const;
  void update_bright_mask();
  double deviation(const Scale& scale, int plane, std::int64_t place) const;
  double score(const Scale& scale, int plane, std::int64_t place) const;
  bool is_peak(const Scale& scale, const Candidate& c) const;
  double rest_score(const Candidate& c) const;
  std::int64_t brightest_near(const Candidate& c) const;
  void note(const Candidate& c, double rest);
  void close_events(bool all);
  const float* band(std::int64_t image, int plane) const;
  float* band(std::int64_t image, int plane);
  const float* bin(std::int64_t image, std::int64_t bin, int plane) const;

  ImageTriggerConfig config_;
  std::vector<std::int64_t> pixel_of_;  ///< [place] pixels above the elevation limit
  std::vector<std::int64_t> place_of_;  ///< [pixel], -1 elsewhere
  std::vector<std::uint8_t> bright_;    ///< [place]
  std::vector<Scale> scales_;
  Scale bins_;                    ///< window 1 of every bin: arrays [bin * n_planes + plane][place]
  std::int64_t ring_images_ = 0;  ///< of band_ring_; bin_ring_ holds the longest window
  std::vector<float> band_ring_, bin_ring_;
  std::int64_t n_valid_ = 0;          ///< images in the rings so far
  std::vector<std::int64_t> number_;  ///< [slot of band_ring_] count of add() of each
  std::int64_t n_added_ = 0, n_skipped_ = 0, n_narrow_ = 0, n_trials_ = 0;
  std::vector<Open> open_;
  std::vector<ImageTriggerEvent> ended_;
  bool fired_ = false;
};

}  // namespace ryle::math
