// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/search/drift.hpp"
#include "ryle/engine/search/normalize.hpp"
#include "ryle/engine/search/search.hpp"

/// Device memory of the CUDA engines of this folder, from their plans: known in every build, and
/// without a device.
namespace ryle::search {

/// What of a normalizer's state lies in device memory, per item. cuda/normalize.cuh asserts them.
inline constexpr std::int64_t kCellMoments_bytes = 16, kCellScale_bytes = 16;
/// Arrays of a thread block that decides among channels, per channel, and what else it keeps in
/// shared memory. cuda/normalize_flags.cuh asserts them.
inline constexpr std::int64_t kFlagChannel_bytes = 39, kFlagBlock_bytes = 9728;
inline constexpr int kFlagRoomBlocks = 528;  ///< at a time: 4 for each of 132 multiprocessors
/// Of a block in memory of its own; whole pieces of 128 bytes.
constexpr std::int64_t flag_room_stride(std::int64_t n_channels) {
  return (kFlagChannel_bytes * n_channels + 127) / 128 * 128;
}
/// Memory for those arrays where they are more than shared memory holds, else 0. What a block may
/// have is asked of a device; plans take an H100's or H200's 227 KiB.
constexpr std::int64_t device_flag_room_bytes(std::int64_t n_channels,
                                              std::int64_t shared_bytes = 227 * 1024 -
                                                                          kFlagBlock_bytes) {
  if (kFlagChannel_bytes * n_channels <= shared_bytes) return 0;
  return kFlagRoomBlocks * flag_room_stride(n_channels);
}
/// Whether a normalizer with this configuration looks for bursts in the band sum.
bool looks_for_bursts(const NormalizeConfig& config);
/// CudaNormalizer for so many beams and samples a call.
std::int64_t device_normalizer_bytes(const NormalizeConfig& config, std::int64_t n_beams,
                                     std::int64_t max_samples);

/// State of CellLevel in device memory. cuda/drift.cu asserts it.
inline constexpr std::int64_t kCellLevel_bytes = 12;
/// CudaDriftFilter for so many beams and blocks of so many samples.
std::int64_t device_drift_bytes(const DriftConfig& config, std::int64_t n_beams,
                                std::int64_t block);

/// Rows that each pass of the tree makes, the codes' first, the trials last.
std::vector<std::int64_t> tree_pass_rows(const DedisperseConfig& config);
/// Words of half a block in the tree on a device: word t has samples t and t + half.
std::int64_t device_tree_half(std::int64_t n_outputs);
/// Words of a row between two passes of the tree on a device.
std::int64_t device_tree_stride(std::int64_t max_outputs, std::int64_t max_delay);
/// Rows between the passes of the tree on a device. What its plan says of tiles comes on top.
std::int64_t device_tree_bytes(const DedisperseConfig& config);
/// Rows between the two stages of sub-bands on a device.
std::int64_t device_subband_bytes(const DedisperseConfig& config);
/// Largest windows of cells that a detector on a device keeps; 0 where rows are read twice.
std::int64_t device_detector_bytes(const DetectConfig& config);

}  // namespace ryle::search
