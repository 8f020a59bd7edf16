// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/device/implementation.hpp"
#include "ryle/engine/grid/cpu/gridder.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/grid/cuda/make.hpp"
#endif
#include "ryle/engine/grid/grid.hpp"
#include "ryle/engine/grid/reference.hpp"
#include "ryle/engine/grid/tiles.hpp"

namespace ryle::grid {
namespace {

struct InstructionSet {
  const char* name;  ///< as cpu_instruction_sets() says it
  const char* implementation;
  const detail::TileKernel<float>& (*f32)();
  const detail::TileKernel<double>& (*f64)();
  const detail::DirectionsKernel& (*directions)();
};
constexpr InstructionSet kSets[] = {
    {"avx512", "cpu:avx512", detail::tile_kernel_avx512, detail::tile_kernel_avx512_f64,
     detail::directions_avx512},
    {"avx2", "cpu:avx2", detail::tile_kernel_avx2, detail::tile_kernel_avx2_f64,
     detail::directions_avx2},
    {"generic", "cpu:generic", detail::tile_kernel_generic, detail::tile_kernel_generic_f64,
     detail::directions_generic},
};

std::vector<const InstructionSet*> sets_here() {
  std::vector<const InstructionSet*> sets;
  for (const auto& set : kSets)
    if (has_instruction_set(set.name)) sets.push_back(&set);
  return sets;
}

}  // namespace

namespace detail {

void check_cells(const Cells& cells) {
  const std::int64_t n = cells.directions.size();
  if (n == 0) throw ConfigError("the map has no cells");
  if (cells.width < 0 || (cells.width > 0 && n % cells.width != 0))
    throw ConfigError("a map of " + std::to_string(n) + " cells has no rows of " +
                      std::to_string(cells.width));
}

}  // namespace detail

std::vector<std::string> available_implementations() {
  std::vector<std::string> names{"reference"};
  for (const auto* set : sets_here()) names.emplace_back(set->implementation);
#ifdef RYLE_HAVE_CUDA
  for (auto& name : cuda_implementations()) names.push_back(std::move(name));
#endif
  return names;
}

std::unique_ptr<Gridder> make_gridder(const Config& config, Cells cells) {
  check(config.convolution);
  detail::check_cells(cells);
  if (config.n_channels < 1)
    throw ConfigError("the gridder needs a channel or more, got " +
                      std::to_string(config.n_channels));
  // It makes a queue of its own.
  const BackEnd back_end = config.implementation.starts_with("cuda") ? BackEnd::cuda : BackEnd::cpu;
  const std::string chosen = choose_implementation(
      back_end, {"gridder", config.implementation, "", available_implementations()});
#ifdef RYLE_HAVE_CUDA
  if (chosen.starts_with("cuda")) return make_cuda_gridder(config, cells);
#endif
  for (const auto* set : sets_here()) {
    if (chosen != set->implementation) continue;
    if (config.precision == Precision::f64 ||
        config.convolution.support_rad > detail::kWidestFloat_rad)
      return detail::make_cpu<double>(config, std::move(cells), set->f64());
    return detail::make_cpu<float>(config, std::move(cells), set->f32());
  }
  return detail::make_reference(config, std::move(cells));
}

Positions positions(Queue& queue, const double* longitude_deg, const double* latitude_deg,
                    std::int64_t n) {
  Positions p;
  const auto size = static_cast<std::size_t>(n);
  p.x.resize(size);
  p.y.resize(size);
  p.z.resize(size);
  const auto& kernel = sets_here().front()->directions();
  constexpr std::int64_t kPart = 16'384;
  queue.parallel_for((n + kPart - 1) / kPart, [&](std::int64_t part) {
    const std::int64_t i = part * kPart;
    kernel.run(longitude_deg + i, latitude_deg + i, std::min(kPart, n - i), p.x.data() + i,
               p.y.data() + i, p.z.data() + i);
  });
  return p;
}

}  // namespace ryle::grid
