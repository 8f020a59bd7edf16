// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/image/sky_products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/image/statistics.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/pipeline/image/image_setup.hpp"
#include "ryle/telescope/catalog.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::size_t kMaxNames = 1000;  // of products in a summary
constexpr double kFramesPerSecond = 10;
constexpr std::int64_t kLatestEvery_ns = 1'000'000'000;
constexpr std::int64_t kMaxEventFiles = 10'000;
constexpr std::size_t kInstants = 4096;  // longer than any window of the trigger with its history

std::int64_t monotonic_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::int64_t nanoseconds(double seconds) {
  return static_cast<std::int64_t>(std::llround(seconds * 1e9));
}

std::string in_directory(const ObservationConfig& config, const std::string& name) {
  return (std::filesystem::path(config.output.directory) / name).string();
}

std::string without_extension(const std::string& path) {
  const std::filesystem::path p(path);
  return (p.parent_path() / p.stem()).string();
}

void make_parent(const std::string& path) {
  std::error_code ignored;
  const auto parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, ignored);
}

/// Mean of the bins of the first plane, pixel by pixel, weights taken alike.
std::vector<double> mean_plane(const SkyImage& image) {
  const auto size = static_cast<std::size_t>(image.plane_size());
  std::vector<double> mean(size);
  std::vector<double> n(size);
  for (std::int64_t bin = 0; bin < image.n_channels; ++bin) {
    const float* pixels = image.pixels.data() + static_cast<std::size_t>(bin) * size;
    for (std::size_t k = 0; k < size; ++k) {
      if (std::isnan(pixels[k])) continue;
      mean[k] += static_cast<double>(pixels[k]);
      n[k] += 1;
    }
  }
  for (std::size_t k = 0; k < size; ++k) mean[k] = n[k] > 0 ? mean[k] / n[k] : std::nan("");
  return mean;
}

/// Visibilities that do not say how long they are come as one nanosecond: not known.
double length_s(const RawImages& raw) {
  const double s = raw.clock.seconds(raw.n_spectra);
  return s < 1e-8 ? 0 : s;
}

/// The last one may be short.
std::vector<FrequencyBin> frequency_bins(const image::AllSkyConfig& sky) {
  SkyImage shape;
  shape.frequency = sky.channels;
  shape.n_channels_per_bin = sky.n_channels_per_bin;
  shape.n_channels = image::n_bins(sky);
  std::vector<FrequencyBin> bins;
  for (std::int64_t k = 0; k < shape.n_channels; ++k) bins.push_back(frequency_bin(shape, k));
  return bins;
}

/// Pairs a plane would have without any loss, of the inputs that are neither bad nor dead.
double full_pairs(const image::AllSkyConfig& sky, std::int64_t n_channels, std::int64_t n_spectra,
                  const std::array<std::int64_t, 2>& n_dead = {}) {
  double used[2] = {-static_cast<double>(n_dead[0]), -static_cast<double>(n_dead[1])};
  for (const auto& input : sky.inputs) used[input.pol] += input.bad ? 0 : 1;
  double pairs = 0;
  for (const double a : used) pairs += sky.remove_autos ? a * (a - 1) : a * a;
  return pairs * static_cast<double>(n_channels) * static_cast<double>(n_spectra);
}

}  // namespace

void require_sky_outputs(const ObservationConfig& config) {
  const auto& c = config.image;
  require_ending(c.output, "image.output (-o)", {".fits", ".fit", ".fts"});
  require_ending(c.hdf5, "image.hdf5", {".h5", ".hdf5"});
  const bool overwrite = config.output.overwrite;
  const bool series = c.cadence_s > 0;  // their pictures have names of their own
  require_creatable_in(config.output.directory, {}, overwrite);
  require_creatable_in(c.frames, {}, overwrite);
  // Folders of these are made; light curves are added to those that are there.
  const auto require = [&](const std::string& name, bool over) {
    const auto parent = std::filesystem::path(name).parent_path();
    if (!name.empty()) require_creatable_in(parent.empty() ? "." : parent.string(), {name}, over);
  };
  for (const auto& name : {c.output, c.hdf5, c.movie}) require(name, overwrite);
  require(c.picture, overwrite || series);
  require(c.light_curves, true);
}

