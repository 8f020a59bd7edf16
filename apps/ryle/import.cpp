// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/ryle/command.hpp"
#include "apps/ryle/log.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/telescope/best2_xml.hpp"

namespace ryle::app {
namespace {

struct ImportArguments {
  std::string observation, antennas, output, positions = "wavelengths", band;
  bool overwrite = false;
};

int import_best2(const Context& context, const ImportArguments& a) {
  const auto layout = std::filesystem::path(a.output).replace_extension(".csv");
  require_all_creatable({layout.string(), a.output}, a.overwrite);
  auto o = read_best2(
      a.observation, a.antennas,
      a.positions == "wavelengths" ? Best2Positions::wavelengths : Best2Positions::meters,
      a.band == "descending" ? Best2Band::descending : Best2Band::ascending);
  if (o.beams.empty())
    o.warnings.push_back(a.observation +
                         ": no beam has a direction; add [[beam]] tables to the result");
  publish_bytes(layout.string(), best2_layout_csv(o), a.overwrite);
  publish_bytes(a.output, best2_beams_toml(o, layout.filename().string()), a.overwrite);
  for (const auto& warning : o.warnings) Log::get().line(LogLevel::warning, "warning", warning);
  const double last_mhz =
      (o.first_center_hz + static_cast<double>(o.n_channels - 1) * o.channel_step_hz) * 1e-6;
  if (context.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"layout", layout.string()},
                                              {"beams", a.output},
                                              {"n_antennas", o.array.n_antennas()},
                                              {"n_beams", o.beams.size()},
                                              {"aperture_m", o.aperture_m},
                                              {"first_center_mhz", o.first_center_hz * 1e-6},
                                              {"last_center_mhz", last_mhz},
                                              {"warnings", o.warnings}}
                           .dump());
  } else if (!context.quiet) {
    fmt::print(
        "{} antennas, aperture {:.2f} m east-west x {:.2f} m north-south (positions as {})\n",
        o.array.n_antennas(), o.aperture_m[0], o.aperture_m[1], a.positions);
    fmt::print("{} channels from {:.6f} to {:.6f} MHz, {} beams\n", o.n_channels,
               o.first_center_hz * 1e-6, last_mhz, o.beams.size());
    fmt::print("wrote {} and {}\n", layout.string(), a.output);
  }
  return 0;
}

}  // namespace

void add_import(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand("import", "files of other systems to files of Ryle");
  sub->require_subcommand(1);
  auto* best2 = sub->add_subcommand(
      "best2", "XML of the BEST-2 back-end (Magro 2014): a layout and a beams file");
  auto a = std::make_shared<ImportArguments>();
  best2->add_option("observation", a->observation, "observation file (XML)")->required();
  best2->add_option("antennas", a->antennas, "antenna file (XML)")->required();
  best2
      ->add_option("-o,--output", a->output, "beams file (.toml); the layout goes beside it (.csv)")
      ->required()
      ->check(CLI::Validator(
          [](std::string& path) {
            return std::filesystem::path(path).extension() == ".toml"
                       ? std::string()
                       : std::string("must end in .toml");
          },
          "NAME.toml"));
  best2
      ->add_option("--positions", a->positions,
                   "what <x> <y> <z> are: wavelengths at <center_freq>, as published, or meters")
      ->check(CLI::IsMember({"wavelengths", "meters"}))
      ->capture_default_str();
  best2->add_option("--band", a->band, "order of the channels in the data")
      ->check(CLI::IsMember({"descending", "ascending"}))
      ->required();
  best2->add_flag("--overwrite", a->overwrite, "replace files that exist");
  add_common(*best2, context);
  best2->callback(
      [&context, a] { context.action = [&context, a] { return import_best2(context, *a); }; });
}

}  // namespace ryle::app
