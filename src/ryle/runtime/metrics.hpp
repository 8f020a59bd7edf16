// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ryle {

/// A number that only grows. Any thread.
class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  /// For totals kept elsewhere (the kernel, a source): the total itself.
  void set_total(std::uint64_t total) { value_.store(total, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// A number that goes up and down. Any thread.
class Gauge {
 public:
  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

/// All counters and gauges of a run. A name is defined once, with its help text; series of one name
/// differ by labels. The references stay valid as long as the registry. Any thread.
class MetricsRegistry {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  /// Throws ConfigError when the name is malformed or already defined as something else.
  void define_counter(std::string_view name, std::string_view help);
  void define_gauge(std::string_view name, std::string_view help);
  /// The series of a defined name; made at the first call. Throws ConfigError for a name never
  /// defined.
  Counter& counter(std::string_view name, const Labels& labels = {});
  Gauge& gauge(std::string_view name, const Labels& labels = {});
  /// Forgets the series of a defined name, whose references end here: of labels that come and go.
  void clear(std::string_view name);
  /// Prometheus text exposition format 0.0.4, names and labels in sorted order.
  std::string prometheus_text() const;

 private:
  enum class Kind : std::uint8_t { counter, gauge };
  struct Family {
    Kind kind;
    std::string help;
    std::map<std::string, std::unique_ptr<Counter>> counters;  // by rendered labels
    std::map<std::string, std::unique_ptr<Gauge>> gauges;
  };
  void define(std::string_view name, std::string_view help, Kind kind);
  Family& family(std::string_view name, Kind kind);

  mutable std::mutex mutex_;
  std::map<std::string, Family, std::less<>> families_;
};

}  // namespace ryle
