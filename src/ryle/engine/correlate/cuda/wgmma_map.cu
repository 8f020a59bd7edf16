// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/correlate/cuda/wgmma_map.hpp"

#include <string>

#include "ryle/core/error.hpp"
#include "ryle/device/cuda/runtime.hpp"

namespace ryle::correlate::detail {

using namespace wgmma;

CUtensorMap wgmma_map(const Layout& layout, const CudaGulp& gulp, bool halves, int fetch_bytes) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
    RYLE_CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                               cudaEnableDefault, &found));
#else
    RYLE_CUDA(
        cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found));
#endif
    if (found != cudaDriverEntryPointSuccess)
      throw DeviceError(
          "the driver has no cuTensorMapEncodeTiled; use cuda:mma_s8 or cuda:mma_f16");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t extents[] = {kRowBytes, static_cast<cuuint64_t>(gulp.n_inputs),
                                static_cast<cuuint64_t>(gulp.first_block + gulp.n_blocks),
                                static_cast<cuuint64_t>(gulp.n_channels)};
  // Of a single input, block or channel the stride may be unset, which the driver need not take.
  cuuint64_t strides[] = {static_cast<cuuint64_t>(gulp.input_stride_bytes),
                          static_cast<cuuint64_t>(gulp.block_stride_bytes),
                          static_cast<cuuint64_t>(gulp.channel_stride_bytes)};
  cuuint64_t before = kRowBytes;
  for (int k = 0; k < 3; ++k) {
    if (strides[k] == 0 && extents[k + 1] == 1) strides[k] = before;
    before = strides[k];
  }
  const cuuint32_t box[] = {kRowBytes,
                            static_cast<cuuint32_t>(layout.paired || halves ? kTile / 2 : kTile), 1,
                            layout.paired ? 2u : 1u};
  const cuuint32_t every[] = {1, 1, 1, 1};
  const CUtensorMapL2promotion fetch = fetch_bytes == 256   ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B
                                       : fetch_bytes == 128 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B
                                                            : CU_TENSOR_MAP_L2_PROMOTION_NONE;
  CUtensorMap map;
  const CUresult status =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 4, const_cast<std::byte*>(gulp.data), extents,
             strides, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, fetch,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    throw DeviceError(
        "cuda:sm90 correlator: no tensor map for blocks with strides " +
        std::to_string(gulp.input_stride_bytes) + ", " + std::to_string(gulp.block_stride_bytes) +
        ", " + std::to_string(gulp.channel_stride_bytes) + " bytes (CUresult " +
        std::to_string(static_cast<int>(status)) + "); they are multiples of 16 below 2^40");
  }
  return map;
}

}  // namespace ryle::correlate::detail
