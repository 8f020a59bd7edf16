// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ryle/core/time.hpp"
#include "ryle/device/buffer.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/engine/correlate/correlate.hpp"
#include "ryle/engine/image/image.hpp"
#include "ryle/pipeline/visibility/integration.hpp"
#include "ryle/pipeline/visibility/spectra_gulp.hpp"

namespace ryle::pipeline {

/// One integration as the imager left it.
struct RawImages {
  std::int64_t segment = 0;
  std::int64_t first_spectrum = 0;   ///< of the segment's clock
  std::int64_t n_spectra = 0;        ///< nominal
  std::int64_t centroid_tai_ns = 0;  ///< 0 = the middle of the spectra
  SampleClock clock;                 ///< of spectra
  /// Inputs left out for want of power, though not bad by the layout, of each polarization.
  std::array<std::int64_t, 2> n_dead{};
  image::Images images;
  /// Exact sums at the watched directions, [bin][plane][direction]; empty without a watch list.
  image::Images watched;
  std::vector<std::int64_t> watched_index;  ///< which of the watch list each direction is
};

/// Voltages to images by the chosen path: an imager of voltages, or the correlator and an imager of
/// its sums. Engines do not know each other; they meet here.
/// - Thread: one stage thread owns it; the sink is called on it.
/// - Reads gulps that end where images do: advance(), then feed().
/// - Hands on RawImages every n_spectra_per_image spectra, at a new segment, and in flush().
/// - Spectra that a gap skips count as nominal spectra without weight; a whole image of nothing is
///   not made (Integration).
class SkyChain {
 public:
  struct Setup {
    image::AllSkyConfig sky;  ///< path chosen; n_spectra_per_image is the length of an image
    SampleFormat format = SampleFormat::ci8;
    std::int64_t max_gulp = 512;      ///< most spectra feed() brings
    std::string correlator = "auto";  ///< implementation of the X-engine
  };
  /// Directions (east, north, up) to watch at an instant, with their indices; those below the
  /// horizon are left out.
  struct Watch {
    std::vector<std::array<double, 3>> directions;
    std::vector<std::int64_t> index;
  };
  using WatchAt = std::function<Watch(std::int64_t tai_ns)>;
  using Sink = std::function<void(RawImages&&)>;

  SkyChain(Queue queue, const Setup& setup, std::vector<cf32> gains, WatchAt watch, Sink sink);
  ~SkyChain();

  /// Where the next gulp starts; returns the spectra that still go into the open image
  /// (Integration::advance).
  std::int64_t advance(std::int64_t first, std::int64_t segment, const SampleClock& clock);
  /// Adds a gulp. @pre n_spectra <= what advance() returned, max_gulp
  void feed(const SpectraGulp& gulp);
  /// Publishes the open image as short, with its true weight.
  void flush();
  /// From the next image on.
  void set_gains(std::vector<cf32> gains) { next_gains_ = std::move(gains); }

  std::string implementation() const;
  std::int64_t images_done() const { return images_done_; }
  /// Nominal spectra so far.
  std::int64_t spectra_done() const { return image_.total(); }
  /// Seconds inside the engines.
  double busy_s() const { return busy_s_; }

 private:
  void begin_image();
  void make_watchers(std::int64_t tai_ns);
  std::array<std::int64_t, 2> dead_inputs() const;
  void close_image();
  image::VisInput finished_sums();
  void correlate_images(RawImages& raw);

  Setup setup_;
  Queue queue_;
  Queue watch_queue_;  // of field_watcher_: the host's where the device has no code for it
  WatchAt watch_at_;
  Sink sink_;
  std::vector<cf32> gains_, next_gains_;
  std::unique_ptr<correlate::Correlator> correlator_;
  correlate::Sums sums_;
  DeviceBlocks own_blocks_;  // of gulps that no other node reads
  std::unique_ptr<image::VisImager> vis_imager_, vis_watcher_;
  std::unique_ptr<image::FieldImager> field_imager_, field_watcher_;
  Watch watch_;                // of the open image
  Watch watcher_for_;          // what the watchers were made for
  double direction_step_ = 0;  // a watched direction may move this far before its imager is remade
  Integration image_;          // the open one
  std::int64_t images_done_ = 0;
  double busy_s_ = 0;
};

}  // namespace ryle::pipeline