SkyProducts::SkyProducts(const ObservationConfig& config, Observation observation,
                         SkyMetadata metadata, std::function<void(const ImageEvent&)> on_event,
                         ImageHook on_image)
    : config_(config),
      observation_(std::move(observation)),
      metadata_(std::move(metadata)),
      on_event_(std::move(on_event)),
      on_image_(std::move(on_image)) {
  if (metadata_.images_per_stack > 1)
    stack_ = std::make_unique<SkyStack>(metadata_.sky, metadata_.plane);
  make_parent(in_directory(config_, "x"));
  const auto& c = config_.image;
  if (!c.movie.empty() && SkyMovie::find_ffmpeg().empty()) {
    throw UnsupportedError("image.movie = \"" + c.movie +
                           "\" needs the ffmpeg program, which is not installed; image.frames "
                           "writes a PNG sequence without it");
  }
  if (c.trigger_sigma > 0) {
    trigger_ = std::make_unique<math::ImageTrigger>(trigger_config(config_, metadata_.sky));
  }
  if (!config_.image.frames.empty())
    make_parent((std::filesystem::path(config_.image.frames) / "x").string());
}

SkyProducts::~SkyProducts() = default;

template <class Action>
void SkyProducts::run_or_abandon(Action action) {
  try {
    action();
  } catch (const Error& e) {
    // As for visibilities: the first failure is the user's to see at once, later ones must not stop
    // the data path.
    if (images_written_ == 0 || config_.output.on_disk_full == "stop") throw;
    if (errors_.size() < kMaxNames) errors_.emplace_back(e.what());
  }
}

void SkyProducts::publish_name(const std::string& name) {
  if (published_.size() == kMaxNames) {
    warnings_.push_back(
        fmt::format("more than {} files were written; the rest are not listed", kMaxNames));
  }
  if (published_.size() <= kMaxNames) published_.push_back(name);
}

void SkyProducts::write(const RawImages& raw) {
  const double interval_s = raw.clock.seconds(1);
  const std::int64_t start = raw.clock.tai_ns(raw.first_spectrum);
  // Centroid of M spectra, ((M - 1) step + L - 1) / (2 f_s) (conventions.md 4).
  const double half_s =
      0.5 * (interval_s * static_cast<double>(raw.n_spectra - 1) + metadata_.window_s);
  const std::int64_t centroid =
      raw.centroid_tai_ns != 0 ? raw.centroid_tai_ns : start + nanoseconds(half_s);
  const std::int64_t n_channels = metadata_.sky.channels.n_channels;
  const double full = full_pairs(metadata_.sky, n_channels, raw.n_spectra);
  const double live = full_pairs(metadata_.sky, n_channels, raw.n_spectra, raw.n_dead);
  n_dead_ = raw.n_dead[0] + raw.n_dead[1];
  double pairs = 0;
  for (std::size_t k = 0; k < raw.images.weights.size(); ++k)
    pairs += k % 3 < 2 ? raw.images.weights[k] : 0;
  const std::int64_t end = raw.clock.tai_ns(raw.first_spectrum + raw.n_spectra);
  if (!metadata_.targets.empty()) {
    run_or_abandon([&] { write_light_curves(raw, start, centroid); });
  }
  if (trigger_) run_or_abandon([&] { search(raw, start); });
  if (stack_) {
    const std::int64_t image = metadata_.sky.n_spectra_per_image;
    const std::int64_t cadence_ns =
        raw.clock.tai_ns(image * metadata_.images_per_stack) - raw.clock.tai_ns(0);
    // Images that never came must not make a stack longer; half of one forgives rounding.
    const std::int64_t slack_ns = cadence_ns / (2 * metadata_.images_per_stack);
    const bool over = start - stack_start_tai_ns_ >= cadence_ns - slack_ns;
    if (raw.segment != stack_segment_ || over) finish_stack();
    stack_segment_ = raw.segment;
    if (stack_->n_images() == 0) {
      stack_start_tai_ns_ = start;
      const double whole_s = interval_s * static_cast<double>(raw.n_spectra) *
                             static_cast<double>(metadata_.images_per_stack);
      stack_center_ = zenith(observation_.array, start + nanoseconds(0.5 * whole_s),
                             observation_.earth_orientation);
    }
    const double exposure_s = interval_s * static_cast<double>(raw.n_spectra);
    stack_exposure_s_ += exposure_s;
    stack_end_tai_ns_ = end;
    stack_pairs_ += pairs;
    stack_full_pairs_ += full;
    stack_live_pairs_ += live;
    stack_centroid_s_ += exposure_s * 1e-9 * static_cast<double>(centroid - stack_start_tai_ns_);
    stack_->add(raw.images, uvw_axes(observation_.array, stack_center_, centroid,
                                     observation_.earth_orientation));
    if (stack_->n_images() == metadata_.images_per_stack) finish_stack();
    return;
  }
  weight_fraction_ = full > 0 ? pairs / full : 0;
  lost_fraction_ = live > 0 ? 1 - pairs / live : 0;
  SkyImage image = describe(raw.images, start, centroid, length_s(raw));
  image.end_tai_ns = end;
  image.plane_alpha = metadata_.plane.alpha;
  image.plane_beta = metadata_.plane.beta;
  place_at_zenith(image, observation_.array, observation_.earth_orientation);
  emit(image);
}

