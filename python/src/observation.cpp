// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/config/config.hpp"

#include "python/src/bindings.hpp"
#include "ryle/pipeline/image/voltage_imaging.hpp"
#include "ryle/pipeline/run/plan.hpp"
#include "ryle/pipeline/run/run.hpp"

namespace ryle::python {
namespace {

using pipeline::ObservationConfig;

/// The summary as JSON, as `ryle run --json` prints it.
std::string run(const ObservationConfig& config, nb::object on_progress, double interval_s,
                const std::string& command_line) {
  std::atomic<int> stop{0};
  Callback progress(std::move(on_progress), stop);
  pipeline::RunOptions options;
  options.command_line = command_line;
  options.stop = &stop;
  options.progress_interval_s = interval_s;
  if (progress)
    options.on_progress = [&](const pipeline::Progress& p) {
      const std::string text = pipeline::to_json(p);
      progress.call([&] { return nb::make_tuple(text); });
    };
  std::string summary;
  run_interruptibly(stop, [&] { summary = to_json(pipeline::run_observation(config, options)); });
  progress.rethrow();
  return summary;
}

std::string plan(const ObservationConfig& config, const std::string& form) {
  const nb::gil_scoped_release released;
  const auto p = pipeline::make_plan(config);
  return form == "json" ? to_json(p) : form == "svg" ? to_svg(p) : to_text(p);
}

}  // namespace

void bind_observation(nb::module_& m) {
  nb::class_<ObservationConfig>(m, "ObservationConfig")
      .def_ro("text", &ObservationConfig::text)
      .def_ro("path", &ObservationConfig::path)
      .def("run", &run, nb::arg("on_progress").none(), nb::arg("interval_s"),
           nb::arg("command_line"))
      .def("plan", &plan, nb::arg("form"));
  m.def("load_observation", &pipeline::load_observation, nb::arg("path"), nb::arg("overrides"));
  m.def("parse_observation", &pipeline::parse_observation, nb::arg("text"), nb::arg("origin"),
        nb::arg("overrides"));
}

}  // namespace ryle::python
