// SPDX-License-Identifier: BSD-3-Clause
// The CUDA beamformers against the reference in double (T-BF-16), outputs pre-filled with garbage.
#include "tests/engine/beamform/harness.hpp"

#include "ryle/engine/beamform/cuda/make.hpp"
#include "ryle/engine/beamform/cuda/tuning.hpp"
#include "ryle/engine/beamform/import.hpp"
#include "tests/cuda/cuda_test.hpp"

namespace ryle::beamform::test {
namespace {

using Base = ryle::test::CudaTest;

class CudaBeamform : public Base {
 protected:
  bool counted_ = true;
  template <class T>
  Buffer<T> to_device(const std::vector<T>& host) {
    Buffer<T> buffer(static_cast<std::int64_t>(host.size()), MemorySpace::device);
    copy_bytes(queue(), buffer.data(), host.data(), buffer.bytes());
    return buffer;
  }
  template <class T>
  void to_host(std::vector<T>& host, const Buffer<T>& buffer) {
    copy_bytes(queue(), host.data(), buffer.data(), buffer.bytes());
  }

  /// One gulp after the other (ends in spectra), values of all gulps one behind the other in time.
  Result form(const Config& base, const std::string& name, const std::vector<cf32>& weights,
              Stream& stream, const Input& whole, Requantization requantization = {},
              const std::vector<std::int64_t>& ends = {}) {
    Config config = base;
    config.implementation = name;
    auto beams = make_beamformer(queue(), config);
    EXPECT_EQ(beams->implementation(), "beamform/cuda/" + name.substr(5));
    beams->set_weights(queue(), view_of(config, weights));
    set_requantization(*beams, queue(), requantization);
    const auto samples = to_device(stream.memory);
    const auto offset = static_cast<const std::uint8_t*>(whole.samples) - stream.memory.data();
    Result r;
    Output host = output_into(config, r, config.n_windows(whole.first_tick, whole.n_spectra));
    auto values = to_device(r.values);
    auto low = to_device(r.low), high = to_device(r.high), used = to_device(r.n_used);
    auto power = to_device(r.weight_power);
    std::int64_t begin = 0, windows = 0;
    auto stops = ends;
    stops.push_back(whole.n_spectra);
    for (const std::int64_t end : stops) {
      Input input = stream.part(begin, end, whole.first_tick);
      input.samples = samples.data() + offset +
                      (static_cast<const std::uint8_t*>(input.samples) - stream.at(0, 0, 0));
      if (ends.empty()) {
        input.present = whole.present;
        input.slot_spectra = whole.slot_spectra;
        input.present_per_channel = whole.present_per_channel;
      }
      Output out = host;
      out.values = values.data() + windows * config.bytes_per_value();
      out.saturated_low = counted_ ? low.data() : nullptr;
      out.saturated_high = counted_ ? high.data() : nullptr;
      out.n_used = used.data();
      out.weight_power = power.data();
      windows += beams->execute(queue(), input, out);
      begin = end;
    }
    EXPECT_EQ(windows, r.n_windows);
    to_host(r.values, values);
    to_host(r.low, low);
    to_host(r.high, high);
    to_host(r.n_used, used);
    to_host(r.weight_power, power);
    queue().synchronize();
    r.implementation = beams->implementation();
    check_guard(r, name);
    return r;
  }

  std::vector<std::string> names(const Config& base) {
    std::vector<std::string> out;
    for (const char* name : {"cuda:sm90_s8_wgmma", "cuda:sm90_s8_few", "cuda:sm80_s8_direct",
                             "cuda:sm80_s8_tiled", "cuda:fp32"}) {
      Config config = base;
      config.implementation = name;
      try {
        make_beamformer(queue(), config);
        out.emplace_back(name);
      } catch (const UnsupportedError&) {
      }
    }
    return out;
  }

