// SPDX-License-Identifier: BSD-3-Clause
#include "apps/ryle/recording_arguments.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace ryle::app {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

void Overrides::text(const char* key, const std::string& value) {
  if (!value.empty()) list_.push_back(std::string(key) + "=" + quoted(value));
}

void Overrides::number(const char* key, double value) {
  if (value != 0) list_.push_back(fmt::format("{}={}", key, value));
}

void Overrides::integer(const char* key, std::int64_t value) {
  if (value != 0) list_.push_back(fmt::format("{}={}", key, value));
}

void Overrides::path(const char* key, const std::string& value) {
  if (!value.empty()) text(key, std::filesystem::absolute(value).string());
}

void Overrides::texts(const char* key, const std::vector<std::string>& values) {
  if (values.empty()) return;
  std::string all;
  for (const auto& v : values) all += (all.empty() ? "" : ", ") + quoted(v);
  list_.push_back(std::string(key) + "=[" + all + "]");
}

void add_place_options(CLI::App& sub, RecordingArguments& a) {
  sub.add_option("--latitude-deg", a.latitude_deg, "for layouts without a place");
  sub.add_option("--longitude-deg", a.longitude_deg, "for layouts without a place");
  sub.add_option("--height-m", a.height_m, "for layouts without a place");
}

void add_recording_options(CLI::App& sub, RecordingArguments& a) {
  sub.add_option("--format", a.format,
                 "tart, tbf, tbx, tbn, vdif, guppi, dada, mwa32t, ... (default: by content)");
  sub.add_option("--layout", a.layout, "antenna layout: CSV, or TART antenna_positions.json");
  sub.add_option("--station", a.station, "LWA station file (SSMIF)");
  sub.add_option("--channels", a.n_channels, "channels across the band (time samples)");
  sub.add_option("--taps", a.taps, "polyphase taps, 1 = plain FFT");
  sub.add_option("--window", a.window, "rectangular, hann, hamming, blackman, kaiser");
  sub.add_option("--center-mhz", a.center_mhz,
                 "sky frequency of the band centre where the file has none");
  sub.add_option("--rate", a.rate, "samples per second where the file has none");
  sub.add_option("--start", a.start, "UTC of the first sample where the file has none");
  sub.add_option("--device", a.device, "auto, cpu or cuda:N");
  sub.add_option("--duration", a.duration_s, "seconds of data, 0 = all");
  sub.add_option("--set", a.overrides, "any key of an observation file: section.key=value");
  sub.add_flag("--overwrite", a.overwrite, "replace files of the same name");
}

Overrides recording_overrides(const RecordingArguments& a) {
  Overrides set;
  set.text("source.kind", "file");
  set.path("source.file", a.file);
  set.text("source.format", a.format);
  set.path("telescope.layout", a.layout);
  set.path("telescope.station", a.station);
  set.number("telescope.latitude_deg", a.latitude_deg);
  set.number("telescope.longitude_deg", a.longitude_deg);
  set.number("telescope.height_m", a.height_m);
  set.integer("channelize.n_channels", a.n_channels);
  set.integer("channelize.taps", a.taps);
  set.text("channelize.window", a.window);
  set.number("source.center_mhz", a.center_mhz);
  set.text("source.sample_rate_hz", a.rate);
  set.text("source.start_utc", a.start);
  set.text("runtime.device", a.device);
  set.number("source.duration_s", a.duration_s);
  if (a.overwrite) set.flag("output.overwrite", true);
  return set;
}

}  // namespace ryle::app
