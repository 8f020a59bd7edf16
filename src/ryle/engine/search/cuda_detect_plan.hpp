// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/device/buffer.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/engine/search/cuda_detect.cuh"
#include "ryle/engine/search/detect.hpp"

/// Private to the CUDA detectors: host side of the list of tokens.
namespace ryle::search::detail {

BoxcarTable boxcar_table(std::int64_t max_width);

/// Tokens as kernels append them; collect() gives them the order of trial, octave, time.
class DeviceTokens {
 public:
  DeviceTokens(Queue& queue, std::int64_t capacity);
  void clear(Queue& queue);
  TokenList list() const;
  /// Waits for the queue. False: there were more than fit; there is room now, search again.
  bool collect(Queue& queue, std::vector<Token>& tokens);

 private:
  Buffer<DeviceToken> tokens_;
  Buffer<unsigned> n_;
  std::vector<DeviceToken> host_;
};

}  // namespace ryle::search::detail