  // One float operation is wrong by 2^-24 of itself. i8 weights and integer samples: sums exact;
  // f32 weights or other samples: 2A terms, 5 sigma of a random walk (all the same way where
  // samples are constant). Power: 8 operations on twice the relative error; sums of 64 and of T/64.
  void check(const Config& c, const std::vector<cf32>& weights, Stream& stream, const Input& input,
             Requantization requantization = {}, bool constant = false) {
    const Result want = run(c, "reference", weights, input, requantization);
    const auto expected = numbers(c, want);
    double largest = 0;
    for (const double v : expected) largest = std::max(largest, std::fabs(v));
    const bool exact = c.weights == WeightFormat::i8 && c.format != SampleFormat::cf32 &&
                       c.format != SampleFormat::cf16 && c.format != SampleFormat::ci16;
    const double terms = 2.0 * static_cast<double>(c.n_antennas);
    const double sums = exact ? 0 : constant ? terms : 5 * std::sqrt(terms);
    const auto t = static_cast<double>(c.integration);
    double tolerance = 0x1p-24 * (2 * sums + 8 + std::min(t, 64.0) + t / 64) * largest;
    const bool halves =
        c.output_format == OutputFormat::cf16 || c.output_format == OutputFormat::f16;
    if (halves) tolerance += largest * 0x1p-11;
    const bool codes = c.output_format == OutputFormat::u8 ||
                       c.output_format == OutputFormat::u16 ||
                       c.output_format == OutputFormat::ci8 || c.output_format == OutputFormat::ci4;
    if (codes) tolerance = 1;  // where the value lies within rounding of a tie: few
    for (const auto& name : names(c)) {
      const std::string what =
          name + " " + std::string(ryle::name(c.format)) + " A=" + std::to_string(c.n_antennas) +
          " P=" + std::to_string(c.n_pols) + " B=" + std::to_string(c.n_beams) +
          " C=" + std::to_string(c.n_channels) + " T=" + std::to_string(c.integration) +
          " n=" + std::to_string(input.n_spectra) + " kind=" + std::to_string(int(c.output)) +
          " out=" + std::to_string(int(c.output_format)) + " order=" + std::to_string(int(c.order));
      const Result got = form(c, name, weights, stream, input, requantization);
      const auto now = numbers(c, got);
      expect_close(now, expected, tolerance, what);
      std::size_t differ = 0;
      for (std::size_t k = 0; k < now.size() && codes; ++k) differ += now[k] != expected[k];
      EXPECT_LE(differ, now.size() / (c.output_format == OutputFormat::u16 ? 100 : 5000) + 1)
          << what;
      EXPECT_EQ(got.n_used, want.n_used) << what;
      if (counted_ && c.output_format != OutputFormat::u16) {
        EXPECT_EQ(got.low, want.low) << what;
        EXPECT_EQ(got.high, want.high) << what;
      }
      for (std::size_t k = 0; k < want.weight_power.size(); ++k)
        ASSERT_NEAR(got.weight_power[k], want.weight_power[k], 1e-4 * want.weight_power[k]) << what;
    }
  }

