// SPDX-License-Identifier: BSD-3-Clause
// The gridder on AVX-512: cpu/tile.inc.hpp has equation and layout.
#include "ryle/engine/grid/cpu/tile.hpp"
#include "ryle/simd/unroll.hpp"

#include <immintrin.h>

#include <type_traits>

namespace ryle::grid::detail {
namespace {

constexpr int kVectorBytes = 64;

// clang-format off
#include "ryle/simd/vector.inc.hpp"
#include "ryle/engine/grid/cpu/lanes.inc.hpp"
#include "ryle/engine/grid/cpu/search.inc.hpp"
#include "ryle/engine/grid/cpu/tile.inc.hpp"
// clang-format on

constexpr TileKernel<float> kFloat = make_tile_kernel<float>("cpu:avx512");
constexpr TileKernel<double> kDouble = make_tile_kernel<double>("cpu:avx512");
constexpr DirectionsKernel kDirections{directions};

}  // namespace

const TileKernel<float>& tile_kernel_avx512() { return kFloat; }
const TileKernel<double>& tile_kernel_avx512_f64() { return kDouble; }
const DirectionsKernel& directions_avx512() { return kDirections; }

}  // namespace ryle::grid::detail
