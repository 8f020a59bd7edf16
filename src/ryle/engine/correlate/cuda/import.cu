// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/correlate/cuda/import.cuh"

#include <algorithm>
#include <limits>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/correlate/cuda/import.hpp"

namespace ryle::correlate::detail {

void import_voltages_cuda(Queue& queue, const void* source, const VoltageLayout& layout,
                          std::int64_t n_spectra, const BlockView& blocks,
                          const ValidPlanes& planes) {
  const std::int64_t n = n_blocks(blocks.format, n_spectra);
  if (n == 0) return;
  const cuda::DeviceScope scope(cuda::device_of(queue));
  cuda::require_device_memory(source, "voltages to import");
  cuda::require_device_memory(blocks.data, "blocks of imported voltages");
  if (planes.valid != nullptr) cuda::require_device_memory(planes.valid, "planes of valid samples");
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  const std::int64_t columns = checked_product({blocks.n_channels, blocks.n_inputs}, "columns");
  const std::int64_t tiles = (columns + kImportColumns - 1) / kImportColumns;
  if (columns > kMax - kImportColumns || n_spectra > kMax / 2 || tiles > kMax / n) {
    throw ConfigError("import of voltages: " + std::to_string(n_spectra) + " spectra of " +
                      std::to_string(columns) + " channels and inputs are too many for one launch");
  }
  const ImportArguments arguments{
      .source = static_cast<const std::byte*>(source),
      .from_channel = layout.channel_stride_bytes,
      .from_input = layout.input_stride_bytes,
      .from_spectrum = layout.spectrum_stride_bytes,
      .from_heap = layout.heap_stride_bytes,
      .spectra_per_heap = static_cast<int>(
          layout.spectra_per_heap == 0 ? kNoHeaps : std::min(layout.spectra_per_heap, kNoHeaps)),
      .to = blocks.data,
      .to_channel = blocks.channel_stride_bytes,
      .to_block = blocks.block_stride_bytes,
      .to_input = blocks.input_stride_bytes,
      .valid = planes.valid,
      .valid_words = planes.words,
      .valid_channel_words = planes.channel_stride_words,
      .n_spectra = static_cast<int>(n_spectra),
      .n_inputs = static_cast<int>(blocks.n_inputs),
      .n_columns = static_cast<int>(columns),
      .n_tiles = static_cast<int>(tiles)};
  const auto bytes = static_cast<int>(voltage_bytes(layout.format));
  const bool to_floats = blocks.format != layout.format;
  const ImportKernel kernel = import_kernel(bytes, to_floats, import_read(arguments, bytes));
  kernel<<<static_cast<unsigned>(tiles * n), kImportThreads, 0, cuda::stream_of(queue)>>>(
      arguments);
  RYLE_CUDA_LAUNCHED("import_blocks");
}

}  // namespace ryle::correlate::detail
