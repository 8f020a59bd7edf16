// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace ryle::app {

/// Options of the sub-commands that read a recording of voltages: what the file and its array are,
/// how time samples are channelized. They become keys of an observation file.
struct RecordingArguments {
  std::string file;
  std::string format = "auto";
  std::string layout;
  std::string station;
  double latitude_deg = 0, longitude_deg = 0, height_m = 0;
  std::int64_t n_channels = 0;
  std::int64_t taps = 0;
  std::string window;
  double center_mhz = 0;
  std::string rate;
  std::string start;
  std::string device;
  double duration_s = 0;
  std::vector<std::string> overrides;
  bool overwrite = false;
};

/// Everything but FILE, and the geographic place: `ryle image` shares those with covariance pairs.
void add_recording_options(CLI::App& sub, RecordingArguments& arguments);
void add_place_options(CLI::App& sub, RecordingArguments& arguments);

/// "section.key=value" of these options, the user's own --set last.
class Overrides {
 public:
  void text(const char* key, const std::string& value);  ///< unless empty
  void number(const char* key, double value);            ///< unless 0
  void integer(const char* key, std::int64_t value);     ///< unless 0
  void flag(const char* key, bool value) {
    list_.push_back(std::string(key) + (value ? "=true" : "=false"));
  }
  void path(const char* key, const std::string& value);  ///< made absolute, unless empty
  void texts(const char* key, const std::vector<std::string>& values);
  void add(const std::vector<std::string>& more) {
    list_.insert(list_.end(), more.begin(), more.end());
  }
  const std::vector<std::string>& list() const { return list_; }

 private:
  std::vector<std::string> list_;
};
Overrides recording_overrides(const RecordingArguments& arguments);

}  // namespace ryle::app
