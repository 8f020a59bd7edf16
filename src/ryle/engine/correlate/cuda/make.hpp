// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ryle/engine/correlate/correlate.hpp"

/// CUDA back-end of the correlator; present only in builds with CUDA (RYLE_HAVE_CUDA).
namespace ryle::correlate {

/// Memory spaces on a CUDA queue: Input.blocks in device memory; Input.valid and Sums in host
/// memory (execute() reads `valid` before it returns, so it may be reused at once). Names: "cuda"
/// (best for the format), "cuda:mma_s8" (tensor cores, ci4 ci8), "cuda:sm90_s8_wgmma" (ci8 on
/// compute capability 9.0), "cuda:sm90_ci4_wgmma" (ci4 there),
/// "cuda:sm90_f16_wgmma" and "cuda:mma_f16" (tensor cores, cf16), "cuda:simt" (every format).
/// @pre queue.back_end() == BackEnd::cuda and config was validated; throws UnsupportedError for an
/// unknown name.
std::unique_ptr<Correlator> make_cuda_correlator(Queue& queue, const Config& config);

/// Sums of a CUDA correlator where they lie, for an engine that goes on on the device.
struct DeviceSums {
  /// Not null: int32 tiles in the order of device/cuda/product_tiles.hpp, [channel][tile], each 2^s
  /// times the sum, s = tile_shift. Null: `sums`.
  const std::int32_t* tiles = nullptr;
  int tile_shift = 0;
  /// [channel][pair], complex int64 (integer formats) or double.
  const void* sums = nullptr;
  bool integer = true;
  /// [channel][pair] on the device; nullptr = n_spectra everywhere.
  const std::uint32_t* counts = nullptr;
  std::int64_t n_spectra = 0;
};
/// As Correlator::finish(), but the sums stay on the device: asynchronous on the queue, valid for
/// work that is queued before the next execute() or reset(), and the next dump starts from zero.
/// @pre `correlator` came from make_cuda_correlator (or make_correlator on a CUDA queue); throws
/// UnsupportedError otherwise.
DeviceSums finish_on_device(Queue& queue, Correlator& correlator);

/// The same, but never as tiles: DeviceSums::sums.
DeviceSums finish_in_order(Queue& queue, Correlator& correlator);

/// The same, but the counts come to the host: empty = n_spectra everywhere.
DeviceSums finish_in_order(Queue& queue, Correlator& correlator,
                           std::vector<std::uint32_t>& counts);

/// Names usable on this machine, best first; empty when cuda_unavailable_reason() is not "".
std::vector<std::string> cuda_implementations();

}  // namespace ryle::correlate
