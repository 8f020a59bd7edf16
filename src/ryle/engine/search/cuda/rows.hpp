// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/device/queue.hpp"
#include "ryle/engine/search/search.hpp"

/// What lies between the engines of a search whose data stay on a device; in builds with CUDA only
/// (RYLE_HAVE_CUDA). All calls are asynchronous, on CUDA queues.
namespace ryle::search {

/// n_outer x n_inner rows of n_bytes each; strides in bytes.
struct DeviceRows {
  void* to = nullptr;
  std::int64_t to_outer = 0, to_inner = 0;
  std::int64_t n_outer = 1, n_inner = 0, n_bytes = 0;
};
/// From device memory of the same device.
void copy_rows(Queue& queue, const DeviceRows& rows, const void* from, std::int64_t from_outer,
               std::int64_t from_inner);
/// One of the two sides in host memory (pinned: asynchronous).
void transfer_rows(Queue& queue, const DeviceRows& rows, const void* from, std::int64_t from_outer,
                   std::int64_t from_inner);
void fill_rows(Queue& queue, const DeviceRows& rows, std::uint8_t value);
/// n_bytes is a multiple of 4.
void fill_rows(Queue& queue, const DeviceRows& rows, float value);

/// weights[trial][cell] = sums[trial][cell] / full
void weights_from_sums(Queue& queue, const void* sums, SumFormat format, std::int64_t n_trials,
                       std::int64_t n_cells, float full, float* weights,
                       std::int64_t weight_stride);

/// The mask of all beams. @shape cells [beam][channel][n_cells] u8, full: kFullCell
struct DeviceMask {
  const std::uint8_t* cells = nullptr;
  std::int64_t beam_stride = 0, channel_stride = 0;
  std::int64_t n_beams = 0, n_channels = 0, n_cells = 0;
};
/// channels[beam][0 .. counts[beam]) = those with a cell that is not full, in any order.
void find_masked_channels(Queue& queue, const DeviceMask& mask, std::int32_t* channels,
                          std::int32_t* counts);
/// The same weights as from sums of all channels, made from those that are not full.
/// @shape channels [n_masked]; delays [trial][n_channels], in cells
/// @param cells of one beam
void weights_from_masked(Queue& queue, const DeviceMask& cells, const std::int32_t* channels,
                         std::int64_t n_masked, const std::int32_t* delays, std::int64_t n_trials,
                         float full, float* weights, std::int64_t weight_stride);

}  // namespace ryle::search
