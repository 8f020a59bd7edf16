// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>

#include "ryle/ingest/fengine_source.hpp"
#include "ryle/ingest/recording.hpp"
#include "ryle/simulate/fengine_sender.hpp"
#include "tests/ingest/loopback.hpp"

// The simulated F-engine and the source on the two ends of real sockets, and of a file: what comes
// out is the record, byte by byte.

namespace ryle {
namespace {

using simulate::FengineSender;
using simulate::FengineSenderConfig;
using simulate::SpectraRecord;

SpectraRecord record_of(std::int64_t n_inputs, std::int64_t n_channels, std::int64_t n_spectra) {
  ArrayLayout array;
  for (std::int64_t i = 0; i < n_inputs; ++i) {
    if (i % 2 == 0) array.antennas.push_back({"", {static_cast<double>(i), 0, 0}});
    ArrayInput input;
    input.antenna = i / 2;
    input.pol = static_cast<int>(i % 2);
    array.inputs.push_back(input);
  }
  simulate::SpectraConfig config;
  config.n_spectra = n_spectra;
  config.channels = {40e6, 25e3, n_channels};
  config.start_tai_ns = 1'700'000'037'000'000'000;  // 1.7e9 POSIX seconds
  simulate::Scene scene;
  scene.sources.emplace_back();
  return simulate_spectra(array, scene, config);
}

FengineSourceConfig source_for(const SpectraRecord& record, FengineFormat format) {
  FengineSourceConfig config;
  config.format = format;
  config.endpoints = {"udp://127.0.0.1:0"};
  config.n_boards = record.n_inputs / 32;
  config.n_stands = record.n_inputs / 2;
  config.first_channel = 1600;
  config.n_channels = record.n_channels;
  config.chunk_spectra = 128;
  config.n_chunks = 64;
  config.memory = MemorySpace::host;
  config.allow_small_rcvbuf = true;
  config.close_after_ns = config.idle_close_ns = std::int64_t{1} << 60;
  return config;
}

struct Outcome {
  std::int64_t wrong = 0, present = 0;
  std::vector<std::int64_t> absent;  // [stream]
  simulate::SenderReport report;
  IngestCounters counters;
  SourceInfo info;
};

// Sends `n` spectra from `start` and compares everything that arrives.
Outcome loop(const SpectraRecord& record, const FengineSourceConfig& source_config,
             FengineSenderConfig sender_config, std::int64_t n, std::int64_t tick0) {
  FengineSource source(source_config);
  source.poison(std::byte{0xA5});
  source.start();
  sender_config.endpoints = source.endpoints();
  sender_config.first_channel = source_config.first_channel;
  sender_config.duration_s = static_cast<double>(n) / record.spectrum_rate_hz.value();
  FengineSender sender(record, sender_config);
  sender.start();
  Outcome out;
  out.report = sender.join();
  std::int64_t sent = 0;
  for (const auto& link : out.report.receivers) sent += link.packets_sent;
  for (int i = 0; i < 60'000 && source.counters().received < static_cast<std::uint64_t>(sent);
       ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  source.stop();
  const auto& layout = source.layout();
  SpectraBlocks spectra(layout.shape());
  out.absent.resize(static_cast<std::size_t>(layout.n_streams()));
  while (!source.ended()) {
    Chunk* chunk = source.next(std::chrono::milliseconds(50));
    if (chunk == nullptr) continue;
    unpack(layout, *chunk, spectra);
    for (const auto& span : chunk->absent) out.absent[span.input] += span.end - span.begin;
    for (std::int64_t t = 0; t < chunk->n_ticks; ++t) {
      const std::uint8_t* row = record.spectrum((chunk->first_tick - tick0 + t) % record.n_spectra);
      for (std::int64_t c = 0; c < record.n_channels; ++c) {
        for (std::int64_t i = 0; i < record.n_inputs; ++i) {
          const std::uint64_t* valid = spectra.mask.bits.data() +
                                       c * spectra.mask.channel_stride_words +
                                       i * spectra.mask.words;
          const bool present = (valid[t / 64] >> (t % 64) & 1) != 0;
          const std::uint8_t sample = present ? row[c * record.n_inputs + i] : 0;
          out.present += present;
          out.wrong +=
              static_cast<std::uint8_t>(spectra.blocks().cell(c, t / 128, i)[t % 128]) != sample;
        }
      }
    }
    source.release(chunk);
  }
  out.counters = source.counters();
  out.info = source.info();
  return out;
}

TEST(FengineLive, ChipsBoardsOneOfWhichDiesAndReturns) {
  const SpectraRecord record = record_of(160, 8, 500);
  for (const bool segmentation : {true, false}) {
    FengineSenderConfig sender;
    sender.segmentation = segmentation;
    sender.start_spectrum = 123'456;
    sender.outages = {{2, 0.02, 0.03}};  // spectra 500 to 750: 250 of them
    const Outcome out = loop(record, source_for(record, FengineFormat::chips), sender, 1300, 0);
    EXPECT_EQ(out.wrong, 0);
    EXPECT_EQ(out.counters.used, 5u * 1300 - 250)
        << ::testing::PrintToString(out.counters.rejected);
    EXPECT_EQ(out.counters.received, out.counters.used);
    EXPECT_EQ(out.counters.kernel_drops, 0u);
    EXPECT_EQ(out.absent, (std::vector<std::int64_t>{0, 0, 250, 0, 0}));
    EXPECT_EQ(out.present, (5 * 1300 - 250) * 8 * 32);
    EXPECT_EQ(out.report.receivers[2].samples_skipped, 250);
    EXPECT_EQ(out.counters.lost_samples, 250u * 8 * 32);
  }
}

TEST(FengineLive, TbxFramesOfTwoBlocks) {
  const SpectraRecord record = record_of(20, 24, 300);
  FengineSenderConfig sender;
  sender.format = "tbx";
  sender.channels_per_packet = 12;
  auto config = source_for(record, FengineFormat::tbx);
  config.channels_per_packet = 12;
  const std::int64_t tick0 = 1'700'000'000LL * 25'000;
  const Outcome out = loop(record, config, sender, 700, tick0);
  EXPECT_EQ(out.wrong, 0);
  EXPECT_EQ(out.counters.used, 1400u);
  EXPECT_EQ(out.present, 700 * 24 * 20);
  EXPECT_EQ(out.info.clock.tai_ns(tick0), record.start_tai_ns);
}

TEST(FengineLive, ATbxFileIsTheRecord) {
  const SpectraRecord record = record_of(20, 24, 50);
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("ryle_fengine_" + std::to_string(::getpid()) + ".tbx"))
                               .string();
  simulate::FengineSenderConfig config;
  config.format = "tbx";
  config.first_channel = 1600;
  config.channels_per_packet = 12;
  config.start_spectrum = 40;
  const simulate::SpectraEpoch always{0, &record};
  write_fengine_file({&always, 1}, config, 70, path);  // more than a lap
  RecordingOptions options;  // frames do not tell their rate; TBX is taken for the LWA-NA's
  options.spectrum_rate_hz = 25'000;
  const auto recording = open_recording(path, "auto", options);
  const auto& info = recording->info();
  EXPECT_EQ(info.format, "tbx");
  EXPECT_EQ(info.n_inputs, 20);
  ASSERT_EQ(info.n_ticks, 70);
  EXPECT_EQ(info.frequency.n_channels, 24);
  EXPECT_EQ(info.clock.tai_ns(0), record.start_tai_ns + 40 * 40'000);
  std::vector<ci8> spectra(70 * 24 * 20);
  std::vector<AbsentSpan> absent;
  recording->read_spectra(0, 70, spectra, absent, nullptr);
  EXPECT_TRUE(absent.empty());
  std::int64_t wrong = 0;
  for (std::int64_t t = 0; t < 70; ++t) {
    for (std::int64_t k = 0; k < 24 * 20; ++k) {
      const std::uint8_t byte = record.spectrum((40 + t) % 50)[k];
      const ci8 expected{static_cast<std::int8_t>(static_cast<std::int8_t>(byte) >> 4),
                         static_cast<std::int8_t>(static_cast<std::int8_t>(byte << 4) >> 4)};
      wrong += !(spectra[t * 24 * 20 + k] == expected);
    }
  }
  EXPECT_EQ(wrong, 0);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ryle
