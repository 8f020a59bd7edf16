// SPDX-License-Identifier: BSD-3-Clause
// Several files as one recording.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "ryle/core/error.hpp"
#include "tests/ingest/recording/support.hpp"
#include "tests/ingest/recording/vdif_frames.hpp"
#include "tests/support/data_path.hpp"

namespace ryle {
namespace {

using test::Bytes;
using test::Samples;
using test::Spectra;
using test::VdifFrame;
using test::write_file;

constexpr int kFrameSamples = 8;
constexpr int kFramesPerSecond = 10;

/// What a station sends at a tick: different everywhere.
int code_of(std::uint32_t station, std::uint32_t thread, int tick) {
  return static_cast<int>((station * 131 + thread * 37 + static_cast<std::uint32_t>(tick) * 7) %
                          256);
}

/// Frames [first, end) of 8-bit real samples, the threads in turn.
Bytes frames(std::uint32_t station, int first, int end, std::uint32_t n_threads = 1,
             std::uint32_t edv1_khz = 0) {
  Bytes out;
  for (int frame = first; frame < end; ++frame) {
    for (std::uint32_t thread = 0; thread < n_threads; ++thread) {
      std::vector<int> codes;
      for (int t = 0; t < kFrameSamples; ++t)
        codes.push_back(code_of(station, thread, frame * kFrameSamples + t));
      VdifFrame f;
      f.second = static_cast<std::uint32_t>(100 + frame / kFramesPerSecond);
      f.frame = static_cast<std::uint32_t>(frame % kFramesPerSecond);
      f.station = station;
      f.thread = thread;
      if (edv1_khz > 0) {
        f.edv = 1;
        f.word4 = edv1_khz;
      }
      test::append(out, f(codes));
    }
  }
  return out;
}

std::string file_of(const std::string& name, const Bytes& bytes) {
  return write_file(std::to_string(::getpid()) + "_" + name, bytes);
}

RecordingOptions at_80_hz() {
  RecordingOptions options;
  options.sample_rate_hz = kFrameSamples * kFramesPerSecond;
  return options;
}

std::string refusal(const std::vector<std::string>& files, const RecordingOptions& options) {
  try {
    open_recordings(files, "auto", options);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

#define EXPECT_SAYS(text, word) EXPECT_NE((text).find(word), std::string::npos) << (text)

TEST(RecordingSet, PartsOfAFileAreThatFile) {
  const Bytes whole = frames(1, 0, 40, 3);
  const auto one = open_recording(file_of("whole.vdif", whole), "auto", at_80_hz());
  // Cut between frames, in the middle of a time, at any order of arguments.
  const std::size_t frame = whole.size() / 120;
  for (const std::size_t cut : {std::size_t{30}, std::size_t{31}, std::size_t{62}}) {
    const std::string a = file_of(
        "a.vdif", Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut * frame)));
    const std::string b = file_of(
        "b.vdif", Bytes(whole.begin() + static_cast<std::ptrdiff_t>(cut * frame), whole.end()));
    for (const auto& order : {std::vector{a, b}, std::vector{b, a}}) {
      const auto both = open_recordings(order, "auto", at_80_hz());
      const auto& info = both->info();
      EXPECT_EQ(info.n_ticks, one->info().n_ticks);
      EXPECT_EQ(info.clock.epoch_tai_ns, one->info().clock.epoch_tai_ns);
      EXPECT_EQ(info.n_inputs, 3);
      EXPECT_EQ(info.counters.at("frames"), 120);
      EXPECT_TRUE(info.warnings.empty());
      for (const auto& [first, n] :
           {std::pair<Tick, std::int64_t>{0, 320}, {-5, 340}, {75, 11}, {83, 1}}) {
        const Samples expected(*one, first, n), got(*both, first, n);
        EXPECT_EQ(got.bytes, expected.bytes) << cut << " " << first;
        EXPECT_EQ(got.absent, expected.absent) << cut << " " << first;
      }
    }
  }
}

// A file too short to tell its rate has that of the others.
TEST(RecordingSet, OneFileTellsTheRateOfAll) {
  const std::string a = file_of("long.vdif", frames(1, 0, 25)),
                    b = file_of("short.vdif", frames(1, 25, 30));
  EXPECT_FALSE(open_recording(b, "auto")->info().rate_known);
  const auto both = open_recordings({b, a}, "auto");
  EXPECT_TRUE(both->info().rate_known);
  EXPECT_EQ(both->info().n_ticks, 240);
  EXPECT_SAYS(refusal({b, file_of("short2.vdif", frames(1, 32, 35))}, {}), "--rate");
}

TEST(RecordingSet, AGapIsAbsent) {
  const std::string a = file_of("g1.vdif", frames(1, 0, 10, 2)),
                    b = file_of("g2.vdif", frames(1, 13, 20, 2));
  const auto both = open_recordings({a, b}, "auto", at_80_hz());
  EXPECT_EQ(both->info().n_ticks, 160);
  ASSERT_EQ(both->info().warnings.size(), 1u);
  EXPECT_SAYS(both->info().warnings[0], "24 samples");
  const Samples all(*both, 0, 160);
  EXPECT_EQ(all.absent, (std::vector<AbsentSpan>{{0, 80, 104}, {1, 80, 104}}));
  for (int t = 0; t < 160; ++t) {
    const bool absent = t >= 80 && t < 104;
    EXPECT_EQ(all.at(1, t).real(), absent ? 0 : code_of(1, 1, t) - 128) << t;
  }
  const std::string late = file_of("late.vdif", frames(1, 7000, 7002, 2));
  EXPECT_SAYS(refusal({a, late}, at_80_hz()), "observations of their own");
}

TEST(RecordingSet, RejectsWhatOverlaps) {
  const std::string a = file_of("o1.vdif", frames(1, 0, 10)),
                    b = file_of("o2.vdif", frames(1, 8, 20));
  const std::string text = refusal({a, b}, at_80_hz());
  EXPECT_SAYS(text, a);
  EXPECT_SAYS(text, b);
  EXPECT_SAYS(text, "16 samples");
  EXPECT_SAYS(text, "station 1 thread 0");
}

TEST(RecordingSet, RejectsOneFileTwice) {
  const std::string a = file_of("t1.vdif", frames(1, 0, 10));
  EXPECT_SAYS(refusal({a, a}, at_80_hz()), "given twice");
  const std::string link = a + ".link";
  std::filesystem::remove(link);
  std::filesystem::create_symlink(a, link);
  EXPECT_SAYS(refusal({a, link}, at_80_hz()), "the same file");
  const std::string copy = file_of("t2.vdif", frames(1, 0, 10));
  const std::string text = refusal({a, copy}, at_80_hz());
  EXPECT_SAYS(text, "twice");
  EXPECT_SAYS(text, a);
  EXPECT_SAYS(text, copy);
}

TEST(RecordingSet, StationsAreInputsInTheOrderGiven) {
  const std::string ef = file_of("ef.vdif", frames('E' << 8 | 'f', 0, 20, 2)),
                    on = file_of("on.vdif", frames('O' << 8 | 'n', 5, 30, 2));
  const auto both = open_recordings({on, ef}, "auto", at_80_hz());
  const auto& info = both->info();
  EXPECT_EQ(info.n_inputs, 4);
  EXPECT_EQ(info.n_ticks, 240);
  EXPECT_EQ(info.input_names,
            (std::vector<std::string>{"station On thread 0", "station On thread 1",
                                      "station Ef thread 0", "station Ef thread 1"}));
  ASSERT_EQ(info.parts.size(), 2u);
  EXPECT_EQ(info.parts[0].span, (TickSpan{40, 240}));
  EXPECT_EQ(info.parts[1].inputs, (std::vector<std::int64_t>{2, 3}));
  const Samples all(*both, -8, 256);
  EXPECT_EQ(all.absent, (std::vector<AbsentSpan>{{0, -8, 40},
                                                 {0, 240, 248},
                                                 {1, -8, 40},
                                                 {1, 240, 248},
                                                 {2, -8, 0},
                                                 {2, 160, 248},
                                                 {3, -8, 0},
                                                 {3, 160, 248}}));
  for (int t = 40; t < 160; ++t) {
    EXPECT_EQ(all.at(1, t + 8).real(), code_of('O' << 8 | 'n', 1, t) - 128);
    EXPECT_EQ(all.at(2, t + 8).real(), code_of('E' << 8 | 'f', 0, t) - 128);
  }
  EXPECT_EQ(all.at(0, 8).real(), 0);
}

// One file of both stations gives the same inputs.
TEST(RecordingSet, StationsOfOneFileAreInputsToo) {
  Bytes mixed;
  for (int f = 0; f < 20; ++f) {
    test::append(mixed, frames(7, f, f + 1, 2));
    test::append(mixed, frames(3, f, f + 1, 2));
  }
  const auto one = open_recording(file_of("mixed.vdif", mixed), "auto", at_80_hz());
  const auto two = open_recordings(
      {file_of("s3.vdif", frames(3, 0, 20, 2)), file_of("s7.vdif", frames(7, 0, 20, 2))}, "auto",
      at_80_hz());
  EXPECT_EQ(one->info().n_inputs, 4);
  EXPECT_EQ(one->info().input_names, two->info().input_names);
  const Samples a(*one, 0, 160), b(*two, 0, 160);
  EXPECT_TRUE(a.absent.empty());
  EXPECT_EQ(a.bytes, b.bytes);
}

TEST(RecordingSet, FilesAreStationsWhereAsked) {
  const std::string a = file_of("n1.vdif", frames(0, 0, 10)),
                    b = file_of("n2.vdif", frames(0, 2, 12));
  EXPECT_SAYS(refusal({a, b}, at_80_hz()), "--files-as inputs");
  RecordingOptions options = at_80_hz();
  options.files_as = "inputs";
  const auto both = open_recordings({a, b}, "auto", options);
  EXPECT_EQ(both->info().n_inputs, 2);
  const Samples all(*both, 0, 96);
  EXPECT_EQ(all.absent, (std::vector<AbsentSpan>{{0, 80, 96}, {1, 0, 16}}));
}

TEST(RecordingSet, NamesBothFilesAndValuesThatDiffer) {
  const std::string a = file_of("r1.vdif", frames(1, 0, 10, 1, 40)),
                    b = file_of("r2.vdif", frames(2, 0, 10, 1, 80));
  const std::string text = refusal({a, b}, {});
  EXPECT_SAYS(text, a);
  EXPECT_SAYS(text, b);
  EXPECT_SAYS(text, "80000 Hz and 160000 Hz");
  VdifFrame complex;
  complex.complex = true;
  complex.station = 2;
  Bytes other;
  for (std::uint32_t k = 0; k < 3; ++k) {
    complex.frame = k;
    test::append(other, complex(std::vector<int>(16, 128)));
  }
  EXPECT_SAYS(
      refusal({file_of("k1.vdif", frames(1, 0, 10)), file_of("k2.vdif", other)}, at_80_hz()),
      "i8 and ci8");
}

TEST(RecordingSet, ACutFileEndsEarlyAndAnEmptyOneIsRejected) {
  const Bytes second = frames(1, 10, 20);
  const std::string a = file_of("c1.vdif", frames(1, 0, 10)),
                    b = file_of("c2.vdif", Bytes(second.begin(), second.end() - 13)),
                    c = file_of("c3.vdif", frames(1, 20, 30)), nothing = file_of("c4.vdif", {});
  const auto all = open_recordings({a, b, c}, "auto", at_80_hz());
  EXPECT_EQ(all->info().counters.at("rejected.cut_frame"), 1);
  const Samples samples(*all, 0, 240);
  EXPECT_EQ(samples.absent, (std::vector<AbsentSpan>{{0, 152, 160}}));
  EXPECT_EQ(samples.at(0, 160).real(), code_of(1, 0, 160) - 128);
  const std::string text = refusal({a, nothing}, at_80_hz());
  EXPECT_SAYS(text, nothing);
  EXPECT_SAYS(text, "0 bytes");
}

// The customary numbering of GUPPI files: blocks are contiguous by PKTIDX, whatever the order
// given.
TEST(RecordingSet, BlocksOfGuppiInTwoFiles) {
  RYLE_REQUIRE_DATA(path, "baseband/sample_puppi.raw");
  const auto raw = test::slurp(path);
  const auto whole = open_recording(path, "guppi");
  const std::size_t block = raw.size() / 4;  // four equal blocks
  ASSERT_EQ(raw.size() % 4, 0u);
  const auto at = [&](std::size_t k) {
    return raw.begin() + static_cast<std::ptrdiff_t>(k * block);
  };
  const std::string a = file_of("x.0000.raw", Bytes(at(0), at(1))),
                    b = file_of("x.0001.raw", Bytes(at(1), at(4))),
                    late = file_of("x.0002.raw", Bytes(at(3), at(4)));
  const std::int64_t n = whole->info().n_ticks;
  const auto both = open_recordings({b, a}, "auto");
  ASSERT_EQ(both->info().n_ticks, n);
  EXPECT_TRUE(both->info().warnings.empty());
  const Spectra expected(*whole, 0, n), got(*both, 0, n);
  EXPECT_EQ(got.values, expected.values);
  EXPECT_TRUE(got.absent.empty());
  const auto gap = open_recordings({a, late}, "auto");
  EXPECT_EQ(gap->info().n_ticks, n);
  const Spectra part(*gap, 0, n);
  ASSERT_EQ(part.absent.size(), 2u);
  EXPECT_EQ(part.absent[0], (AbsentSpan{0, n / 4, 3 * n / 4}));
}

Bytes dada_piece(std::int64_t offset, const std::string& telescope, const Bytes& payload) {
  const std::string text =
      "HDR_SIZE 4096\nNBIT 8\nNDIM 2\nNPOL 2\nNCHAN 1\nBW 16\nTSAMP 0.0625\nFREQ 320\n"
      "UTC_START 2013-07-02-01:37:40\nOBS_OFFSET " +
      std::to_string(offset) + "\nTELESCOPE " + telescope + "\n";
  Bytes out(4096);
  std::memcpy(out.data(), text.data(), text.size());
  test::append(out, payload);
  return out;
}

TEST(RecordingSet, PiecesOfDadaByTheirOffsets) {
  std::mt19937 random(5);
  Bytes payload(4000);
  for (auto& b : payload) b = static_cast<unsigned char>(random());
  const auto whole = open_recording(file_of("w.dada", dada_piece(8000, "GBT", payload)), "auto");
  const Bytes first(payload.begin(), payload.begin() + 1200),
      rest(payload.begin() + 1200, payload.end());
  const std::string a = file_of("p0.dada", dada_piece(8000, "GBT", first)),
                    b = file_of("p1.dada", dada_piece(9200, "GBT", rest)),
                    other = file_of("p2.dada", dada_piece(8000, "Effelsberg", payload)),
                    off = file_of("p3.dada", dada_piece(10400, "GBT", rest));
  const auto both = open_recordings({b, a}, "auto");
  const Samples expected(*whole, 0, 1000), got(*both, 0, 1000);
  EXPECT_EQ(got.bytes, expected.bytes);
  EXPECT_TRUE(got.absent.empty());
  EXPECT_EQ(both->info().clock.epoch_tai_ns, whole->info().clock.epoch_tai_ns);
  const auto two = open_recordings({a, b, other}, "auto");
  EXPECT_EQ(two->info().n_inputs, 4);
  EXPECT_EQ(two->info().n_ticks, 1000);
  const Samples stations(*two, 100, 700);
  EXPECT_TRUE(stations.absent.empty());
  for (std::int64_t t = 0; t < 700; t += 13) {
    EXPECT_EQ(stations.at(1, t), expected.at(1, t + 100));
    EXPECT_EQ(stations.at(2, t), expected.at(0, t + 100));
  }
  const auto gap = open_recordings({a, off}, "auto");
  const Samples absent(*gap, 0, 1300);
  EXPECT_EQ(absent.absent, (std::vector<AbsentSpan>{{0, 300, 600}, {1, 300, 600}}));
}

TEST(RecordingSet, SpectraOfTbxWithGapsOfChannels) {
  RYLE_REQUIRE_DATA(path, "lwa/tbx-test.dat");
  const auto bytes = test::tbx_spectra(
      path, 6, [](int spectrum, int frame) { return spectrum == 4 && frame == 7; });
  const std::size_t spectrum = 26 * 1564;
  const auto split = bytes.begin() + static_cast<std::ptrdiff_t>(2 * spectrum);
  const auto whole = open_recording(file_of("t.tbx", bytes), "tbx");
  const auto both = open_recordings({file_of("t0.tbx", Bytes(bytes.begin(), split)),
                                     file_of("t1.tbx", Bytes(split, bytes.end()))},
                                    "auto");
  ASSERT_EQ(both->info().n_ticks, 6);
  for (const auto& recording : {whole.get(), both.get()}) {
    std::vector<ci8> values(6 * 312 * 128);
    std::vector<AbsentSpan> absent;
    std::vector<std::uint8_t> missing;
    std::vector<ChannelGap> gaps;
    recording->read_spectra(0, 6, values, absent, &missing, &gaps);
    EXPECT_TRUE(absent.empty());
    EXPECT_EQ(gaps, (std::vector<ChannelGap>{{84, 96, 4, 5}}));
  }
  const Spectra a(*whole, 0, 6), b(*both, 0, 6);
  EXPECT_EQ(a.values, b.values);
  EXPECT_EQ(a.absent, b.absent);
}

// A channel that one file lacks throughout is a gap of that file where another has it.
TEST(RecordingSet, ChannelsThatOneFileLacksAreLostOfThatFileOnly) {
  RYLE_REQUIRE_DATA(path, "lwa/tbx-test.dat");
  const auto bytes = test::tbx_spectra(path, 6, [](int spectrum, int frame) {
    return frame == 9 || (spectrum < 2 && frame == 7) || (spectrum == 0 && frame != 3);
  });
  const auto split = bytes.begin() + std::ptrdiff_t{(1 + 24) * 1564};
  const auto both = open_recordings({file_of("l0.tbx", Bytes(bytes.begin(), split)),
                                     file_of("l1.tbx", Bytes(split, bytes.end()))},
                                    "auto");
  ASSERT_EQ(both->info().n_ticks, 6);
  for (const Tick first : {Tick{0}, Tick{-1}}) {  // the spectrum before the first is absent
    std::vector<ci8> values(7 * 312 * 128);
    std::vector<AbsentSpan> absent;
    std::vector<std::uint8_t> missing;
    std::vector<ChannelGap> gaps;
    both->read_spectra(first, 6 - first, values, absent, &missing, &gaps);
    EXPECT_EQ(absent.size(), first < 0 ? 128U : 0U);
    std::vector<int> lost(6 * 312);
    for (const auto& gap : gaps)
      for (Tick t = gap.begin; t < gap.end; ++t)
        for (std::int64_t c = gap.channel_begin; c < gap.channel_end; ++c)
          ++lost.at(static_cast<std::size_t>(t * 312 + c));
    for (int t = 0; t < 6; ++t) {
      for (int c = 0; c < 312; ++c) {
        const int frame = c / 12;
        const bool throughout = frame == 9;
        const bool gap = (t < 2 && frame == 7) || (t == 0 && frame != 3);
        ASSERT_EQ(lost[static_cast<std::size_t>(t * 312 + c)], gap && !throughout) << t << " " << c;
        ASSERT_EQ(missing[static_cast<std::size_t>(c * 128 + 5)], throughout) << c;
      }
    }
  }
  // Whoever takes no gaps has those spectra absent.
  const Spectra whole(*both, 0, 6);
  ASSERT_EQ(whole.absent.size(), 128U);
  EXPECT_EQ(whole.absent[0], (AbsentSpan{0, 0, 2}));
}

TEST(RecordingSet, FilesOfReceiversAreGroups) {
  // Two receivers of MWA-32T, each with a marker that counts.
  const auto receiver = [](int r) {
    Bytes out;
    for (int t = 0; t < 200; ++t) {
      for (int word = 0; word < 17; ++word) {
        const int value = word == 0 ? t : (r * 16 + word + t) % 1024;
        out.push_back(static_cast<unsigned char>(value & 255));
        out.push_back(static_cast<unsigned char>(value >> 8));
      }
    }
    return out;
  };
  const std::string a = file_of("r0.mwa32t", receiver(0)), b = file_of("r1.mwa32t", receiver(1));
  const auto recording = open_recordings({a, b}, "auto");
  EXPECT_EQ(recording->info().format, "mwa32t");
  EXPECT_EQ(recording->info().n_inputs, 32);
  EXPECT_SAYS(refusal({a, a}, {}), "given twice");
}

}  // namespace
}  // namespace ryle
