// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ryle/core/baseline.hpp"
#include "ryle/core/bits.hpp"
#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"
#include "ryle/device/buffer.hpp"
#include "ryle/engine/image/geometry.hpp"
#include "ryle/engine/image/image.hpp"
#include "ryle/telescope/array.hpp"
#include "tests/support/data_path.hpp"

/// Conformance of every implementation of the all-sky imager to the reference. A back-end's test
/// runs check_field_imager() over field_cases() and check_vis_imager() over vis_cases().
namespace ryle::image::test {

struct AllSkyCase {
  std::string label;
  AllSkyConfig config;
  SampleFormat format = SampleFormat::ci4;
  std::int64_t n_spectra = 3;
  std::vector<std::int64_t> gulps;  ///< lengths; empty = all at once
  double lost = 0;                  ///< share of samples that never arrived
  bool masks_per_channel = false;
  bool random_gains = false;  ///< random phases and amplitudes, one input in 11 unused
  bool full_scale = false;    ///< every sample the most negative code, in phase
  bool gaps = false;          ///< garbage between channels, blocks and inputs
  std::uint64_t seed = 1;
};

/// Sources that every case sees: (l, m) and power relative to the noise of one antenna.
struct SkySource {
  double l, m, power;
};
inline const std::vector<SkySource>& case_sky() {
  static const std::vector<SkySource> sky{{0.31, -0.42, 0.5}, {-0.62, 0.21, 0.2}, {0.05, 0.6, 0.1}};
  return sky;
}

// ---- layouts -------------------------------------------------------------------------------

/// Antennas in a disc of `extent_cells` cells, heights of a plane tilted by (alpha, beta) and a
/// random part.
inline AllSkyConfig random_array(std::int64_t n_antennas, std::int64_t n_pixels, int pols,
                                 double extent_cells, std::uint64_t seed = 1) {
  AllSkyConfig c;
  c.channels = {60e6, 25e3, 2};
  c.n_pixels = n_pixels;
  const double cell_m = c.cell_wavelengths * kSpeedOfLight_m_per_s / c.channels.first_center_hz;
  const double radius_m = 0.5 * extent_cells * cell_m;
  for (std::int64_t a = 0; a < n_antennas; ++a) {
    const auto key = combine(seed, static_cast<std::uint64_t>(a));
    const double r = radius_m * std::sqrt(uniform(key)), angle_rad = 2 * kPi * uniform(key + 1);
    c.antenna_enu_m.push_back({r * std::cos(angle_rad) + 7.3, r * std::sin(angle_rad) - 21.9, 0});
    for (int p = 0; p < pols; ++p) c.inputs.push_back({a, p, false});
  }
  return c;
}

inline void tilt(AllSkyConfig& c, double alpha, double beta, double rough_m) {
  for (std::size_t a = 0; a < c.antenna_enu_m.size(); ++a) {
    auto& [x, y, z] = c.antenna_enu_m[a];
    z = alpha * x + beta * y + rough_m * gaussian(combine(77, a)) + 3;
  }
}

/// A station file's array; nothing when the file is not there.
inline std::optional<AllSkyConfig> station_array(const std::string& file, double frequency_hz,
                                                 double max_radius_m) {
  const auto path = ryle::test::data_file(file);
  if (!path) return std::nullopt;
  const ArrayLayout layout = read_lwa_ssmif(*path);
  AllSkyConfig c;
  c.channels = {frequency_hz, 25e3, 1};
  for (const auto& antenna : layout.antennas) c.antenna_enu_m.push_back(antenna.enu_m);
  for (const auto& input : layout.inputs) {
    const auto& [x, y, z] = layout.antennas[static_cast<std::size_t>(input.antenna)].enu_m;
    c.inputs.push_back({input.antenna, input.pol, std::hypot(x, y) > max_radius_m});
  }
  return c;
}

// ---- voltages ------------------------------------------------------------------------------

/// Quantised voltages of a case: common sources, receiver noise, losses.
class CaseData {
 public:
  explicit CaseData(const AllSkyCase& test_case) : case_(test_case) {
    const auto& c = case_.config;
    n_inputs_ = static_cast<std::int64_t>(c.inputs.size());
    lay_out();
    words_ = words_for_bits(case_.n_spectra) + 1;
    const std::int64_t planes = case_.masks_per_channel ? c.channels.n_channels : 1;
    valid_.assign(static_cast<std::size_t>(planes * n_inputs_ * words_), 0);
    for (std::int64_t k = 0; k < planes * n_inputs_; ++k) {
      for (std::int64_t t = 0; t < case_.n_spectra; ++t) {
        const bool lost =
            uniform(combine(case_.seed + 5, std::uint64_t(k), std::uint64_t(t))) < case_.lost;
        if (!lost) set_bit(&valid_[std::size_t(k * words_)], t);
      }
    }
    for (std::int64_t channel = 0; channel < c.channels.n_channels; ++channel) fill(channel);
    make_gains();
  }

