// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/voltages.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>
#include <thread>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"
#include "ryle/math/fft.hpp"
#include "ryle/simulate/parallel.hpp"
#include "ryle/simulate/scene_model.hpp"
#include "ryle/simulate/spectra_mixer.hpp"
#include "ryle/wire/mwa32t.hpp"

namespace ryle::simulate {
namespace {

using detail::dot;
using detail::parallel_for;
using detail::turn;

constexpr std::int64_t kRampBlock = 512;  // bins between exactly evaluated phases

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
  /// The same of a stream: n_samples instants from `first` on, of which those within `guard` of
  /// either end lack what comes from beyond. The others go to `out` (a record of the stream, whose
  /// first sample is out_first), as far as they belong there.
  void run_block(Tick first, std::int64_t guard, Tick out_first, VoltageRecord& out);
  /// Samples by which the array and its cables delay at most.
  std::int64_t longest_delay_samples() const;
  /// Samples between the upper and the lower edge of the band of the most dispersed source.
  std::int64_t longest_dispersion_samples() const;
  VoltageRecord empty_record() const;
  double steady_counts() const;

 private:
  void validate() const;
  std::vector<cf64> white_spectrum(std::uint64_t stream, const Source* source) const;
  void white_stream(std::uint64_t stream, const Source* source, Tick first,
                    std::vector<cf64>& samples) const;
  void disperse(double dm_pc_cm3, std::vector<cf64>& samples) const;
  void draw_all(VoltageRecord& record);
  double bin_offset_hz(std::int64_t bin) const {
    return static_cast<double>(2 * bin < n_ ? bin : bin - n_) * bin_width_hz_;
  }
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
  const double max_code_;
  const std::int64_t n_words_;  // of a sample in the record
  double counts_per_root_jy_ = 0;
  std::optional<Tick> first_;  // of a stream; a record is of no instant
  std::unique_ptr<math::Fft> fft_;
  std::unique_ptr<math::Fft> dispersion_fft_;  // of a stream with a dispersed source
  std::vector<Vector3> directions_;
  std::vector<std::vector<std::complex<float>>> fields_;  // [source * 2 + pol][bin], root Jy
  std::vector<std::uint16_t> planar_;                     // [input][time][words of a sample]
};

Generator::Generator(const ArrayLayout& array, const Scene& scene, const VoltageConfig& config)
    : array_(array),
      scene_(scene),
      config_(config),
      n_(config.n_samples),
      bin_width_hz_(config.sample_rate_hz.value() / static_cast<double>(config.n_samples)),
      n_workers_(config.n_workers > 0
                     ? config.n_workers
                     : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))),
      max_code_(config.bits > 0 ? std::max(1.0, std::ldexp(1.0, config.bits - 1) - 1) : 15),
      n_words_(config.bits > 0 && !config.real ? 2 : 1) {
  validate();
}

void Generator::validate() const {
  if (n_ < 1) throw ConfigError("n_samples = " + std::to_string(n_) + " must be positive");
  if (!(config_.sample_rate_hz.value() > 0)) throw ConfigError("sample_rate_hz must be positive");
  if (!config_.real && !(config_.center_hz > config_.sample_rate_hz.value() / 2)) {
    throw ConfigError("center_hz = " + std::to_string(config_.center_hz) +
                      " leaves part of the band at or below 0 Hz");
  }
  RYLE_ASSERT(!config_.real || config_.bits > 0);
  if (!(config_.level_lsb > 0 && config_.level_lsb <= max_code_)) {
    throw ConfigError("level_lsb = " + std::to_string(config_.level_lsb) + " does not fit " +
                      std::to_string(config_.bits > 0 ? config_.bits : 5) + " bits" +
                      (config_.bits > 0 ? "" : "; 4 is a good level"));
  }
  if (array_.n_inputs() == 0) throw ConfigError("the layout has no inputs");
  detail::validate(scene_, array_);
}

/// Unit white noise, each bin by itself: of a record drawn there, so that it repeats; of a stream
/// the transform of what its instants have, switched by the envelope of the source.
std::vector<cf64> Generator::white_spectrum(std::uint64_t stream, const Source* source) const {
  std::vector<cf64> spectrum(n_);
  if (!first_) {
    for (std::int64_t bin = 0; bin < n_; ++bin) spectrum[bin] = complex_gaussian(stream, bin);
    return spectrum;
  }
  if (source != nullptr && source->dm_pc_cm3 > 0) {
    // What is late comes from long before: all of a longer stretch, of which the end is right.
    const std::int64_t n_long = dispersion_fft_->size();
    std::vector<cf64> samples(n_long);
    white_stream(stream, source, *first_ + n_ - n_long, samples);
    disperse(source->dm_pc_cm3, samples);
    std::copy(samples.end() - n_, samples.end(), spectrum.begin());
  } else {
    white_stream(stream, source, *first_, spectrum);
  }
  fft_->forward(spectrum.data());
  const double scale = 1 / std::sqrt(static_cast<double>(n_));
  for (cf64& value : spectrum) value *= scale;
  return spectrum;
}

