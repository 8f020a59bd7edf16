// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>

#include "ryle/core/error.hpp"
#include "ryle/ingest/recording.hpp"
#include "ryle/ingest/recording_tart.hpp"
#include "ryle/ingest/recording_time.hpp"
#include "tests/support/data_path.hpp"

namespace ryle {
namespace {

TEST(RecordingTart, KnowsTheRealFile) {
  RYLE_REQUIRE_DATA(path, "tart/mg-tana-raw.hdf");
  const auto recording = open_recording(path, "auto");
  const auto& info = recording->info();
  EXPECT_EQ(info.format, "tart");
  EXPECT_FALSE(info.channelized);
  EXPECT_EQ(info.n_inputs, 24);
  EXPECT_EQ(info.n_ticks, 1048576);
  EXPECT_EQ(info.clock.rate_hz, (Rational{16368000, 1}));
  EXPECT_EQ(info.clock.epoch_tai_ns, recording_tai_ns_from_unix(1781263240).value());
  EXPECT_DOUBLE_EQ(info.reference_hz, 1571.328e6);
  EXPECT_EQ(info.layout.format, SampleFormat::i1);
  EXPECT_EQ(info.layout.encoding, Encoding::levels);
  EXPECT_TRUE(info.layout.msb_first);
  EXPECT_EQ(info.header.at("name"), "Madagascar - Antananarivo");
  EXPECT_EQ(recording->samples_bytes(1000), 3000);
}

TEST(RecordingTart, AnyPieceEqualsTheWholeAndOutsideIsAbsent) {
  RYLE_REQUIRE_DATA(path, "tart/mg-tana-raw.hdf");
  const auto recording = open_recording(path, "tart");
  const auto& info = recording->info();
  std::vector<std::byte> whole(static_cast<std::size_t>(recording->samples_bytes(info.n_ticks)),
                               std::byte{0xCD});
  std::vector<AbsentSpan> absent;
  recording->read_samples(0, info.n_ticks, whole, absent);
  EXPECT_TRUE(absent.empty());
  // Bytes that h5dump prints: the order of bits is checked against the file, not our own code.
  const auto level = [](const std::array<int, 4>& bytes, int k) {
    return ((bytes[static_cast<std::size_t>(k / 8)] >> (7 - k % 8)) & 1) * 2 - 1;
  };
  for (int k = 0; k < 32; ++k) {
    EXPECT_EQ(decode_sample(info.layout, whole.data(), 0, k).real(), level({99, 14, 100, 201}, k));
    EXPECT_EQ(decode_sample(info.layout, whole.data(), 23, info.n_ticks - 32 + k).real(),
              level({25, 51, 103, 57}, k));
  }
  std::int64_t ones = 0;
  for (const auto b : whole) ones += __builtin_popcount(static_cast<unsigned>(b));
  const double mean = static_cast<double>(ones) / static_cast<double>(24 * info.n_ticks);
  EXPECT_NEAR(mean, 0.5, 0.1);
  for (const std::int64_t first :
       {std::int64_t{1}, std::int64_t{8}, std::int64_t{524287}, std::int64_t{524290}}) {
    std::vector<std::byte> piece(static_cast<std::size_t>(recording->samples_bytes(777)) + 1,
                                 std::byte{0xCD});
    recording->read_samples(first, 777, piece, absent);
    ASSERT_TRUE(absent.empty());
    for (std::int64_t t = 0; t < 777; ++t) {
      for (std::int64_t p = 0; p < 24; ++p) {
        ASSERT_EQ(decode_sample(info.layout, piece.data(), p, t),
                  decode_sample(info.layout, whole.data(), p, first + t));
      }
    }
    EXPECT_EQ(piece.back(), std::byte{0xCD});
  }
  std::vector<std::byte> piece(static_cast<std::size_t>(recording->samples_bytes(10)));
  recording->read_samples(info.n_ticks - 4, 10, piece, absent);
  ASSERT_EQ(absent.size(), 24u);
  EXPECT_EQ(absent[5], (AbsentSpan{5, info.n_ticks, info.n_ticks + 6}));
}

TEST(RecordingTart, ConfigErrorsAreNamed) {
  using detail::parse_tart_config;
  const std::string good =
      R"({"frequency": 1575420000.0, "baseband_frequency": 4092000.0, "sampling_frequency": 16368000.0})";
  EXPECT_EQ(parse_tart_config("f", good).sampling_frequency_hz, 16368000);
  for (const char* bad :
       {"", "[1]", "{", "{}", R"({"sampling_frequency": "fast"})",
        R"({"sampling_frequency": -1, "frequency": 1, "baseband_frequency": 1})",
        R"({"sampling_frequency": 1e400, "frequency": 1, "baseband_frequency": 1})",
        R"({"sampling_frequency": 0.5, "frequency": 1, "baseband_frequency": 1})"}) {
    EXPECT_THROW(parse_tart_config("f", bad), FormatError) << bad;
  }
}

TEST(RecordingTart, OtherHdf5IsRejected) {
  RYLE_REQUIRE_DATA(path, "singledish/fast_m33/1421-1425_hor_input1.hdf5");
  EXPECT_THROW(open_recording(path, "auto"), FormatError);
}

}  // namespace
}  // namespace ryle