  void check_all(const Config& c, Requantization requantization = {}, Tick first_tick = 0,
                 Fill fill = Fill::random) {
    Stream stream(c, c.max_spectra, fill);
    check(c, random_weights(c), stream, stream.all(first_tick), requantization,
          fill != Fill::random);
  }
};

Config shape(std::int64_t antennas, std::int64_t beams, std::int64_t integration,
             std::int64_t channels, std::int64_t spectra) {
  Config c;
  c.n_antennas = antennas;
  c.n_beams = beams;
  c.integration = integration;
  c.n_channels = channels;
  c.max_spectra = spectra;
  return c;
}

// Every A, B, T, C and number of spectra of T-BF-16, in combinations that the reference can afford.
TEST_F(CudaBeamform, Grid) {
  const std::int64_t antennas[] = {1, 3, 8, 17, 31, 32, 33, 64, 127, 128, 512};
  const std::int64_t beams[] = {1, 7, 8, 16, 24, 31, 32, 100, 1024};
  const std::int64_t integrations[] = {1, 2, 8, 16, 32, 48, 64, 128, 1000};
  const std::int64_t channels[] = {1, 3, 1024};
  const std::int64_t spectra[] = {64, 127, 192, 4096};
  std::int64_t k = 0;
  for (const std::int64_t a : antennas) {
    for (const std::int64_t t : integrations) {
      std::int64_t b = beams[k % 9], c = channels[k % 3], n = spectra[k % 4];
      ++k;
      if (t == 1000) n = 4096;
      while (a * b * c * n > 4'000'000 && b > 1) b = b > 100 ? 33 : b / 2;
      while (a * b * c * n > 4'000'000 && c > 1) c = c > 3 ? 3 : 1;
      while (a * b * c * n > 4'000'000 && n > 1000) n = n / 2 + 1;
      Config config = shape(a, b, t, c, n);
      config.order = a % 2 == 0 && k % 3 != 0 ? InputOrder::pairs : InputOrder::spectra;
      check_all(config, {}, k % 4 == 0 ? 3 : 0);
    }
  }
}

TEST_F(CudaBeamform, ManyBeamsAndChannels) {
  check_all(shape(32, 1024, 8, 1, 128));
  check_all(shape(32, 3, 16, 1024, 64));
  check_all(shape(512, 100, 64, 1, 64));
}

#ifdef RYLE_HAVE_CUDA
// A warp sums two slabs of 16 beams at a time; the second may belong to another block.
TEST_F(CudaBeamform, OddShares) {
  for (const std::int64_t slabs : {1, 3, 5}) {
    const CudaTuning tuning{slabs, 1};
    set_cuda_tuning(&tuning);
    check_all(shape(64, 100, 8, 2, 192));
    check_all(shape(32, 100, 1, 2, 192));
    set_cuda_tuning(nullptr);
  }
}
#endif

#ifdef RYLE_HAVE_CUDA
// 128 spectra at a time, in shares that begin and end anywhere in a channel: fewer than blocks, and
// 2100 of them that warps take in turns over channels of 7; rings that are read again and again.
TEST_F(CudaBeamform, FewBeamsInAStream) {
  counted_ = false;
  for (const std::int64_t warps : {1, 3, 8, 12}) {
    for (const std::int64_t stages : {2, 3}) {
      const CudaTuning tuning{1, 1, warps, stages};
      set_cuda_tuning(&tuning);
      for (const auto order : {InputOrder::pairs, InputOrder::spectra}) {
        for (const std::int64_t beams : {3, 8, 16}) {
          Config c = shape(32, beams, beams == 3 ? 1 : 16, 5, 896);
          c.order = order;
          if (beams == 16) c.output_format = OutputFormat::u8;
          check_all(c, {beams == 16 ? 0.2f : 1.0f, 0});
        }
        Config many = shape(order == InputOrder::pairs ? 32 : 8, 3, 64, 300, 896);
        many.order = order;
        if (stages == 2) check_all(many);
      }
      for (const std::int64_t t : {8, 32, 64}) {
        for (const auto format : {OutputFormat::f32, OutputFormat::u8}) {
          Config c = shape(32, t == 32 ? 8 : 16, t, 3, 896);
          c.output_format = format;
          check_all(c, {0.2f, 1.5f});
        }
      }
      set_cuda_tuning(nullptr);
    }
  }
  counted_ = true;
}
#endif

#ifdef RYLE_HAVE_CUDA
/// Powers over t spectra; of none: voltages of halves.
Config powers_or_voltages(std::int64_t antennas, std::int64_t beams, std::int64_t t,
                          std::int64_t channels, std::int64_t spectra) {
  Config c = shape(antennas, beams, std::max<std::int64_t>(t, 1), channels, spectra);
  if (t > 0) return c;
  c.output = OutputKind::voltage;
  c.output_format = OutputFormat::cf16;
  return c;
}

// Half a group's sums at a time: one, two and many groups, beams and spectra left over.
TEST_F(CudaBeamform, HalvesOfGroups) {
  for (const std::int64_t slabs : {4, 16}) {
    CudaTuning tuning{slabs, 8};
    tuning.halves = true;
    set_cuda_tuning(&tuning);
    for (const std::int64_t spectra : {64, 128, 640, 200}) {
      for (const std::int64_t t : {0, 1, 8, 64}) {
        check_all(powers_or_voltages(32, spectra == 640 ? 272 : 70, t, 3, spectra));
      }
    }
    set_cuda_tuning(nullptr);
  }
}
#endif

#ifdef RYLE_HAVE_CUDA
// 300 shares: what is left after whole rounds of 132 multiprocessors is cut into units of two
// groups. Items of 4 groups and 1: one unit of those has no group.
TEST_F(CudaBeamform, TheLastRoundIsCut) {
  for (const bool halves : {true, false}) {
    CudaTuning tuning{4, 4};
    tuning.halves = halves;
    set_cuda_tuning(&tuning);
    for (const std::int64_t t : {0, 8}) {
      check_all(powers_or_voltages(32, 20, t, 150, 320));
    }
    set_cuda_tuning(nullptr);
  }
}
#endif

// Three steps of antennas, three groups for four warpgroups: what the ring holds for one must not
// be taken by another, however late a producer is. Rare, so many times.
TEST_F(CudaBeamform, LastSetsOfGroupsAreThoseOfTheirWarpgroups) {
  for (const std::int64_t spectra : {192, 320}) {
    Config c = shape(96, 21, 1, 8, spectra);
    c.output = OutputKind::voltage;
    c.output_format = OutputFormat::cf16;
    const std::string name = "cuda:sm90_s8_wgmma";
    if (names(c).front() != name) GTEST_SKIP() << "no warpgroups here";
    Stream stream(c, spectra);
    const auto weights = random_weights(c);
    check(c, weights, stream, stream.all());
    const Result first = form(c, name, weights, stream, stream.all());
    for (int k = 0; k < 150; ++k)
      ASSERT_EQ(form(c, name, weights, stream, stream.all()).values, first.values) << k;
  }
}

// Whole slabs and groups take a way without tests, what is left of either another; 4, 8 and 16
// slabs share a block; several groups go side by side where beams are few. Counted and not.
TEST_F(CudaBeamform, WholeAndLeft) {
  using F = OutputFormat;
  for (const std::int64_t a : {32, 96}) {
    for (const std::int64_t beams : {5, 8, 16, 100, 272}) {
      for (const std::int64_t spectra : {128, 200}) {
        for (const F format : {F::cf16, F::ci8, F::cf32}) {
          Config c = shape(a, beams, 1, 1, spectra);
          c.output = OutputKind::voltage;
          c.output_format = format;
          check_all(c, {1.5f, 0});
        }
        for (const std::int64_t t : {1, 8, 16, 32, 64}) {
          Config c = shape(a, beams, t, 1, spectra);
          c.order = t == 8 ? InputOrder::spectra : InputOrder::pairs;
          if (t != 16) c.output_format = F::u8;
          check_all(c, {0.2f, 1.5f});
        }
      }
    }
  }
}

// The harness above always asks for counts; without them bytes come out the same.
TEST_F(CudaBeamform, UncountedIsCounted) {
  for (const auto format : {OutputFormat::u8, OutputFormat::ci8}) {
    for (const std::int64_t t : {1, 8, 64}) {
      for (const std::int64_t beams : {8, 16, 70, 300}) {
        if (format == OutputFormat::ci8 && t > 1) continue;
        Config c = shape(32, beams, t, 2, 448);
        c.order = InputOrder::pairs;
        if (format == OutputFormat::ci8) c.output = OutputKind::voltage;
        c.output_format = format;
        Stream stream(c, 448);
        const auto weights = random_weights(c);
        const Requantization scale{format == OutputFormat::ci8 ? 1.5f : 0.2f, 0};
        for (const auto& name : names(c)) {
          counted_ = true;
          const Result with = form(c, name, weights, stream, stream.all(), scale);
          counted_ = false;
          const Result without = form(c, name, weights, stream, stream.all(), scale);
          counted_ = true;
          std::size_t differ = 0;
          for (std::size_t k = 0; k < with.values.size(); ++k) {
            const int apart =
                std::abs(static_cast<int>(static_cast<signed char>(with.values[k])) -
                         static_cast<int>(static_cast<signed char>(without.values[k])));
            ASSERT_TRUE(apart <= 1 || apart == 255) << name << " T=" << t << " B=" << beams;
            differ += apart != 0;
          }
          // The way without counts rounds once more, by 2^-25 of the range: 1 in 30 000.
          EXPECT_LE(differ, with.values.size() / 5000 + 1) << name << " T=" << t << " B=" << beams;
        }
      }
    }
  }
}

TEST_F(CudaBeamform, BestKernels) {
  Config c = shape(32, 1024, 8, 1, 64);
  c.implementation = "cuda";
  const std::string many(make_beamformer(queue(), c)->implementation());
  c.n_beams = 24;
  EXPECT_EQ(make_beamformer(queue(), c)->implementation(), "beamform/cuda/sm80_s8_direct");
  c.n_beams = 16;
  const std::string few(make_beamformer(queue(), c)->implementation());
  int major = 0;
#ifdef RYLE_HAVE_CUDA
  for (const auto& name : cuda_implementations(c)) major += name == "cuda:sm90_s8_wgmma" ? 9 : 0;
#endif
  EXPECT_EQ(many, major == 9 ? "beamform/cuda/sm90_s8_wgmma" : "beamform/cuda/sm80_s8_direct");
  EXPECT_EQ(few, major == 9 ? "beamform/cuda/sm90_s8_few" : "beamform/cuda/sm80_s8_direct");
}

TEST_F(CudaBeamform, Extremes) {
  for (const auto format : {SampleFormat::ci4, SampleFormat::ci8}) {
    for (const Fill fill : {Fill::lowest, Fill::highest}) {
      for (const std::int64_t a : {32, 128, 512}) {
        Config c = shape(a, 2, 1, 1, 70);
        c.format = format;
        c.output = OutputKind::voltage;
        c.output_format = OutputFormat::cf32;
        Stream stream(c, 70, fill);
        const auto n = static_cast<std::size_t>(2 * a);
        check(c, std::vector<cf32>(n, cf32(1, 1)), stream, stream.all(), {}, true);
        check(c, std::vector<cf32>(n, cf32(-1, 1)), stream, stream.all(), {}, true);
        check(c, std::vector<cf32>(n, cf32(1, -1)), stream, stream.all(), {}, true);
      }
    }
  }
}

TEST_F(CudaBeamform, Formats) {
  using K = OutputKind;
  using F = OutputFormat;
  struct Case {
    K kind;
    F format;
    std::int64_t integration;
    Requantization requantization;
  };
  const Case cases[] = {
      {K::voltage, F::cf32, 1, {}},       {K::voltage, F::cf16, 1, {}},
      {K::voltage, F::ci8, 1, {1.5f, 0}}, {K::voltage, F::ci4, 1, {0.2f, 0}},
      {K::power, F::f32, 8, {}},          {K::power, F::u8, 1, {0.2f, 1.5f}},
      {K::power, F::u8, 8, {0.3f, -40}},  {K::power, F::u8, 32, {0.3f, -90}},
      {K::power, F::u16, 16, {12, 30}},   {K::power, F::f16, 64, {}},
      {K::power, F::u8, 3, {0.2f, 1.5f}}, {K::stokes_i, F::f32, 8, {}},
      {K::stokes_iquv, F::f32, 5, {}},    {K::stokes_iquv, F::u8, 16, {0.2f, 99}}};
  for (const Case& k : cases) {
    for (const std::int64_t pols : {1, 2}) {
      if (pols == 1 && (k.kind == K::stokes_i || k.kind == K::stokes_iquv)) continue;
      for (const std::int64_t a : {10, 32, 96}) {
        Config c = shape(a, 21, k.integration, 2, 192);
        c.n_pols = pols;
        c.output = k.kind;
        c.output_format = k.format;
        c.order = InputOrder::pairs;
        check_all(c, k.requantization);
        c.max_spectra = 131;  // no vectors, a last group cut
        check_all(c, k.requantization, 64);
      }
    }
  }
}

TEST_F(CudaBeamform, InputFormatsAndTables) {
  for (const auto format : {SampleFormat::ci4, SampleFormat::ci8, SampleFormat::ci16,
                            SampleFormat::cf16, SampleFormat::cf32}) {
    for (const auto order : {InputOrder::spectra, InputOrder::pairs}) {
      for (const auto weights : {WeightFormat::i8, WeightFormat::f32}) {
        for (const std::int64_t pols : {1, 2}) {
          Config c = shape(10, 18, 3, 2, 67);
          c.format = format;
          c.order = order;
          c.weights = weights;
          c.n_pols = pols;
          c.block_spectra = 48;
          check_all(c, {}, -5);
        }
      }
    }
  }
  Config c = shape(40, 5, 8, 1, 128);
  for (int k = 0; k < 256; ++k) {
    c.table.push_back(
        {static_cast<std::int8_t>(2 * (k >> 4) - 15), static_cast<std::int8_t>(2 * (k & 15) - 15)});
  }
  check_all(c);
}

// Lost packets: slots of 64 (fused) and of 50 (through memory), one channel's slot wholly lost.
TEST_F(CudaBeamform, Loss) {
  for (const auto mode : {LossMode::renormalize, LossMode::raw}) {
    for (const std::int64_t slot : {64, 50}) {
      for (const std::int64_t t : {1, 8, 64, 128, 7}) {
        for (const std::int64_t pols : {1, 2}) {
          for (const bool voltage : {false, true}) {
            if (voltage && t != 1) continue;
            Config c = shape(12, pols == 2 && t == 8 ? 11 : 19, t, 2, 4 * slot);
            c.n_pols = pols;
            c.loss = mode;
            if (voltage) {
              c.output = OutputKind::voltage;
              c.output_format = OutputFormat::cf32;
            } else {
              c.incoherent = {std::vector<std::uint8_t>(12, 1),
                              {1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
            }
            Stream stream(c, 4 * slot);
            const std::int64_t words = words_for_bits(c.n_inputs());
            std::vector<std::uint64_t> present(static_cast<std::size_t>(2 * 4 * words), 0);
            for (std::int64_t k = 0; k < 8; ++k) {
              for (std::int64_t i = 0; i < c.n_inputs(); ++i) {
                const bool lost = k == 6 || (k % 4 == 1 && i % 3 == 0) || (k == 3 && i == 0);
                if (!lost) {
                  set_bit(present.data() + k * words, i);
                  continue;
                }
                for (std::int64_t s = 0; s < slot; ++s) *stream.at(k / 4, k % 4 * slot + s, i) = 0;
              }
            }
            Input input = stream.all(0);
            input.present = present.data();
            input.slot_spectra = slot;
            check(c, random_weights(c), stream, input);
          }
        }
      }
    }
  }
}

// Gulps cut anywhere: the same windows, to the rounding of another order of additions; cut at
// multiples of 64 and T: the same bits.
TEST_F(CudaBeamform, Gulps) {
  for (const std::int64_t t : {1, 8, 64, 192, 37, 400}) {
    Config c = shape(32, 20, t, 2, 768);
    c.incoherent = {std::vector<std::uint8_t>(32, 1)};
    Stream stream(c, 768);
    const auto weights = random_weights(c);
    const Input input = stream.all(0);
    for (const auto& name : names(c)) {
      const Result whole = form(c, name, weights, stream, input);
      const auto want = numbers(c, whole);
      double largest = 0;
      for (const double v : want) largest = std::max(largest, v);
      const Result even = form(c, name, weights, stream, input, {}, {192, 576});
      EXPECT_EQ(numbers(c, even), want) << name << " T=" << t;
      const Result odd = form(c, name, weights, stream, input, {}, {5, 100, 101, 500});
      if (name == "cuda:fp32") {
        EXPECT_EQ(numbers(c, odd), want) << name << " T=" << t;
      } else {
        expect_close(numbers(c, odd), want, 0x1p-20 * largest, name + " T=" + std::to_string(t));
      }
    }
  }
}

TEST_F(CudaBeamform, DitherIsThatOfTheReference) {
  Config c = shape(8, 5, 1, 2, 100);
  c.output = OutputKind::voltage;
  c.output_format = OutputFormat::ci8;
  c.dither = true;
  c.seed = 77;
  check_all(c, {0.7f, 0}, 1000);
}

TEST_F(CudaBeamform, RejectsWhatItCannotDo) {
  Config c = shape(64, 5, 1, 2, 100);
  c.implementation = "cuda:sm80_s8_direct";
  EXPECT_THROW(make_beamformer(queue(), c), UnsupportedError);
  c.implementation = "cuda:nonsense";
  EXPECT_THROW(make_beamformer(queue(), c), UnsupportedError);
  c.implementation = "cpu";
  EXPECT_THROW(make_beamformer(queue(), c), UnsupportedError);
  c.implementation = "cuda";
  c.weights = WeightFormat::f32;
  EXPECT_EQ(make_beamformer(queue(), c)->implementation(), "beamform/cuda/fp32");
}

// Planar blocks become samples on the device as on the CPU.
TEST_F(CudaBeamform, ImportsBlocksAsTheCpu) {
  constexpr std::int64_t kChannels = 5, kSpectra = 1000, kInputs = 70;
  std::vector<std::int32_t> inputs;
  for (std::int32_t k = 0; k < 44; ++k) inputs.push_back((k * 31 + 7) % 70);
  for (const SampleFormat format : {SampleFormat::ci4, SampleFormat::ci8}) {
    for (const InputOrder order : {InputOrder::spectra, InputOrder::pairs}) {
      std::vector<std::byte> memory(
          static_cast<std::size_t>(dense_blocks_bytes(format, kChannels, kSpectra, kInputs)));
      for (std::size_t k = 0; k < memory.size(); ++k) memory[k] = static_cast<std::byte>(mix64(k));
      BlockView blocks = dense_blocks(memory.data(), format, kChannels, kSpectra, kInputs);
      BlocksImport what{order, 128, 1, kChannels - 1, inputs, kSpectra};
      const std::int64_t bytes = what.n_channels * imported_channel_bytes(what, format);
      std::vector<std::byte> want = ryle::test::garbage(bytes);
      Queue cpu = Queue::cpu(1);
      import_blocks(cpu, blocks, what, want.data());
      const Buffer<std::byte> source = upload(memory), samples = upload(ryle::test::garbage(bytes));
      const Buffer<std::int32_t> order_there = to_device(inputs);
      blocks.data = source.data();
      what.inputs = {order_there.data(), inputs.size()};
      import_blocks(queue(), blocks, what, samples.data());
      EXPECT_TRUE(download(samples) == want) << name(format);
    }
  }
}

}  // namespace
}  // namespace ryle::beamform::test
