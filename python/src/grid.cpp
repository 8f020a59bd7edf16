// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/grid.hpp"

#include <algorithm>
#include <mutex>

#include "python/src/bindings.hpp"
#include "ryle/engine/grid/order_statistics.hpp"
#include "ryle/engine/grid/output_beam.hpp"

namespace ryle::python {
namespace {

namespace gr = grid;

using Values = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu>;
using Weights = nb::ndarray<const float, nb::device::cpu>;
using Flags = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::device::cpu>;

/// Values [channel][sample] (or [sample]) of a sample layout with any strides.
gr::Samples samples_of(const Values& values, const std::optional<Weights>& weights,
                       const std::optional<Flags>& flags) {
  gr::Samples s;
  s.values = values.data();
  s.channel_stride = values.stride(0);
  s.sample_stride = values.stride(1);
  if (weights) {
    const bool per_channel = weights->ndim() == 2;
    s.weights = weights->data();
    s.weight_channel_stride = per_channel ? weights->stride(0) : 0;
    s.weight_sample_stride = weights->stride(per_channel ? 1 : 0);
  }
  if (flags) s.flags = flags->data();
  return s;
}

class Gridder {
 public:
  Gridder(const DenseArray<double, 1>& longitude_deg, const DenseArray<double, 1>& latitude_deg,
          std::int64_t width, std::int64_t n_channels, const std::string& kernel,
          double beam_fwhm_rad, const std::string& precision, const std::string& implementation)
      : queue_(shared_queue()) {
    gr::Config config;
    config.convolution = gr::parse_convolution(kernel, beam_fwhm_rad);
    config.n_channels = n_channels;
    config.precision = named<gr::Precision>(
        precision, "precision", {{"f32", gr::Precision::f32}, {"f64", gr::Precision::f64}});
    config.implementation = implementation;
    kernel_ = gr::to_string(config.convolution);
    const auto n = static_cast<std::int64_t>(longitude_deg.size());
    n_cells_ = n;
    n_channels_ = n_channels;
    const nb::gil_scoped_release released;
    plan_ = gr::make_gridder(
        config, {gr::positions(queue_, longitude_deg.data(), latitude_deg.data(), n), width});
  }

  /// @shape longitude, latitude [sample] degrees; values, flags [channel][sample]; weights
  /// [sample] or [channel][sample]
  void execute(const DenseArray<double, 1>& longitude_deg,
               const DenseArray<double, 1>& latitude_deg, const Values& values,
               const std::optional<Weights>& weights, const std::optional<Flags>& flags) {
    const PlanLock lock(mutex_);
    const gr::Samples all = samples_of(values, weights, flags);
    const auto n = static_cast<std::int64_t>(longitude_deg.size());
    const std::int64_t together = std::min(plan_->samples_together(), gr::kSamplesTogether * 8);
    for (std::int64_t first = 0; first < n; first += together) {
      {
        const nb::gil_scoped_release released;
        const auto plan = plan_->plan(
            queue_, gr::positions(queue_, longitude_deg.data() + first, latitude_deg.data() + first,
                                  std::min(together, n - first)));
        gr::Samples part = all;
        part.values += first * all.sample_stride;
        if (part.weights != nullptr) part.weights += first * all.weight_sample_stride;
        if (part.flags != nullptr) part.flags += first * all.sample_stride;
        plan_->execute(queue_, *plan, part);
        const auto info = gr::metadata(*plan);
        n_samples_ += info.n_samples;
        bad_positions_ += info.bad_positions;
        out_of_reach_ += info.out_of_reach;
      }
      check_signals();
    }
  }

  /// @shape value, weight, noise, count [channel][cell]
  nb::tuple finish(std::int64_t min_count, double min_weight) {
    const auto n = count_of(n_channels_ * n_cells_);
    std::vector<float> value(n), weight(n), noise(n);
    std::vector<std::int32_t> count(n);
    {
      const nb::gil_scoped_release released;
      const std::lock_guard lock(mutex_);
      for (std::int64_t c = 0; c < n_channels_; ++c) {
        const auto plane = gr::finish(plan_->sums(), {min_count, min_weight}, c);
        const auto at = c * n_cells_;
        std::copy(plane.value.begin(), plane.value.end(), value.begin() + at);
        std::copy(plane.weight.begin(), plane.weight.end(), weight.begin() + at);
        std::copy(plane.noise.begin(), plane.noise.end(), noise.begin() + at);
        std::copy(plane.count.begin(), plane.count.end(), count.begin() + at);
      }
    }
    const std::initializer_list<std::size_t> shape = {count_of(n_channels_), count_of(n_cells_)};
    return nb::make_tuple(to_array(std::move(value), shape), to_array(std::move(weight), shape),
                          to_array(std::move(noise), shape), to_array(std::move(count), shape));
  }

  void reset() {
    const nb::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    plan_->sums().reset();
    n_samples_ = bad_positions_ = out_of_reach_ = 0;
  }

  std::string implementation() const { return std::string(plan_->implementation()); }
  const std::string& kernel() const { return kernel_; }
  std::int64_t n_samples() const {
    const PlanLock lock(mutex_);
    return n_samples_;
  }
  std::int64_t bad_positions() const {
    const PlanLock lock(mutex_);
    return bad_positions_;
  }
  std::int64_t out_of_reach() const {
    const PlanLock lock(mutex_);
    return out_of_reach_;
  }

 private:
  Queue queue_;
  mutable std::recursive_mutex mutex_;
  std::string kernel_;
  std::unique_ptr<gr::Gridder> plan_;
  std::int64_t n_cells_ = 0, n_channels_ = 0;
  std::int64_t n_samples_ = 0, bad_positions_ = 0, out_of_reach_ = 0;
};

}  // namespace

void bind_grid(nb::module_& m) {
  nb::class_<Gridder>(m, "Gridder")
      .def(nb::init<const DenseArray<double, 1>&, const DenseArray<double, 1>&, std::int64_t,
                    std::int64_t, const std::string&, double, const std::string&,
                    const std::string&>(),
           nb::arg("longitude_deg").noconvert(), nb::arg("latitude_deg").noconvert(),
           nb::arg("width"), nb::arg("n_channels"), nb::arg("kernel"), nb::arg("beam_fwhm_rad"),
           nb::arg("precision"), nb::arg("implementation"))
      .def("execute", &Gridder::execute, nb::arg("longitude_deg").noconvert(),
           nb::arg("latitude_deg").noconvert(), nb::arg("values").noconvert(),
           nb::arg("weights").noconvert() = nb::none(), nb::arg("flags").noconvert() = nb::none())
      .def("finish", &Gridder::finish, nb::arg("min_count"), nb::arg("min_weight"))
      .def("reset", &Gridder::reset)
      .def_prop_ro("implementation", &Gridder::implementation)
      .def_prop_ro("kernel", &Gridder::kernel)
      .def_prop_ro("n_samples", &Gridder::n_samples)
      .def_prop_ro("bad_positions", &Gridder::bad_positions)
      .def_prop_ro("out_of_reach", &Gridder::out_of_reach);
  m.def(
      "kernel_fwhm_rad",
      [](const std::string& kernel, double beam_fwhm_rad) {
        return gr::fwhm_rad(gr::parse_convolution(kernel, beam_fwhm_rad));
      },
      nb::arg("kernel"), nb::arg("beam_fwhm_rad"));
  m.def("grid_implementations", &gr::available_implementations);
}

}  // namespace ryle::python
