// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>

#include "ryle/core/samples.hpp"
#include "ryle/device/queue.hpp"

/// Samples come with all inputs of an instant together; a filter reads one input at many instants.
/// On a GPU turning them first costs a copy in device memory and lets the channelizer read whole
/// sectors of what it uses.
namespace ryle::channelize {

/// Layout of n_ticks samples of every input, each input's together: rows of whole lines of 128
/// bytes. Nothing where samples are not dense words of 1, 2 or 4 bytes, all inputs of an instant
/// together.
std::optional<SampleLayout> transposed_layout(const SampleLayout& from, std::int64_t n_inputs,
                                              std::int64_t n_ticks);
/// Bytes of all rows.
std::int64_t transposed_bytes(const SampleLayout& turned, std::int64_t n_inputs);

/// Turns n_ticks instants, at most as many as transposed_layout() was asked for; rows beyond them
/// hold anything. Asynchronous on the queue; memory: where the queue's engines read.
/// @pre `turned` = transposed_layout() of `from`; on CUDA samples begin at a multiple of 4 bytes
void transpose_samples(Queue& queue, const void* samples, const SampleLayout& from,
                       std::int64_t n_inputs, std::int64_t n_ticks, const SampleLayout& turned,
                       void* to);

}  // namespace ryle::channelize
