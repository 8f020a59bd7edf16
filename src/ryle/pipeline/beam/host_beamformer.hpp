// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <vector>

#include "ryle/device/buffer.hpp"
#include "ryle/engine/beamform/beamform.hpp"

namespace ryle::pipeline {

/// A beamformer of any queue for callers whose samples and results are in host memory, with any
/// strides: gulps are copied there and back, and execute() returns when they are.
/// @pre samples in the order of spectra
class HostBeamformer final : public beamform::Beamformer {
 public:
  /// Works on `queue`, whatever queue its functions are given.
  HostBeamformer(Queue queue, const beamform::Config& config);

  void set_weights(Queue& queue, View<const cf32, 3> weights) override;
  void set_requantization(Queue& queue, View<const float, 3> scale,
                          View<const float, 3> offset) override;
  std::int64_t execute(Queue& queue, const beamform::Input& input,
                       const beamform::Output& output) override;
  void reset() override { engine_->reset(); }
  std::string_view implementation() const override { return engine_->implementation(); }
  const beamform::Config& config() const override { return engine_->config(); }

 private:
  beamform::Input upload(const beamform::Input& input);
  void store(const beamform::Output& output, std::int64_t n_windows) const;

  Queue queue_;
  std::unique_ptr<beamform::Beamformer> engine_;
  std::int64_t cells_ = 0, beam_cells_ = 0;  ///< of the counts
  Buffer<std::byte> samples_, values_;       ///< of the queue
  Buffer<std::byte> staging_;                ///< values in host memory, dense
  Buffer<std::uint32_t> low_, high_, used_;
  Buffer<float> power_;
};

}  // namespace ryle::pipeline
