// SPDX-License-Identifier: BSD-3-Clause
#include "tests/engine/correlate/voltages.hpp"

namespace ryle::correlate::test {
namespace {

std::string message_of(const Config& config) {
  Queue queue = Queue::cpu(1);
  try {
    make_correlator(queue, config);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Plan, UnknownNameListsWhatWorks) {
  const std::string message = message_of({4, 2, SampleFormat::ci8, 64, "cpu:mmx"});
  EXPECT_NE(message.find("cpu:mmx"), std::string::npos) << message;
  EXPECT_NE(message.find("reference"), std::string::npos) << message;
  for (const auto& name : cpu_names(SampleFormat::ci8))
    EXPECT_NE(message.find(name), std::string::npos) << message;
}

TEST(Plan, RefusesWhatCannotRun) {
  Queue queue = Queue::cpu(1);
  const Config good{4, 2, SampleFormat::ci8, 64, "auto"};
  EXPECT_NO_THROW(make_correlator(queue, good));
  for (auto change :
       {+[](Config& c) { c.n_inputs = 0; }, +[](Config& c) { c.n_channels = -1; },
        +[](Config& c) { c.max_spectra = 0; }, +[](Config& c) { c.n_inputs = 100'000; },
        +[](Config& c) { c.n_channels = std::int64_t{1} << 62; }}) {
    Config bad = good;
    change(bad);
    EXPECT_THROW(make_correlator(queue, bad), ConfigError);
  }
  Config bad = good;
  bad.format = SampleFormat::ci5;
  EXPECT_THROW(make_correlator(queue, bad), UnsupportedError);
  bad = good;
  bad.implementation = "cuda";
  EXPECT_THROW(make_correlator(queue, bad), UnsupportedError);
  bad = {4, 2, SampleFormat::cf32, 64, "cpu:amx"};
  EXPECT_THROW(make_correlator(queue, bad), UnsupportedError);
}

TEST(Plan, AutoTakesTheFirstOfTheList) {
  Queue queue = Queue::cpu(1);
  for (const auto format : {SampleFormat::ci8, SampleFormat::cf32}) {
    const std::string best = reported_name(cpu_names(format).front());
    EXPECT_EQ(make_correlator(queue, {64, 2, format, 64, "auto"})->implementation(), best);
    EXPECT_EQ(make_correlator(queue, {64, 2, format, 64, "cpu"})->implementation(), best);
  }
}

TEST(Plan, CostIsTheEquation) {
  const Cost c = cost({64, 128, SampleFormat::ci8, 1000, "cpu:generic"});
  EXPECT_EQ(c.useful_ops_per_spectrum, 8.0 * 128 * 2080);
  EXPECT_EQ(c.bytes_in_per_spectrum, 128 * 64 * 2);
  EXPECT_GE(c.accumulator_bytes, 128 * 2080 * 16);
  EXPECT_GT(c.scratch_bytes, 0);
}

}  // namespace
}  // namespace ryle::correlate::test
