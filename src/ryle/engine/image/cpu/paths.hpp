// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string_view>

#include "ryle/engine/image/image.hpp"

/// One function per path; cpu/make.cpp chooses. Private to the engine.
namespace ryle::image::detail {

std::unique_ptr<FieldImager> make_efield_cpu(Queue& queue, const AllSkyConfig& config,
                                             std::string_view isa);
std::unique_ptr<FieldImager> make_efield_dft_cpu(Queue& queue, const AllSkyConfig& config,
                                                 std::string_view isa);
std::unique_ptr<VisImager> make_vis_grid_cpu(Queue& queue, const AllSkyConfig& config,
                                             std::string_view isa);
std::unique_ptr<VisImager> make_vis_dft_cpu(Queue& queue, const AllSkyConfig& config,
                                            std::string_view isa);

}  // namespace ryle::image::detail
