// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/core/samples.hpp"
#include "ryle/core/time.hpp"
#include "ryle/core/view.hpp"
#include "ryle/device/queue.hpp"

/// B-engine: weighted sums of antenna voltages, detected, integrated and requantised in one pass.
/// @eq b[beam,pol,k,t] = sum_a W[beam,pol,k,a] v[a,pol,k,t]: the weight is multiplied, not
/// conjugated   (beamform.md 1; Magro 2014)
namespace ryle::beamform {

/// Order of the samples of a channel; inputs are i = antenna * n_pols + pol.
enum class InputOrder : std::uint8_t {
  spectra,  ///< [channel][time][input]
  pairs,    ///< [channel][block][input / 2][block_spectra][2]: BEST-2 heaps; even number of inputs
};
enum class WeightFormat : std::uint8_t {
  i8,   ///< codes -127..127 and one scale per (beam, pol, channel): integer sums are exact
  f32,  ///< as given
};
/// What leaves the engine. Products: power = one per pol, stokes_i 1, stokes_iquv 4.
enum class OutputKind : std::uint8_t { voltage, power, stokes_i, stokes_iquv };
/// voltage: cf32 cf16 ci8 ci4; the others: f32 f16 u16 u8. A half of a power or Stokes parameter is
/// cut, and counted, at +-65504: it never becomes infinite.
enum class OutputFormat : std::uint8_t { cf32, cf16, ci8, ci4, f32, u16, u8, f16 };
enum class LossMode : std::uint8_t {
  renormalize,  ///< beam * sum_all |w| / sum_present |w|; a power is the mean of what was present
  raw,          ///< absent samples count as 0
};

/// @unit max_spectra: spectra; integration: spectra per output value
struct Config {
  std::int64_t n_antennas = 0;
  std::int64_t n_pols = 1;  ///< 1 or 2
  std::int64_t n_beams = 0;
  std::int64_t n_channels = 0;
  std::int64_t max_spectra = 0;  ///< most spectra one execute() may bring

  SampleFormat format = SampleFormat::ci4;  ///< ci4 ci8 ci16 cf16 cf32
  /// One-byte samples of another code: value of each of the 256 bytes. Empty: as `format` says.
  std::vector<ci8> table = {};
  InputOrder order = InputOrder::spectra;
  std::int64_t block_spectra = 128;  ///< pairs: spectra per block

  WeightFormat weights = WeightFormat::i8;
  OutputKind output = OutputKind::power;
  OutputFormat output_format = OutputFormat::f32;
  /// Any T >= 1 (voltage: 1). Windows are [n T, (n+1) T) in absolute ticks.
  std::int64_t integration = 1;
  LossMode loss = LossMode::renormalize;
  /// Incoherent beams: rows after the coherent ones, sum over antennas of |v|^2 (power and stokes_i
  /// only). Each lists its antennas, 1 = used.
  std::vector<std::vector<std::uint8_t>> incoherent = {};
  bool dither = false;  ///< ci8, ci4: 1-LSB triangular, keyed by (seed, tick, row, channel)
  std::uint64_t seed = 0;
  std::string implementation = "auto";  ///< auto | reference | cpu | cpu:avx512_vnni | ...

  std::int64_t n_inputs() const { return n_antennas * n_pols; }
  std::int64_t n_rows() const { return n_beams + static_cast<std::int64_t>(incoherent.size()); }
  std::int64_t n_products() const;
  /// Windows that end inside spectra [first_tick, first_tick + n_spectra).
  std::int64_t n_windows(Tick first_tick, std::int64_t n_spectra) const;
  /// The most n_windows() can be for a gulp of max_spectra.
  std::int64_t max_windows() const;
  /// Bytes of one time step of one (row, product, channel); a voltage holds all pols.
  std::int64_t bytes_per_value() const;
};

/// One gulp. Absent samples are code 0 (value 0) already; `present` says where. Strides of 0 =
/// dense.
struct Input {
  const void* samples = nullptr;
  std::int64_t n_spectra = 0;  ///< pairs: any; the last block may be partly used
  Tick first_tick = 0;
  std::int64_t channel_stride_bytes = 0;
  std::int64_t step_stride_bytes = 0;  ///< spectra: to the next spectrum; pairs: to the next block
  /// Bit i = input i was there, [channel][slot][words_for_bits(n_inputs)]; nullptr = all were. A
  /// slot is slot_spectra successive spectra of the gulp (a packet).
  const std::uint64_t* present = nullptr;
  std::int64_t slot_spectra = 0;
  bool present_per_channel = true;  ///< false: one [slot][words] for all channels
};

/// @shape values [row][product][channel][time], time unit-stride; voltage
/// [row][channel][time][pol]. Row = coherent beams, then incoherent ones. Counts are of this gulp,
/// overwritten; any pointer but values may be nullptr.
struct Output {
  void* values = nullptr;
  std::int64_t row_stride_bytes = 0;
  std::int64_t product_stride_bytes = 0;
  std::int64_t channel_stride_bytes = 0;
  std::uint32_t* saturated_low = nullptr;   ///< [row][product][channel]; voltages: parts, all pols
  std::uint32_t* saturated_high = nullptr;  ///< so many were cut at the upper end
  std::uint32_t* n_used = nullptr;  ///< [beam][channel]: samples present with a weight other than 0
  float* weight_power = nullptr;    ///< [beam][channel]: mean over spectra of sum_present |w|^2
};
/// Dense strides for n_windows values per (row, product, channel).
Output dense_output(const Config& config, void* values, std::int64_t n_windows);
std::int64_t dense_output_bytes(const Config& config, std::int64_t n_windows);

class Beamformer {
 public:
  virtual ~Beamformer() = default;
  /// Weights from the next execute() on. @shape weights [beam][channel][input], finite
  virtual void set_weights(Queue& queue, View<const cf32, 3> weights) = 0;
  /// Code = clamp(rne(value * scale + offset)); voltages: scale only; floats as they are. Default 1
  /// and 0.
  /// @shape scale, offset [row][product][channel] (voltage: one product)
  virtual void set_requantization(Queue& queue, View<const float, 3> scale,
                                  View<const float, 3> offset) = 0;
  /// Forms the beams of a gulp and writes the windows that end in it; returns how many. Unfinished
  /// windows wait for the next gulp; where ticks do not follow on, the missing ones count as
  /// absent and an abandoned window is dropped. No allocation. Bit-identical for any split into
  /// gulps and any number of workers.
  virtual std::int64_t execute(Queue& queue, const Input& input, const Output& output) = 0;
  /// Forgets unfinished windows.
  virtual void reset() = 0;
  virtual std::string_view implementation() const = 0;
  virtual const Config& config() const = 0;
};

/// Throws ConfigError, UnsupportedError.
std::unique_ptr<Beamformer> make_beamformer(Queue& queue, const Config& config);
/// Names that run here with any of the formats.
std::vector<std::string> available_implementations();

struct Cost {
  double useful_ops_per_spectrum = 0;  ///< 8 per (beam, input, channel)
  double bytes_in_per_spectrum = 0;
  double bytes_out_per_spectrum = 0;
  std::int64_t state_bytes = 0;  ///< weights and unfinished windows
};
Cost cost(const Config& config);

}  // namespace ryle::beamform
