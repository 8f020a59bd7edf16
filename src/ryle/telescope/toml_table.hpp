// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <toml++/toml.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"

namespace ryle::detail {

/// One table of a TOML file; every key asked for is known, finish() rejects the others. What is
/// wrong throws ConfigError "file:line: ...".
class TomlTable {
 public:
  TomlTable(const toml::table& table, std::string path, std::string section)
      : table_(table), path_(std::move(path)), section_(std::move(section)) {}

  [[noreturn]] void fail_at(const toml::node* node, const std::string& what) const {
    const auto line = (node != nullptr ? node->source() : table_.source()).begin.line;
    throw ConfigError(path_ + ":" + std::to_string(line) + ": " + what);
  }
  [[noreturn]] void missing(const char* key) const {
    throw ConfigError(path_ + ":" + std::to_string(table_.source().begin.line) + ": [" + section_ +
                      "] has no " + key);
  }
  [[noreturn]] void fail(const char* key, const std::string& what) const {
    fail_at(table_.get(key), std::string(key) + " in [" + section_ + "] " + what);
  }
  bool has(const char* key) {
    known_.insert(key);
    return table_.get(key) != nullptr;
  }
  double number(const char* key, double low, double high) {
    if (!has(key)) missing(key);
    const auto value = table_.get(key)->value<double>();
    if (!value || !(*value >= low && *value <= high))
      fail(key, "must be a number from " + short_text(low) + " to " + short_text(high));
    return *value;
  }
  double number(const char* key, double low, double high, double otherwise) {
    return has(key) ? number(key, low, high) : otherwise;
  }
  std::int64_t integer(const char* key, std::int64_t low, std::int64_t high) {
    if (!has(key)) missing(key);
    const auto value = table_.get(key)->value_exact<std::int64_t>();
    if (!value || *value < low || *value > high)
      fail(key,
           "must be a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    return *value;
  }
  std::string text(const char* key) {
    if (!has(key)) missing(key);
    const auto value = table_.get(key)->value_exact<std::string>();
    if (!value) fail(key, "must be text in quotes");
    return *value;
  }
  std::string text(const char* key, const std::string& otherwise) {
    return has(key) ? text(key) : otherwise;
  }
  std::string word(const char* key, const std::vector<std::string>& words,
                   const std::string& otherwise) {
    const std::string value = text(key, otherwise);
    if (std::find(words.begin(), words.end(), value) == words.end())
      fail(key, "is \"" + value + "\"; known: " + comma_separated(words));
    return value;
  }
  /// A list of texts, or one text; empty without the key.
  std::vector<std::string> texts(const char* key) {
    if (!has(key)) return {};
    if (const auto one = table_.get(key)->value_exact<std::string>()) return {*one};
    std::vector<std::string> list;
    const toml::array* array = table_.get(key)->as_array();
    if (array == nullptr) fail(key, "must be a list of texts");
    for (const auto& entry : *array) {
      const auto value = entry.value_exact<std::string>();
      if (!value) fail(key, "must be a list of texts");
      list.push_back(*value);
    }
    return list;
  }
  const toml::node* node(const char* key) { return has(key) ? table_.get(key) : nullptr; }
  void finish() const {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (known_.count(name) == 0)
        fail_at(&node, "unknown key \"" + name + "\" in [" + section_ +
                           "]; known: " + comma_separated(known_));
    }
  }

 private:
  static std::string short_text(double value) {
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
  }
  const toml::table& table_;
  std::string path_, section_;
  std::set<std::string> known_;
};

}  // namespace ryle::detail
