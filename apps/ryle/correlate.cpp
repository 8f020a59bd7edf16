// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <filesystem>

#include "apps/ryle/command.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/core/error.hpp"
#include "ryle/stage/run.hpp"

namespace ryle::app {
namespace {

struct CorrelateArguments {
  std::string file;
  std::string format = "auto";
  std::string layout;
  std::string station;
  double latitude_deg = 0, longitude_deg = 0, height_m = 0;
  std::vector<std::string> outputs;
  double integration_s = 0;
  std::int64_t n_channels = 0;
  std::int64_t taps = 0;
  std::string window;
  double center_mhz = 0;
  std::string rate;
  std::string start;
  std::string phase_center;
  std::string fringe_stopping;
  std::string device;
  double duration_s = 0;
  std::vector<std::string> overrides;
  bool overwrite = false;
  bool pictures = false;
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

/// The sub-command is an observation file written by options.
std::vector<std::string> as_overrides(const CorrelateArguments& a) {
  std::vector<std::string> set{"source.kind=file",
                               "source.file=" + quoted(std::filesystem::absolute(a.file).string()),
                               "source.format=" + quoted(a.format),
                               "output.uvfits=false",
                               "output.uvh5=false",
                               std::string("output.pictures=") + (a.pictures ? "true" : "false")};
  const auto text = [&](const char* key, const std::string& value) {
    if (!value.empty()) set.push_back(std::string(key) + "=" + quoted(value));
  };
  const auto number = [&](const char* key, double value) {
    if (value != 0) set.push_back(fmt::format("{}={}", key, value));
  };
  const auto path = [&](const char* key, const std::string& value) {
    if (!value.empty()) text(key, std::filesystem::absolute(value).string());
  };
  path("telescope.layout", a.layout);
  path("telescope.station", a.station);
  number("telescope.latitude_deg", a.latitude_deg);
  number("telescope.longitude_deg", a.longitude_deg);
  number("telescope.height_m", a.height_m);
  number("correlate.integration_s", a.integration_s);
  if (a.n_channels > 0) set.push_back(fmt::format("channelize.n_channels={}", a.n_channels));
  if (a.taps > 0) set.push_back(fmt::format("channelize.taps={}", a.taps));
  text("channelize.window", a.window);
  number("source.center_mhz", a.center_mhz);
  text("source.sample_rate_hz", a.rate);
  text("source.start_utc", a.start);
  text("correlate.phase_center", a.phase_center);
  text("correlate.fringe_stopping", a.fringe_stopping);
  text("runtime.device", a.device);
  number("source.duration_s", a.duration_s);
  std::string files;
  for (const auto& o : a.outputs) files += (files.empty() ? "" : ", ") + quoted(o);
  set.push_back("output.files=[" + files + "]");
  if (a.overwrite) set.emplace_back("output.overwrite=true");
  const auto parent = std::filesystem::path(a.outputs.front()).parent_path();
  text("output.directory", parent.empty() ? "." : parent.string());
  text("output.name", std::filesystem::path(a.outputs.front()).stem().string());
  set.insert(set.end(), a.overrides.begin(), a.overrides.end());
  return set;
}

int run(const Context& context, const CorrelateArguments& arguments) {
  const auto config =
      stage::parse_observation("schema = 1\n", "command line", as_overrides(arguments));
  return run_and_report(context, config, false);
}

}  // namespace

void add_correlate(CLI::App& app, Context& context) {
  auto* sub =
      app.add_subcommand("correlate", "correlate a recording: voltages in, visibilities out");
  auto a = std::make_shared<CorrelateArguments>();
  sub->add_option("file", a->file, "recording")->required();
  sub->add_option("--format", a->format,
                  "tart, tbf, tbx, tbn, vdif, guppi, dada, mwa32t, ... (default: by content)");
  sub->add_option("--layout", a->layout, "antenna layout: CSV, or TART antenna_positions.json");
  sub->add_option("--station", a->station, "LWA station file (SSMIF)");
  sub->add_option("--latitude-deg", a->latitude_deg, "for layouts without a place");
  sub->add_option("--longitude-deg", a->longitude_deg, "for layouts without a place");
  sub->add_option("--height-m", a->height_m, "for layouts without a place");
  sub->add_option("-o,--output", a->outputs, "visibility file(s): .ms, .uvfits or .uvh5")
      ->required();
  sub->add_option("--integration", a->integration_s, "length of a dump in seconds");
  sub->add_option("--channels", a->n_channels, "channels across the band (time samples)");
  sub->add_option("--taps", a->taps, "polyphase taps, 1 = plain FFT");
  sub->add_option("--window", a->window, "rectangular, hann, hamming, blackman, kaiser");
  sub->add_option("--center-mhz", a->center_mhz,
                  "sky frequency of the band centre where the file has none");
  sub->add_option("--rate", a->rate, "samples per second where the file has none");
  sub->add_option("--start", a->start, "UTC of the first sample where the file has none");
  sub->add_option("--phase-center", a->phase_center, "zenith (default), sun or RA_DEG,DEC_DEG");
  sub->add_option("--fringe-stopping", a->fringe_stopping, "f, x or none");
  sub->add_option("--device", a->device, "auto, cpu or cuda:N");
  sub->add_option("--duration", a->duration_s, "seconds of data, 0 = all");
  sub->add_option("--set", a->overrides, "any key of an observation file: section.key=value");
  sub->add_flag("--overwrite", a->overwrite, "replace files of the same name");
  sub->add_flag("--pictures", a->pictures, "write PNG quick-looks beside the output");
  add_common(*sub, context);
  sub->callback([&context, a] { context.action = [&context, a] { return run(context, *a); }; });
}

}  // namespace ryle::app
