// SPDX-License-Identifier: BSD-3-Clause
// T-FE-01 (import side): every byte of every layout lands where the planar blocks say, sentinels
// intact.
#include "ryle/engine/correlate/import.hpp"

#include "tests/engine/correlate/voltage_sources.hpp"

namespace ryle::correlate::test {
namespace {

void check(SampleFormat from, SampleFormat to, std::int64_t c, std::int64_t t, std::int64_t p) {
  for (const VoltageSource& s : voltage_sources(from, c, t, p)) {
    const auto source = source_bytes(s, c, t, p);
    for (const auto& planes : {std::vector<std::uint64_t>{}, planes_with_holes(c, t, p)}) {
      const Voltages want = imported(from, to, c, t, p, planes);
      const Voltages got(to, c, t, p, true);
      std::memset(got.memory.data(), 0xCD, static_cast<std::size_t>(got.memory.bytes()));
      const std::int64_t words = (t + 63) / 64;
      Queue queue = Queue::cpu(2);
      import_voltages(queue, source.data(), s.layout, t, got.view,
                      {planes.empty() ? nullptr : planes.data(), words, p * words});
      // Whole buffers: samples, zeroed tails, and the garbage between the cells.
      EXPECT_EQ(std::memcmp(got.memory.data(), want.memory.data(),
                            static_cast<std::size_t>(want.memory.bytes())),
                0)
          << s.name << " " << ryle::name(from) << " to " << ryle::name(to) << " C=" << c
          << " T=" << t << " N=" << p << (planes.empty() ? "" : ", with holes");
    }
  }
}

TEST(Import, EveryLayoutAndFormat) {
  for (const auto format :
       {SampleFormat::ci4, SampleFormat::ci8, SampleFormat::ci16, SampleFormat::cf32}) {
    for (const std::int64_t t : {1, 16, 63, 64, 65, 130, 200}) {
      for (const std::int64_t p : {1, 3, 8, 17}) check(format, format, 3, t, p);
    }
  }
}

// FPGA boards interleave what Ryle does not: inputs apart by more than a sample, rows with a header
// between them. Only the strides say so.
TEST(Import, AnyStrides) {
  constexpr std::int64_t kC = 3, kT = 70, kN = 9;
  for (const std::int64_t input_stride : {2, 6}) {  // neighbours, and every third
    VoltageLayout layout = spectrum_channel_input(SampleFormat::ci8, kC, kN);
    layout.input_stride_bytes = input_stride;
    layout.channel_stride_bytes = kN * input_stride + 10;
    layout.spectrum_stride_bytes = kC * layout.channel_stride_bytes + 64;
    std::vector<std::uint8_t> source(static_cast<std::size_t>(kT * layout.spectrum_stride_bytes),
                                     0xCD);
    const auto code = [](std::int64_t c, std::int64_t t, std::int64_t p) {
      return code_at(SampleFormat::ci8, c, t, p);
    };
    for (std::int64_t c = 0; c < kC; ++c) {
      for (std::int64_t t = 0; t < kT; ++t) {
        for (std::int64_t p = 0; p < kN; ++p) {
          write_source(source.data() + t * layout.spectrum_stride_bytes +
                           c * layout.channel_stride_bytes + p * input_stride,
                       SampleFormat::ci8, code(c, t, p));
        }
      }
    }
    Voltages want(SampleFormat::ci8, kC, kT, kN, true);
    want.fill(code);
    Voltages got(SampleFormat::ci8, kC, kT, kN, true);
    Queue queue = Queue::cpu(1);
    import_voltages(queue, source.data(), layout, kT, got.view);
    EXPECT_EQ(std::memcmp(got.memory.data(), want.memory.data(),
                          static_cast<std::size_t>(want.memory.bytes())),
              0)
        << "inputs " << input_stride << " bytes apart";
  }
}

TEST(Import, IntegersToFloats) {
  for (const auto format : {SampleFormat::ci4, SampleFormat::ci8, SampleFormat::ci16}) {
    check(format, SampleFormat::cf32, 2, 37, 5);
  }
}

TEST(Import, RejectsWhatItCannotDo) {
  Queue queue = Queue::cpu(1);
  Voltages v(SampleFormat::ci4, 1, 128, 2);
  std::vector<std::uint8_t> source(4096);
  EXPECT_THROW(import_voltages(queue, source.data(),
                               spectrum_channel_input(SampleFormat::ci8, 1, 2), 128, v.view),
               UnsupportedError);
  EXPECT_THROW(import_voltages(queue, source.data(),
                               spectrum_channel_input(SampleFormat::ci4, 1, 2), 129, v.view),
               ConfigError);
  EXPECT_THROW(spectrum_channel_input(SampleFormat::ci5, 1, 2), UnsupportedError);
  const std::uint64_t plane[2] = {};
  EXPECT_THROW(
      import_voltages(queue, source.data(), spectrum_channel_input(SampleFormat::ci4, 1, 2), 128,
                      v.view, {plane, 1, 0}),
      ConfigError);
}

}  // namespace
}  // namespace ryle::correlate::test
