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

TEST(Plan, RejectsWhatCannotRun) {
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

// The table of plan.cpp: AMX only where it was measured to be faster, whatever runs is named.
TEST(Plan, AutoChoosesByArraySizeAndGulp) {
  struct Case {
    std::int64_t n_inputs;
    SampleFormat format;
    std::int64_t max_spectra;
    bool amx;
  };
  const Case cases[] = {
      {8, SampleFormat::ci8, 4096, false},   {12, SampleFormat::ci8, 1024, false},
      {16, SampleFormat::ci8, 1024, true},   {16, SampleFormat::ci8, 64, false},
      {17, SampleFormat::ci8, 4096, false},  {24, SampleFormat::ci4, 1024, true},
      {24, SampleFormat::ci8, 64, false},    {32, SampleFormat::ci8, 64, true},
      {1024, SampleFormat::ci8, 1024, true}, {8, SampleFormat::ci16, 1024, true},
      {16, SampleFormat::ci16, 64, true},    {4, SampleFormat::ci16, 1024, false},
  };
  Queue queue = Queue::cpu(1);
  for (const auto& k : cases) {
    auto names = cpu_names(k.format);
    if (!k.amx) std::erase(names, "cpu:amx");
    for (const char* wanted : {"auto", "cpu"}) {
      const Config config{k.n_inputs, 1, k.format, k.max_spectra, wanted};
      EXPECT_EQ(make_correlator(queue, config)->implementation(), reported_name(names.front()))
          << "N=" << k.n_inputs << " " << name(k.format) << " T=" << k.max_spectra;
      EXPECT_EQ(cost(config).scratch_bytes,
                cost({k.n_inputs, 1, k.format, k.max_spectra, names.front()}).scratch_bytes);
    }
  }
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
