// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ryle/io/image/image_file.hpp"
#include "ryle/telescope/catalog.hpp"
#include "ryle/telescope/observation.hpp"

/// Light curves of a watch list and events of the image-plane trigger in one SQLite database:
/// small, needs no server, survives a kill, and every language reads it. Tables:
///   meta(key, value), band(id, n_bins, first_center_hz, last_center_hz),
///   bin(band, bin, center_hz, width_hz)                     the last bin may be a short one
///   source(id, name, ra_deg, dec_deg)                       RA, Dec NULL: a body that moves
///   image(id, start_tai_ns, centroid_tai_ns, utc, exposure_s, band, path, file)
///   sample(image, source, bin, i, q, u, v, weight, elevation_deg, l, m)   NULL: not measured
///   event(id, t_tai_ns, utc, duration_s, l, m, ra_deg, dec_deg, low_hz, high_hz, snr_i .. snr_v,
///         peak, file, cutout, cutout_images, cutout_planes, cutout_rows, cutout_columns)
/// and the view light_curve(source, utc, centroid_tai_ns, exposure_s, bin, center_hz, width_hz, i,
/// q, u, v, weight, elevation_deg, l, m), which joins them.
namespace ryle {

struct LightCurveImage {
  std::int64_t start_tai_ns = 0;
  std::int64_t centroid_tai_ns = 0;
  double exposure_s = 0;
  std::vector<FrequencyBin> bins;  ///< that samples name
  std::string path;                ///< of the imager: "vis-grid", ...
  std::string file;                ///< image file that holds the picture; may be empty
};

/// Value of one source in one image and bin. NaN = not measured.
struct LightCurveSample {
  std::int64_t source = 0;  ///< of LightCurveStore::source()
  std::int64_t bin = 0;
  std::array<double, 4> stokes{};  ///< I, Q, U, V
  double weight = 0;               ///< pairs of valid inputs; 0 = nothing was measured
  double elevation_rad = 0;
  double l = 0, m = 0;
};

/// What the image-plane trigger saw (stage: from image_trigger.hpp).
struct ImageEvent {
  std::int64_t tai_ns = 0;  ///< center of the window
  double duration_s = 0;
  double l = 0, m = 0;
  SkyDirection direction;
  double low_hz = 0, high_hz = 0;
  std::array<double, 4> snr{};  ///< peak S/N of I, Q, U, V; NaN = not made
  double peak = 0;
  std::string file;
  /// Pixels round the event before, during and after it. @shape [image][plane][row][column]
  std::array<std::int64_t, 4> cutout_shape{};
  std::vector<float> cutout;
};

struct LightCurveOptions {
  double busy_timeout_s = 5;            ///< waits this long for another writer
  double commit_interval_s = 1;         ///< a batch is committed when it is this old ...
  std::int64_t images_per_commit = 64;  ///< ... or holds this many images
  std::int64_t max_bytes = 0;           ///< refuse to grow beyond; 0 = the disk decides
  bool overwrite = false;               ///< what a light curve database holds is replaced
};

/// Writer. One thread at a time. A killed process loses at most the batch that was open.
class LightCurveStore {
 public:
  /// Creates the database, or goes on with one of the same schema; with `overwrite` replaces the
  /// contents of one of any schema in one transaction, so readers see the old or the new. Throws
  /// IoError (exit 73, 74, 75, 77), FormatError for something else than a light curve database,
  /// UnsupportedError for one of a newer Ryle.
  explicit LightCurveStore(const std::string& path, const Observation& observation = {},
                           const LightCurveOptions& options = {});
  ~LightCurveStore();  ///< commits what it can
  LightCurveStore(const LightCurveStore&) = delete;
  LightCurveStore& operator=(const LightCurveStore&) = delete;

  /// Number of a source for samples; the same name gives the same number: ask once, at the start.
  /// Throws ConfigError when the name is known at another place.
  std::int64_t source(const WatchTarget& target);
  /// Adds an image with its samples; all of them or none. On an error the open batch is lost (the
  /// message of IoError says so) and the store can be used again once its cause is gone.
  std::int64_t append(const LightCurveImage& image, std::span<const LightCurveSample> samples);
  std::int64_t append(const ImageEvent& event);  ///< committed at once
  void commit();                                 ///< ends the batch
  std::int64_t n_lost_images() const;            ///< of batches that could not be committed
  const std::string& path() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct VoEventOptions {
  bool simulated = false;  ///< role "test": nobody points a telescope at it
  double position_error_rad = 0.017453292519943295;  ///< of a pixel; 1 degree when nobody says it
  std::int64_t author_tai_ns = 0;  ///< when it is written; 0 = the time of the event
};
/// VOEvent 2.0 (IVOA recommendation 2011) of one event; `number` makes the IVORN unique. The time
/// is UTC, its error half of the duration; the place is ICRS.
std::string voevent_xml(const ImageEvent& event, const Observation& observation,
                        std::int64_t number, const VoEventOptions& options = {});

}  // namespace ryle