  /// Spectra [first, first + n): `first` a multiple of the block length, else copied.
  FieldInput input(std::int64_t first, std::int64_t n) {
    const auto& c = case_.config;
    piece_bytes_.assign(
        static_cast<std::size_t>(
            dense_blocks_bytes(case_.format, c.channels.n_channels, n, n_inputs_) + kBlockBytes),
        std::byte{0});
    // 128-byte alignment of the copy.
    const auto address = reinterpret_cast<std::uintptr_t>(piece_bytes_.data());
    auto* base = piece_bytes_.data() + (kBlockBytes - address % kBlockBytes) % kBlockBytes;
    const BlockView piece = dense_blocks(base, case_.format, c.channels.n_channels, n, n_inputs_);
    piece_valid_.assign(valid_.size(), ~std::uint64_t{0});
    const auto planes = static_cast<std::int64_t>(valid_.size()) / words_;
    for (std::int64_t k = 0; k < planes; ++k) {
      for (std::int64_t t = 0; t < n; ++t) {
        if (!test_bit(&valid_[std::size_t(k * words_)], first + t)) {
          clear_bit(&piece_valid_[std::size_t(k * words_)], t);
        }
      }
    }
    for (std::int64_t ch = 0; ch < c.channels.n_channels; ++ch) {
      for (std::int64_t p = 0; p < n_inputs_; ++p) {
        for (std::int64_t t = 0; t < n; ++t) {
          set_sample(piece, ch, t, p, get_sample(view_, ch, first + t, p));
        }
      }
    }
    FieldInput in;
    in.blocks = first == 0 && n == case_.n_spectra ? view_ : piece;
    in.n_spectra = n;
    if (case_.lost > 0) {
      in.valid = piece_valid_.data();
      in.valid_words = words_;
      in.valid_channel_stride_words = case_.masks_per_channel ? n_inputs_ * words_ : 0;
    }
    return in;
  }

  /// What a correlator makes of the voltages.
  void correlate(std::vector<ci64>& sums, std::vector<std::uint32_t>& counts) const {
    const std::int64_t pairs = n_pairs(n_inputs_), channels = case_.config.channels.n_channels;
    sums.assign(static_cast<std::size_t>(channels * pairs), {});
    counts.assign(sums.size(), 0);
    std::vector<cf64> row(static_cast<std::size_t>(n_inputs_));
    for (std::int64_t ch = 0; ch < channels; ++ch) {
      for (std::int64_t t = 0; t < case_.n_spectra; ++t) {
        for (std::int64_t p = 0; p < n_inputs_; ++p)
          row[std::size_t(p)] = get_sample(view_, ch, t, p);
        for (std::int64_t j = 0; j < n_inputs_; ++j) {
          for (std::int64_t i = 0; i <= j; ++i) {
            const cf64 v = row[std::size_t(i)] * std::conj(row[std::size_t(j)]);
            const auto at = static_cast<std::size_t>(ch * pairs + pair_index(i, j));
            sums[at].re += static_cast<std::int64_t>(v.real());
            sums[at].im += static_cast<std::int64_t>(v.imag());
            counts[at] += is_valid(ch, t, i) && is_valid(ch, t, j);
          }
        }
      }
    }
  }

