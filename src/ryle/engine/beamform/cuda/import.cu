// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/beamform/cuda/import.cuh"

#include <limits>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/beamform/cuda/import.hpp"

namespace ryle::beamform::detail {

void import_blocks_cuda(Queue& queue, const ConstBlockView& blocks, const BlocksImport& what,
                        std::byte* samples) {
  if (what.n_spectra == 0 || what.n_channels == 0 || what.n_inputs() == 0) return;
  const cuda::DeviceScope scope(cuda::device_of(queue));
  cuda::require_device_memory(blocks.data, "blocks of samples");
  cuda::require_device_memory(samples, "samples of beams");
  ImportArguments a{};
  a.from = blocks.data + what.first_channel * blocks.channel_stride_bytes;
  a.to = samples;
  a.inputs = what.inputs.data();
  a.channel_stride_bytes = blocks.channel_stride_bytes;
  a.block_stride_bytes = blocks.block_stride_bytes;
  a.input_stride_bytes = blocks.input_stride_bytes;
  a.to_channel_bytes = imported_channel_bytes(what, blocks.format);
  a.n_spectra = what.n_spectra;
  a.block_spectra = what.order == InputOrder::pairs ? what.block_spectra : 0;
  a.n_inputs = static_cast<int>(what.n_inputs());
  const std::int64_t n_blocks = ryle::n_blocks(blocks.format, what.n_spectra);
  const std::int64_t n_tiles = (what.n_inputs() + kImportInputs - 1) / kImportInputs;
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  if (n_blocks > kMax / n_tiles / what.n_channels)
    throw ConfigError("samples of beams: " + std::to_string(what.n_spectra) + " spectra of " +
                      std::to_string(what.n_channels) + " channels and " +
                      std::to_string(what.n_inputs()) + " inputs are too many for one launch");
  a.n_blocks = static_cast<int>(n_blocks);
  a.n_tiles = static_cast<int>(n_tiles);
  const auto grid = static_cast<unsigned>(n_tiles * n_blocks * what.n_channels);
  auto* const kernel = blocks.format == SampleFormat::ci4 ? import_tile<true> : import_tile<false>;
  kernel<<<grid, kImportThreads, 0, cuda::stream_of(queue)>>>(a);
  RYLE_CUDA_LAUNCHED("import_tile");
}

}  // namespace ryle::beamform::detail
