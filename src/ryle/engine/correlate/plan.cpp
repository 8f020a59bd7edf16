// SPDX-License-Identifier: BSD-3-Clause
// Validation and the one list of implementations.
#include <algorithm>
#include <initializer_list>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/device/implementation.hpp"
#include "ryle/engine/correlate/correlate.hpp"
#include "ryle/engine/correlate/cpu/kernel.hpp"
#include "ryle/engine/correlate/implementations.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/correlate/cuda/make.hpp"
#endif

namespace ryle::correlate {
namespace {

using detail::CpuKernel;

struct CpuEntry {
  const char* name;             // as in Config::implementation
  const char* instruction_set;  // as in cpu_instruction_sets()
  const CpuKernel* (*integer)();
  const CpuKernel* (*floating)();
  bool (*worth_it)(std::int64_t n_rows, std::int64_t max_spectra);  // asked by "auto" and "cpu"
};

bool always(std::int64_t, std::int64_t) { return true; }

// AMX computes whole tiles of 16 x 16 or 32 x 16 and sets them up once per channel: small arrays
// and short gulps are faster by vpdpbusd. Rate of cpu:amx over cpu:avx512_vnni, ci8, one core (Xeon
// Sapphire Rapids, virtual machine, best of 300 runs), per rows and spectra of a gulp:
//   rows     4     8    12    16    17    20    24    32    64   128   256   512  1024
//     64  0.25  0.37  0.50  0.75  0.53  0.49  0.73  1.29
//    256  0.58  0.71  0.96  1.27  0.83  0.87  1.01  1.58
//   1024  0.86  0.91  0.91  1.18  0.92  0.97  1.16  1.44  1.70  2.17  2.63  2.93  3.21
bool amx_worth_it(std::int64_t n_rows, std::int64_t max_spectra) {
  if (n_rows >= 32) return true;
  return (n_rows == 16 || n_rows >= 24) && max_spectra >= 512;
}

const CpuKernel* none() { return nullptr; }

// Fastest first, as measured (bench/results): "auto" and "cpu" take the first that runs here, knows
// the format and is worth it at this size.
constexpr CpuEntry kCpu[] = {
    {"cpu:amx", "amx", detail::cpu_kernel_amx, none, amx_worth_it},
    {"cpu:avx512_vnni", "avx512_vnni", detail::cpu_kernel_avx512_vnni, none, always},
    {"cpu:avx512", "avx512", none, detail::cpu_kernel_avx512_f32, always},
    {"cpu:avx_vnni", "avx_vnni", detail::cpu_kernel_avx_vnni, none, always},
    {"cpu:avx2", "avx2", detail::cpu_kernel_avx2, detail::cpu_kernel_avx2_f32, always},
    {"cpu:generic", "generic", detail::cpu_kernel_generic, detail::cpu_kernel_generic_f32, always},
};

const CpuKernel* usable(const CpuEntry& entry, SampleFormat format) {
  if (!has_instruction_set(entry.instruction_set)) return nullptr;
  return detail::is_integer_format(format) ? entry.integer() : entry.floating();
}

// Names that run here with any of the formats, in the order of the list.
std::vector<std::string> names_for(std::initializer_list<SampleFormat> formats) {
  std::vector<std::string> names{"reference"};
  for (const auto& entry : kCpu) {
    const auto runs = [&](SampleFormat format) { return usable(entry, format) != nullptr; };
    if (std::any_of(formats.begin(), formats.end(), runs)) names.emplace_back(entry.name);
  }
#ifdef RYLE_HAVE_CUDA
  for (auto& name : cuda_implementations()) names.push_back(std::move(name));
#endif
  return names;
}

void validate(const Config& config) {
  const auto positive = [](std::int64_t value, const char* what) {
    if (value < 1) {
      throw ConfigError(std::string("correlator: ") + what + " is " + std::to_string(value) +
                        "; it must be at least 1");
    }
  };
  positive(config.n_inputs, "n_inputs");
  positive(config.n_channels, "n_channels");
  positive(config.max_spectra, "max_spectra");
  if (config.n_inputs > 65536) {
    throw ConfigError("correlator: n_inputs is " + std::to_string(config.n_inputs) +
                      "; at most 65536");
  }
  spectra_per_block(config.format);  // rejects formats without planar blocks
  const std::int64_t pairs = n_pairs(config.n_inputs);
  checked_product({config.n_channels, pairs, 64}, "correlator accumulators");
  dense_blocks_bytes(config.format, config.n_channels, config.max_spectra, config.n_inputs);
}

// What to run; "cpu" = the first that works and is worth it.
std::string chosen(const Config& config, BackEnd back_end) {
  const std::int64_t n_rows = config.n_inputs * (config.format == SampleFormat::ci16 ? 2 : 1);
  const auto best = std::find_if(std::begin(kCpu), std::end(kCpu), [&](const CpuEntry& entry) {
    return entry.worth_it(n_rows, config.max_spectra) && usable(entry, config.format) != nullptr;
  });
  return choose_implementation(
      back_end, {"correlator", config.implementation, " for " + std::string(name(config.format)),
                 names_for({config.format}), best != std::end(kCpu) ? best->name : ""});
}

// The kernel behind a name that was chosen; nullptr for the reference.
const CpuKernel* kernel_named(const std::string& chosen, SampleFormat format) {
  for (const auto& entry : kCpu)
    if (chosen == entry.name) return usable(entry, format);
  return nullptr;
}

}  // namespace

namespace detail {

bool is_integer_format(SampleFormat format) {
  return format == SampleFormat::ci4 || format == SampleFormat::ci8 || format == SampleFormat::ci16;
}

}  // namespace detail

std::vector<std::string> available_implementations() {
  return names_for({SampleFormat::ci8, SampleFormat::cf32});
}

std::unique_ptr<Correlator> make_correlator(Queue& queue, const Config& config) {
  validate(config);
  Config named = config;
  named.implementation = chosen(config, queue.back_end());
#ifdef RYLE_HAVE_CUDA
  if (named.implementation.starts_with("cuda")) return make_cuda_correlator(queue, named);
#endif
  if (const CpuKernel* kernel = kernel_named(named.implementation, config.format))
    return detail::make_cpu(queue, config, *kernel);
  return detail::make_reference(config);
}

Cost cost(const Config& config) {
  validate(config);
  Cost result;
  const std::int64_t pairs = n_pairs(config.n_inputs);
  result.useful_ops_per_spectrum =
      8.0 * static_cast<double>(config.n_channels) * static_cast<double>(pairs);
  result.bytes_in_per_spectrum =
      (config.n_channels * config.n_inputs * bytes_per_cell(config.format)) /
      spectra_per_block(config.format);
  const std::int64_t sums_bytes = config.n_channels * pairs * 16;
  result.accumulator_bytes = sums_bytes;
  const bool on_cuda = config.implementation.starts_with("cuda");
  if (on_cuda) result.accumulator_bytes += sums_bytes / 2;
  if (on_cuda || config.implementation == "reference") return result;
  if (const CpuKernel* kernel = kernel_named(chosen(config, BackEnd::cpu), config.format)) {
    const auto memory = detail::cpu_memory(config, *kernel);
    result.accumulator_bytes = memory.accumulator_bytes;
    result.scratch_bytes = memory.scratch_bytes_per_worker;
  }
  return result;
}

}  // namespace ryle::correlate