  const std::vector<cf32>& gains() const { return gains_; }
  const BlockView& blocks() const { return view_; }
  std::int64_t memory_bytes() const { return memory_.bytes(); }

 private:
  void lay_out() {
    const std::int64_t cell = bytes_per_cell(case_.format), gap = case_.gaps ? 48 : 0;
    const std::int64_t blocks = n_blocks(case_.format, case_.n_spectra);
    const std::int64_t channels = case_.config.channels.n_channels;
    view_ = {nullptr, case_.format, channels, blocks, n_inputs_, 0, 0, cell + gap};
    view_.block_stride_bytes = n_inputs_ * view_.input_stride_bytes + 3 * gap;
    view_.channel_stride_bytes = blocks * view_.block_stride_bytes + 5 * gap;
    memory_ = Buffer<std::byte>(channels * view_.channel_stride_bytes);
    view_.data = memory_.data();
    std::memset(memory_.data(), 0xCD, static_cast<std::size_t>(memory_.bytes()));
    for (std::int64_t ch = 0; ch < channels; ++ch) {
      for (std::int64_t b = 0; b < blocks; ++b) {
        for (std::int64_t p = 0; p < n_inputs_; ++p) {
          std::memset(view_.cell(ch, b, p), 0, static_cast<std::size_t>(cell));
        }
      }
    }
  }

  bool is_valid(std::int64_t channel, std::int64_t t, std::int64_t input) const {
    const std::int64_t plane = case_.masks_per_channel ? channel * n_inputs_ : 0;
    return test_bit(&valid_[std::size_t((plane + input) * words_)], t);
  }

  void fill(std::int64_t channel) {
    const auto& c = case_.config;
    const bool small = case_.format == SampleFormat::ci4;
    const double rms = small ? 2.2 : 30, lowest = small ? -8 : -128, highest = small ? 7 : 127;
    const double waves_per_m = c.channels.center_hz(channel) / kSpeedOfLight_m_per_s;
    for (std::int64_t p = 0; p < n_inputs_; ++p) {
      const auto& role = c.inputs[std::size_t(p)];
      const auto& [x, y, z] = c.antenna_enu_m[std::size_t(role.antenna)];
      std::vector<cf64> phasor;
      for (const auto& s : case_sky()) {
        const double n = std::sqrt(1 - s.l * s.l - s.m * s.m);
        const double turns = waves_per_m * (x * s.l + y * s.m + z * n);
        // Partly polarized: Y sees half of X, turned by 0.7 rad.
        phasor.push_back(std::polar(std::sqrt(s.power) * (role.pol ? 0.5 : 1),
                                    2 * kPi * turns + 0.7 * role.pol));
      }
      for (std::int64_t t = 0; t < case_.n_spectra; ++t) {
        if (!is_valid(channel, t, p)) continue;
        const auto key = combine(case_.seed, std::uint64_t(channel), std::uint64_t(t));
        cf64 v = noise(combine(key, std::uint64_t(p) + 100));
        for (std::size_t s = 0; s < phasor.size(); ++s) v += phasor[s] * noise(combine(key, s));
        v *= rms;
        if (case_.full_scale) v = {lowest, lowest};
        set_sample(view_, channel, t, p,
                   {std::clamp(std::nearbyint(v.real()), lowest, highest),
                    std::clamp(std::nearbyint(v.imag()), lowest, highest)});
      }
    }
  }

  static cf64 noise(std::uint64_t key) {
    return cf64(gaussian(key), gaussian(key ^ 1u)) * std::sqrt(0.5);
  }

