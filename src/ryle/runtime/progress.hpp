// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ryle {

class StageThread;

/// What one progress line says: named values in the order they are shown. A key carries its unit as
/// a suffix.
struct ProgressRecord {
  using Value = std::variant<std::int64_t, double, std::string>;
  std::vector<std::pair<std::string, Value>> fields;
  void add(std::string key, Value value) { fields.emplace_back(std::move(key), std::move(value)); }
};

/// "time_s 12.0  rate_gbps 1.31  lost 0".
std::string to_text(const ProgressRecord& record);
/// One JSON object without line breaks; a value that is not finite is null.
std::string to_json(const ProgressRecord& record);

/// Calls `probe` every `interval` and hands its record to `sink`, both in a thread of its own,
/// until stop() or the destructor; a last record is always given. The library never prints: the
/// sink decides. A sink or probe that throws ends the reports, and stop() rethrows.
class ProgressReporter {
 public:
  using Probe = std::function<ProgressRecord()>;
  using Sink = std::function<void(const ProgressRecord&)>;
  ProgressReporter(std::chrono::milliseconds interval, Probe probe, Sink sink);
  ~ProgressReporter();
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::unique_ptr<StageThread> thread_;
};

}  // namespace ryle
