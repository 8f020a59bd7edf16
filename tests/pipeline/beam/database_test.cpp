// SPDX-License-Identifier: BSD-3-Clause
// A live search goes on whatever its database says: rows wait, are tried again, and end in a file
// of lines where it never takes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/base/sqlite_file.hpp"
#include "ryle/pipeline/search/search_products.hpp"
#include "tests/io/scratch.hpp"
#include "tests/support/search_database.hpp"

namespace ryle::pipeline {
namespace {

using io::Database;
using testing::HasSubstr;

/// Another process that writes, and does not end its transaction.
class Locked {
 public:
  explicit Locked(const std::string& path) : db_(path, Database::Mode::append, 5) {
    db_.run("BEGIN IMMEDIATE");
  }
  ~Locked() { db_.run("ROLLBACK"); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Database db_;
};

VoltageRecords records_of(std::int64_t number) {
  VoltageRecords r;
  r.triggers.push_back({number, {123, 56.5, 0.25, 0.004, 12.5, "b0329", 7}, "accepted", 1, ""});
  r.dumps.push_back({number, "t.h5", 100, 200, 400.5e6, 410.5e6, 10, 40960, 10, 3, 0.125, ""});
  return r;
}

std::vector<std::int64_t> numbers_of(const std::vector<SearchCandidate>& list) {
  std::vector<std::int64_t> out;
  for (const auto& c : list) out.push_back(c.number);
  return out;
}
std::vector<std::int64_t> numbers_of(const std::vector<TriggerRecord>& list) {
  std::vector<std::int64_t> out;
  for (const auto& r : list) out.push_back(r.number);
  return out;
}

class LiveDatabase : public testing::Test {
 protected:
  LiveDatabase() {
    options_.output_directory = scratch_.path();
    options_.name = "t";
    options_.pictures = options_.voevents = false;
    options_.rewrite_s = 1e9;
    options_.database_patience_s = 0.01;
    for (int k = 0; k < 8; ++k) band_.center_hz.push_back(400e6 + 1e6 * k);
    band_.channel_width_hz = 1e6;
    band_.sample_interval_s = 1e-3;
  }
  ~LiveDatabase() override { set_publish_fault_hook({}); }

  void start() {
    products_ = std::make_unique<SearchProducts>(options_, band_, std::vector{0.0, 60.0});
    products_->begin({});
  }
  static BeamEvent event() {
    BeamEvent e;
    e.event.cluster.best = {10, 4, 1, 20};
    e.event.pulse.dm_pc_cm3 = 60;
    e.event.pulse.dm_error = 1;
    return e;
  }
  void find_one() {
    std::vector<BeamEvent> events(1, event());
    products_->add(events, 0, 0);
  }
  std::vector<nlohmann::json> lines() const {
    std::vector<nlohmann::json> out;
    std::ifstream in(unwritten_);
    for (std::string line; std::getline(in, line);) out.push_back(nlohmann::json::parse(line));
    return out;
  }