  void make_gains() {
    const std::int64_t channels = case_.config.channels.n_channels;
    for (std::int64_t k = 0; k < channels * n_inputs_; ++k) {
      const auto key = combine(case_.seed + 9, static_cast<std::uint64_t>(k));
      const bool unused = case_.random_gains && mix64(key) % 11 == 0;
      const auto gain = case_.random_gains
                            ? std::polar(0.7 + 0.6 * uniform(key + 1), 2 * kPi * uniform(key + 2))
                            : cf64(1);
      gains_.push_back(unused ? cf32(0) : cf32(gain));
    }
  }

  AllSkyCase case_;
  std::int64_t n_inputs_ = 0, words_ = 0;
  BlockView view_;
  Buffer<std::byte> memory_;
  std::vector<std::uint64_t> valid_, piece_valid_;
  std::vector<std::byte> piece_bytes_;
  std::vector<cf32> gains_;
};

// ---- the reference -------------------------------------------------------------------------

/// Images of the reference. A long case of voltages goes through the correlation, which is the same
/// to 1e-12 (AllSky.EfieldEqualsGriddedVisibilities) and far faster.
inline Images reference_images(const AllSkyCase& test_case, Path path) {
  static std::map<std::string, Images> cache;
  Path wanted = path == Path::efield_half ? Path::efield : path;
  auto& images = cache[test_case.label + "/" + std::string(name(wanted))];
  if (!images.pixels.empty()) return images;
  AllSkyCase c = test_case;
  c.config.implementation = "reference";
  Queue queue = Queue::cpu(1);
  CaseData data(c);
  const bool is_small = c.config.antenna_enu_m.size() <= 32;
  if (wanted == Path::efield && c.n_spectra > 16 && is_small) {
    wanted = Path::vis_grid;
    c.config.function.correlated = true;
  }
  if (wanted == Path::efield_dft && c.n_spectra > 16 && is_small) wanted = Path::vis_dft;
  c.config.path = wanted;
  if (takes_voltages(wanted)) {
    auto imager = make_field_imager(queue, c.config);
    imager->set_gains(queue, data.gains());
    imager->execute(queue, data.input(0, c.n_spectra));
    imager->finish(queue, images);
  } else {
    auto imager = make_vis_imager(queue, c.config);
    imager->set_gains(queue, data.gains());
    std::vector<ci64> sums;
    std::vector<std::uint32_t> counts;
    data.correlate(sums, counts);
    VisInput in;
    in.sums = sums.data();
    in.counts = counts.data();
    in.n_spectra = c.n_spectra;
    imager->execute(queue, in, images);
  }
  return images;
}

// ---- comparison ----------------------------------------------------------------------------

/// Of the peak of plane 0 of the bin (image.md 12).
struct Tolerance {
  double rms = 1e-6;    ///< over the image
  double local = 1e-5;  ///< any pixel
};

inline Tolerance tolerance_of(Path path) {
  switch (path) {
    case Path::efield_half:
      return {3e-5, 3e-4};
    case Path::vis_dft:  // half-precision operands allowed (image.md 4); fp32 is far better
    case Path::efield_dft:
      return {3e-5, 3e-4};
    default:
      return {};
  }
}

/// fp32 rounding is a constant over an untapered image, so gridded images are compared as they were
/// before the division by the taper (scaled to 1 at zenith).
inline std::vector<double> comparison_scale(const AllSkyConfig& c, Path path) {
  std::vector<double> scale(static_cast<std::size_t>(plane_size(c)), 1.0);
  if (path == Path::vis_dft || path == Path::efield_dft) return scale;
  const bool direct = path == Path::vis_grid && !c.function.correlated;
  const auto taper = direct ? direct_taper(c) : correlated_taper(c, 0);
  const std::size_t zenith = scale.size() / 2 + static_cast<std::size_t>(c.n_pixels / 2);
  for (std::size_t p = 0; p < scale.size(); ++p) {
    scale[p] = std::min(1.0, std::abs(taper[p] / taper[zenith]));
  }
  return scale;
}

inline void expect_same_images(const Images& got, const Images& expected, const AllSkyConfig& c,
                               Path path, const Tolerance& tolerance, const std::string& what) {
  ASSERT_EQ(got.pixels.size(), expected.pixels.size()) << what;
  EXPECT_EQ(got.weights, expected.weights) << what;
  EXPECT_EQ(got.n_spectra, expected.n_spectra) << what;
  const auto scale = comparison_scale(c, path);
  const std::size_t size = scale.size(), planes = static_cast<std::size_t>(n_planes(c));
  for (std::size_t plane = 0; plane < got.pixels.size() / size; ++plane) {
    const std::size_t first = plane / planes * planes * size;
    double peak = 0, squares = 0, worst = 0, n = 0;
    for (std::size_t p = 0; p < size; ++p) {
      const float reference = expected.pixels[plane * size + p],
                  value = got.pixels[plane * size + p];
      ASSERT_EQ(std::isnan(value), std::isnan(reference))
          << what << " plane " << plane << " pixel " << p << ": " << value << " " << reference;
      if (std::isnan(reference)) continue;
      if (!std::isnan(expected.pixels[first + p])) {
        peak = std::max(peak, std::abs(double(expected.pixels[first + p])));
      }
      const double difference = (double(value) - double(reference)) * scale[p];
      squares += difference * difference;
      worst = std::max(worst, std::abs(difference));
      n += 1;
    }
    if (n == 0) continue;
    EXPECT_LE(std::sqrt(squares / n), tolerance.rms * peak) << what << " plane " << plane;
    EXPECT_LE(worst, tolerance.local * peak) << what << " plane " << plane;
  }
}

// ---- conformance ---------------------------------------------------------------------------

/// Copies to the device where the queue is one; the copy lives as long as this.
class OnQueue {
 public:
  explicit OnQueue(Queue& queue) : queue_(queue) {}
  template <class T>
  const T* operator()(const T* data, std::int64_t n) {
    if (queue_.back_end() == BackEnd::cpu) return data;
    copies_.emplace_back(n * static_cast<std::int64_t>(sizeof(T)), MemorySpace::device);
    copy_bytes(queue_, copies_.back().data(), data, copies_.back().bytes());
    queue_.synchronize();
    return reinterpret_cast<const T*>(copies_.back().data());
  }

