// SPDX-License-Identifier: BSD-3-Clause
// The one list of implementations of the all-sky imager.
#include <algorithm>
#include <array>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/device/implementation.hpp"
#include "ryle/engine/image/all_sky_factories.hpp"
#include "ryle/engine/image/all_sky_limits.hpp"
#include "ryle/engine/image/cost_model.hpp"
#include "ryle/engine/image/image.hpp"
#include "ryle/engine/image/reference.hpp"

namespace ryle::image {
namespace {

struct Entry {
  Path path;
  const char* name;             // as in AllSkyConfig::implementation
  const char* instruction_set;  // as in cpu_instruction_sets()
};

// Best first for each path: "auto" and "cpu" take the first that runs here.
constexpr Entry kCpu[] = {
    {Path::efield, "cpu:avx512", "avx512"},    {Path::efield, "cpu:avx2", "avx2"},
    {Path::efield, "cpu:generic", "generic"},  {Path::vis_grid, "cpu:avx512", "avx512"},
    {Path::vis_grid, "cpu:avx2", "avx2"},      {Path::vis_grid, "cpu:generic", "generic"},
    {Path::vis_dft, "cpu:avx512", "avx512"},   {Path::vis_dft, "cpu:avx2", "avx2"},
    {Path::vis_dft, "cpu:generic", "generic"}, {Path::efield_dft, "cpu:avx512", "avx512"},
    {Path::efield_dft, "cpu:avx2", "avx2"},    {Path::efield_dft, "cpu:generic", "generic"},
};

#ifdef RYLE_HAVE_CUDA
constexpr std::array kCuda{Path::vis_grid, Path::vis_dft, Path::efield, Path::efield_half,
                           Path::efield_dft};
#endif

// Names that work for a path on this machine.
std::vector<std::string> names_for(Path path) {
  std::vector<std::string> names;
#ifdef RYLE_HAVE_CUDA
  const bool has_code = std::find(kCuda.begin(), kCuda.end(), path) != kCuda.end();
  if (has_code && cuda_unavailable_reason().empty()) names.emplace_back("cuda");
#endif
  for (const auto& entry : kCpu) {
    if (entry.path == path && has_instruction_set(entry.instruction_set))
      names.emplace_back(entry.name);
  }
  names.emplace_back("reference");
  return names;
}

// What to run: "cuda", "reference" or a name of the cpu list.
std::string chosen(const Queue& queue, const AllSkyConfig& config, Path path) {
  return choose_implementation(
      queue.back_end(),
      {"imager", config.implementation, " for path " + std::string(name(path)), names_for(path)});
}

// The path that is wanted, or the planner's choice for this queue.
Path resolved(const Queue& queue, const AllSkyConfig& config) {
  validate(config);
  if (config.path != Path::automatic) {
    const std::int64_t bytes = path_bytes(config, config.path, true);
    if (config.max_bytes > 0 && bytes > config.max_bytes) {
      throw ConfigError("all-sky imager: path " + std::string(name(config.path)) + " needs " +
                        std::to_string(bytes) +
                        " bytes, more than max_bytes = " + std::to_string(config.max_bytes) +
                        "; use fewer pixels, wider channel bins, or raise the limit");
    }
    return config.path;
  }
  return plan(config, default_cost_model(queue.back_end())).choice;
}

}  // namespace

std::unique_ptr<FieldImager> make_field_imager(Queue& queue, const AllSkyConfig& config) {
  const Path path = resolved(queue, config);
  if (!takes_voltages(path)) {
    throw ConfigError("path " + std::string(name(path)) +
                      " images visibilities: correlate and use make_vis_imager, or ask for efield, "
                      "efield-half or efield-dft");
  }
  const std::string what = chosen(queue, config, path);
  if (what == "reference") return detail::make_field_reference(config, path);
#ifdef RYLE_HAVE_CUDA
  if (what == "cuda") return detail::make_field_cuda(queue, config, path);
#endif
  return detail::make_field_cpu(queue, config, path, what.substr(4));  // behind "cpu:"
}

std::unique_ptr<VisImager> make_vis_imager(Queue& queue, const AllSkyConfig& config) {
  const Path path = resolved(queue, config);
  if (takes_voltages(path)) {
    throw ConfigError("path " + std::string(name(path)) +
                      " images voltages: use make_field_imager, or ask for vis-grid or vis-dft");
  }
  const std::string what = chosen(queue, config, path);
  if (what == "reference") return detail::make_vis_reference(config, path);
#ifdef RYLE_HAVE_CUDA
  if (what == "cuda") return detail::make_vis_cuda(queue, config, path);
#endif
  return detail::make_vis_cpu(queue, config, path, what.substr(4));
}

std::vector<std::string> available_all_sky_implementations() {
  std::vector<std::string> names;
  for (const Path path : kPaths) {
    for (const auto& each : names_for(path)) {
      names.push_back(std::string(name(path)) + "/" + each);
    }
  }
  return names;
}

}  // namespace ryle::image
