// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ryle/pipeline/config/config_fields.hpp"

namespace ryle::app {

/// "section.key=value" of options, the user's own --set last.
class Overrides {
 public:
  void text(const std::string& key, const std::string& value);  ///< unless empty
  void integer(const std::string& key, std::int64_t value);     ///< unless 0
  void flag(const std::string& key, bool value) {
    list_.push_back(key + (value ? "=true" : "=false"));
  }
  void path(const std::string& key, const std::string& value);  ///< made absolute, unless empty
  void texts(const std::string& key, const std::vector<std::string>& values);
  void paths(const std::string& key, const std::vector<std::string>& values);  ///< made absolute
  /// What a key holds.
  template <class T>
  void value(const std::string& key, const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      flag(key, value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      text(key, value);
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      texts(key, value);
    } else if constexpr (std::is_arithmetic_v<T>) {
      list_.push_back(fmt::format("{}={}", key, value));
    } else {
      list_.push_back(fmt::format("{}=[{}]", key, fmt::join(value, ", ")));
    }
  }
  void add(const std::vector<std::string>& more) {
    list_.insert(list_.end(), more.begin(), more.end());
  }
  const std::vector<std::string>& list() const { return list_; }

 private:
  std::vector<std::string> list_;
};

/// Options of the sub-commands that read a recording of voltages: what the file and its array are,
/// how time samples are channelized. They are keys of an observation file.
struct RecordingArguments {
  std::vector<std::string> files;
  pipeline::ObservationConfig keys;                      ///< values of options and defaults
  std::vector<std::function<void(Overrides&)>> options;  ///< adds the key of one that is given
  std::vector<std::string> overrides;                    ///< of --set
};

/// Makes options of keys, with their meaning and `arguments.keys`' value as the default.
void add_key_options(CLI::App& sub, RecordingArguments& arguments,
                     std::span<const pipeline::KeyOption> keys);
/// FILE ..., recordings of one observation.
void add_recording_files(CLI::App& sub, RecordingArguments& arguments);
/// kRecordingOptions and --set; kPlaceOptions and FILE are left to the caller.
void add_recording_options(CLI::App& sub, RecordingArguments& arguments);
/// Names of the options that are keys of these sections.
std::vector<std::string> option_names(std::span<const pipeline::KeyOption> options,
                                      const std::vector<std::string_view>& sections);
/// Throws ConfigError "OPTION why" for the first of these options that was given.
void reject_options(const std::vector<std::string>& given, const std::vector<std::string>& options,
                    const std::string& why);
/// The keys of the file and of the options that were given.
Overrides recording_overrides(const RecordingArguments& arguments);

}  // namespace ryle::app
