// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/image.hpp"

#include <mutex>

#include "python/src/blocks.hpp"
#include "ryle/engine/correlate/correlate.hpp"
#include "ryle/engine/image/cost_model.hpp"
#include "ryle/engine/image/geometry.hpp"

namespace ryle::python {
namespace {

namespace im = image;

/// All-sky images of spectra by whichever path was asked for or is the cheapest: of voltages at
/// once, of visibilities by a correlator in front.
class SkyImager {
 public:
  SkyImager(const DenseArray<double, 2>& antenna_enu_m,
            const std::vector<std::tuple<std::int64_t, int, bool>>& inputs, double first_center_hz,
            double channel_width_hz, std::int64_t n_channels, const std::string& format,
            std::int64_t n_channels_per_bin, std::int64_t n_spectra, std::int64_t n_pixels,
            double cell_wavelengths, std::int64_t support, bool remove_autos,
            const std::string& products, const std::string& path, const std::string& implementation)
      : queue_(shared_queue()) {
    for (std::size_t a = 0; a < antenna_enu_m.shape(0); ++a)
      config_.antenna_enu_m.push_back(
          {antenna_enu_m(a, 0), antenna_enu_m(a, 1), antenna_enu_m(a, 2)});
    for (const auto& [antenna, pol, bad] : inputs) config_.inputs.push_back({antenna, pol, bad});
    config_.channels = {first_center_hz, channel_width_hz, n_channels};
    config_.n_channels_per_bin = n_channels_per_bin;
    config_.n_spectra_per_image = n_spectra;
    config_.n_pixels = n_pixels;
    config_.cell_wavelengths = cell_wavelengths;
    config_.function.support = support;
    config_.remove_autos = remove_autos;
    config_.products = named<im::Products>(products, "products",
                                           {{"stokes", im::Products::stokes},
                                            {"linear", im::Products::linear},
                                            {"intensity", im::Products::intensity}});
    config_.path = im::path_named(path);
    config_.implementation = implementation;
    const nb::gil_scoped_release released;
    choose();
    if (im::takes_voltages(config_.path)) {
      field_ = im::make_field_imager(queue_, config_);
      return;
    }
    vis_ = im::make_vis_imager(queue_, config_);
    gulp_ = std::clamp(whole_gulp(n_spectra), std::int64_t{128}, kImageGulp);
    correlator_ = correlate::make_correlator(
        queue_, {.n_inputs = static_cast<std::int64_t>(config_.inputs.size()),
                 .n_channels = n_channels,
                 .format = sample_format(format),
                 .max_spectra = gulp_});
  }

  /// @shape gains [channel][input]
  void set_gains(const DenseArray<cf32, 2>& gains) {
    const std::span<const cf32> all(gains.data(), gains.size());
    const nb::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    if (field_) field_->set_gains(queue_, all);
    if (vis_) vis_->set_gains(queue_, all);
  }

  void execute(const Blocks& blocks) {
    const PlanLock lock(mutex_);
    if (blocks.n_inputs() != static_cast<std::int64_t>(config_.inputs.size()) ||
        blocks.n_channels() != config_.channels.n_channels)
      throw ConfigError("all-sky imager: the spectra have " + std::to_string(blocks.n_channels()) +
                        " channels of " + std::to_string(blocks.n_inputs()) + " inputs, the plan " +
                        std::to_string(config_.channels.n_channels) + " of " +
                        std::to_string(config_.inputs.size()));
    const std::int64_t bytes = blocks.n_channels() * blocks.n_inputs() * 2;
    const std::int64_t step = std::min(gulp_spectra(bytes, blocks.n_spectra()), gulp_);
    for (std::int64_t first = 0; first < blocks.n_spectra(); first += step) {
      {
        const nb::gil_scoped_release released;
        add(blocks, first, std::min(step, blocks.n_spectra() - first));
      }
      check_signals();
    }
  }

  /// @shape pixels [bin][plane][y][x]; weights [bin][3]
  nb::tuple finish() {
    im::Images images;
    {
      const nb::gil_scoped_release released;
      const std::lock_guard lock(mutex_);
      if (field_) {
        field_->finish(queue_, images);
      } else {
        correlate::Sums sums;
        correlator_->finish(queue_, sums);
        const bool integers = !sums.integer.empty();
        vis_->execute(queue_,
                      {.type = integers ? im::VisInput::Type::ci64 : im::VisInput::Type::cf64,
                       .sums = integers ? static_cast<const void*>(sums.integer.data())
                                        : static_cast<const void*>(sums.real.data()),
                       .counts = sums.counts.data(),
                       .n_spectra = sums.n_spectra},
                      images);
        images.n_spectra = sums.n_spectra;
      }
    }
    const auto bins = count_of(im::n_bins(config_)), planes = count_of(im::n_planes(config_));
    const auto side = count_of(config_.n_pixels);
    return nb::make_tuple(to_array(std::move(images.pixels), {bins, planes, side, side}),
                          to_array(std::move(images.weights), {bins, 3}), images.n_spectra);
  }

  void reset() {
    const nb::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    if (field_) field_->reset(queue_);
    if (correlator_) correlator_->reset(queue_);
  }

