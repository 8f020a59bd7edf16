// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/core/absent.hpp"
#include "ryle/core/blocks.hpp"
#include "ryle/core/samples.hpp"
#include "ryle/core/time.hpp"
#include "ryle/core/view.hpp"
#include "ryle/device/queue.hpp"

/// F-engine: receiver samples to planar blocks of channelized voltages.
/// @eq X[k,m] = g_k sum_{n=0}^{L-1} h[n] x[mM - D + n] exp(-2 pi i k (mM + n)/K)   (conventions.md
/// 3, correlate.md 3)
namespace ryle::channelize {

enum class Window : std::uint8_t { rectangular, hann, hamming, blackman, kaiser };
enum class Rounding : std::uint8_t { nearest_even, truncate };

/// Logical problem; validated once by make_channelizer().
struct Config {
  std::int64_t n_inputs = 0;
  std::int64_t n_channels =
      0;  ///< C output channels; transform length K = C (complex input) or 2C (real)
  std::int64_t n_taps = 8;  ///< P; 1 = plain FFT, h = 1/sqrt(K)
  Window window = Window::hann;
  double kaiser_beta = 8.0;
  std::int64_t step_samples = 0;  ///< M; 0 = K (critically sampled); M < K oversamples
  SampleLayout layout;            ///< of the samples execute() reads
  double sample_rate_hz = 0;
  double reference_hz =
      0;  ///< nu_0: sky frequency of baseband 0 (complex: band centre; real: band edge)
  bool inverted_band =
      false;  ///< s = -1 (conventions.md 3): output is conjugated into upper-sideband phase
  SampleFormat output = SampleFormat::ci8;  ///< ci8, ci4, cf16 or cf32
  Rounding rounding = Rounding::nearest_even;
  bool dither = true;  ///< uniform +-0.5 LSB keyed by (seed, input, channel, spectrum, part)
  std::uint64_t seed = 1;
  std::int64_t max_spectra = 0;  ///< most spectra one execute() may be asked for; > 0
  std::string implementation =
      "auto";  ///< auto | reference | cpu | cpu:avx512_vbmi | cpu:avx512 | cpu:avx2 | cuda ...
};

/// Delay and phase of one input, cubic polynomials in t = (tick - reference_tick) / sample_rate
/// seconds, evaluated in double at the centre of every spectrum's window. Applying delay d makes
/// y(t) = x(t - d) (conventions.md 5).
/// @unit delay: s, s/s, ...; phase_turns: turns, turns/s, ...
struct DelayPolynomial {
  Tick reference_tick = 0;
  double delay_s[4] = {0, 0, 0, 0};
  double phase_turns[4] = {0, 0, 0, 0};
};

/// One gulp of raw samples: input p, tick t lies where `layout` says, counted from first_tick.
struct Input {
  const void* samples = nullptr;
  Tick first_tick = 0;
  std::int64_t n_samples = 0;
  std::span<const AbsentSpan> absent;  ///< their sample values are never used
};

/// Per (channel, input), added to by execute(): the level monitor, Van Vleck and product headers
/// read it.
struct ChannelStatistics {
  std::int64_t n_samples = 0;       ///< valid spectra that went in
  std::int64_t saturated_low = 0;   ///< parts clipped below
  std::int64_t saturated_high = 0;  ///< parts clipped above
  double sum_of_squares =
      0;  ///< of the output codes (re^2 + im^2); exact for integer outputs below 2^53
};

/// Per input, of the raw samples inside [first, last) ticks consumed as new by this call.
struct LevelStatistics {
  std::int64_t n_samples = 0;
  double sum_re = 0, sum_im = 0, sum_of_squares = 0;
  std::int64_t histogram[256] = {};  ///< of real and imaginary codes + 128 (formats up to 8 bits)
};

struct Output {
  BlockView blocks;  ///< [channel][block][input], spectrum 0 = first_spectrum of the call
  std::uint64_t* valid =
      nullptr;  ///< [input][valid_words] bit planes over the spectra of this call
  std::int64_t valid_words = 0;
  ChannelStatistics* statistics = nullptr;  ///< optional [channel][input]
};

class Channelizer {
 public:
  virtual ~Channelizer() = default;

  /// Produces spectra [first_spectrum, first_spectrum + n_spectra) of every input. Spectrum m reads
  /// samples [mM - D_p, mM - D_p + L), D_p = round(d_p f_s). A pure function of the samples:
  /// splitting a gulp anywhere gives the same bits. A spectrum that touches an absent sample, or
  /// one outside the gulp, is exactly 0 and not valid. Asynchronous on the queue, no allocation.
  /// @pre n_spectra <= max_spectra
  virtual void execute(Queue& queue, const Input& input, std::int64_t first_spectrum,
                       std::int64_t n_spectra, const Output& output) = 0;

  /// One polynomial per input; takes effect for spectra executed afterwards.
  virtual void set_delays(std::span<const DelayPolynomial> delays) = 0;
  /// g[input][channel]; takes effect for spectra executed afterwards.
  virtual void set_gains(View<const cf32, 2> gains) = 0;

  /// "channelize/cpu/avx512" and so on.
  virtual std::string_view implementation() const = 0;
  virtual const Config& config() const = 0;
  /// Prototype filter h[0..L-1], sum h^2 = 1.
  virtual std::span<const double> filter() const = 0;
};

/// Validates, chooses and plans; the only call that allocates or throws (ConfigError,
/// UnsupportedError, DeviceError).
std::unique_ptr<Channelizer> make_channelizer(Queue& queue, const Config& config);

/// Names make_channelizer() accepts here, best first.
std::vector<std::string> available_implementations();

/// What a plan costs and moves, for `ryle plan`, the benchmark's roofline and the docs.
struct Cost {
  double useful_ops_per_sample =
      0;  ///< 4P + 5 log2 K + 14 flop per complex output sample (correlate.md 1)
  std::int64_t bytes_in_per_sample_x8 = 0;  ///< input bits per complex channel sample
  std::int64_t bytes_out_per_sample = 0;
  std::int64_t scratch_bytes = 0;
};
Cost cost(const Config& config);

/// Filter length L = P*K, transform length K and step M of a configuration.
std::int64_t transform_length(const Config& config);
std::int64_t filter_length(const Config& config);
std::int64_t step_length(const Config& config);
/// Ascending sky centre frequency of output channel c. Output channels are always in ascending sky
/// order.
double channel_center_hz(const Config& config, std::int64_t channel);

/// Adds the raw-level statistics of samples [begin, end) of the gulp, absent ones excluded.
/// @shape statistics [input]
void add_level_statistics(const Config& config, const Input& input, Tick begin, Tick end,
                          std::span<LevelStatistics> statistics);
/// The same, with the workers of a CPU queue (@pre the samples are in host memory).
void add_level_statistics(Queue& queue, const Config& config, const Input& input, Tick begin,
                          Tick end, std::span<LevelStatistics> statistics);

}  // namespace ryle::channelize
