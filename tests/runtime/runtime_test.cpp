// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>

#include "ryle/core/error.hpp"
#include "ryle/runtime/metrics.hpp"
#include "ryle/runtime/progress.hpp"
#include "ryle/runtime/stage_thread.hpp"

namespace ryle {
namespace {

using namespace std::chrono_literals;

TEST(StageThread, JoinRethrowsWhatTheBodyThrew) {
  StageThread thread("failing", [](const std::stop_token&) { throw ConfigError("planned"); });
  EXPECT_THROW(thread.join(), ConfigError);
  thread.join();  // once only
  EXPECT_TRUE(thread.finished());
}

TEST(StageThread, StopsWhenAsked) {
  StageThread thread("waiting", [](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
  });
  EXPECT_FALSE(thread.finished());
  thread.request_stop();
  thread.join();
  EXPECT_TRUE(thread.finished());
}

TEST(StageThread, WakesABodyThatWaits) {
  std::atomic<int> calls{0};
  std::atomic<bool> woken{false};
  {
    StageThread thread(
        "a name longer than fifteen characters",
        [&](const std::stop_token&) {
          while (!woken) std::this_thread::sleep_for(1ms);
        },
        [&] {
          ++calls;
          woken = true;
        });
    thread.request_stop();
    thread.request_stop();
  }  // the destructor stops and joins too
  EXPECT_EQ(calls, 1);
}

TEST(Metrics, TextExpositionIsSortedTypedAndEscaped) {
  MetricsRegistry metrics;
  metrics.define_gauge("ryle_ring_fill_ratio", "fill of a ring\nby name");
  metrics.define_counter("ryle_ingest_rejected_total", "datagrams refused");
  metrics.counter("ryle_ingest_rejected_total", {{"reason", "late"}}).add(3);
  metrics.counter("ryle_ingest_rejected_total", {{"reason", "late"}}).add();
  metrics.counter("ryle_ingest_rejected_total", {{"reason", "a\"b\\c"}}).set_total(7);
  metrics.gauge("ryle_ring_fill_ratio").set(0.25);
  EXPECT_EQ(metrics.prometheus_text(),
            "# HELP ryle_ingest_rejected_total datagrams refused\n"
            "# TYPE ryle_ingest_rejected_total counter\n"
            "ryle_ingest_rejected_total{reason=\"a\\\"b\\\\c\"} 7\n"
            "ryle_ingest_rejected_total{reason=\"late\"} 4\n"
            "# HELP ryle_ring_fill_ratio fill of a ring\\nby name\n"
            "# TYPE ryle_ring_fill_ratio gauge\n"
            "ryle_ring_fill_ratio 0.25\n");
}

TEST(Metrics, ANameHasOneDefinition) {
  MetricsRegistry metrics;
  metrics.define_counter("ryle_a_total", "first");
  metrics.define_counter("ryle_a_total", "first");
  EXPECT_THROW(metrics.define_counter("ryle_a_total", "second"), ConfigError);
  EXPECT_THROW(metrics.define_gauge("ryle_a_total", "first"), ConfigError);
  EXPECT_THROW(metrics.define_gauge("9lives", ""), ConfigError);
  EXPECT_THROW(metrics.counter("ryle_never_defined"), ConfigError);
  EXPECT_THROW(metrics.gauge("ryle_a_total"), ConfigError);
  EXPECT_THROW(metrics.counter("ryle_a_total", {{"bad-label", "x"}}), ConfigError);
}

TEST(Progress, RecordsBecomeTextAndJson) {
  ProgressRecord record;
  record.add("time_s", 12.5);
  record.add("lost_samples", std::int64_t{0});
  record.add("state", std::string("OK"));
  record.add("margin", std::numeric_limits<double>::infinity());
  EXPECT_EQ(to_text(record), "time_s 12.5  lost_samples 0  state OK  margin inf");
  const auto parsed = nlohmann::json::parse(to_json(record));
  EXPECT_EQ(parsed.at("time_s"), 12.5);
  EXPECT_EQ(parsed.at("lost_samples"), 0);
  EXPECT_TRUE(parsed.at("margin").is_null());
}

TEST(Progress, ReportsAtIntervalsAndOnceAtTheEnd) {
  std::mutex mutex;
  std::vector<std::int64_t> seen;
  std::int64_t n = 0;
  ProgressReporter reporter(
      2ms,
      [&] {
        ProgressRecord record;
        record.add("n", n++);
        return record;
      },
      [&](const ProgressRecord& record) {
        const std::lock_guard lock(mutex);
        seen.push_back(std::get<std::int64_t>(record.fields.front().second));
      });
  for (int i = 0; i < 5000; ++i) {
    std::this_thread::sleep_for(1ms);
    const std::lock_guard lock(mutex);
    if (seen.size() >= 3) break;
  }
  reporter.stop();
  ASSERT_GE(seen.size(), 4u);
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], static_cast<std::int64_t>(i));
}

TEST(Progress, AFailingSinkIsReportedAtStop) {
  ProgressReporter reporter(
      1ms, [] { return ProgressRecord{}; },
      [](const ProgressRecord&) { throw IoError(ExitCode::io, "pipe closed"); });
  EXPECT_THROW(reporter.stop(), IoError);
}

}  // namespace
}  // namespace ryle
