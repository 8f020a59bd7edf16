// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/base/async_readback.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ryle/core/baseline.hpp"
#include "ryle/core/checked.hpp"
#include "ryle/device/event.hpp"
#include "ryle/device/on_device.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/correlate/cuda/make.hpp"
#endif

namespace ryle::pipeline {

struct AsyncReadback::OnGpu {
  OnGpu(const Queue& work, std::int64_t n_bytes)
      : queue(Queue::beside(work)),
        ready(work),
        sums(n_bytes, MemorySpace::device),
        pieces(2 * kPieceBytes, MemorySpace::pinned),
        arrived{Event(work), Event(work)} {}

  /// One piece crosses the bus while the one before is copied to where it belongs.
  void copy_to(std::byte* to) {
    const std::int64_t n = (sums.bytes() + kPieceBytes - 1) / kPieceBytes;
    for (std::int64_t k = 0; k <= n; ++k) {
      if (k < n) {
        copy_bytes(queue, pieces.data() + k % 2 * kPieceBytes, sums.data() + k * kPieceBytes,
                   bytes_of(k));
        arrived[k % 2].record(queue);
      }
      if (k == 0) continue;
      arrived[(k - 1) % 2].synchronize();
      std::memcpy(to + (k - 1) * kPieceBytes, pieces.data() + (k - 1) % 2 * kPieceBytes,
                  static_cast<std::size_t>(bytes_of(k - 1)));
    }
  }
  std::int64_t bytes_of(std::int64_t piece) const {
    return std::min(kPieceBytes, sums.bytes() - piece * kPieceBytes);
  }

  static constexpr std::int64_t kPieceBytes = 8 << 20;
  Queue queue;
  Event ready;
  Buffer<std::byte> sums;
  Buffer<std::byte> pieces;
  Event arrived[2];
};

AsyncReadback::AsyncReadback(const Queue& work, const correlate::Config& config)
    : n_pairs_(n_pairs(config.n_inputs)), n_channels_(config.n_channels) {
  if (work.back_end() != BackEnd::cuda) return;
  const OnDevice scope(work);
  constexpr std::int64_t kSumBytes = 16;  // ci64 or cf64
  gpu_ = std::make_unique<OnGpu>(
      work, checked_product({n_channels_, n_pairs_, kSumBytes}, "sums of a dump"));
}

AsyncReadback::~AsyncReadback() = default;

std::int64_t AsyncReadback::bytes() const {
  return gpu_ == nullptr ? 0 : gpu_->sums.bytes() + gpu_->pieces.bytes();
}

void AsyncReadback::begin(Queue& work, correlate::Correlator& correlator) {
#ifdef RYLE_HAVE_CUDA
  if (gpu_ != nullptr) {
    const OnDevice scope(work);
    const correlate::DeviceSums from = correlate::finish_in_order(work, correlator, here_.counts);
    here_.n_spectra = from.n_spectra;
    integer_ = from.integer;
    copy_bytes(work, gpu_->sums.data(), from.sums, gpu_->sums.bytes());
    gpu_->ready.record(work);
    gpu_->ready.wait_event(gpu_->queue);
    return;
  }
#endif
  correlator.finish(work, here_);
  integer_ = !here_.integer.empty();
}

void AsyncReadback::receive(correlate::Sums& sums, std::int64_t first_channel,
                            std::int64_t n_channels) {
  if (gpu_ == nullptr && n_channels == n_channels_) {
    std::swap(sums, here_);
    return;
  }
  const auto place = [&](auto& all) {
    all.resize(n_channels * n_pairs_);
    return all.data() + first_channel * n_pairs_;
  };
  if (gpu_ != nullptr) {
    gpu_->copy_to(integer_ ? reinterpret_cast<std::byte*>(place(sums.integer))
                           : reinterpret_cast<std::byte*>(place(sums.real)));
  } else if (integer_) {
    std::copy(here_.integer.begin(), here_.integer.end(), place(sums.integer));
  } else {
    std::copy(here_.real.begin(), here_.real.end(), place(sums.real));
  }
  if (here_.counts.empty()) {  // nothing was absent
    std::fill_n(place(sums.counts), n_channels_ * n_pairs_,
                static_cast<std::uint32_t>(here_.n_spectra));
  } else {
    std::copy(here_.counts.begin(), here_.counts.end(), place(sums.counts));
  }
  sums.n_spectra = here_.n_spectra;
}

}  // namespace ryle::pipeline