/// Unit white noise of the instants from `first` on, switched by the envelope of the source. Two
/// instants have one key: first and the number of samples are even.
void Generator::white_stream(std::uint64_t stream, const Source* source, Tick first,
                             std::vector<cf64>& samples) const {
  const auto n = static_cast<std::int64_t>(samples.size());
  float pair[4];
  for (std::int64_t t = 0; t < n; t += 2) {
    detail::two_gaussians(combine(stream, static_cast<std::uint64_t>(first + t)), pair);
    samples[t] = {pair[0], pair[1]};
    samples[t + 1] = {pair[2], pair[3]};
  }
  const double rate_hz = config_.sample_rate_hz.value();
  for (std::int64_t t = 0; source != nullptr && is_transient(*source) && t < n; ++t) {
    double since_s = static_cast<double>(first + t) / rate_hz - source->start_s;
    if (since_s >= 0 && source->period_s > 0) since_s = std::fmod(since_s, source->period_s);
    if (since_s < 0 || since_s >= source->duration_s) samples[t] = 0;
  }
}

/// Makes each frequency late by its dispersion against the upper edge of the band.
/// @eq phase = 2 pi K (1 / nu + nu / nu_top^2), K = k_DM DM: delay = K (nu^-2 - nu_top^-2)
void Generator::disperse(double dm_pc_cm3, std::vector<cf64>& samples) const {
  const auto n = static_cast<std::int64_t>(samples.size());
  const double rate_hz = config_.sample_rate_hz.value();
  const double top_hz = config_.center_hz + rate_hz / 2;
  const double k_hz = kDispersion_s_mhz2 * 1e12 * dm_pc_cm3;
  dispersion_fft_->forward(samples.data());
  for (std::int64_t bin = 0; bin < n; ++bin) {
    const double nu_hz = config_.center_hz + static_cast<double>(2 * bin < n ? bin : bin - n) *
                                                 rate_hz / static_cast<double>(n);
    samples[bin] *= turn(k_hz * (1 / nu_hz + nu_hz / (top_hz * top_hz)));
  }
  dispersion_fft_->inverse(samples.data());
}

void Generator::draw_source(std::int64_t index) {
  const Source& source = scene_.sources[index];
  const detail::FieldOfSource field = detail::field_of_source(source);
  const std::uint64_t stream_a = combine(scene_.seed, 1, static_cast<std::uint64_t>(2 * index));
  const std::uint64_t stream_b = combine(scene_.seed, 1, static_cast<std::uint64_t>(2 * index + 1));
  auto& x = fields_[2 * index];
  auto& y = fields_[2 * index + 1];
  x.resize(n_);
  y.resize(n_);
  const std::vector<cf64> a = white_spectrum(stream_a, &source);
  const std::vector<cf64> b = white_spectrum(stream_b, &source);
  const double element = element_amplitude(scene_, directions_[index]);
  for (std::int64_t bin = 0; bin < n_; ++bin) {
    const double sky_hz = config_.center_hz + bin_offset_hz(bin);
    const double amplitude = element * std::sqrt(source_flux_jy(source, sky_hz, config_.center_hz));
    x[bin] = std::complex<float>(amplitude * field.x_of_a * a[bin]);
    y[bin] = std::complex<float>(amplitude * (field.y_of_a * a[bin] + field.y_of_b * b[bin]));
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
      const cf64 base = turn((config_.center_hz + bin_offset_hz(first)) * lead_s);
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
  const cf64 amplitude = detail::gain(scene_, input) * scale;
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
      phase = turn(-turns);
      step = turn(turns - next_hz * cable_delay_s(path, next_hz));
    }
    spectrum[bin] *= amplitude * phase;
    phase *= step;
  }
}