void SkyProducts::finish_stack() {
  if (!stack_ || stack_->n_images() == 0) return;
  const std::int64_t centroid =
      stack_start_tai_ns_ + nanoseconds(stack_centroid_s_ / stack_exposure_s_);
  weight_fraction_ = stack_full_pairs_ > 0 ? stack_pairs_ / stack_full_pairs_ : 0;
  lost_fraction_ = stack_live_pairs_ > 0 ? 1 - stack_pairs_ / stack_live_pairs_ : 0;
  SkyImage image = describe(stack_->finish(), stack_start_tai_ns_, centroid, stack_exposure_s_);
  image.center = stack_center_;
  image.end_tai_ns = stack_end_tai_ns_;
  stack_pairs_ = 0;
  stack_full_pairs_ = 0;
  stack_live_pairs_ = 0;
  stack_exposure_s_ = 0;
  stack_centroid_s_ = 0;
  emit(image);
}

SkyImage SkyProducts::describe(const image::Images& images, std::int64_t start_tai_ns,
                               std::int64_t centroid_tai_ns, double exposure_s) const {
  const auto& sky = metadata_.sky;
  SkyImage image;
  image.n_pixels = sky.n_pixels;
  image.n_channels_per_bin = sky.n_channels_per_bin;
  image.cell_direction_cosine = 1 / (static_cast<double>(sky.n_pixels) * sky.cell_wavelengths);
  image.frequency = sky.channels;
  image.start_tai_ns = start_tai_ns;
  image.centroid_tai_ns = centroid_tai_ns;
  image.exposure_s = exposure_s;
  image.unit = metadata_.unit;
  image.beam = metadata_.beam;
  image.metadata = metadata_.metadata;
  image.metadata.loss_ppm = 1e6 * lost_fraction_;
  image.metadata.n_dead_inputs = n_dead_;
  take_planes(image, images.pixels, images.weights, image::n_bins(sky),
              metadata_.stokes.empty() ? stokes_codes(sky) : metadata_.stokes);
  return image;
}

/// Of an image that is no stack, at an instant.
SkyPosition SkyProducts::place_of_pixel(double x, double y, std::int64_t tai_ns) const {
  SkyImage image;
  image.n_pixels = metadata_.sky.n_pixels;
  image.centroid_tai_ns = tai_ns;
  image.plane_alpha = metadata_.plane.alpha;
  image.plane_beta = metadata_.plane.beta;
  place_at_zenith(image, observation_.array, observation_.earth_orientation);
  const image::Config geometry{image.n_pixels, 1 / metadata_.sky.cell_wavelengths, "auto"};
  const auto [l, m] = image::direction_of_pixel(geometry, x, y);
  return place_of(image, observation_, l, m);
}

void SkyProducts::emit(const SkyImage& image) {
  find_peak(image);
  run_or_abandon([&] { write_fits(image); });
  if (!config_.image.hdf5.empty()) run_or_abandon([&] { write_cube(image); });
  run_or_abandon([&] { write_pictures(image); });
  ++images_written_;
  if (on_image_) on_image_(image, observation_);
}

