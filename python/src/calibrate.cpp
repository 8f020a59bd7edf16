// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "python/src/bindings.hpp"
#include "ryle/core/baseline.hpp"
#include "ryle/engine/calibrate/calibrate.hpp"
#include "ryle/pipeline/calibrate/calibrate_run.hpp"

namespace ryle::python {
namespace {

using pipeline::CalibrateReport;

/// @param overrides "calibrate.key=value", as --set takes them
std::unique_ptr<CalibrateReport> calibrate_file(const VisibilityFile& file,
                                                const std::vector<std::string>& overrides,
                                                std::int64_t channels) {
  const auto settings =
      pipeline::parse_observation("schema = 1\n", "ryle.calibrate", overrides).calibrate;
  auto report = std::make_unique<CalibrateReport>();
  std::atomic<int> stop{0};
  run_interruptibly(stop, [&] {
    *report =
        pipeline::calibrate_visibilities(settings, file, channels, shared_queue().n_workers());
  });
  return report;
}

/// [antenna][channel][pol]
template <class T>
Result<T> of_table(const GainTable& t, const std::vector<T>& values) {
  return to_array(std::vector<T>(values), {count_of(t.observation.array.n_antennas()),
                                           count_of(t.n_channels()), count_of(t.n_pols)});
}

/// Gains of arrays. @shape visibilities, model [channel][pair] complex, weights [channel][pair];
/// pair = pair_index(i, j) of inputs. Returns gains, flags, sigma_rad [channel][input], rounds
/// [channel].
nb::tuple solve_gains(const DenseArray<cf64, 2>& visibilities, const DenseArray<cf64, 2>& model,
                      const DenseArray<double, 2>& weights, const std::string& method,
                      int max_rounds, double tolerance, std::int64_t reference,
                      const std::string& implementation) {
  namespace cal = ryle::calibrate;
  const auto n_channels = static_cast<std::int64_t>(visibilities.shape(0));
  const auto n_baselines = static_cast<std::int64_t>(visibilities.shape(1));
  std::int64_t n = 0;
  while (n_pairs(n) < n_baselines) ++n;
  if (n_pairs(n) != n_baselines)
    throw ConfigError(std::to_string(n_baselines) +
                      " baselines are not those of an array: n (n + 1) / 2, autocorrelations too");
  if (model.shape(0) != visibilities.shape(0) || model.shape(1) != visibilities.shape(1) ||
      weights.shape(0) != visibilities.shape(0) || weights.shape(1) != visibilities.shape(1))
    throw ConfigError("visibilities, model and weights must have one shape");
  cal::Config config;
  config.n_inputs = n;
  config.n_solutions = n_channels;
  config.method = named<cal::Method>(
      method, "method",
      {{"stefcal", cal::Method::stefcal}, {"eigenvector", cal::Method::eigenvector}});
  config.max_rounds = max_rounds;
  config.tolerance = tolerance;
  config.implementation = implementation;
  const auto solver = cal::make_solver(config);
  cal::Solutions found;
  std::vector<double> sigma;
  {
    const nb::gil_scoped_release released;
    auto queue = shared_queue();
    cal::Equations equations(n, n_channels);
    queue.parallel_for(n_channels, [&](std::int64_t c) {
      for (std::int64_t b = 0; b < n; ++b) {
        for (std::int64_t a = 0; a < b; ++a) {
          const std::int64_t k = c * n_baselines + pair_index(a, b);
          equations.add(c, a, b, visibilities.data()[k], model.data()[k], weights.data()[k]);
        }
      }
    });
    solver->execute(queue, equations, found);
    cal::gauge(found, reference);
    sigma = cal::least_squares_sigma(equations, found);
  }
  const std::initializer_list<std::size_t> shape = {count_of(n_channels), count_of(n)};
  return nb::make_tuple(to_array(std::move(found.gains), shape),
                        to_array(std::move(found.flags), shape), to_array(std::move(sigma), shape),
                        to_array(std::move(found.rounds), {count_of(n_channels)}));
}

}  // namespace

void bind_calibrate(nb::module_& m) {
  nb::class_<CalibrateReport>(m, "Gains")
      .def("gains", [](const CalibrateReport& r) { return of_table(r.table, r.table.gains); })
      .def("flags", [](const CalibrateReport& r) { return of_table(r.table, r.table.flags); })
      .def("sigma_rad",
           [](const CalibrateReport& r) { return of_table(r.table, r.table.sigma_rad); })
      .def("sigma_amplitude",
           [](const CalibrateReport& r) { return of_table(r.table, r.table.sigma_amplitude); })
      .def("center_hz",
           [](const CalibrateReport& r) {
             return to_array(std::vector<double>(r.table.center_hz), {r.table.center_hz.size()});
           })
      .def("report", [](const CalibrateReport& r) { return pipeline::to_json(r, {}); })
      .def(
          "write",
          [](const CalibrateReport& r, const std::string& path, bool overwrite) {
            const nb::gil_scoped_release released;
            write_gain_table(path, r.table, overwrite);
          },
          nb::arg("path"), nb::arg("overwrite"))
      .def(
          "picture",
          [](const CalibrateReport& r, const std::string& path, bool overwrite) {
            const nb::gil_scoped_release released;
            pipeline::write_gain_picture(path, r, overwrite);
          },
          nb::arg("path"), nb::arg("overwrite"));
  m.def("calibrate", &calibrate_file, nb::arg("file"), nb::arg("overrides"), nb::arg("channels"));
  m.def("solve_gains", &solve_gains, nb::arg("visibilities").noconvert(),
        nb::arg("model").noconvert(), nb::arg("weights").noconvert(), nb::arg("method"),
        nb::arg("max_rounds"), nb::arg("tolerance"), nb::arg("reference"),
        nb::arg("implementation"));
  m.def("calibrate_implementations", &ryle::calibrate::available_implementations);
}

}  // namespace ryle::python
