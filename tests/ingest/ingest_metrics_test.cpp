// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/ingest_metrics.hpp"

#include <gtest/gtest.h>

namespace ryle {
namespace {

TEST(IngestMetrics, FollowTheCountersAndShowAnImbalance) {
  MetricsRegistry registry;
  IngestMetrics metrics(registry);
  IngestCounters counters;
  counters.received = 10;
  counters.used = 7;
  counters.rejected["late"] = 2;
  counters.kernel_drops = 5;
  metrics.update(counters);
  const std::string text = registry.prometheus_text();
  for (const char* line : {"\nryle_ingest_datagrams_total 10\n", "\nryle_ingest_used_total 7\n",
                           "\nryle_ingest_rejected_total{reason=\"late\"} 2\n",
                           "\nryle_kernel_drops_total 5\n", "\nryle_ingest_balance 1\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

}  // namespace
}  // namespace ryle