void SkyProducts::find_peak(const SkyImage& image) {
  const image::Config geometry{image.n_pixels, 1 / metadata_.sky.cell_wavelengths, "auto"};
  const std::vector<double> plane = mean_plane(image);
  if (std::all_of(plane.begin(), plane.end(), [](double v) { return std::isnan(v); })) {
    peak_.reset();
    return;
  }
  const auto found = image::peak_of(geometry, plane);
  const auto pixel = image::pixel_of_direction(geometry, found.direction.l, found.direction.m);
  const SkyPosition place = place_of(image, observation_, found.direction.l, found.direction.m);
  SkyPeak peak;
  peak.value = found.value;
  peak.sigma = found.sigmas;
  peak.x = pixel.x;
  peak.y = pixel.y;
  peak.l = place.enu[0];
  peak.m = place.enu[1];
  peak.ra_deg = place.direction.ra_rad / kDegree_rad;
  peak.dec_deg = place.direction.dec_rad / kDegree_rad;
  peak.azimuth_deg = place.azimuth_rad / kDegree_rad;
  peak.elevation_deg = place.elevation_rad / kDegree_rad;
  peak_ = peak;
}

void SkyProducts::write_fits(const SkyImage& image) {
  const auto& c = config_.image;
  const bool overwrite = config_.output.overwrite;
  if (!c.output.empty()) {
    // One name: one image, or all of them one after the other.
    if (single()) {
      write_fits_image(c.output, image, observation_, overwrite);
      publish_name(c.output);
      return;
    }
    if (!series_) series_ = std::make_unique<FitsImageSeries>(c.output, observation_, overwrite);
    series_->append(image);
    return;
  }
  if (!c.fits) return;
  const std::string name =
      image_file_name(in_directory(config_, config_.output.name + "_image"), image, ".fits");
  write_fits_image(name, image, observation_, overwrite);
  publish_name(name);
}

std::string SkyProducts::picture_of(const SkyImage& image) const {
  const auto& c = config_.image;
  if (!c.picture.empty()) {
    return single() ? c.picture
                    : image_file_name(without_extension(c.picture), image,
                                      std::filesystem::path(c.picture).extension().string());
  }
  if (!c.png) return {};
  return image_file_name(in_directory(config_, config_.output.name + "_image"), image, ".png");
}

void SkyProducts::write_cube(const SkyImage& image) {
  const auto& name = config_.image.hdf5;
  if (!cube_) {
    make_parent(name);
    cube_ = std::make_unique<ImageCubeWriter>(name, observation_, config_.output.overwrite);
  }
  cube_->append(image);
}

SkyPictureOptions SkyProducts::picture_options(const SkyImage& image) const {
  SkyPictureOptions options;
  options.watch = metadata_.targets;
  options.disc_px = config_.image.picture_px;
  // Names of the catalog are drawn anyway.
  for (const auto& source : config_.simulator.sources) {
    if (config_.source.kind != "simulator" || source.name.empty()) continue;
    if (source.duration_s > 0) continue;  // a flash is news, not a landmark
    WatchTarget target;
    target.name = source.name;
    target.fixed = SkyDirection{source.ra_deg * kDegree_rad, source.dec_deg * kDegree_rad};
    if (!source.by_ra_dec) {
      const double n = std::sqrt(std::max(0.0, 1 - source.l * source.l - source.m * source.m));
      target.fixed = direction_of_enu(observation_.array, {source.l, source.m, n},
                                      image.centroid_tai_ns, observation_.earth_orientation);
    }
    const auto same = [&](const WatchTarget& t) { return t.name == target.name; };
    if (std::none_of(options.watch.begin(), options.watch.end(), same))
      options.watch.push_back(std::move(target));
  }
  return options;
}

void SkyProducts::write_pictures(const SkyImage& image) {
  const auto& c = config_.image;
  const bool overwrite = config_.output.overwrite;
  const std::string picture = picture_of(image);
  if (!picture.empty()) {
    write_sky_picture(picture, image, observation_, picture_options(image), overwrite);
    publish_name(picture);
  }
  if (c.latest) write_latest(image);
  if (!c.frames.empty()) {
    if (!frames_) {
      const auto stem = std::filesystem::path(c.frames) / config_.output.name;
      frames_ = std::make_unique<SkyPictureSequence>(stem.string(), observation_,
                                                     picture_options(image), true, overwrite);
    }
    publish_name(frames_->append(image));
  }
  if (!c.movie.empty()) {
    if (!movie_) {
      make_parent(c.movie);
      movie_ = std::make_unique<SkyMovie>(c.movie, observation_, picture_options(image),
                                          kFramesPerSecond, true, overwrite);
    }
    movie_->append(image);
  }
}

