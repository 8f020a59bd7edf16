// SPDX-License-Identifier: BSD-3-Clause
// What others ask of the ring of voltages, and what the database of a search says of dumps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/io/beam/candidate_file.hpp"
#include "ryle/pipeline/run/trigger_socket.hpp"
#include "ryle/telescope/geometry.hpp"
#include "tests/io/scratch.hpp"
#include "tests/support/search_database.hpp"

namespace ryle::pipeline {
namespace {

using testing::HasSubstr;

VoltageShape ten_channels() {
  VoltageShape s;
  s.frequency = {401e6, 1e6, 10};
  s.clock = {1'740'845'437'000'000'000, {78125, 4}};
  s.k_dm = 4148.8064;
  s.margin_s = 0.02;
  s.unit_ticks = 128;
  return s;
}

constexpr const char* kUtc = "2025-03-01T16:10:00.5";

// The highest channel is that of 410 MHz: light of 1400 MHz was there earlier.
TEST(Trigger, HoldsAtTheFrequencyItNames) {
  const std::int64_t utc = tai_ns_from_utc_iso(kUtc);
  const auto at = [&](const std::string& reference) {
    const auto t = parse_trigger(
        R"({"utc": "2025-03-01T16:10:00.5", "dm_pc_cm3": 100, "width_s": 0.003, "dm_error": 0.5)" +
            reference + "}",
        ten_channels());
    EXPECT_EQ(t.dm_pc_cm3, 100);
    EXPECT_EQ(t.dm_error, 0.5);
    EXPECT_EQ(t.width_s, 0.003);
    EXPECT_EQ(t.event, 0);
    return static_cast<double>(t.tai_ns - utc) * 1e-9;
  };
  EXPECT_EQ(at(""), 0);
  EXPECT_EQ(at(R"(, "reference_mhz": 410)"), 0);
  // llround of ns: 0.5e-9, and the quotients' roundings far below.
  EXPECT_NEAR(at(R"(, "reference_mhz": 1400)"), 414880.64 * (1 / 168100.0 - 1 / 1960000.0), 1e-9);
  EXPECT_NEAR(at(R"(, "reference_mhz": "inf")"), 414880.64 / 168100.0, 1e-9);
  EXPECT_LT(at(R"(, "reference_mhz": 400)"), 0);
}

TEST(Trigger, SpansAreWindowsOfAllChannels) {
  const auto t = parse_trigger(
      R"({"begin_utc": "2025-03-01T16:10:00", "end_utc": "2025-03-01T16:10:01.5", "name": "sat 7"})",
      ten_channels());
  EXPECT_EQ(t.beam, "sat 7");
  VoltageShape shape = ten_channels();
  shape.per_channel = true;
  const VoltageWindow window = voltage_window(shape, t);
  const double first_s = shape.clock.seconds(window.begin());
  const double from_s =
      static_cast<double>(tai_ns_from_utc_iso("2025-03-01T16:10:00") - shape.clock.epoch_tai_ns) *
      1e-9;
  const double packet_s = shape.clock.seconds(128);
  EXPECT_LE(first_s, from_s - shape.margin_s);
  EXPECT_GT(first_s, from_s - shape.margin_s - packet_s);
  const double end_s = shape.clock.seconds(window.end());
  EXPECT_GE(end_s, from_s + 1.5 + shape.margin_s);
  EXPECT_LT(end_s, from_s + 1.5 + shape.margin_s + packet_s);
  for (const Tick f : window.first) EXPECT_EQ(f, window.begin());
}

TEST(Trigger, NonsenseIsRejectedWithAReason) {
  const auto why = [](const std::string& line) -> std::string {
    try {
      parse_trigger(line, ten_channels());
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "taken";
  };
  EXPECT_THAT(why(""), HasSubstr("a JSON object is asked for"));
  EXPECT_THAT(why("[1]"), HasSubstr("a JSON object is asked for"));
  EXPECT_THAT(why(R"({"utc": "2025-03-01T16:10:00")"), HasSubstr("a JSON object is asked for"));
  EXPECT_THAT(why(std::string(4000, '[')), HasSubstr("a JSON object is asked for"));
  EXPECT_THAT(why("{}"), HasSubstr("utc must be a text"));
  EXPECT_THAT(why(R"({"utc": 5})"), HasSubstr("utc must be a text"));
  EXPECT_THAT(why(R"({"utc": "yesterday"})"), HasSubstr("yesterday"));
  for (const char* year : {"1700", "1959", "2200", "2609"}) {
    EXPECT_THAT(why(R"({"utc": ")" + std::string(year) + R"(-03-01T16:10:00"})"),
                HasSubstr("years 1960 to 2199"));
  }
  EXPECT_THAT(why(R"({"utc": "2025-03-01T16:10:00", "DM": 5})"),
              HasSubstr("unknown key \"DM\"; known: utc, dm_pc_cm3"));
  for (const char* value : {"-1", "1e9", "\"5\"", "null", "1e999"})
    EXPECT_NE(why(R"({"utc": "2025-03-01T16:10:00", "dm_pc_cm3": )" + std::string(value) + "}"),
              "taken")
        << value;
  for (const char* value : {"0", "-5", "\"up\"", "null"})
    EXPECT_NE(why(R"({"utc": "2025-03-01T16:10:00", "reference_mhz": )" + std::string(value) + "}"),
              "taken")
        << value;
  EXPECT_THAT(why(R"({"begin_utc": "2025-03-01T16:10:00"})"), HasSubstr("end_utc"));
  EXPECT_THAT(why(R"({"begin_utc": "2025-03-01T16:10:01", "end_utc": "2025-03-01T16:10:00"})"),
              HasSubstr("not after"));
  EXPECT_THAT(
      why(R"({"begin_utc": "2025-03-01T16:10:01", "end_utc": "2025-03-01T16:10:02", "width_s": 1})"),
      HasSubstr("belongs to a pulse"));
  EXPECT_THAT(why(R"({"utc": "2025-03-01T16:10:00", "name": "a\nb"})"), HasSubstr("printable"));
  EXPECT_THAT(why(R"({"utc": "2025-03-01T16:10:00", "name": ")" + std::string(65, 'a') + "\"}"),
              HasSubstr("printable"));
}

TEST(Trigger, AnswersAreOneLineOfJson) {
  const test::Scratch scratch;
  VoltageRingConfig config;
  config.shape = ten_channels();
  config.n_chunks = 4;
  config.chunks.form.n_rows = 10;
  config.chunks.form.n_inputs = 32;
  config.chunks.chunk_ticks = 1024;
  config.input_line.assign(32, 0);
  config.path_stem = scratch / "t";
  VoltageRing ring(config);
  const std::string nothing =
      answer_trigger(R"({"utc": "2025-03-01T16:10:00"})", config.shape, ring);
  EXPECT_EQ(nothing,
            R"({"result":"refused","message":"trigger refused: nothing has been received"})");
  const std::string garbage = answer_trigger("{\"\xff\x80\": 1}\n", config.shape, ring);
  EXPECT_THAT(garbage, HasSubstr(R"("result":"error")"));
  EXPECT_EQ(garbage.find('\n'), std::string::npos);
  EXPECT_THAT(answer_trigger("{\"a\x7f\": 1}", config.shape, ring), HasSubstr("unknown key"));
  const VoltageRecords records = ring.take_records();
  ASSERT_EQ(records.triggers.size(), 1U);  // the others are no triggers
  EXPECT_EQ(records.triggers.front().result, "refused");
  EXPECT_TRUE(ring.take_records().empty());
}

VoltageRecords some_records() {
  VoltageRecords r;
  r.triggers.push_back({1, {123, 56.5, 0.25, 0.004, 12.5, "b0329", 7}, "accepted", 1, ""});
  r.triggers.push_back({2, {-5, 0, 0, 1.5, 0, "sat", 0}, "refused", 0, "it lies in 1969"});
  r.dumps.push_back(
      {1, "t_voltages_00001.h5", 100, 200, 400.5e6, 410.5e6, 10, 40960, 10, 3, 0.125, ""});
  r.dumps.push_back({2, "", 300, 400, 400.5e6, 410.5e6, 10, 0, 10, 10, 0, "the disk is full"});
  return r;
}

TEST(DumpTable, TriggersThatWaitAreBounded) {
  VoltageRecords waiting, more;
  more.triggers.resize(VoltageRecords::kMaxWaiting - 1);
  more.dumps.resize(3);
  EXPECT_EQ(waiting.append(more), 0);
  EXPECT_EQ(waiting.append(some_records()), 1);
  EXPECT_EQ(waiting.append(some_records()), 2);
  EXPECT_EQ(waiting.triggers.size(), VoltageRecords::kMaxWaiting);
  EXPECT_EQ(waiting.dumps.size(), 7U);
}

void expect_same(const VoltageRecords& a, const VoltageRecords& b) {
  ASSERT_EQ(a.triggers.size(), b.triggers.size());
  for (std::size_t k = 0; k < a.triggers.size(); ++k) {
    const auto &x = a.triggers[k], &y = b.triggers[k];
    EXPECT_EQ(x.number, y.number);
    EXPECT_EQ(x.trigger.tai_ns, y.trigger.tai_ns);
    EXPECT_EQ(x.trigger.dm_pc_cm3, y.trigger.dm_pc_cm3);
    EXPECT_EQ(x.trigger.dm_error, y.trigger.dm_error);
    EXPECT_EQ(x.trigger.width_s, y.trigger.width_s);
    EXPECT_EQ(x.trigger.snr, y.trigger.snr);
    EXPECT_EQ(x.trigger.beam, y.trigger.beam);
    EXPECT_EQ(x.trigger.event, y.trigger.event);
    EXPECT_EQ(x.result, y.result);
    EXPECT_EQ(x.dump, y.dump);
    EXPECT_EQ(x.message, y.message);
  }
  ASSERT_EQ(a.dumps.size(), b.dumps.size());
  for (std::size_t k = 0; k < a.dumps.size(); ++k) {
    const auto &x = a.dumps[k], &y = b.dumps[k];
    EXPECT_EQ(x.number, y.number);
    EXPECT_EQ(x.file, y.file);
    EXPECT_EQ(x.begin_tai_ns, y.begin_tai_ns);
    EXPECT_EQ(x.end_tai_ns, y.end_tai_ns);
    EXPECT_EQ(x.low_hz, y.low_hz);
    EXPECT_EQ(x.high_hz, y.high_hz);
    EXPECT_EQ(x.n_channels, y.n_channels);
    EXPECT_EQ(x.bytes, y.bytes);
    EXPECT_EQ(x.packets, y.packets);
    EXPECT_EQ(x.absent_packets, y.absent_packets);
    EXPECT_EQ(x.left_s, y.left_s);
    EXPECT_EQ(x.message, y.message);
  }
}

// While the search writes, and after it has closed the file; a row that comes twice is one.
TEST(DumpTable, HoldsWhatTheRingSays) {
  const test::Scratch scratch;
  const std::string path = scratch / "t.sqlite";
  SearchCandidate c;
  c.number = 7;
  c.smearing_s = 0.00125;
  {
    SearchDatabase database(path, {}, false);
    database.append(std::vector{c});
    VoltageRecords first = some_records();
    first.dumps.clear();
    database.append(first);
    expect_same(test::read_voltage_records(path), first);
    database.finish({});
  }
  append_voltage_records(path, some_records());
  append_voltage_records(path, some_records());
  append_voltage_records(path, {});
  expect_same(test::read_voltage_records(path), some_records());
  const auto events = test::read_search_database(path);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events.front().smearing_s, c.smearing_s);
}

}  // namespace
}  // namespace ryle::pipeline
