// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "apps/ryle/command.hpp"
#include "ryle/pipeline/config/config_fields.hpp"

namespace ryle::app {

/// Makes an option of each key of a section that it visits (config_fields.hpp): name, range,
/// default and meaning are those of the key. A call returns the option.
class KeyOptions {
 public:
  enum class Checks { none, numbers, all };  ///< words are checked with all
  /// @param section what help says above the options
  /// @param checks made here, a usage error; the others are left to who reads the settings
  KeyOptions(CLI::App& sub, const std::string& section, Checks checks)
      : sub_(sub), group_("Keys of [" + section + "] in an observation file"), checks_(checks) {}

  /// The options that follow have this name; "": that of their key.
  void set_name(const std::string& name) { name_ = name; }

  template <class T>
  CLI::Option* operator()(std::string_view key, T& member, const pipeline::Range& range,
                          std::string_view help) {
    std::string text(help);
    for (const auto& [ending, unit] : {std::pair{"_s", "seconds"}, std::pair{"_deg", "degrees"}})
      if (key.ends_with(ending)) text = unit + (": " + text);
    const bool zero = !range.zero.empty();
    if (zero) text += "; default: " + std::string(range.zero);
    auto* option = add(key, member, text);
    if (!zero) option->capture_default_str();
    if (checks_ != Checks::none)
      option->check(zero ? number_above_zero(range.max) : number_in(range.min, range.max));
    return option;
  }
  template <class T>
  CLI::Option* operator()(std::string_view key, T& member, const pipeline::Choice& choice,
                          std::string_view help) {
    if constexpr (std::is_same_v<T, bool>) {
      const std::string name = name_.empty() ? pipeline::option_name(key, member) : name_;
      return sub_
          .add_flag((member ? "!" : "") + name, member, (member ? "off: " : "") + std::string(help))
          ->group(group_);
    } else {
      std::string text(help);
      for (const auto word : choice.words)
        text += (word == choice.words.front() ? ": " : ", ") + std::string(word);
      auto* option = add(key, member, text);
      if (checks_ == Checks::all && !choice.words.empty())
        option->check(
            CLI::IsMember(std::vector<std::string>(choice.words.begin(), choice.words.end())));
      if constexpr (std::is_same_v<T, std::string>)
        if (!member.empty()) option->capture_default_str();
      return option;
    }
  }

 private:
  template <class T>
  CLI::Option* add(std::string_view key, T& member, const std::string& text) {
    const std::string name = name_.empty() ? pipeline::option_name(key) : name_;
    return sub_.add_option(name, member, text)->group(group_);
  }

  CLI::App& sub_;
  std::string group_;
  std::string name_;
  Checks checks_;
};

}  // namespace ryle::app
