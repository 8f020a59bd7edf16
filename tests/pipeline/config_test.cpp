// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/config/config.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "ryle/core/error.hpp"
#include "ryle/pipeline/config/config_effect.hpp"

namespace ryle::pipeline {
namespace {

/// Message of the ConfigError a text must give.
std::string rejection(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse_observation(text, "obs.toml", overrides);
  } catch (const ConfigError& e) {
    EXPECT_EQ(e.exit_code(), ExitCode::config);
    return e.what();
  }
  ADD_FAILURE() << "accepted: " << text;
  return "";
}

TEST(Config, ReadsEverySectionAndKeepsDefaults) {
  const auto config = parse_observation(
      "schema = 1\n[telescope]\nlayout = \"a.csv\"\nlatitude_deg = -26.7\n[channelize]\nn_channels "
      "= 256\n"
      "[[simulator.source]]\nl = 0.5\nflux_jy = 2.0\n[source]\nsample_rate_hz = \"78125/4\"\n",
      "obs.toml");
  EXPECT_EQ(config.telescope.layout, "a.csv");
  EXPECT_EQ(config.channelize.n_channels, 256);
  EXPECT_EQ(config.channelize.taps, ChannelizeConfig{}.taps);
  EXPECT_EQ(config.source.sample_rate_hz, (Rational{78125, 4}));
  ASSERT_EQ(config.simulator.sources.size(), 1u);
  EXPECT_DOUBLE_EQ(config.simulator.sources[0].l, 0.5);
}

TEST(Config, UnknownKeyNamesPlaceValueAndTheRightKey) {
  EXPECT_EQ(rejection("schema = 1\n\n[correlate]\nintegration_time_s = 1\n"),
            "obs.toml:4:1: unknown key \"integration_time_s\" in [correlate]; did you mean "
            "\"integration_s\" (1e-06 .. "
            "3600)?");
}

TEST(Config, UnknownSection) {
  EXPECT_EQ(rejection("[chanelize]\n"),
            "obs.toml:1:2: unknown section [chanelize]; did you mean [channelize]?");
}

TEST(Config, NamesOfPicturesAndMoviesEndInWhatIsWritten) {
  EXPECT_EQ(rejection("[image]\npicture = \"sky.jpg\"\n"),
            "obs.toml:2:11: image.picture = sky.jpg: the name must end in one of \".png\", "
            "\".pdf\", \".svg\"");
  EXPECT_EQ(rejection("[image]\nmovie = \"sky.avi\"\n"),
            "obs.toml:2:9: image.movie = sky.avi: the name must end in one of \".mp4\", \".mkv\", "
            "\".webm\", \".gif\"");
  EXPECT_EQ(parse_observation("[image]\npicture = \"SKY.PNG\"\nmovie = \"\"\n", "o").image.picture,
            "SKY.PNG");
}

TEST(Config, WrongTypesAndRanges) {
  const std::vector<std::tuple<std::string, std::string>> cases{
      {"[channelize]\nn_channels = 0\n", "must lie in 1 .. 1048576"},
      {"[channelize]\nn_channels = 1.5\n", "must be a whole number"},
      {"[channelize]\nwindow = \"square\"\n", "must be one of \"rectangular\", \"hann\""},
      {"[telescope]\nlatitude_deg = nan\n", "must lie in -90 .. 90"},
      {"[telescope]\nlatitude_deg = \"-26\"\n", "must be a number"},
      {"[telescope]\nname = 5\n", "must be a string"},
      {"[output]\nms = 1\n", "must be true or false"},
      {"[source]\nlisten = \"udp://x:1\"\n", "must be a list"},
      {"[source]\nstart_utc = 2026-01-01T00:00:00\n", "a date is written in quotes"},
      {"[source]\nsample_rate_hz = 1.5\n", "must be exact"},
      {"[source]\nsample_rate_hz = \"1/0\"\n", "ratio of whole numbers"},
      {"[correlate]\nintegration_s = inf\n", "must lie in"},
      {"[[simulator.source]]\nl = 0.9\nm = 0.9\n", "below the horizon"},
      {"[[simulator.source]]\nl = 0.1\nra_deg = 3.0\n", "either l and m or ra_deg and dec_deg"},
      {"schema = 2\n", "schema must be 1"},
      {"telescope = 3\n", "must be a section"},
      {"[telescope\n", "obs.toml:1:"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_NE(rejection(text).find(expected), std::string::npos)
        << text << " -> " << rejection(text);
  }
}

TEST(Config, RatesAreExactInEveryForm) {
  for (const auto& [text, num, den] :
       std::vector<std::tuple<std::string, std::int64_t, std::int64_t>>{{"32e6", 32000000, 1},
                                                                        {"1.28e6", 1280000, 1},
                                                                        {"78125/4", 78125, 4},
                                                                        {"19531.25", 78125, 4},
                                                                        {"1e3", 1000, 1},
                                                                        {"250E-1", 25, 1}}) {
    const auto config =
        parse_observation("", "obs.toml", {"source.sample_rate_hz=\"" + text + "\""});
    EXPECT_EQ(config.source.sample_rate_hz, (Rational{num, den})) << text;
  }
  for (const char* text : {"1e", "e6", "1/0", "0x10", "1e40", "1.2.3", "-5", "12 kHz", ""})
    rejection("", {std::string("source.sample_rate_hz=\"") + text + "\""});
}

TEST(Config, OverridesReplaceKeysAndAreChecked) {
  const auto config = parse_observation("[correlate]\nintegration_s = 1.0\n", "obs.toml",
                                        {"correlate.integration_s=0.5", "output.name=night1"});
  EXPECT_DOUBLE_EQ(config.correlate.integration_s, 0.5);
  EXPECT_EQ(config.output.name, "night1");
  EXPECT_NE(rejection("", {"correlate.integration=0.5"}).find("--set"), std::string::npos);
  EXPECT_NE(rejection("", {"nonsense"}).find("section.key=value"), std::string::npos);
}

TEST(Config, PrintedFormReadsBackTheSame) {
  auto config = parse_observation(
      "[[simulator.source]]\nname = \"A \\\"x\\\"\"\nl = 0.25\nflux_jy = "
      "3.0\n[source]\nsample_rate_hz = \"78125/4\"\n"
      "listen = [\"tcp://a:1\"]\n",
      "obs.toml");
  const auto again = parse_observation(config.text, "printed");
  EXPECT_EQ(again.text, config.text);
  EXPECT_EQ(again.simulator.sources[0].name, "A \"x\"");
}

TEST(Config, MissingFileIsExit66) {
  try {
    load_observation("/nowhere/obs.toml");
    FAIL();
  } catch (const IoError& e) {
    EXPECT_EQ(e.exit_code(), ExitCode::no_input);
  }
}

// The library calls itself for each level: 50,000 of them end the process.
TEST(Config, KeysAndListsNestedWithoutEndAreRejected) {
  std::string key = "a", list, tables;
  for (int k = 0; k < 50'000; ++k) key += ".a", list += '[', tables += "{a=";
  EXPECT_EQ(rejection("schema = 1\n" + key + " = 1\n"),
            "obs.toml:2: keys and lists nested more than 32 deep; an observation has two levels");
  EXPECT_NE(rejection("schema = 1\n[" + key + "]\nb = 1\n").find("obs.toml:2:"), std::string::npos);
  EXPECT_NE(rejection("a = " + list).find("nested"), std::string::npos);
  EXPECT_NE(rejection("a = " + tables).find("nested"), std::string::npos);
  EXPECT_NE(rejection("schema = 1\n", {key + "=1"}).find("nested"), std::string::npos);
  EXPECT_NE(rejection("schema = 1\n", {"source.listen=" + list}).find("nested"), std::string::npos);
  // Dots of numbers, of names and of comments are no levels.
  std::string many = "[telescope]\nname = '''";
  for (int k = 0; k < 100; ++k) many += "a.\n";
  many += "'''  # ....................................................................\n";
  many +=
      "layout = \"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z.0.1.2.3.4.5.6.7.8.9.csv\"\n";
  EXPECT_EQ(parse_observation(many, "obs.toml").telescope.layout.size(), 75u);
}

TEST(Config, SchemaListsEveryKeyWithItsRange) {
  const auto schema = nlohmann::json::parse(json_schema());
  const auto& channels = schema["properties"]["channelize"]["properties"]["n_channels"];
  EXPECT_EQ(channels["minimum"], 1);
  EXPECT_EQ(channels["type"], "integer");
  EXPECT_EQ(schema["properties"]["channelize"]["additionalProperties"], false);
  EXPECT_TRUE(schema["properties"]["simulator"]["properties"].contains("source"));
}

/// Message of the ConfigError that a run of this file would begin with; empty when it is accepted.
std::string effect_rejection(const std::string& text, const std::vector<std::string>& overrides) {
  const auto config = parse_observation(text, "obs.toml", overrides);
  try {
    reject_keys_without_effect(config);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

// What was asked for and cannot be made was once left out in silence, with exit code 0.
TEST(Config, KeysWithoutEffectAreRejectedWithTheirPlace) {
  using Overrides = std::vector<std::string>;
  const std::vector<std::tuple<std::string, Overrides, std::string>> cases{
      {"best2", {"beams.file=X", "output.segment_s=10"}, "set one of output.ms"},
      {"best2", {"beams.file=X", "telescope.latitude_deg=3"}, "telescope.latitude_deg"},
      {"best2", {"beams.file=X", "channelize.taps=8"}, "carry the channels"},
      {"best2", {"beams.file=X", "search.threshold=8"}, "set search.dm_max"},
      {"best2", {"beams.file=X", "search.fold_bins=64"}, "set search.fold"},
      {"best2",
       {"beams.file=X", "search.dm_max=100", "voltages.margin_s=1"},
       "set voltages.ring_s"},
      {"best2", {"beams.file=X", "correlate.integration_s=2"}, "nothing is correlated"},
      {"best2", {"beams.file=X", "source.channel_zero_mhz=100"}, "the band is that of beams.file"},
      {"best2", {"beams.file=X", "beams.spead_mb_per_s=5"}, "set beams.spead"},
      {"chips", {"beams.weights=f32"}, "--set: beams.weights = 'f32' has no effect"},
      {"tbx", {"search.dm_max=100"}, "name their directions in beams.file"},
      {"mwa32t", {"voltages.ring_s=2", "voltages.window=channel"}, "time samples have no channels"},
      {"tbx", {"voltages.ring_s=2", "voltages.trigger_snr=5"}, "set search.dm_max"},
      {"chips", {"voltages.ring_s=2", "voltages.ahead_s=5"}, "set voltages.socket"},
      {"mwa32t", {"source.kind=file", "voltages.ring_s=2"}, "a recording has its voltages on disk"},
      {"mwa32t", {"channelize.fine_channels=16"}, "channelize.n_channels makes as many"},
      {"chips", {"channelize.fine_channels=16", "channelize.n_channels=64"}, "fine_channels"},
      {"chips",
       {"output.ms=false", "output.uvfits=false", "output.uvh5=false", "image.cadence_s=0.1",
        "correlate.integration_s=2"},
       "nothing is correlated"},
      {"chips", {"channelize.n_channels=64"}, "carry the channels"},
      {"chips", {"image.watch=[\"sun\"]"}, "set image.cadence_s"},
      {"mwa32t", {"search.dm_max=100"}, "beams.file"},
      {"mwa32t", {"image.watch=[\"sun\"]"}, "set image.cadence_s"},
      {"mwa32t", {"source.pair_swap=true"}, "source.pair_swap"},
      {"mwa32t", {"source.kind=file", "search.dm_max=100"}, "beams.file"},
      {"vdif", {"source.kind=network", "source.start_utc='2026-01-01'"}, "tell the time"},
      {"tbx",
       {"source.listen=[\"tcp://0.0.0.0:1\", \"udp://0.0.0.0:2\"]", "source.lossless=true"},
       "all of whose endpoints"},
  };
  for (const auto& [format, overrides, expected] : cases) {
    const std::string text = "[source]\nformat = \"" + format + "\"\n";
    const std::string message = effect_rejection(text, overrides);
    EXPECT_NE(message.find(expected), std::string::npos) << overrides.front() << " -> " << message;
  }
  EXPECT_EQ(effect_rejection("[source]\nformat = \"mwa32t\"\n[search]\ndm_max = 50.0\n", {})
                .rfind("obs.toml:4:", 0),
            0u);
}

TEST(Config, KeysThatAskForNothingAndThoseOfTheSimulatorAreAccepted) {
  EXPECT_EQ(effect_rejection(
                "[source]\nformat = \"best2\"\n[output]\nuvh5 = false\n[image]\n"
                "cadence_s = 0\nwatch = []\n[beams]\nfile = \"b.toml\"\n[voltages]\nring_s = 2\n",
                {"voltages.socket=s.sock"}),
            "");
  EXPECT_EQ(effect_rejection("[source]\nkind = \"network\"\nformat = \"mwa32t\"\n[simulator]\n"
                             "duration_s = 3\n[image]\nn_pixels = 128\n",
                             {}),
            "");
  EXPECT_EQ(effect_rejection("[source]\nkind = \"file\"\n", {"image.cadence_s=0.1"}), "");
}

}  // namespace
}  // namespace ryle::pipeline
