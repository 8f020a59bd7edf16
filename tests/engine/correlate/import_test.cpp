// SPDX-License-Identifier: BSD-3-Clause
// T-FE-01 (import side): every byte of every layout lands where the planar blocks say, sentinels
// intact.
#include "ryle/engine/correlate/import.hpp"

#include "tests/engine/correlate/voltages.hpp"

namespace ryle::correlate::test {
namespace {

// Bytes of one code in the source, the textbook way.
void write_source(std::uint8_t* at, SampleFormat format, cf64 value) {
  const auto re = static_cast<int>(value.real());
  const auto im = static_cast<int>(value.imag());
  if (format == SampleFormat::ci4) {
    at[0] = static_cast<std::uint8_t>((re << 4) | (im & 15));
  } else if (format == SampleFormat::ci8) {
    at[0] = static_cast<std::uint8_t>(re);
    at[1] = static_cast<std::uint8_t>(im);
  } else if (format == SampleFormat::ci16) {
    const std::int16_t parts[2] = {static_cast<std::int16_t>(re), static_cast<std::int16_t>(im)};
    std::memcpy(at, parts, 4);
  } else {
    const float parts[2] = {static_cast<float>(value.real()), static_cast<float>(value.imag())};
    std::memcpy(at, parts, 8);
  }
}

cf64 code_at(SampleFormat format, std::int64_t c, std::int64_t t, std::int64_t p) {
  const cf64 value =
      Voltages::code(format, combine(static_cast<std::uint64_t>(c), static_cast<std::uint64_t>(t),
                                     static_cast<std::uint64_t>(p)));
  return format == SampleFormat::cf32
             ? cf64{static_cast<float>(value.real()), static_cast<float>(value.imag())}
             : value;
}

struct Layout {
  std::string name;
  VoltageLayout layout;
  std::int64_t bytes;
};

std::vector<Layout> layouts(SampleFormat format, std::int64_t c, std::int64_t t, std::int64_t p) {
  const std::int64_t sample = voltage_bytes(format);
  std::vector<Layout> all = {
      {"spectrum-channel-input", spectrum_channel_input(format, c, p), t * c * p * sample},
      {"channel-input-spectrum", channel_input_spectrum(format, p, t), t * c * p * sample}};
  // Heaps that divide a block of spectra, that do not, and that are longer than one.
  for (const std::int64_t in_heap : {1, 7, 16, 100}) {
    const std::int64_t heaps = (t + in_heap - 1) / in_heap;
    all.push_back({"heap-input-channel-spectrum of " + std::to_string(in_heap),
                   heap_input_channel_spectrum(format, p, c, in_heap),
                   heaps * in_heap * c * p * sample});
  }
  return all;
}

void check(SampleFormat from, SampleFormat to, std::int64_t c, std::int64_t t, std::int64_t p) {
  for (const auto& [name, layout, bytes] : layouts(from, c, t, p)) {
    std::vector<std::uint8_t> source(static_cast<std::size_t>(bytes), 0xCD);
    for (std::int64_t k = 0; k < c; ++k) {
      for (std::int64_t s = 0; s < t; ++s) {
        for (std::int64_t i = 0; i < p; ++i) {
          std::int64_t at = k * layout.channel_stride_bytes + i * layout.input_stride_bytes;
          at += layout.spectra_per_heap == 0
                    ? s * layout.spectrum_stride_bytes
                    : s / layout.spectra_per_heap * layout.heap_stride_bytes +
                          s % layout.spectra_per_heap * layout.spectrum_stride_bytes;
          ASSERT_LE(at + voltage_bytes(from), bytes);
          write_source(source.data() + at, from, code_at(from, k, s, i));
        }
      }
    }
    Voltages want(to, c, t, p, true);
    want.fill(
        [&](std::int64_t k, std::int64_t s, std::int64_t i) { return code_at(from, k, s, i); });
    Voltages got(to, c, t, p, true);
    std::memset(got.memory.data(), 0xCD, static_cast<std::size_t>(got.memory.bytes()));
    Queue queue = Queue::cpu(2);
    import_voltages(queue, source.data(), layout, t, got.view);
    // Whole buffers: samples, zeroed tails, and the garbage between the cells.
    EXPECT_EQ(std::memcmp(got.memory.data(), want.memory.data(),
                          static_cast<std::size_t>(want.memory.bytes())),
              0)
        << name << " " << ryle::name(from) << " to " << ryle::name(to) << " C=" << c << " T=" << t
        << " N=" << p;
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

TEST(Import, RefusesWhatItCannotDo) {
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
}

}  // namespace
}  // namespace ryle::correlate::test
