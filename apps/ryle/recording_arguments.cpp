// SPDX-License-Identifier: BSD-3-Clause
#include "apps/ryle/recording_arguments.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>

#include "apps/ryle/key_options.hpp"
#include "ryle/core/error.hpp"

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

void Overrides::text(const std::string& key, const std::string& value) {
  if (!value.empty()) list_.push_back(key + "=" + quoted(value));
}

void Overrides::integer(const std::string& key, std::int64_t value) {
  if (value != 0) list_.push_back(fmt::format("{}={}", key, value));
}

void Overrides::path(const std::string& key, const std::string& value) {
  if (!value.empty()) text(key, std::filesystem::absolute(value).string());
}

void Overrides::texts(const std::string& key, const std::vector<std::string>& values) {
  if (values.empty()) return;
  std::string all;
  for (const auto& v : values) all += (all.empty() ? "" : ", ") + quoted(v);
  list_.push_back(key + "=[" + all + "]");
}

void Overrides::paths(const std::string& key, const std::vector<std::string>& values) {
  std::vector<std::string> whole;
  for (const auto& v : values) whole.push_back(std::filesystem::absolute(v).string());
  texts(key, whole);
}

void add_recording_files(CLI::App& sub, RecordingArguments& a) {
  sub.add_option("file", a.files,
                 "recording, or several of one observation: those of the same station follow each "
                 "other in time, others are further inputs")
      ->required();
}

void add_key_options(CLI::App& sub, RecordingArguments& a,
                     std::span<const pipeline::KeyOption> keys) {
  pipeline::sections(
      [&](std::string_view section, auto& members) {
        KeyOptions options(sub, std::string(section), KeyOptions::Checks::none);
        auto add = [&](std::string_view key, auto& member, const auto& limits,
                       std::string_view help) {
          const auto k = std::find_if(keys.begin(), keys.end(), [&](const auto& option) {
            return option.section == section && option.key == key;
          });
          if (k == keys.end()) return;
          options.set_name(k->name());
          const std::string name = fmt::format("{}.{}", section, key);
          using T = std::remove_reference_t<decltype(member)>;
          if constexpr (std::is_same_v<T, Rational>) {  // "78125/4": the parser of files reads it
            const auto text = std::make_shared<std::string>();
            options(key, *text, pipeline::Choice{}, help);
            a.options.push_back([name, text](Overrides& set) { set.text(name, *text); });
          } else {
            const auto* option = options(key, member, limits, help);
            const bool is_path = k->is_path;
            a.options.push_back([=, &member](Overrides& set) {
              if (option->count() == 0) return;
              if constexpr (std::is_same_v<T, std::string>)
                if (is_path) return set.path(name, member);
              set.value(name, member);
            });
          }
        };
        pipeline::fields(add, members);
      },
      a.keys);
}

void add_recording_options(CLI::App& sub, RecordingArguments& a) {
  a.keys.source.format = "auto";
  add_key_options(sub, a, pipeline::kRecordingOptions);
  sub.add_option("--set", a.overrides, "any key of an observation file: section.key=value");
}

std::vector<std::string> option_names(std::span<const pipeline::KeyOption> options,
                                      const std::vector<std::string_view>& sections) {
  std::vector<std::string> names;
  for (const auto& o : options)
    if (std::find(sections.begin(), sections.end(), o.section) != sections.end())
      names.push_back(o.name());
  return names;
}

void reject_options(const std::vector<std::string>& given, const std::vector<std::string>& options,
                    const std::string& why) {
  for (const auto& option : options)
    if (std::find(given.begin(), given.end(), option) != given.end())
      throw ConfigError(option + " " + why);
}

Overrides recording_overrides(const RecordingArguments& a) {
  Overrides set;
  set.text("source.kind", "file");
  if (a.files.size() == 1) set.path("source.file", a.files[0]);
  if (a.files.size() > 1) set.paths("source.files", a.files);
  set.text("source.format", a.keys.source.format);
  for (const auto& add : a.options) add(set);
  return set;
}

}  // namespace ryle::app
