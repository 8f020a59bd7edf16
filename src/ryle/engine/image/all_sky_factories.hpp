// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string_view>

#include "ryle/engine/image/image.hpp"

/// Private to the engine: what all_sky_make.cpp chooses from. `path` is never automatic and the
/// configuration has been validated. The reference is in reference.hpp.
namespace ryle::image::detail {

/// isa: entry of cpu_instruction_sets(), "avx512", "avx2" or "generic".
std::unique_ptr<FieldImager> make_field_cpu(Queue& queue, const AllSkyConfig& config, Path path,
                                            std::string_view isa);
std::unique_ptr<VisImager> make_vis_cpu(Queue& queue, const AllSkyConfig& config, Path path,
                                        std::string_view isa);
#ifdef RYLE_HAVE_CUDA
std::unique_ptr<FieldImager> make_field_cuda(Queue& queue, const AllSkyConfig& config, Path path);
std::unique_ptr<VisImager> make_vis_cuda(Queue& queue, const AllSkyConfig& config, Path path);
#endif

}  // namespace ryle::image::detail