void Generator::quantise(std::int64_t input, const std::vector<cf64>& voltage,
                         VoltageRecord& record) {
  std::uint16_t* out = planar_.data() + input * n_ * n_words_;
  std::int64_t sum2 = 0, n_clipped = 0;
  const auto part = [&](double value) {
    const double rounded = std::nearbyint(value);
    const double clamped = std::min(max_code_, std::max(-max_code_ - 1, rounded));
    n_clipped += clamped != rounded;
    const int code = static_cast<int>(clamped);
    sum2 += std::int64_t{code} * code;
    return static_cast<std::int16_t>(code);
  };
  for (std::int64_t t = 0; t < n_; ++t) {
    if (config_.real) {
      out[t] = static_cast<std::uint16_t>(part(std::numbers::sqrt2 * voltage[t].real()));
    } else if (config_.bits > 0) {
      out[2 * t] = static_cast<std::uint16_t>(part(voltage[t].real()));
      out[2 * t + 1] = static_cast<std::uint16_t>(part(voltage[t].imag()));
    } else {
      const auto re = static_cast<std::int8_t>(part(voltage[t].real()));
      const auto im = static_cast<std::int8_t>(part(voltage[t].imag()));
      out[t] = wire::pack_mwa32t_word({re, im});
    }
  }
  const auto n_values = static_cast<double>(config_.real ? n_ : 2 * n_);
  record.rms_lsb[input] = std::sqrt(static_cast<double>(sum2) / n_values);
  record.clipped_fraction[input] = static_cast<double>(n_clipped) / n_values;
}

void Generator::make_input(std::int64_t input, VoltageRecord& record) {
  if (detail::is_dead(scene_, input)) return;  // planar_ is zero
  const std::uint64_t stream = combine(scene_.seed, 2, static_cast<std::uint64_t>(input));
  const double noise = std::sqrt(detail::sefd_jy(scene_, input));
  std::vector<cf64> spectrum = white_spectrum(stream, nullptr);
  for (cf64& value : spectrum) value *= noise;
  for (std::size_t s = 0; s < scene_.sources.size(); ++s) {
    add_source(static_cast<std::int64_t>(s), input, spectrum);
  }
  add_tones(input, spectrum);
  apply_path(input, spectrum);
  // Half of the band has no image and no constant: its real part is the signal.
  if (config_.real) {
    spectrum[0] = 0;
    std::fill(spectrum.begin() + (n_ + 1) / 2, spectrum.end(), cf64{});
  }
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
        for (std::int64_t w = 0; w < n_words_; ++w)
          record.samples[(t * record.n_inputs + input) * n_words_ + w] =
              planar_[(input * n_ + t) * n_words_ + w];
      }
    }
  }
}

/// What always shines sets the level.
double Generator::steady_counts() const {
  Scene steady = scene_;
  std::erase_if(steady.sources, is_transient);
  return detail::counts_per_root_jy(steady, array_, config_.level_lsb);
}

VoltageRecord Generator::empty_record() const {
  VoltageRecord record;
  record.n_samples = n_;
  record.n_inputs = array_.n_inputs();
  record.sample_rate_hz = config_.sample_rate_hz;
  record.center_hz = config_.center_hz;
  record.start_tai_ns = config_.start_tai_ns;
  record.rms_lsb.assign(record.n_inputs, 0);
  record.clipped_fraction.assign(record.n_inputs, 0);
  const double counts = steady_counts();
  record.jy_per_count2 = 1 / (counts * counts);
  // A spectrum of real samples has half of its power at negative frequencies.
  if (config_.real) record.jy_per_count2 *= 2;
  if (config_.bits > 0) record.n_parts = config_.real ? 1 : 2;
  return record;
}

/// Every input, into planar_; levels into the record.
void Generator::draw_all(VoltageRecord& record) {
  counts_per_root_jy_ = steady_counts();
  const auto n_words = checked_product({n_, record.n_inputs, n_words_}, "the voltage record");
  planar_.assign(n_words, 0);
  fields_.resize(2 * scene_.sources.size());
  if (!fft_) fft_ = std::make_unique<math::Fft>(n_);
  parallel_for(static_cast<std::int64_t>(scene_.sources.size()), n_workers_,
               [&](std::int64_t s) { draw_source(s); });
  parallel_for(record.n_inputs, n_workers_, [&](std::int64_t input) { make_input(input, record); });
}

VoltageRecord Generator::run() {
  directions_ =
      detail::source_directions(scene_, array_, config_.start_tai_ns, config_.earth_orientation);
  VoltageRecord record = empty_record();
  record.sources_enu = directions_;
  draw_all(record);
  record.samples.resize(planar_.size());
  const std::int64_t piece = 8192;
  parallel_for((n_ + piece - 1) / piece, n_workers_, [&](std::int64_t k) {
    interleave(k * piece, std::min(n_, (k + 1) * piece), record);
  });
  return record;
}

constexpr std::int64_t kStreamBlock = 16384;
constexpr std::int64_t kStreamGuard = 1024;