  test::Scratch scratch_;
  SearchProductOptions options_;
  search::Band band_;
  std::unique_ptr<SearchProducts> products_;
  std::string path_ = scratch_ / "t.sqlite", unwritten_ = scratch_ / "t_unwritten.jsonl";
};

TEST_F(LiveDatabase, WhatALockedOneRejectsIsWrittenLater) {
  start();
  find_one();
  products_->add(records_of(1));
  {
    const Locked other(path_);
    find_one();
    products_->add(records_of(2));
    find_one();
    products_->tick(10);
    EXPECT_EQ(numbers_of(test::read_search_database(path_)), (std::vector<std::int64_t>{1}));
  }
  products_->tick(10.5);  // too early for another attempt
  EXPECT_EQ(test::read_search_database(path_).size(), 1U);
  products_->tick(12);
  EXPECT_EQ(numbers_of(test::read_search_database(path_)), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(numbers_of(test::read_voltage_records(path_).triggers),
            (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(test::read_voltage_records(path_).dumps.size(), 2U);
  products_->finish({});
  EXPECT_TRUE(products_->errors().empty());
  EXPECT_THAT(products_->warnings(), testing::ElementsAre(HasSubstr("locked")));
  EXPECT_FALSE(std::filesystem::exists(unwritten_));
}

// The rows that the end cannot write are in lines; the error says how many and why.
TEST_F(LiveDatabase, WhatIsNeverTakenIsCountedAndKept) {
  start();
  find_one();
  const Locked other(path_);
  find_one();
  find_one();
  products_->add(records_of(5));
  SearchDescription description;
  description.reference_hz = 407e6;
  description.position = {kPi / 2, -kPi / 4};
  products_->finish(description);
  ASSERT_EQ(products_->errors().size(), 1U);
  EXPECT_THAT(products_->errors()[0], HasSubstr("4 records (events 2, triggers 1, dumps 1)"));
  EXPECT_THAT(products_->errors()[0], HasSubstr("locked"));
  EXPECT_THAT(products_->errors()[0], HasSubstr("they are in " + unwritten_));
  EXPECT_THAT(products_->products(), testing::Contains(unwritten_));
  EXPECT_THAT(products_->products(), testing::Contains(path_));
  const auto rows = lines();
  ASSERT_GT(rows.size(), 4U);  // and the description
  EXPECT_EQ(rows[0]["table"], "event");
  EXPECT_EQ(rows[0]["id"], 2);
  EXPECT_EQ(rows[0]["dm"], 60);
  EXPECT_EQ(rows[0]["f_ref_hz"], 407e6);
  EXPECT_NEAR(rows[0]["ra_deg"].get<double>(), 90, 1e-12);
  EXPECT_NEAR(rows[0]["dec_deg"].get<double>(), -45, 1e-12);
  EXPECT_EQ(rows[1]["id"], 3);
  EXPECT_EQ(rows[2]["table"], "trigger");
  EXPECT_EQ(rows[2]["id"], 5);
  EXPECT_EQ(rows[2]["event"], 7);
  EXPECT_EQ(rows[3]["table"], "dump");
  EXPECT_EQ(rows[3]["file"], "t.h5");
  EXPECT_EQ(rows[3]["left_s"], 0.125);
}

// Full, then no longer: as SQLite says it, row by row.
TEST_F(LiveDatabase, AFullDiskCostsNothingThatFitsLater) {
  start();
  Database other(path_, Database::Mode::append, 5);
  other.run(
      "CREATE TRIGGER full BEFORE INSERT ON dump BEGIN SELECT RAISE(ABORT, 'disk is full'); END");
  find_one();
  products_->add(records_of(1));
  products_->add(records_of(2));
  EXPECT_EQ(test::read_search_database(path_).size(), 1U);          // written before
  EXPECT_TRUE(test::read_voltage_records(path_).triggers.empty());  // all of an attempt or nothing
  find_one();
  other.run("DROP TRIGGER full");
  products_->finish({});
  EXPECT_TRUE(products_->errors().empty());
  EXPECT_THAT(products_->warnings(),
              testing::ElementsAre(HasSubstr("disk is full"), HasSubstr("keep both")));
  EXPECT_EQ(test::read_search_database(path_).size(), 2U);
  EXPECT_EQ(numbers_of(test::read_voltage_records(path_).triggers),
            (std::vector<std::int64_t>{1, 2}));
}

// Two of four tables are on disk when it is full: all four follow, and only what this run wrote is
// replaced.
TEST_F(LiveDatabase, TablesThatDidNotFitAreWrittenLater) {
  options_.rewrite_s = 5;
  start();
  find_one();
  set_publish_fault_hook([](std::string_view operation, const std::string& path) {
    return operation == "write" && path.find(".singlepulse") != path.npos ? ENOSPC : 0;
  });
  products_->tick(10);
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "t.cands"));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "t.csv"));
  EXPECT_THAT(products_->warnings(), testing::ElementsAre(HasSubstr("could not be written")));
  set_publish_fault_hook({});
  find_one();
  products_->tick(20);
  const std::string cands = test::contents(scratch_ / "t.cands");
  EXPECT_EQ(std::count(cands.begin(), cands.end(), '\n'), 2);
  products_->finish({});
  EXPECT_TRUE(products_->errors().empty());
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "t.csv"));
}

// Nothing can be written at all: the search goes on, and its error says what is lost.
TEST_F(LiveDatabase, NoFileAtAll) {
  std::filesystem::create_directory(path_);  // in the way, and not empty
  std::ofstream(path_ + "/x") << "x";
  options_.overwrite = true;
  start();
  find_one();
  products_->add(records_of(1));
  products_->tick(10);
  set_publish_fault_hook([](std::string_view operation, const std::string&) {
    return operation == "write" ? ENOSPC : 0;
  });
  products_->finish({});
  ASSERT_EQ(products_->errors().size(), 2U);  // tables, database
  EXPECT_THAT(products_->errors()[1], HasSubstr("3 records (events 1, triggers 1, dumps 1)"));
  EXPECT_THAT(products_->errors()[1], HasSubstr("nor elsewhere"));
  EXPECT_TRUE(products_->products().empty());
  EXPECT_EQ(products_->events().size(), 1U);
}