// The one file that is replaced again and again, whole each time, at most once a second.
void SkyProducts::write_latest(const SkyImage& image) {
  const std::int64_t now = monotonic_ns();
  const std::string name = in_directory(config_, config_.output.name + "_latest.png");
  if (latest_ns_ != 0 && now - latest_ns_ < kLatestEvery_ns) return;
  const bool first = latest_ns_ == 0;
  write_sky_picture(name, image, observation_, picture_options(image),
                    config_.output.overwrite || !first);
  latest_ns_ = now;
  if (first) publish_name(name);
}

void SkyProducts::search(const RawImages& raw, std::int64_t start_tai_ns) {
  std::vector<double> weights;
  for (std::size_t k = 0; k + 2 < raw.images.weights.size(); k += 3)
    weights.push_back(raw.images.weights[k] + raw.images.weights[k + 1]);
  instants_.push_back({start_tai_ns, raw.clock.seconds(raw.n_spectra)});
  if (instants_.size() > kInstants) {
    instants_.pop_front();
    ++first_instant_;
  }
  note_events(trigger_->add(raw.images.pixels, weights));
}

void SkyProducts::note_events(std::span<const math::ImageTriggerEvent> events) {
  for (const auto& e : events) {
    const auto at = static_cast<std::size_t>(std::clamp<std::int64_t>(
        e.first_image - first_instant_, 0, static_cast<std::int64_t>(instants_.size()) - 1));
    const Instant& instant = instants_[at];
    ImageEvent event;
    event.duration_s = instant.length_s * static_cast<double>(e.n_images);
    event.tai_ns = instant.start_tai_ns + nanoseconds(event.duration_s / 2);
    const SkyPosition place =
        place_of_pixel(static_cast<double>(e.x), static_cast<double>(e.y), event.tai_ns);
    event.l = place.enu[0];
    event.m = place.enu[1];
    event.direction = place.direction;
    const auto& f = metadata_.sky.channels;
    event.low_hz = f.first_center_hz - f.channel_width_hz / 2;
    event.high_hz = f.center_hz(f.n_channels - 1) + f.channel_width_hz / 2;
    event.snr.fill(std::nan(""));
    std::copy_n(e.snr.begin(), std::min<std::size_t>(4, e.snr.size()), event.snr.begin());
    event.peak = e.peak;
    auto cutout = trigger_->cutout(e);
    event.cutout_shape = cutout.shape;
    event.cutout = std::move(cutout.values);
    if (!light_curves_) open_store();
    light_curves_->append(event);
    ++events_;
    if (on_event_) on_event_(event);
    if (config_.image.voevent) run_or_abandon([&] { publish_event(event); });
  }
}

// One file an event, whole or not there: a broker may watch the directory.
void SkyProducts::publish_event(const ImageEvent& event) {
  if (events_ > kMaxEventFiles) {
    if (events_ == kMaxEventFiles + 1) {
      warnings_.push_back(fmt::format("more than {} events: the others are in {} only",
                                      kMaxEventFiles, store_name()));
    }
    return;
  }
  VoEventOptions options;
  options.simulated = config_.source.kind == "simulator";
  // The place is that of a pixel, anywhere in it: rms of a square, stretched towards the horizon.
  const double pixel =
      1 / (static_cast<double>(metadata_.sky.n_pixels) * metadata_.sky.cell_wavelengths);
  const double n = std::sqrt(std::max(0.01, 1 - event.l * event.l - event.m * event.m));
  options.position_error_rad = pixel / n / std::sqrt(6.0);
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  options.author_tai_ns = tai_ns_from_unix(now / 1'000'000'000, now % 1'000'000'000);
  // Times of files have no colons and no dashes, as those of images.
  std::string utc = utc_iso(event.tai_ns, 9);
  std::erase_if(utc, [](char c) { return c == '-' || c == ':'; });
  if (utc.back() != 'Z') utc += 'Z';
  const std::string name =
      in_directory(config_, fmt::format("{}_event_{}_{}.xml", config_.output.name, utc, events_));
  publish_bytes(name, voevent_xml(event, observation_, events_, options), config_.output.overwrite);
  publish_name(name);
}

std::string SkyProducts::store_name() const {
  return config_.image.light_curves.empty()
             ? in_directory(config_, config_.output.name + "_light_curves.sqlite")
             : config_.image.light_curves;
}

