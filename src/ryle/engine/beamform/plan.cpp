// SPDX-License-Identifier: BSD-3-Clause
// Validation, shapes and the one list of implementations.
#include <algorithm>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/integer.hpp"
#include "ryle/device/implementation.hpp"
#include "ryle/engine/beamform/beamform.hpp"
#include "ryle/engine/beamform/cpu/kernel.hpp"
#include "ryle/engine/beamform/implementations.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/beamform/cuda/make.hpp"
#endif
#include "ryle/engine/beamform/weight_bank.hpp"

namespace ryle::beamform {

std::int64_t Config::n_products() const {
  if (output == OutputKind::stokes_i) return 1;
  if (output == OutputKind::stokes_iquv) return 4;
  return output == OutputKind::power ? n_pols : 1;
}

std::int64_t Config::n_windows(Tick first_tick, std::int64_t n_spectra) const {
  return floor_divide(first_tick + n_spectra, integration) - floor_divide(first_tick, integration);
}

std::int64_t Config::max_windows() const { return (max_spectra + integration - 1) / integration; }

std::int64_t Config::bytes_per_value() const {
  switch (output_format) {
    case OutputFormat::cf32:
      return 8 * n_pols;
    case OutputFormat::cf16:
      return 4 * n_pols;
    case OutputFormat::ci8:
      return 2 * n_pols;
    case OutputFormat::ci4:
      return n_pols;
    case OutputFormat::f32:
      return 4;
    case OutputFormat::f16:
    case OutputFormat::u16:
      return 2;
    case OutputFormat::u8:
      return 1;
  }
  return 0;
}

Output dense_output(const Config& config, void* values, std::int64_t n_windows) {
  Output output;
  output.values = values;
  output.channel_stride_bytes = n_windows * config.bytes_per_value();
  output.product_stride_bytes = config.n_channels * output.channel_stride_bytes;
  output.row_stride_bytes = config.n_products() * output.product_stride_bytes;
  return output;
}

std::int64_t dense_output_bytes(const Config& config, std::int64_t n_windows) {
  return checked_product({config.n_rows(), config.n_products(), config.n_channels, n_windows,
                          config.bytes_per_value()},
                         "beams");
}

namespace {

using detail::CpuKernel;

struct CpuEntry {
  const char* name;             // as in Config::implementation
  const char* instruction_set;  // as in cpu_instruction_sets()
  const CpuKernel* (*integer)();
  const CpuKernel* (*floating)();
};

const CpuKernel* none() { return nullptr; }

// Fastest first.
constexpr CpuEntry kCpu[] = {
    {"cpu:avx512_vnni", "avx512_vnni", detail::cpu_kernel_avx512_vnni, none},
    {"cpu:avx512", "avx512", none, detail::cpu_kernel_avx512_f32},
    {"cpu:avx2", "avx2", detail::cpu_kernel_avx2, detail::cpu_kernel_avx2_f32},
    {"cpu:generic", "generic", none, detail::cpu_kernel_generic_f32},
};

// Bytes times bytes: samples of 8 bits at most, and for vpmaddubsw a range that cannot saturate 16
// bits: two products, 2 range 127 <= 32767.
bool bytes_fit(const Config& config, const std::string& instruction_set) {
  if (config.weights != WeightFormat::i8) return false;
  if (config.format != SampleFormat::ci4 && config.format != SampleFormat::ci8) return false;
  const auto range = detail::value_range(config);
  return instruction_set != "avx2" || 2 * (range.max - range.min) * 127 <= 32767;
}

const CpuKernel* usable(const CpuEntry& entry, const Config& config) {
  if (!has_instruction_set(entry.instruction_set)) return nullptr;
  if (bytes_fit(config, entry.instruction_set) && entry.integer() != nullptr)
    return entry.integer();
  return entry.floating();
}

std::vector<std::string> names_for(const Config& config) {
  std::vector<std::string> names{"reference"};
  for (const auto& entry : kCpu) {
    if (usable(entry, config) != nullptr) names.emplace_back(entry.name);
  }
#ifdef RYLE_HAVE_CUDA
  for (auto& name : cuda_implementations(config)) names.push_back(std::move(name));
#endif
  return names;
}

[[noreturn]] void fail(const std::string& message) { throw ConfigError("beamformer: " + message); }

void in_range(std::int64_t value, std::int64_t low, std::int64_t high, const char* what) {
  if (value >= low && value <= high) return;
  fail(std::string(what) + " is " + std::to_string(value) + "; it must be " + std::to_string(low) +
       " to " + std::to_string(high));
}

void validate_input(const Config& config) {
  const SampleFormat known[] = {SampleFormat::ci4, SampleFormat::ci8, SampleFormat::ci16,
                                SampleFormat::cf16, SampleFormat::cf32};
  if (std::find(std::begin(known), std::end(known), config.format) == std::end(known)) {
    throw UnsupportedError(
        "beamformer: samples are " + std::string(name(config.format)) +
        "; these work: ci4 ci8 ci16 cf16 cf32, and any one-byte code by a table");
  }
  if (!config.table.empty() && (config.table.size() != 256 || config.format != SampleFormat::ci4)) {
    fail("a table has 256 entries and goes with ci4 samples (one byte); this one has " +
         std::to_string(config.table.size()) + " and " + std::string(name(config.format)));
  }
  if (config.order == InputOrder::pairs) {
    in_range(config.block_spectra, 1, std::int64_t{1} << 32, "block_spectra");
    if (config.n_inputs() % 2 != 0)
      fail("inputs in pairs are even in number; this is " + std::to_string(config.n_inputs()));
  }
}

void validate_output(const Config& config) {
  const bool voltage = config.output == OutputKind::voltage;
  const bool complex =
      config.output_format == OutputFormat::cf32 || config.output_format == OutputFormat::cf16 ||
      config.output_format == OutputFormat::ci8 || config.output_format == OutputFormat::ci4;
  if (voltage != complex) {
    fail(voltage ? "voltages are cf32, cf16, ci8 or ci4" : "powers are f32, f16, u16 or u8");
  }
  in_range(config.integration, 1, voltage ? 1 : std::int64_t{1} << 24,
           voltage ? "integration of voltages" : "integration");
  const bool stokes =
      config.output == OutputKind::stokes_i || config.output == OutputKind::stokes_iquv;
  if (stokes && config.n_pols != 2) fail("Stokes parameters need n_pols = 2");
  if (config.dither && config.output_format != OutputFormat::ci8 &&
      config.output_format != OutputFormat::ci4) {
    fail("dither goes with ci8 and ci4 voltages");
  }
  if (config.incoherent.empty()) return;
  if (voltage || config.output == OutputKind::stokes_iquv)
    fail("incoherent beams are powers or Stokes I");
  for (const auto& mask : config.incoherent) {
    if (static_cast<std::int64_t>(mask.size()) != config.n_antennas)
      fail("an incoherent beam lists " + std::to_string(mask.size()) + " antennas of " +
           std::to_string(config.n_antennas));
    if (std::all_of(mask.begin(), mask.end(), [](std::uint8_t used) { return used == 0; }))
      fail("an incoherent beam has no antenna");
  }
}

void validate(const Config& config) {
  // 16 384 antennas: sums of 8-bit codes times 8-bit weights stay below 2^31.
  in_range(config.n_antennas, 1, 16384, "n_antennas");
  in_range(config.n_pols, 1, 2, "n_pols");
  in_range(config.n_beams, config.incoherent.empty() ? 1 : 0, std::int64_t{1} << 20, "n_beams");
  in_range(config.n_channels, 1, std::int64_t{1} << 24, "n_channels");
  in_range(config.max_spectra, 1, std::int64_t{1} << 40, "max_spectra");
  validate_input(config);
  validate_output(config);
  checked_product({config.n_beams, config.n_channels, config.n_inputs(), 8}, "beam weights");
  dense_output_bytes(config, config.max_windows());
}

}  // namespace

std::vector<std::string> available_implementations() {
  Config any;
  any.n_antennas = any.n_beams = 1;
  any.weights = WeightFormat::i8;
  auto names = names_for(any);
  any.weights = WeightFormat::f32;
  for (const auto& name : names_for(any)) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::unique_ptr<Beamformer> make_beamformer(Queue& queue, const Config& config) {
  validate(config);
  const std::string chosen = choose_implementation(
      queue.back_end(), {"beamformer", config.implementation,
                         " for " + std::string(name(config.format)) + " and " +
                             (config.weights == WeightFormat::i8 ? "i8" : "f32") + " weights",
                         names_for(config)});
#ifdef RYLE_HAVE_CUDA
  if (chosen.starts_with("cuda")) return make_cuda_beamformer(queue, config);
#endif
  for (const auto& entry : kCpu)
    if (chosen == entry.name) return detail::make_cpu(queue, config, *usable(entry, config));
  return detail::make_reference(config);
}

Cost cost(const Config& config) {
  validate(config);
  Cost result;
  const auto channels = static_cast<double>(config.n_channels);
  result.useful_ops_per_spectrum =
      8.0 * channels * static_cast<double>(config.n_beams) * static_cast<double>(config.n_inputs());
  result.bytes_in_per_spectrum = channels * static_cast<double>(config.n_inputs()) *
                                 static_cast<double>(bits_per_sample(config.format) / 8);
  result.bytes_out_per_spectrum =
      channels * static_cast<double>(config.n_rows()) * static_cast<double>(config.n_products()) *
      static_cast<double>(config.bytes_per_value()) / static_cast<double>(config.integration);
  const std::int64_t weights = config.n_channels * config.n_beams * config.n_inputs();
  const std::int64_t windows = config.integration > 1 ? config.n_rows() * config.n_products() *
                                                            config.n_channels * std::int64_t{12}
                                                      : 0;
  result.state_bytes = weights * (8 + (config.weights == WeightFormat::i8 ? 4 : 8)) + windows;
  return result;
}

}  // namespace ryle::beamform
