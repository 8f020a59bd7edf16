// SPDX-License-Identifier: BSD-3-Clause
// The ring of voltages of every live source: a capture with lost packets goes through a run that is
// asked for a span, and the dump, read as a recording, is that span of the stream, value for value
// and absence for absence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>

#include "ryle/core/bits.hpp"
#include "ryle/ingest/described_source.hpp"
#include "ryle/ingest/line_server.hpp"
#include "ryle/ingest/mwa32t_source.hpp"
#include "ryle/ingest/recording.hpp"
#include "ryle/ingest/spead_source.hpp"
#include "ryle/pipeline/run/graph.hpp"
#include "ryle/pipeline/run/plan.hpp"
#include "ryle/pipeline/run/run.hpp"
#include "ryle/pipeline/visibility/live_described.hpp"
#include "ryle/pipeline/visibility/simulation.hpp"
#include "ryle/simulate/packet_file.hpp"
#include "ryle/telescope/geometry.hpp"
#include "ryle/wire/spead.hpp"
#include "tests/io/scratch.hpp"

namespace ryle::pipeline {
namespace {

constexpr const char* kStart = "2024-06-27T06:00:00";
constexpr const char* kEndpoint = "udp://127.0.0.1:4015";

/// What a source of the table below is: keys, and how much of it is simulated.
struct LiveSource {
  std::string name;
  std::vector<std::string> keys;
  double duration_s = 0.05;
  std::string packet;  ///< [source.packet]
};

const std::string kExamples = std::string(RYLE_SOURCE_DIR) + "/examples/";

// Six antennas of two polarizations from three boards, spectra of 8 bits.
const std::string kSpectraOf8Bits =
    "length = 272\nheader = [\n  {field = \"sequence\", type = \"u64be\", offset = 0},\n"
    "  {field = \"board\", type = \"u16be\", offset = 8},\n"
    "  {field = \"first_channel\", type = \"u16be\", offset = 10},\n]\n"
    "payload = {offset = 16, order = [\"channel\", \"time\", \"input\", \"complex\"], extents = "
    "{channel = 2, time = 16, input = 4}, sample = \"ci8\"}\n";
// The same antennas, real samples of 8 bits in offset binary.
const std::string kSamples =
    "length = 144\nheader = [\n  {field = \"sequence\", type = \"u64be\", offset = 0},\n"
    "  {field = \"board\", type = \"u16be\", offset = 8},\n]\n"
    "payload = {offset = 16, order = [\"time\", \"input\"], extents = {time = 32, input = 4}, "
    "sample = \"i8\", twos_complement = false}\n";

std::vector<LiveSource> live_sources() {
  const std::vector<std::string> fengine{"source.first_channel=2400",
                                         "source.n_channels=12",
                                         "source.chunk_ms=5.12",
                                         "simulator.period_samples=1024",
                                         "telescope.layout=" + kExamples + "lwasv.csv",
                                         "telescope.latitude_deg=34.3",
                                         "telescope.longitude_deg=-106.9"};
  const auto with = [](std::vector<std::string> keys, const std::vector<std::string>& more) {
    keys.insert(keys.end(), more.begin(), more.end());
    return keys;
  };
  const std::vector<std::string> small{
      "source.format=described",      "telescope.layout=six.csv",
      "telescope.latitude_deg=34.3",  "telescope.longitude_deg=-106.9",
      "source.sample_rate_hz=100000", "source.chunk_ms=5",
      "simulator.period_samples=8192"};
  return {
      {"chips", with(fengine, {"source.format=chips", "source.sample_rate_hz=25000"}), 0.05, ""},
      {"chips_in_blocks",
       with(fengine, {"source.format=chips", "source.sample_rate_hz=25000",
                      "source.channels_per_packet=6", "voltages.window=channel"}),
       0.05, ""},
      {"tbf", with(fengine, {"source.format=tbf"}), 0.05, ""},
      {"tbx", with(fengine, {"source.format=tbx"}), 0.05, ""},
      {"best2",
       {"source.format=best2", "source.n_channels=16", "source.chunk_ms=26.2144",
        "simulator.period_samples=2048", "telescope.layout=" + kExamples + "best2.csv",
        "telescope.latitude_deg=44.5", "telescope.longitude_deg=11.6",
        "source.antenna_map=[3,2,1,0,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,"
        "26,27,28,29,31,30]"},
       0.5,
       ""},
      {"described_spectra",
       with(small, {"source.channel_zero_mhz=100", "source.n_channels=8", "simulator.rms_lsb=2.3"}),
       0.05, kSpectraOf8Bits},
      {"mwa32t",
       {"source.format=mwa32t", "telescope.layout=" + kExamples + "mwa32t.csv",
        "telescope.latitude_deg=-26.7", "telescope.longitude_deg=116.67",
        "source.center_mhz=154.24", "source.chunk_ms=3.2", "simulator.period_samples=8192"},
       0.02,
       ""},
      {"described_samples", with(small, {"source.center_mhz=100", "simulator.rms_lsb=8"}), 0.05,
       kSamples},
  };
}

/// Writes six.csv, where described sources look for it.
ObservationConfig observation(const test::Scratch& scratch, const LiveSource& source,
                              const std::vector<std::string>& more = {}) {
  std::ofstream layout(scratch / "six.csv");
  layout << "antenna,east_m,north_m,up_m,pol,cable_delay_ns\n";
  for (int a = 0; a < 6; ++a)
    for (const char* pol : {"X", "Y"})
      layout << "A" << a << ',' << 7 * a % 31 << ',' << 11 * a % 29 << ",0," << pol << ",0\n";
  layout.close();
  std::vector<std::string> keys{"source.start_utc=\"" + std::string(kStart) + "\"",
                                "source.allow_small_rcvbuf=true",
                                "simulator.duration_s=" + std::to_string(source.duration_s),
                                "simulator.loss=0.02",
                                "simulator.sefd_jy=2000",
                                "voltages.ring_s=" + std::to_string(source.duration_s),
                                "voltages.margin_s=0.0002",
                                "voltages.socket=ask.sock",
                                "output.directory=" + scratch.path(),
                                "output.name=t",
                                "output.ms=false",
                                "output.uvfits=false",
                                "output.uvh5=false",
                                "output.pictures=false",
                                "runtime.device=cpu",
                                "runtime.threads=1"};
  const std::string endpoints =
      source.name == "mwa32t" ? "udp://127.0.0.1:4015,udp://127.0.0.1:4016,udp://127.0.0.1:4017,"
                                "udp://127.0.0.1:4018"
                              : kEndpoint;
  std::string list;
  for (std::size_t at = 0; at < endpoints.size();) {
    const auto end = std::min(endpoints.find(',', at), endpoints.size());
    list += (list.empty() ? "\"" : ", \"") + endpoints.substr(at, end - at) + "\"";
    at = end + 1;
  }
  keys.push_back("source.listen=[" + list + "]");
  keys.insert(keys.end(), source.keys.begin(), source.keys.end());
  keys.insert(keys.end(), more.begin(), more.end());
  std::string text = "schema = 1\n";
  if (!source.packet.empty()) text += "[source.packet]\n" + source.packet;
  return parse_observation(text, scratch / "obs.toml", keys);
}

/// All that a source delivers, by tick.
struct Stream {
  SampleClock clock;
  std::map<Tick, std::vector<cf64>> values;          ///< [channel][input]
  std::map<Tick, std::vector<std::uint8_t>> absent;  ///< the same
};

Stream spectra_of(const ObservationConfig& config) {
  const SpectraInput input = spectra_input(config);
  const auto source = input.open();
  Stream stream;
  SpectraBlocks blocks(source->shape());
  source->start();
  while (!source->ended()) {
    Chunk* chunk = source->next(std::chrono::milliseconds(100));
    if (chunk == nullptr) continue;
    stream.clock = source->clock(chunk->segment);
    source->unpack(*chunk, blocks);
    source->release(chunk);
    const auto view = blocks.blocks();
    for (std::int64_t t = 0; t < blocks.n_spectra; ++t) {
      auto& values = stream.values[blocks.first_spectrum + t];
      auto& absent = stream.absent[blocks.first_spectrum + t];
      for (std::int64_t c = 0; c < view.n_channels; ++c) {
        for (std::int64_t p = 0; p < view.n_inputs; ++p) {
          // Inputs of best2 are in the order of its packets, those of a dump in that of the layout.
          values.push_back(get_sample(view, c, t, p));
          const auto* row = blocks.mask.bits.data() + c * blocks.mask.channel_stride_words +
                            p * blocks.mask.words;
          absent.push_back(!blocks.complete && !test_bit(row, t) ? 1 : 0);
        }
      }
    }
  }
  return stream;
}

Stream samples_of(const ObservationConfig& config, std::int64_t n_inputs) {
  std::unique_ptr<ChunkSource> source;
  const std::int64_t start = simulation_start_tai_ns(config);
  if (is_described(config.source)) {
    source =
        std::make_unique<DescribedSampleSource>(live_described_config(config, n_inputs, start));
  } else {
    Mwa32tSourceConfig c;
    c.endpoints = config.source.listen;
    c.clock.epoch_tai_ns = start;
    c.chunk_ticks = 4096;
    c.memory = MemorySpace::host;
    c.allow_small_rcvbuf = true;
    c.capture = config.source.file;
    source = make_mwa32t_source(c);
  }
  Stream stream;
  source->start();
  while (!source->ended()) {
    Chunk* chunk = source->next(std::chrono::milliseconds(100));
    if (chunk == nullptr) continue;
    const SourceInfo info = source->info();
    stream.clock = info.clock;
    for (std::int64_t t = 0; t < chunk->n_ticks; ++t) {
      auto& values = stream.values[chunk->first_tick + t];
      for (std::int64_t p = 0; p < n_inputs; ++p)
        values.push_back(decode_sample(info.layout, chunk->payload.data(), p, t));
      stream.absent[chunk->first_tick + t].assign(static_cast<std::size_t>(n_inputs), 0);
    }
    for (const auto& span : chunk->absent)
      for (Tick t = span.begin; t < span.end; ++t)
        stream.absent[t][static_cast<std::size_t>(span.input)] = 1;
    source->release(chunk);
  }
  return stream;
}

/// The same of a dump, read as a recording; `flagged` is what it says is absent.
Stream dump_of(const std::string& path, Tick& first, std::int64_t& n_channels) {
  const auto recording = open_recording(path, "auto");
  const RecordingInfo& info = recording->info();
  EXPECT_EQ(info.format, "voltages");
  first = std::stoll(info.header.at("first_tick"));
  n_channels = info.channelized ? info.frequency.n_channels : 1;
  Stream stream;
  stream.clock = info.clock;
  constexpr std::int64_t kAtOnce = 333;
  for (Tick at = 0; at < info.n_ticks; at += kAtOnce) {
    const std::int64_t n = std::min(kAtOnce, info.n_ticks - at);
    std::vector<AbsentSpan> absent;
    std::vector<ChannelGap> gaps;
    if (info.channelized) {
      std::vector<ci8> spectra(static_cast<std::size_t>(n * n_channels * info.n_inputs));
      recording->read_spectra(at, n, spectra, absent, nullptr, &gaps);
      for (std::int64_t t = 0; t < n; ++t)
        for (std::int64_t k = 0; k < n_channels * info.n_inputs; ++k) {
          const ci8 v = spectra[static_cast<std::size_t>(t * n_channels * info.n_inputs + k)];
          stream.values[first + at + t].push_back(
              {static_cast<double>(v.re), static_cast<double>(v.im)});
        }
    } else {
      std::vector<std::byte> bytes(static_cast<std::size_t>(recording->samples_bytes(n)));
      recording->read_samples(at, n, bytes, absent);
      for (std::int64_t t = 0; t < n; ++t)
        for (std::int64_t p = 0; p < info.n_inputs; ++p)
          stream.values[first + at + t].push_back(decode_sample(info.layout, bytes.data(), p, t));
    }
    for (std::int64_t t = 0; t < n; ++t)
      stream.absent[first + at + t].assign(static_cast<std::size_t>(n_channels * info.n_inputs), 0);
    for (const auto& span : absent)
      for (Tick t = span.begin; t < span.end; ++t)
        for (std::int64_t c = 0; c < n_channels; ++c)
          stream.absent[first + t][static_cast<std::size_t>(c * info.n_inputs + span.input)] = 1;
    for (const auto& gap : gaps)
      for (Tick t = gap.begin; t < gap.end; ++t)
        for (std::int64_t k = gap.channel_begin * info.n_inputs;
             k < gap.channel_end * info.n_inputs; ++k)
          stream.absent[first + t][static_cast<std::size_t>(k)] = 1;
  }
  return stream;
}

/// A run of a capture in `config.source.file` that is asked for a span as soon as data come.
RunSummary run_and_ask(const ObservationConfig& config, const test::Scratch& scratch,
                       double begin_s, double end_s) {
  RunOptions options;
  options.progress_interval_s = 0;
  std::string answer;
  const std::int64_t start = tai_ns_from_utc_iso(kStart);
  const std::string request =
      R"({"begin_utc": ")" + utc_iso(start + std::llround(begin_s * 1e9), 9) +
      R"(", "end_utc": ")" + utc_iso(start + std::llround(end_s * 1e9), 9) + "\"}";
  options.on_progress = [&](const Progress& p) {
    if (p.data_s > 0 && answer.empty()) answer = ask_line_server(scratch / "ask.sock", request, 60);
  };
  const RunSummary summary = run_observation(config, options);
  EXPECT_EQ(answer, R"({"result":"accepted","dump":1})");
  return summary;
}

void expect_same_span(const ObservationConfig& config, const Stream& stream,
                      const RunSummary& summary, const test::Scratch& scratch, double begin_s,
                      double end_s) {
  ASSERT_TRUE(summary.errors.empty()) << summary.errors.front();
  ASSERT_TRUE(summary.voltages);
  ASSERT_EQ(summary.voltages->dumps, 1)
      << (summary.warnings.empty() ? "" : summary.warnings.front());
  EXPECT_THAT(scratch.names(), testing::Contains("t_voltages_00001.h5"));
  EXPECT_THAT(scratch.names(), testing::Not(testing::Contains(testing::HasSubstr(".part"))));
  Tick first = 0;
  std::int64_t n_channels = 0;
  const Stream dump = dump_of(scratch / "t_voltages_00001.h5", first, n_channels);
  EXPECT_EQ(dump.clock.epoch_tai_ns, stream.clock.tai_ns(first));
  const double from_s =
      1e-9 * static_cast<double>(dump.clock.epoch_tai_ns - tai_ns_from_utc_iso(kStart));
  const double tick_s = dump.clock.seconds(1),
               unit_s = is_live_beams(config.source) ? 128 * tick_s : tick_s;
  EXPECT_LE(from_s, begin_s - config.voltages.margin_s + 1e-9);
  EXPECT_GT(from_s, begin_s - config.voltages.margin_s - unit_s - 1e-9);
  EXPECT_GE(from_s + tick_s * static_cast<double>(dump.values.size()),
            end_s + config.voltages.margin_s - 1e-9);
  std::vector<std::int64_t> line;  // [input of the stream]: input of the dump
  const auto n_values = static_cast<std::int64_t>(dump.values.begin()->second.size());
  const std::int64_t n_inputs = n_values / n_channels;
  for (std::int64_t p = 0; p < n_inputs; ++p)
    line.push_back(config.source.antenna_map.empty()
                       ? p
                       : config.source.antenna_map[static_cast<std::size_t>(p)]);
  std::int64_t wrong = 0, absent = 0, unmarked = 0, marked = 0, nonzero = 0;
  for (const auto& [tick, values] : dump.values) {
    const auto sent = stream.values.find(tick);
    ASSERT_NE(sent, stream.values.end()) << tick;
    const auto& gone = stream.absent.at(tick);
    const auto& said = dump.absent.at(tick);
    std::vector<bool> lacks(static_cast<std::size_t>(n_inputs));  // something of the input
    for (std::int64_t k = 0; k < n_values; ++k)
      if (gone[static_cast<std::size_t>(k)] != 0)
        lacks[static_cast<std::size_t>(k % n_inputs)] = true;
    for (std::int64_t k = 0; k < n_values; ++k) {
      const auto at = static_cast<std::size_t>(k);
      const auto there = static_cast<std::size_t>(k / n_inputs * n_inputs +
                                                  line[static_cast<std::size_t>(k % n_inputs)]);
      wrong += values[there] != sent->second[at];
      nonzero += values[there] != cf64(0);
      absent += gone[at];
      unmarked += gone[at] != 0 && said[there] == 0;
      marked += !lacks[static_cast<std::size_t>(k % n_inputs)] && said[there] != 0;
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(nonzero, static_cast<std::int64_t>(dump.values.size()) * n_values / 2);
  EXPECT_GT(absent, 0);
  EXPECT_EQ(unmarked, 0);
  EXPECT_EQ(marked, 0);
  if (!is_live_beams(config.source)) {  // else packets are counted
    EXPECT_EQ(summary.voltages->absent_packets, absent);
  }
}

class VoltageSources : public ::testing::TestWithParam<std::size_t> {};

TEST_P(VoltageSources, DumpsAreTheStreamAsItCame) {
  const LiveSource source = live_sources()[GetParam()];
  const test::Scratch scratch;
  write_simulated_file(observation(scratch, source), scratch / "sent.pcap");
  const auto config = observation(
      scratch, source, {"source.kind=pcap", "source.file=" + scratch.path() + "/sent.pcap"});
  const double begin_s = 0.3 * source.duration_s, end_s = 0.7 * source.duration_s;
  const RunSummary summary = run_and_ask(config, scratch, begin_s, end_s);
  const bool samples = is_live_samples(config.source);
  const Stream stream =
      samples ? samples_of(config, load_array(config, 0).n_inputs()) : spectra_of(config);
  expect_same_span(config, stream, summary, scratch, begin_s, end_s);
}

INSTANTIATE_TEST_SUITE_P(Live, VoltageSources, ::testing::Range<std::size_t>(0, 8),
                         [](const auto& info) { return live_sources()[info.param].name; });

// Heaps of three F-engines, a packet of every fiftieth is missing.
TEST(VoltageSources, DumpsOfSpeadAreTheStreamAsItCame) {
  const test::Scratch scratch;
  const LiveSource source{
      "spead",
      {"source.format=spead", "telescope.layout=six.csv", "telescope.latitude_deg=34.3",
       "telescope.longitude_deg=-106.9", "source.sample_rate_hz=100000", "source.n_channels=8",
       "source.channels_per_packet=4", "source.spectra_per_heap=64", "source.ticks_per_spectrum=16",
       "source.channel_zero_mhz=100", "source.chunk_ms=5", "source.kind=pcap",
       "source.file=" + scratch.path() + "/sent.pcap"},
      0.05,
      ""};
  const auto config = observation(scratch, source);
  {
    simulate::PacketFile file(scratch / "sent.pcap", tai_ns_from_utc_iso(kStart));
    const Endpoint to = parse_endpoint(kEndpoint);
    int n = 0;
    for (std::int64_t heap = 0; heap < 79; ++heap) {
      for (std::int64_t block = 0; block < 2; ++block) {
        for (std::int64_t feng = 0; feng < 6; ++feng) {
          constexpr std::int64_t kHeapBytes = 4 * 64 * 4, kPacketBytes = 512;
          for (std::int64_t at = 0; at < kHeapBytes; at += kPacketBytes) {
            if (++n % 50 == 0) continue;
            wire::SpeadPacket p;
            p.heap_counter = static_cast<std::uint64_t>(heap * 100 + block * 10 + feng);
            p.heap_bytes = kHeapBytes;
            p.offset = static_cast<std::uint64_t>(at);
            p.payload_bytes = kPacketBytes;
            p.items[p.n_items++] = {wire::kSpeadTimestamp, true,
                                    static_cast<std::uint64_t>(heap * 64 * 16)};
            p.items[p.n_items++] = {wire::kSpeadFengId, true, static_cast<std::uint64_t>(feng)};
            p.items[p.n_items++] = {wire::kSpeadFrequency, true,
                                    static_cast<std::uint64_t>(block * 4)};
            p.items[p.n_items++] = {wire::kSpeadFengRaw, false, 0};
            std::vector<std::byte> packet(wire::spead_header_bytes(p.n_items));
            wire::write_spead_header(p, packet);
            for (std::int64_t k = 0; k < kPacketBytes; ++k)
              packet.push_back(
                  static_cast<std::byte>(1 + (heap * 7 + block * 3 + feng * 5 + at + k) % 255));
            file.add(static_cast<double>(heap) * 64e-5, to, packet);
          }
        }
      }
    }
    file.publish();
  }
  const RunSummary summary = run_and_ask(config, scratch, 0.015, 0.035);
  expect_same_span(config, spectra_of(config), summary, scratch, 0.015, 0.035);
}

// The key is rejected where nobody can ask, and `ryle plan` counts the memory.
TEST(VoltageSources, WhatNobodyAsksForIsRejectedAndTheRestIsPlanned) {
  const test::Scratch scratch;
  const auto rejection = [](const ObservationConfig& config) -> std::string {
    try {
      make_plan(config);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  for (const auto& source : live_sources()) {
    const std::vector<std::string> nobody{"voltages.socket=", "output.uvh5=true"};
    EXPECT_THAT(rejection(observation(scratch, source, nobody)),
                testing::HasSubstr("nobody asks for dumps"))
        << source.name;
    const std::vector<std::string> more{"output.uvh5=true"};
    const Plan plan = make_plan(observation(scratch, source, more));
    const std::map<std::string, std::int64_t> items(plan.memory_bytes.begin(),
                                                    plan.memory_bytes.end());
    ASSERT_TRUE(items.contains("ring of voltages")) << source.name;
    EXPECT_GT(items.at("ring of voltages"), 0);
    const auto node = std::find_if(plan.nodes.begin(), plan.nodes.end(),
                                   [](const auto& n) { return n.name == "voltages"; });
    EXPECT_NE(node, plan.nodes.end()) << source.name;
  }
  EXPECT_THAT(rejection(observation(scratch, live_sources().front(), {"voltages.margin_s=1"})),
              testing::HasSubstr("no longer than the margins"));
  EXPECT_THAT(rejection(observation(scratch, live_sources().front(),
                                    {"image.cadence_s=0.02", "image.trigger_sigma=8"})),
              testing::HasSubstr("the trigger of images tells an event"));
}

}  // namespace
}  // namespace ryle::pipeline
