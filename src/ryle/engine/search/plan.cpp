// SPDX-License-Identifier: BSD-3-Clause
// Validation and the one list of implementations.
#include <algorithm>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/device/implementation.hpp"
#include "ryle/engine/search/cpu/kernel.hpp"
#include "ryle/engine/search/implementations.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/search/cuda/make.hpp"
#endif

namespace ryle::search {
namespace {

using detail::CpuKernel;

struct CpuEntry {
  const char* name;
  const char* instruction_set;
  const CpuKernel* (*kernel)();
};

// Fastest first: "auto" and "cpu" take the first that runs here.
constexpr CpuEntry kCpu[] = {
    {"cpu:avx512", "avx512", detail::cpu_kernel_avx512},
    {"cpu:avx2", "avx2", detail::cpu_kernel_avx2},
    {"cpu:generic", "generic", detail::cpu_kernel_generic},
};

const CpuKernel* usable(const CpuEntry& entry) {
  return has_instruction_set(entry.instruction_set) ? entry.kernel() : nullptr;
}

// Of all methods.
std::string chosen(const std::string& wanted) {
  ImplementationQuery query{"search", wanted, "", available_implementations()};
  for (const auto& names : {available_trees(), available_subbands()})
    query.here.insert(query.here.end(), names.begin(), names.end());
  return choose_implementation(BackEnd::cpu, query);
}

void validate(const DedisperseConfig& c) {
  const auto need = [](bool good, const std::string& what) {
    if (!good) throw ConfigError("dedispersion: " + what);
  };
  need(c.n_channels >= 1 && c.n_channels <= 1 << 20,
       "n_channels is " + std::to_string(c.n_channels) + "; 1 .. 1048576");
  need(c.n_trials >= 1, "n_trials is " + std::to_string(c.n_trials) + "; it must be at least 1");
  need(c.max_outputs >= 1,
       "max_outputs is " + std::to_string(c.max_outputs) + "; it must be at least 1");
  need(c.max_code >= 1 && c.max_code <= 255,
       "max_code is " + std::to_string(c.max_code) + "; 1 .. 255");
  need(static_cast<std::int64_t>(c.delays.size()) ==
           checked_product({c.n_channels, c.n_trials}, "delay table"),
       "the table has " + std::to_string(c.delays.size()) + " delays for " +
           std::to_string(c.n_trials) + " trials x " + std::to_string(c.n_channels) + " channels");
  need(*std::min_element(c.delays.begin(), c.delays.end()) >= 0, "a delay is negative");
  need(c.smear_samples >= 0 && c.smear_samples <= 1e6,
       "smear_samples is " + std::to_string(c.smear_samples) + "; 0 .. 1e6");
  need(c.dispersion.empty() || static_cast<std::int64_t>(c.dispersion.size()) == c.n_channels,
       "dispersion has " + std::to_string(c.dispersion.size()) + " channels, not " +
           std::to_string(c.n_channels));
}

}  // namespace

namespace detail {

const CpuKernel& cpu_kernel_named(const std::string& wanted) {
  const std::string name = chosen(wanted);
  for (const auto& entry : kCpu)
    if (name == entry.name) return *usable(entry);
  throw UnsupportedError("search implementation \"" + wanted + "\" is no kernel of the CPU");
}

}  // namespace detail

SumFormat sum_format(std::int64_t n_channels, int max_code) {
  return n_channels * max_code <= 65535 ? SumFormat::u16 : SumFormat::u32;
}

std::string exact_implementation(const std::string& name) {
  const std::string method = name.substr(0, name.find(':'));
  if (method != "fdmt" && method != "subband") return name;
  if (name == method) return "auto";
  const std::string set = name.substr(method.size() + 1);
  return set == "reference" || set == "cuda" ? set : "cpu:" + set;
}

namespace {

std::vector<std::string> available_of(const std::string& method) {
  std::vector<std::string> names{method + ":reference"};
  for (const auto& entry : kCpu) {
    if (usable(entry) != nullptr) names.push_back(method + ":" + entry.instruction_set);
  }
  return names;
}

}  // namespace

std::vector<std::string> available_trees() { return available_of("fdmt"); }
std::vector<std::string> available_subbands() { return available_of("subband"); }

std::vector<std::string> available_implementations() {
  std::vector<std::string> names{"reference"};
  for (const auto& entry : kCpu) {
    if (usable(entry) != nullptr) names.emplace_back(entry.name);
  }
  return names;
}

namespace {

std::unique_ptr<Dedisperser> make_fdmt(Queue& queue, const DedisperseConfig& config) {
  const std::string set = config.implementation.substr(4);  // "" or ":avx2"
  if (set == ":reference") return detail::make_fdmt_reference(config);
  return detail::make_fdmt_cpu(queue, config, detail::cpu_kernel_named("cpu" + set));
}

std::unique_ptr<Dedisperser> make_subband(Queue& queue, const DedisperseConfig& config) {
  const std::string set = config.implementation.substr(7);
  if (set == ":reference") return detail::make_subband_reference(config);
  return detail::make_subband_cpu(queue, config, detail::cpu_kernel_named("cpu" + set));
}

// Sub-bands only where they win and were allowed.
std::unique_ptr<Dedisperser> make_cheaper(Queue& queue, const DedisperseConfig& config) {
  const auto& kernel = detail::cpu_kernel_named(config.implementation);
  auto exact = detail::make_cpu(queue, config, kernel);
  if (config.implementation != "auto" || config.smear_samples < 1) return exact;
  auto subbands = detail::make_subband_cpu(queue, config, kernel);
  return subbands->work() < exact->work() ? std::move(subbands) : std::move(exact);
}

}  // namespace

std::unique_ptr<Dedisperser> make_dedisperser(Queue& queue, const DedisperseConfig& config) {
  validate(config);
#ifdef RYLE_HAVE_CUDA
  if (queue.back_end() == BackEnd::cuda) return make_cuda_dedisperser(queue, config);
#endif
  if (names_cuda(config.implementation)) {
    const std::string reason = cuda_unavailable_reason();
    if (!reason.empty())
      throw UnsupportedError("search implementation \"" + config.implementation + "\": " + reason);
#ifdef RYLE_HAVE_CUDA
    return make_cuda_dedisperser_for_host(config);
#endif
  }
  if (config.implementation == "reference") return detail::make_reference(config);
  if (config.implementation.rfind("fdmt", 0) == 0) return make_fdmt(queue, config);
  if (config.implementation.rfind("subband", 0) == 0) return make_subband(queue, config);
  return make_cheaper(queue, config);
}

}  // namespace ryle::search