std::int64_t Generator::longest_delay_samples() const {
  double longest_s = 0;
  for (const auto& input : array_.inputs) {
    const Vector3& at = array_.antennas[input.antenna].enu_m;
    longest_s = std::max(longest_s, std::sqrt(dot(at, at)) / kSpeedOfLight_m_per_s +
                                        std::abs(cable_delay_s(input, config_.center_hz)));
  }
  return static_cast<std::int64_t>(std::ceil(longest_s * config_.sample_rate_hz.value()));
}

std::int64_t Generator::longest_dispersion_samples() const {
  const double half_hz = config_.sample_rate_hz.value() / 2;
  double longest_s = 0;
  for (const auto& source : scene_.sources) {
    longest_s =
        std::max(longest_s, dispersion_delay_s(source.dm_pc_cm3, config_.center_hz - half_hz,
                                               config_.center_hz + half_hz));
  }
  return static_cast<std::int64_t>(std::ceil(longest_s * config_.sample_rate_hz.value()));
}

void Generator::run_block(Tick first, std::int64_t guard, Tick out_first, VoltageRecord& out) {
  const SampleClock clock{config_.start_tai_ns, config_.sample_rate_hz};
  first_ = first;
  if (!dispersion_fft_) {
    const std::int64_t late = longest_dispersion_samples();
    std::int64_t n_long = 1;
    while (n_long < n_ + late + guard) n_long *= 2;
    if (late > 0) dispersion_fft_ = std::make_unique<math::Fft>(n_long);
  }
  directions_ = detail::moving_directions(scene_, array_, clock.tai_ns(first + n_ / 2),
                                          config_.earth_orientation);
  draw_all(out);
  const std::int64_t n_words = static_cast<std::int64_t>(planar_.size()) / (n_ * out.n_inputs);
  const Tick begin = std::max(first + guard, out_first);
  const Tick end = std::min(first + n_ - guard, out_first + out.n_samples);
  for (Tick t = begin; t < end; ++t) {
    std::uint16_t* to = out.samples.data() + (t - out_first) * out.n_inputs * n_words;
    for (std::int64_t input = 0; input < out.n_inputs; ++input) {
      for (std::int64_t w = 0; w < n_words; ++w)
        to[input * n_words + w] = planar_[(input * n_ + t - first) * n_words + w];
    }
  }
}

}  // namespace

VoltageStream::VoltageStream(ArrayLayout array, Scene scene, const VoltageConfig& config)
    : array_(std::move(array)), scene_(std::move(scene)), config_(config) {
  const Generator generator(array_, scene_, config_);
  if (!scene_.tones.empty()) throw ConfigError("tones are simulated in periodic records only");
  constexpr std::int64_t kMaxDispersion = 1 << 22;
  if (const std::int64_t late = generator.longest_dispersion_samples(); late > kMaxDispersion)
    throw ConfigError("a source is late by " + std::to_string(late) +
                      " samples at the lower edge of the band; the simulator of time samples takes "
                      "dispersion of up to " +
                      std::to_string(kMaxDispersion));
  if (generator.longest_delay_samples() > kStreamGuard / 2)
    throw ConfigError(
        "the array and its cables delay by " + std::to_string(generator.longest_delay_samples()) +
        " samples; the simulator of a moving sky takes up to " + std::to_string(kStreamGuard / 2));
}

VoltageRecord VoltageStream::make_record() const {
  VoltageRecord record = Generator(array_, scene_, config_).empty_record();
  record.sources_enu =
      detail::moving_directions(scene_, array_, config_.start_tai_ns, config_.earth_orientation);
  record.samples.resize(checked_product(
      {record.n_samples, record.n_inputs, std::max<std::int64_t>(1, record.n_parts)},
      "the voltage record"));
  return record;
}

void VoltageStream::draw(Tick first, VoltageRecord& record) const {
  VoltageConfig block_config = config_;
  block_config.n_samples = kStreamBlock + 2 * kStreamGuard;
  Generator generator(array_, scene_, block_config);
  const Tick last = first + record.n_samples;
  const std::int64_t into = ((first % kStreamBlock) + kStreamBlock) % kStreamBlock;
  for (Tick block = first - into; block < last; block += kStreamBlock)
    generator.run_block(block - kStreamGuard, kStreamGuard, first, record);
}

VoltageRecord simulate_voltages(const ArrayLayout& array, const Scene& scene,
                                const VoltageConfig& config) {
  return Generator(array, scene, config).run();
}

cf64 expected_visibility_jy(const ArrayLayout& array, const Scene& scene,
                            const VoltageRecord& record, std::int64_t i, std::int64_t j,
                            double frequency_hz) {
  return detail::visibility_jy(scene, array, record.sources_enu, i, j, frequency_hz,
                               record.center_hz);
}

}  // namespace ryle::simulate