 private:
  Queue& queue_;
  std::vector<Buffer<std::byte>> copies_;
};

inline Images garbage_images() {
  Images images;
  images.pixels.assign(7, -1234.5f);
  images.weights.assign(99, -1);
  images.n_spectra = -1;
  return images;
}

/// One run of `implementation` over the gulps of the case.
inline Images field_images(Queue& queue, const std::string& implementation, Path path,
                           const AllSkyCase& test_case) {
  AllSkyConfig config = test_case.config;
  config.path = path;
  config.implementation = implementation;
  auto imager = make_field_imager(queue, config);
  EXPECT_EQ(imager->path(), path);
  if (implementation != "auto" && implementation != "cpu") {
    EXPECT_EQ(imager->implementation(), implementation);
  }
  CaseData data(test_case);
  imager->set_gains(queue, data.gains());
  auto gulps = test_case.gulps;
  if (gulps.empty()) gulps = {test_case.n_spectra};
  std::int64_t first = 0;
  for (const auto n : gulps) {
    OnQueue on_queue(queue);
    FieldInput input = data.input(first, n);
    const auto bytes = (input.blocks.n_channels - 1) * input.blocks.channel_stride_bytes +
                       (input.blocks.n_blocks - 1) * input.blocks.block_stride_bytes +
                       (input.blocks.n_inputs - 1) * input.blocks.input_stride_bytes + kBlockBytes;
    input.blocks.data = on_queue(input.blocks.data, bytes);
    imager->execute(queue, input);
    queue.synchronize();
    first += n;
  }
  EXPECT_EQ(first, test_case.n_spectra) << test_case.label;
  Images images = garbage_images();
  imager->finish(queue, images);
  // finish() resets: with nothing more to image there is no weight, and every pixel is NaN.
  Images nothing = garbage_images();
  imager->finish(queue, nothing);
  EXPECT_EQ(nothing.weights, std::vector<double>(images.weights.size(), 0.0)) << test_case.label;
  EXPECT_EQ(nothing.n_spectra, 0);
  for (const float p : nothing.pixels) {
    if (!std::isnan(p)) ADD_FAILURE() << test_case.label << ": an image of nothing";
    if (!std::isnan(p)) break;
  }
  return images;
}

inline void check_field_imager(Queue& queue, const std::string& implementation, Path path,
                               const AllSkyCase& test_case) {
  const std::string what = std::string(name(path)) + "/" + implementation + ", " + test_case.label;
  SCOPED_TRACE(what);
  const Images got = field_images(queue, implementation, path, test_case);
  expect_same_images(got, reference_images(test_case, path), test_case.config, path,
                     tolerance_of(path), what);
}

inline Images vis_images(Queue& queue, const std::string& implementation, Path path,
                         const AllSkyCase& test_case, VisInput::Type type) {
  AllSkyConfig config = test_case.config;
  config.path = path;
  config.implementation = implementation;
  auto imager = make_vis_imager(queue, config);
  EXPECT_EQ(imager->path(), path);
  if (implementation != "auto" && implementation != "cpu") {
    EXPECT_EQ(imager->implementation(), implementation);
  }
  CaseData data(test_case);
  imager->set_gains(queue, data.gains());
  std::vector<ci64> sums;
  std::vector<std::uint32_t> counts;
  data.correlate(sums, counts);
  OnQueue on_queue(queue);
  const auto n = static_cast<std::int64_t>(sums.size());
  std::vector<ci32> as_ci32;
  std::vector<cf32> as_cf32;
  std::vector<cf64> as_cf64;
  for (const auto& v : sums) {
    const auto re = static_cast<double>(v.re), im = static_cast<double>(v.im);
    as_ci32.push_back({static_cast<std::int32_t>(v.re), static_cast<std::int32_t>(v.im)});
    as_cf32.emplace_back(static_cast<float>(re), static_cast<float>(im));
    as_cf64.emplace_back(re, im);
  }
  VisInput in;
  in.type = type;
  switch (type) {
    case VisInput::Type::ci32:
      in.sums = on_queue(as_ci32.data(), n);
      break;
    case VisInput::Type::ci64:
      in.sums = on_queue(sums.data(), n);
      break;
    case VisInput::Type::cf32:
      in.sums = on_queue(as_cf32.data(), n);
      break;
    case VisInput::Type::cf64:
      in.sums = on_queue(as_cf64.data(), n);
      break;
  }
  in.counts = test_case.lost > 0 ? on_queue(counts.data(), n) : nullptr;
  in.n_spectra = test_case.n_spectra;
  Images images = garbage_images();
  imager->execute(queue, in, images);
  Images again = garbage_images();
  imager->execute(queue, in, again);
  EXPECT_EQ(std::memcmp(images.pixels.data(), again.pixels.data(), images.pixels.size() * 4), 0)
      << test_case.label << ": not bit-identical for a fixed plan";
  return images;
}

inline void check_vis_imager(Queue& queue, const std::string& implementation, Path path,
                             const AllSkyCase& test_case) {
  const std::string what = std::string(name(path)) + "/" + implementation + ", " + test_case.label;
  SCOPED_TRACE(what);
  const auto type = static_cast<VisInput::Type>(test_case.label.size() % 4);
  const Images got = vis_images(queue, implementation, path, test_case, type);
  expect_same_images(got, reference_images(test_case, path), test_case.config, path,
                     tolerance_of(path), what);
}

}  // namespace ryle::image::test
