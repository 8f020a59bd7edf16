// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/engine/image/all_sky_factories.hpp"
#include "ryle/engine/image/cpu/paths.hpp"

namespace ryle::image::detail {

std::unique_ptr<FieldImager> make_field_cpu(Queue& queue, const AllSkyConfig& config, Path path,
                                            std::string_view isa) {
  if (path == Path::efield) return make_efield_cpu(queue, config, isa);
  if (path == Path::efield_dft) return make_efield_dft_cpu(queue, config, isa);
  throw UnsupportedError("imager: path " + std::string(name(path)) +
                         " has no CPU code; efield and efield-dft have");
}

std::unique_ptr<VisImager> make_vis_cpu(Queue& queue, const AllSkyConfig& config, Path path,
                                        std::string_view isa) {
  if (path == Path::vis_grid) return make_vis_grid_cpu(queue, config, isa);
  if (path == Path::vis_dft) return make_vis_dft_cpu(queue, config, isa);
  throw UnsupportedError("imager: path " + std::string(name(path)) +
                         " has no CPU code; vis-grid and vis-dft have");
}

}  // namespace ryle::image::detail
