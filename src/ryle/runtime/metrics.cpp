// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/runtime/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/error.hpp"

namespace ryle {
namespace {

bool valid_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == ':';
  });
}

// The format's escapes: backslash and line feed, in label values the quote too.
std::string escaped(std::string_view text, bool quote) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quote) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

std::string rendered(MetricsRegistry::Labels labels) {
  if (labels.empty()) return "";
  std::sort(labels.begin(), labels.end());
  std::string out = "{";
  for (const auto& [name, value] : labels) {
    if (!valid_name(name)) throw ConfigError("metric label '" + name + "' is not a label name");
    if (out.size() > 1) out += ',';
    out += name + "=\"" + escaped(value, true) + "\"";
  }
  return out + "}";
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

void MetricsRegistry::define(std::string_view name, std::string_view help, Kind kind) {
  if (!valid_name(name)) {
    throw ConfigError(
        fmt::format("metric '{}' is not a metric name ([a-zA-Z_][a-zA-Z0-9_:]*)", name));
  }
  const std::lock_guard lock(mutex_);
  const auto found = families_.find(name);
  if (found != families_.end()) {
    if (found->second.kind == kind && found->second.help == help) return;
    throw ConfigError(fmt::format("metric '{}' is defined twice with different meanings", name));
  }
  families_.emplace(std::string(name), Family{kind, std::string(help), {}, {}});
}

void MetricsRegistry::define_counter(std::string_view name, std::string_view help) {
  define(name, help, Kind::counter);
}
void MetricsRegistry::define_gauge(std::string_view name, std::string_view help) {
  define(name, help, Kind::gauge);
}

MetricsRegistry::Family& MetricsRegistry::family(std::string_view name, Kind kind) {
  const auto found = families_.find(name);
  if (found == families_.end() || found->second.kind != kind) {
    throw ConfigError(fmt::format("metric '{}' is used as a {} but was not defined as one", name,
                                  kind == Kind::counter ? "counter" : "gauge"));
  }
  return found->second;
}

Counter& MetricsRegistry::counter(std::string_view name, const Labels& labels) {
  const std::string key = rendered(labels);
  const std::lock_guard lock(mutex_);
  auto& slot = family(name, Kind::counter).counters[key];
  if (!slot) slot = std::make_unique<Counter>();
  return *slot;
}

Gauge& MetricsRegistry::gauge(std::string_view name, const Labels& labels) {
  const std::string key = rendered(labels);
  const std::lock_guard lock(mutex_);
  auto& slot = family(name, Kind::gauge).gauges[key];
  if (!slot) slot = std::make_unique<Gauge>();
  return *slot;
}

void MetricsRegistry::clear(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto found = families_.find(name);
  if (found == families_.end()) return;
  found->second.counters.clear();
  found->second.gauges.clear();
}

std::string MetricsRegistry::prometheus_text() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& [name, family] : families_) {
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(family.help, false), name,
                       family.kind == Kind::counter ? "counter" : "gauge");
    for (const auto& [labels, counter] : family.counters) {
      out += fmt::format("{}{} {}\n", name, labels, counter->value());
    }
    for (const auto& [labels, gauge] : family.gauges) {
      out += fmt::format("{}{} {}\n", name, labels, number(gauge->value()));
    }
  }
  return out;
}

}  // namespace ryle