void SkyProducts::open_store() {
  const std::string name = store_name();
  make_parent(name);
  LightCurveOptions options;
  options.overwrite = config_.output.overwrite;
  light_curves_ = std::make_unique<LightCurveStore>(name, observation_, options);
  for (const auto& target : metadata_.targets) {
    source_ids_.push_back(light_curves_->source(target));
    watched_.push_back({target.name, 0, std::nan(""), 0, 0});
  }
  publish_name(name);
}

// Every source has a row in every image: NaN with its elevation where it is not up.
void SkyProducts::write_light_curves(const RawImages& raw, std::int64_t start_tai_ns,
                                     std::int64_t centroid_tai_ns) {
  if (!light_curves_) open_store();
  const std::int64_t n_bins = image::n_bins(metadata_.sky);
  const std::int64_t n_planes = image::n_planes(metadata_.sky);
  const auto n_directions = static_cast<std::int64_t>(raw.watched_index.size());
  LightCurveImage image;
  image.start_tai_ns = start_tai_ns;
  image.centroid_tai_ns = centroid_tai_ns;
  image.exposure_s = length_s(raw);
  image.bins = frequency_bins(metadata_.sky);
  image.path = metadata_.metadata.path;
  std::vector<LightCurveSample> samples;
  for (std::size_t k = 0; k < metadata_.targets.size(); ++k) {
    const auto direction = metadata_.targets[k].direction(centroid_tai_ns, &observation_.array);
    const Vector3 enu = enu_of_direction(observation_.array, direction, centroid_tai_ns,
                                         observation_.earth_orientation);
    const auto at =
        std::find(raw.watched_index.begin(), raw.watched_index.end(), static_cast<std::int64_t>(k));
    double flux = 0;
    std::int64_t n = 0;
    for (std::int64_t bin = 0; bin < n_bins; ++bin) {
      LightCurveSample sample;
      sample.source = source_ids_[k];
      sample.bin = bin;
      sample.stokes.fill(std::nan(""));
      sample.elevation_rad = std::asin(std::clamp(enu[2], -1.0, 1.0));
      sample.l = enu[0];
      sample.m = enu[1];
      if (at != raw.watched_index.end()) {
        const std::int64_t d = at - raw.watched_index.begin();
        for (std::int64_t plane = 0; plane < std::min<std::int64_t>(4, n_planes); ++plane) {
          const auto from = static_cast<std::size_t>((bin * n_planes + plane) * n_directions + d);
          sample.stokes[plane] = static_cast<double>(raw.watched.pixels[from]);
        }
        if (metadata_.sky.products == image::Products::linear && n_planes == 4) {
          const auto [xx, yy, u, v] = sample.stokes;
          sample.stokes = {(xx + yy) / 2, (xx - yy) / 2, u, v};
        }
        const double* pairs = raw.watched.weights.data() + 3 * bin;
        sample.weight = pairs[0] + pairs[1];
        if (std::isfinite(sample.stokes[0])) {
          flux += sample.stokes[0];
          ++n;
        }
      }
      samples.push_back(sample);
    }
    auto& seen = watched_[k];
    seen.elevation_deg = samples.back().elevation_rad / kDegree_rad;
    seen.flux = n > 0 ? flux / static_cast<double>(n) : std::nan("");
    if (n > 0) {
      const auto before = static_cast<double>(seen.n_images);
      seen.mean_flux = (seen.mean_flux * before + seen.flux) / (before + 1);
      ++seen.n_images;
    }
  }
  light_curves_->append(image, samples);
}

void SkyProducts::finish() {
  finish_stack();
  if (trigger_) run_or_abandon([&] { note_events(trigger_->flush()); });
  if (cube_) {
    run_or_abandon([&] {
      cube_->publish(observation_);
      publish_name(config_.image.hdf5);
    });
    cube_.reset();
  }
  if (movie_) {
    run_or_abandon([&] {
      movie_->finish();
      publish_name(config_.image.movie);
    });
    movie_.reset();
  }
  if (light_curves_) run_or_abandon([&] { light_curves_->commit(); });
  for (const auto& w : watched_) {
    if (w.n_images == 0) {
      warnings_.push_back(fmt::format(
          "{} stayed below the horizon ({:.1f} deg): its light curve holds elevations only", w.name,
          w.elevation_deg));
    }
  }
  if (series_) {
    run_or_abandon([&] {
      series_->publish();
      publish_name(config_.image.output);
    });
    series_.reset();
  }
}

}  // namespace ryle::pipeline
