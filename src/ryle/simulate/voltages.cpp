// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/voltages.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <numbers>
#include <thread>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"
#include "ryle/math/fft.hpp"
#include "ryle/wire/mwa32t.hpp"

namespace ryle::simulate {
namespace {

constexpr std::int64_t kRampBlock = 512;  // bins between exactly evaluated phases

double dot(const Vector3& a, const Vector3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

cf64 turn(double turns) {
  const double angle_rad = 2 * std::numbers::pi * (turns - std::nearbyint(turns));
  return {std::cos(angle_rad), std::sin(angle_rad)};
}

/// Runs task(0 .. n-1) on n_workers threads; the first exception is thrown here.
template <class Task>
void parallel_for(std::int64_t n, int n_workers, const Task& task) {
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto work = [&] {
    try {
      for (std::int64_t k = next++; k < n; k = next++) task(k);
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (int w = 1; w < n_workers; ++w) threads.emplace_back(work);
  work();
  for (auto& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

/// Independent unit complex Gaussian of each bin, E|z|^2 = 1.
cf64 complex_gaussian(std::uint64_t stream, std::int64_t bin) {
  const std::uint64_t key = combine(stream, static_cast<std::uint64_t>(bin));
  const double radius = std::sqrt(-std::log(uniform(key)));
  const double angle_rad = 2 * std::numbers::pi * uniform(key ^ 0x5851f42d4c957f2du);
  return {radius * std::cos(angle_rad), radius * std::sin(angle_rad)};
}

class Generator {
 public:
  Generator(const ArrayLayout& array, const Scene& scene, const VoltageConfig& config);
  VoltageRecord run();

 private:
  void validate() const;
  double bin_offset_hz(std::int64_t bin) const {
    return (2 * bin < n_ ? bin : bin - n_) * bin_width_hz_;
  }
  double sefd_jy(std::int64_t input) const {
    return scene_.input_sefd_jy.empty() ? scene_.sefd_jy : scene_.input_sefd_jy[input];
  }
  cf64 gain(std::int64_t input) const {
    return scene_.gains.empty() ? cf64(1) : scene_.gains[input];
  }
  bool is_dead(std::int64_t input) const {
    return std::find(scene_.dead_inputs.begin(), scene_.dead_inputs.end(), input) !=
           scene_.dead_inputs.end();
  }
  double power_jy(std::int64_t input) const;
  void draw_source(std::int64_t source);
  void add_source(std::int64_t source, std::int64_t input, std::vector<cf64>& spectrum) const;
  void add_tones(std::int64_t input, std::vector<cf64>& spectrum) const;
  void apply_path(std::int64_t input, std::vector<cf64>& spectrum) const;
  void quantise(std::int64_t input, const std::vector<cf64>& voltage, VoltageRecord& record);
  void make_input(std::int64_t input, VoltageRecord& record);
  void interleave(std::int64_t first, std::int64_t last, VoltageRecord& record) const;

  const ArrayLayout& array_;
  const Scene& scene_;
  const VoltageConfig& config_;
  const std::int64_t n_;
  const double bin_width_hz_;
  const int n_workers_;
  double counts_per_root_jy_ = 0;
  std::unique_ptr<math::Fft> fft_;
  std::vector<Vector3> directions_;
  std::vector<std::vector<std::complex<float>>> fields_;  // [source * 2 + pol][bin], root Jy
  std::vector<std::uint16_t> planar_;                     // [input][time]
};

Generator::Generator(const ArrayLayout& array, const Scene& scene, const VoltageConfig& config)
    : array_(array),
      scene_(scene),
      config_(config),
      n_(config.n_samples),
      bin_width_hz_(config.sample_rate_hz.value() / static_cast<double>(config.n_samples)),
      n_workers_(config.n_workers > 0
                     ? config.n_workers
                     : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))) {
  validate();
  for (const auto& source : scene.sources) {
    directions_.push_back(source_enu(source, array, config.start_tai_ns, config.earth_orientation));
    if (directions_.back()[2] < 0) {
      throw ConfigError("source \"" + source.name + "\" is below the horizon at " +
                        utc_iso(config.start_tai_ns) + " UTC; move it or change the start time");
    }
  }
}

void Generator::validate() const {
  if (n_ < 1) throw ConfigError("n_samples = " + std::to_string(n_) + " must be positive");
  if (!(config_.sample_rate_hz.value() > 0)) throw ConfigError("sample_rate_hz must be positive");
  if (!(config_.center_hz > config_.sample_rate_hz.value() / 2)) {
    throw ConfigError("center_hz = " + std::to_string(config_.center_hz) +
                      " leaves part of the band at or below 0 Hz");
  }
  if (!(config_.level_lsb > 0 && config_.level_lsb <= 15)) {
    throw ConfigError("level_lsb = " + std::to_string(config_.level_lsb) +
                      " does not fit 5 bits; 4 is a good level");
  }
  if (array_.n_inputs() == 0) throw ConfigError("the layout has no inputs");
  const auto n_inputs = static_cast<std::size_t>(array_.n_inputs());
  if (!scene_.gains.empty() && scene_.gains.size() != n_inputs) {
    throw ConfigError("the scene has " + std::to_string(scene_.gains.size()) + " gains for " +
                      std::to_string(n_inputs) + " inputs");
  }
  if (!scene_.input_sefd_jy.empty() && scene_.input_sefd_jy.size() != n_inputs) {
    throw ConfigError("the scene has " + std::to_string(scene_.input_sefd_jy.size()) +
                      " values of sefd_jy for " + std::to_string(n_inputs) + " inputs");
  }
  for (const auto input : scene_.dead_inputs) {
    if (input < 0 || input >= array_.n_inputs()) {
      throw ConfigError("dead input " + std::to_string(input) + " does not exist; the layout has " +
                        std::to_string(n_inputs) + " inputs");
    }
  }
  for (const auto& source : scene_.sources) {
    if (!(source.flux_jy >= 0)) {
      throw ConfigError("source \"" + source.name + "\" has flux_jy = " +
                        std::to_string(source.flux_jy) + "; it must not be negative");
    }
    if (!(source.q * source.q + source.u * source.u + source.v * source.v <= 1)) {
      throw ConfigError("source \"" + source.name +
                        "\" is more than fully polarized; q^2 + u^2 + v^2 <= 1");
    }
  }
}

/// Mean power of an input over the band: sum of sources, tones and receiver noise.
double Generator::power_jy(std::int64_t input) const {
  const double sign = array_.inputs[input].pol == 0 ? 1 : -1;
  double power = sefd_jy(input);
  for (const auto& source : scene_.sources) power += source.flux_jy * (1 + sign * source.q);
  for (const auto& tone : scene_.tones) power += tone.power_jy;
  return power * std::norm(gain(input));
}

/// Field of a source: from two independent streams a, b with E|.|^2 = 1,
///   x = sqrt(1+q) a,  y = (w* a + sqrt(1 - q^2 - |w|^2) b) / sqrt(1+q),  w = u + iv:
/// <xx*> = 1+q, <xy*> = w, <yy*> = (|w|^2 + 1 - q^2 - |w|^2) / (1+q) = 1-q.
void Generator::draw_source(std::int64_t index) {
  const Source& source = scene_.sources[index];
  const cf64 w(source.u, source.v);
  const double root = std::sqrt(1 + source.q);
  const double rest = std::sqrt(std::max(0.0, 1 - source.q * source.q - std::norm(w)));
  const std::uint64_t stream_a = combine(scene_.seed, 1, static_cast<std::uint64_t>(2 * index));
  const std::uint64_t stream_b = combine(scene_.seed, 1, static_cast<std::uint64_t>(2 * index + 1));
  auto& x = fields_[2 * index];
  auto& y = fields_[2 * index + 1];
  x.resize(n_);
  y.resize(n_);
  for (std::int64_t bin = 0; bin < n_; ++bin) {
    const double sky_hz = config_.center_hz + bin_offset_hz(bin);
    const double amplitude = std::sqrt(source_flux_jy(source, sky_hz, config_.center_hz));
    const cf64 a = complex_gaussian(stream_a, bin);
    const cf64 b = complex_gaussian(stream_b, bin);
    x[bin] = std::complex<float>(amplitude * root * a);
    // q = -1: all of the power is in y
    y[bin] = std::complex<float>(
        amplitude * (root > 0 ? (std::conj(w) * a + rest * b) / root : std::sqrt(2.0) * b));
  }
}

/// spectrum += field * exp(+2 pi i nu tau): a phase ramp, exact at every kRampBlock-th bin and a
/// table between.
void Generator::add_source(std::int64_t index, std::int64_t input,
                           std::vector<cf64>& spectrum) const {
  const auto& path = array_.inputs[input];
  const double lead_s =
      dot(array_.antennas[path.antenna].enu_m, directions_[index]) / kSpeedOfLight_m_per_s;
  const auto& field = fields_[2 * index + (path.pol == 0 ? 0 : 1)];
  cf64 step[kRampBlock];
  for (std::int64_t k = 0; k < kRampBlock; ++k) {
    step[k] = turn(static_cast<double>(k) * bin_width_hz_ * lead_s);
  }
  // Bins below half the rate and above are two runs of ascending frequency; no block may straddle
  // them.
  const std::int64_t edges[3] = {0, (n_ + 1) / 2, n_};
  for (int half = 0; half < 2; ++half) {
    for (std::int64_t first = edges[half]; first < edges[half + 1]; first += kRampBlock) {
      const std::int64_t count = std::min(kRampBlock, edges[half + 1] - first);
#if RYLE_MUTANT == 610
      const cf64 base = turn(-(config_.center_hz + bin_offset_hz(first)) * lead_s);
#else
      const cf64 base = turn((config_.center_hz + bin_offset_hz(first)) * lead_s);
#endif
      const double base_re = base.real(), base_im = base.imag();
      for (std::int64_t k = 0; k < count; ++k) {
        const double re = base_re * step[k].real() - base_im * step[k].imag();
        const double im = base_re * step[k].imag() + base_im * step[k].real();
        const double field_re = field[first + k].real(), field_im = field[first + k].imag();
        auto* value = reinterpret_cast<double*>(&spectrum[first + k]);
        value[0] += field_re * re - field_im * im;
        value[1] += field_re * im + field_im * re;
      }
    }
  }
}

void Generator::add_tones(std::int64_t input, std::vector<cf64>& spectrum) const {
  const auto& position = array_.antennas[array_.inputs[input].antenna].enu_m;
  for (const auto& tone : scene_.tones) {
    const auto k = std::llround((tone.frequency_hz - config_.center_hz) / bin_width_hz_);
    if (2 * std::abs(k) >= n_) {
      throw ConfigError("tone at " + std::to_string(tone.frequency_hz) + " Hz is outside the band");
    }
    const double up = 1 - tone.l * tone.l - tone.m * tone.m;
    if (!(up >= 0)) throw ConfigError("a tone has l^2 + m^2 > 1: it is not on the sky");
    const double lead_s = dot(position, {tone.l, tone.m, std::sqrt(up)}) / kSpeedOfLight_m_per_s;
    const std::int64_t bin = k < 0 ? k + n_ : k;
    // A bin of amplitude sqrt(n) carries the mean power 1 per sample that white unit bins carry
    // together.
    spectrum[bin] += std::sqrt(tone.power_jy * static_cast<double>(n_)) *
                     turn((config_.center_hz + bin_offset_hz(bin)) * lead_s);
  }
}

/// Cable delay (lateness, dispersion included) and gain.
void Generator::apply_path(std::int64_t input, std::vector<cf64>& spectrum) const {
  const auto& path = array_.inputs[input];
  const double scale = counts_per_root_jy_ * std::sqrt(static_cast<double>(n_));
  const cf64 amplitude = gain(input) * scale;
  const bool delayed =
      scene_.apply_cable_delays && (path.cable_delay_s != 0 || path.cable_dispersion_s != 0);
  cf64 step = 1, phase = 1;
  for (std::int64_t bin = 0; bin < n_; ++bin) {
    // Dispersion bends the ramp by delay' * dnu^2: below 1e-9 turns over 64 bins, so blocks of 64
    // follow it.
    if (delayed && (bin % 64 == 0 || bin == (n_ + 1) / 2)) {
      const double sky_hz = config_.center_hz + bin_offset_hz(bin);
      const double next_hz = sky_hz + bin_width_hz_;
      const double turns = sky_hz * cable_delay_s(path, sky_hz);
#if RYLE_MUTANT == 611
      phase = turn(turns);
      step = turn(next_hz * cable_delay_s(path, next_hz) - turns);
#else
      phase = turn(-turns);
      step = turn(turns - next_hz * cable_delay_s(path, next_hz));
#endif
    }
    spectrum[bin] *= amplitude * phase;
    phase *= step;
  }
}

void Generator::quantise(std::int64_t input, const std::vector<cf64>& voltage,
                         VoltageRecord& record) {
  std::uint16_t* out = planar_.data() + input * n_;
  std::int64_t sum2 = 0, n_clipped = 0;
  const auto part = [&](double value) {
    const double rounded = std::nearbyint(value);
    const double clamped = std::min(15.0, std::max(-16.0, rounded));
    n_clipped += clamped != rounded;
    const int code = static_cast<int>(clamped);
    sum2 += code * code;
    return static_cast<std::int8_t>(code);
  };
  for (std::int64_t t = 0; t < n_; ++t) {
    const ci8 sample{part(voltage[t].real()), part(voltage[t].imag())};
    out[t] = wire::pack_mwa32t_word(sample);
  }
  record.rms_lsb[input] = std::sqrt(static_cast<double>(sum2) / static_cast<double>(2 * n_));
  record.clipped_fraction[input] = static_cast<double>(n_clipped) / static_cast<double>(2 * n_);
}

void Generator::make_input(std::int64_t input, VoltageRecord& record) {
  if (is_dead(input)) return;  // planar_ is zero
  const std::uint64_t stream = combine(scene_.seed, 2, static_cast<std::uint64_t>(input));
  const double noise = std::sqrt(sefd_jy(input));
  static thread_local std::vector<cf64> spectrum;
  spectrum.resize(n_);
  for (std::int64_t bin = 0; bin < n_; ++bin) {
    spectrum[bin] = noise * complex_gaussian(stream, bin);
  }
  for (std::size_t s = 0; s < scene_.sources.size(); ++s) {
    add_source(static_cast<std::int64_t>(s), input, spectrum);
  }
  add_tones(input, spectrum);
  apply_path(input, spectrum);
  fft_->inverse(spectrum.data());
  quantise(input, spectrum, record);
}

/// [input][time] -> [time][input], by blocks that stay in the cache.
void Generator::interleave(std::int64_t first, std::int64_t last, VoltageRecord& record) const {
  constexpr std::int64_t kBlock = 64;
  for (std::int64_t t0 = first; t0 < last; t0 += kBlock) {
    const std::int64_t t1 = std::min(last, t0 + kBlock);
    for (std::int64_t input = 0; input < record.n_inputs; ++input) {
      for (std::int64_t t = t0; t < t1; ++t) {
        record.samples[t * record.n_inputs + input] = planar_[input * n_ + t];
      }
    }
  }
}

VoltageRecord Generator::run() {
  VoltageRecord record;
  record.n_samples = n_;
  record.n_inputs = array_.n_inputs();
  record.sample_rate_hz = config_.sample_rate_hz;
  record.center_hz = config_.center_hz;
  record.start_tai_ns = config_.start_tai_ns;
  record.sources_enu = directions_;
  record.rms_lsb.assign(record.n_inputs, 0);
  record.clipped_fraction.assign(record.n_inputs, 0);
  double rms_sum = 0;
  std::int64_t n_live = 0;
  for (std::int64_t input = 0; input < record.n_inputs; ++input) {
    if (is_dead(input)) continue;
    rms_sum += std::sqrt(power_jy(input) / 2);  // rms of one part
    ++n_live;
  }
  if (n_live == 0 || !(rms_sum > 0)) {
    throw ConfigError(
        "the scene has no power: every input is dead, or sefd_jy and all fluxes are 0");
  }
  counts_per_root_jy_ = config_.level_lsb * static_cast<double>(n_live) / rms_sum;
  record.jy_per_count2 = 1 / (counts_per_root_jy_ * counts_per_root_jy_);

  const auto n_words = checked_product({n_, record.n_inputs}, "the voltage record");
  planar_.assign(n_words, 0);
  fields_.resize(2 * scene_.sources.size());
  parallel_for(static_cast<std::int64_t>(scene_.sources.size()), n_workers_,
               [&](std::int64_t s) { draw_source(s); });
  fft_ = std::make_unique<math::Fft>(n_);
  parallel_for(record.n_inputs, n_workers_, [&](std::int64_t input) { make_input(input, record); });
  record.samples.resize(n_words);
  const std::int64_t piece = 8192;
  parallel_for((n_ + piece - 1) / piece, n_workers_, [&](std::int64_t k) {
    interleave(k * piece, std::min(n_, (k + 1) * piece), record);
  });
  return record;
}

}  // namespace

VoltageRecord simulate_voltages(const ArrayLayout& array, const Scene& scene,
                                const VoltageConfig& config) {
  return Generator(array, scene, config).run();
}

cf64 expected_visibility_jy(const ArrayLayout& array, const Scene& scene,
                            const VoltageRecord& record, std::int64_t i, std::int64_t j,
                            double frequency_hz) {
  const auto& a = array.inputs[i];
  const auto& b = array.inputs[j];
  cf64 sum = 0;
  for (std::size_t s = 0; s < scene.sources.size(); ++s) {
    const Source& source = scene.sources[s];
    const Vector3& ra = array.antennas[a.antenna].enu_m;
    const Vector3& rb = array.antennas[b.antenna].enu_m;
    const Vector3 baseline{ra[0] - rb[0], ra[1] - rb[1], ra[2] - rb[2]};
    const cf64 coherence = a.pol == b.pol ? cf64(a.pol == 0 ? 1 + source.q : 1 - source.q)
                                          : cf64(source.u, a.pol == 0 ? source.v : -source.v);
    sum += source_flux_jy(source, frequency_hz, record.center_hz) * coherence *
           turn(frequency_hz * dot(baseline, record.sources_enu[s]) / kSpeedOfLight_m_per_s);
  }
  if (i == j) sum += scene.input_sefd_jy.empty() ? scene.sefd_jy : scene.input_sefd_jy[i];
  return sum;
}

}  // namespace ryle::simulate