// All rows are there, but nobody would learn how much was searched and masked.
TEST_F(LiveDatabase, ADescriptionThatIsRejectedIsKept) {
  start();
  find_one();
  const Locked other(path_);
  SearchDescription description;
  description.n_samples = 77;
  description.masked = {{"time", 0.25}};
  description.plan = "native";
  products_->finish(description);
  ASSERT_EQ(products_->errors().size(), 1U);
  EXPECT_THAT(products_->errors()[0], HasSubstr("what is said of the run is not in " + path_));
  EXPECT_THAT(products_->errors()[0], HasSubstr("they are in " + unwritten_));
  nlohmann::json run;
  for (const auto& row : lines()) {
    EXPECT_EQ(row["table"], "run");
    run[row["key"].get<std::string>()] = row["value"];
  }
  EXPECT_EQ(run["n_samples"], 77);
  EXPECT_EQ(run["masked_time"], 0.25);
  EXPECT_EQ(run["plan"], "native");
}

// A failed attempt must not cost more the more waits, and what fits is written.
TEST_F(LiveDatabase, RowsThatWaitedAreWrittenInPieces) {
  start();
  Database other(path_, Database::Mode::append, 5);
  other.run(
      "CREATE TRIGGER full BEFORE INSERT ON event WHEN NEW.id > 300 BEGIN SELECT RAISE(ABORT, "
      "'disk is full'); END");
  std::vector<BeamEvent> events(700, event());
  products_->add(events, 0, 0);
  EXPECT_EQ(test::read_search_database(path_).size(), 256U);
  find_one();
  EXPECT_EQ(test::read_search_database(path_).size(), 256U);
  other.run("DROP TRIGGER full");
  products_->add(records_of(1));
  const auto all = numbers_of(test::read_search_database(path_));
  ASSERT_EQ(all.size(), 701U);
  EXPECT_EQ(all.back(), 701);
  EXPECT_EQ(test::read_voltage_records(path_).dumps.size(), 1U);
}

/// Files of this process cannot grow beyond so many bytes: as on a full disk, a write ends early.
class SmallFiles {
 public:
  explicit SmallFiles(std::size_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &limit_);
    const rlimit less{bytes, limit_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &less);
  }
  ~SmallFiles() {
    setrlimit(RLIMIT_FSIZE, &limit_);
    std::signal(SIGXFSZ, signal_);
  }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  void (*signal_)(int);
  rlimit limit_{};
};

TEST_F(LiveDatabase, LinesAreWholeOnAFullDisk) {
  UnwrittenRows rows;
  for (int k = 1; k <= 3; ++k) rows.events.emplace_back().number = k;
  const std::string text = search_json_lines(rows);
  const std::size_t line = text.find('\n') + 1;
  std::string file, said;
  {
    const SmallFiles limit(line + line / 2);
    said = keep_unwritten(path_, rows, "reason", file);
  }
  EXPECT_THAT(said, HasSubstr("the first 1 lines of them are in " + unwritten_));
  EXPECT_EQ(file, unwritten_);
  EXPECT_EQ(test::contents(unwritten_), text.substr(0, line));
  {
    const SmallFiles limit(line + line / 2);
    said = keep_unwritten(path_, rows, "reason", file);
  }
  EXPECT_THAT(said, HasSubstr("nor elsewhere"));
  EXPECT_EQ(file, "");
  keep_unwritten(path_, rows, "reason", file);
  EXPECT_EQ(lines().size(), 4U);
}

// Others point telescopes by the VOEvent; the picture is for later.
TEST_F(LiveDatabase, APictureThatFailsLeavesTheVoevent) {
  options_.pictures = options_.voevents = true;
  start();
  set_publish_fault_hook([](std::string_view operation, const std::string& path) {
    return operation == "create" && path.ends_with(".png") ? ENOSPC : 0;
  });
  std::vector<BeamEvent> events(1, event());
  SearchEvent& e = events[0].event;
  e.pulse.tick = 32;
  e.pulse.fwhm_samples = 4;
  e.window_samples = 64;
  e.codes.assign(8 * 64, 24);
  e.channel_masked.assign(8, 0);
  e.noise = 8;
  products_->add(events, 0, 1'500'000'000'000'000'000);
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "t_00001.xml"));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "t_00001.png"));
  EXPECT_EQ(products_->events()[0].picture, "");
  EXPECT_THAT(products_->warnings(), testing::ElementsAre(HasSubstr("no picture")));
  EXPECT_THAT(products_->products(), testing::ElementsAre(scratch_ / "t_00001.xml"));
}

TEST_F(LiveDatabase, AnotherRunsIsNotTouched) {
  std::ofstream(path_) << "another";
  EXPECT_THROW(start(), IoError);
  EXPECT_EQ(test::contents(path_), "another");
}

}  // namespace
}  // namespace ryle::pipeline