  std::string path() const { return std::string(im::name(config_.path)); }
  std::string implementation() const {
    return std::string(field_ ? field_->implementation() : vis_->implementation());
  }
  const std::string& reason() const { return reason_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// Path -> seconds, bytes, error and why not.
  nb::dict cost() const {
    nb::dict all;
    for (const auto& p : predictions_) {
      nb::dict d;
      d["possible"] = p.possible;
      d["why_not"] = p.why_not;
      d["seconds"] = p.seconds;
      d["bytes"] = p.bytes;
      d["relative_error"] = p.relative_error;
      all[nb::str(std::string(im::name(p.path)).c_str())] = d;
    }
    return all;
  }

  /// East, north, up of the direction behind a pixel.
  std::array<double, 3> direction(double x, double y) const {
    return im::direction_of_pixel(config_, im::fit_plane(config_), x, y);
  }
  /// Slopes of the plane of the array, dz / d east and dz / d north.
  std::array<double, 2> plane() const {
    const auto p = im::fit_plane(config_);
    return {p.alpha, p.beta};
  }
  std::array<double, 2> pixel(const std::array<double, 3>& enu) const {
    return im::pixel_of_direction(config_, im::fit_plane(config_), enu);
  }

 private:
  static constexpr std::int64_t kImageGulp = 8192;  // spectra between looks at signals

  void choose() {
    const auto plan =
        im::plan(config_, im::default_cost_model(BackEnd::cpu, queue_.n_workers()), false, 1);
    predictions_ = plan.paths;
    reason_ = plan.reason;
    if (!plan.warning.empty()) warnings_.push_back(plan.warning);
    if (config_.path == im::Path::automatic) config_.path = plan.choice;
    if (config_.path == im::Path::automatic)
      throw UnsupportedError("all-sky imager: no path can be taken: " + plan.reason);
  }

  void add(const Blocks& blocks, std::int64_t first, std::int64_t n) {
    if (field_) return field_->execute(queue_, blocks.gulp<im::FieldInput>(first, n));
    correlator_->execute(queue_, blocks.gulp<correlate::Input>(first, n));
  }

  Queue queue_;
  im::AllSkyConfig config_;
  std::string reason_;
  std::vector<std::string> warnings_;
  std::vector<im::PathPrediction> predictions_;
  std::int64_t gulp_ = kImageGulp;
  mutable std::recursive_mutex mutex_;
  std::unique_ptr<im::FieldImager> field_;
  std::unique_ptr<im::VisImager> vis_;
  std::unique_ptr<correlate::Correlator> correlator_;
};

nb::tuple image_samples(const DenseArray<double, 2>& uvw, const DenseArray<cf64, 1>& visibilities,
                        const DenseArray<double, 1>& weights, std::int64_t n_pixels, double width,
                        const std::string& path, double max_error,
                        const std::string& implementation) {
  im::Config config;
  config.n_pixels = n_pixels;
  config.width_direction_cosines = width;
  config.implementation = implementation;
  config.max_error = max_error;
  config.path = known(im::sample_path_named(path), "path", path, kSamplePaths);
  std::atomic<int> stop{0};
  config.go_on = [&stop](double) { return stop == 0; };
  std::vector<double> pixels;
  std::string taken, made_by;
  run_interruptibly(stop, [&] {
    std::vector<im::Sample> samples(visibilities.size());
    for (std::size_t k = 0; k < samples.size(); ++k)
      samples[k] = {uvw(k, 0), uvw(k, 1), uvw(k, 2), visibilities(k), weights(k)};
    auto queue = shared_queue();
    const auto imager = im::make_imager(queue, config);
    imager->execute(queue, samples, pixels);
    taken = im::name(imager->path());
    made_by = imager->implementation();
  });
  return nb::make_tuple(to_array(std::move(pixels), {count_of(n_pixels), count_of(n_pixels)}),
                        taken, made_by);
}

}  // namespace

void bind_image(nb::module_& m) {
  nb::class_<SkyImager>(m, "SkyImager")
      .def(nb::init<const DenseArray<double, 2>&,
                    const std::vector<std::tuple<std::int64_t, int, bool>>&, double, double,
                    std::int64_t, const std::string&, std::int64_t, std::int64_t, std::int64_t,
                    double, std::int64_t, bool, const std::string&, const std::string&,
                    const std::string&>(),
           nb::arg("antenna_enu_m").noconvert(), nb::arg("inputs"), nb::arg("first_center_hz"),
           nb::arg("channel_width_hz"), nb::arg("n_channels"), nb::arg("format"),
           nb::arg("n_channels_per_bin"), nb::arg("n_spectra"), nb::arg("n_pixels"),
           nb::arg("cell_wavelengths"), nb::arg("support"), nb::arg("remove_autos"),
           nb::arg("products"), nb::arg("path"), nb::arg("implementation"))
      .def("set_gains", &SkyImager::set_gains, nb::arg("gains").noconvert())
      .def("execute", &SkyImager::execute, nb::arg("blocks"))
      .def("finish", &SkyImager::finish)
      .def("reset", &SkyImager::reset)
      .def("cost", &SkyImager::cost)
      .def("direction", &SkyImager::direction, nb::arg("x"), nb::arg("y"))
      .def("pixel", &SkyImager::pixel, nb::arg("enu"))
      .def_prop_ro("plane", &SkyImager::plane)
      .def_prop_ro("path", &SkyImager::path)
      .def_prop_ro("reason", &SkyImager::reason)
      .def_prop_ro("warnings", &SkyImager::warnings)
      .def_prop_ro("implementation", &SkyImager::implementation);
  m.def("image_samples", &image_samples, nb::arg("uvw").noconvert(),
        nb::arg("visibilities").noconvert(), nb::arg("weights").noconvert(), nb::arg("n_pixels"),
        nb::arg("width"), nb::arg("path"), nb::arg("max_error"), nb::arg("implementation"));
  m.def("image_implementations", &im::available_all_sky_implementations);
}

}  // namespace ryle::python
