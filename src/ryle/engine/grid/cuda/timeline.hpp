// SPDX-License-Identifier: BSD-3-Clause
// When a device did what: events around the work of each stage. Private to the engine.
#pragma once
#include <memory>
#include <vector>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/engine/grid/cuda/make.hpp"

namespace ryle::grid::detail {

class CudaTimeline {
 public:
  /// Forgets everything; what follows is timed from here on. @param queue of the device
  void start(const Queue& queue) {
    spans_.clear();
    origin_ = std::make_unique<Event>();
    origin_->record(queue);
  }
  void begin(const Queue& queue, const char* stage) {
    spans_.push_back({stage, std::make_unique<Event>(), std::make_unique<Event>()});
    spans_.back().begin->record(queue);
  }
  std::size_t last() const { return spans_.size() - 1; }
  void end(const Queue& queue, std::size_t span) { spans_[span].end->record(queue); }
  /// @pre all of it is done
  std::vector<CudaMapper::StageTime> times() const {
    std::vector<CudaMapper::StageTime> times;
    for (const Span& s : spans_)
      times.push_back({s.stage, origin_->ms_until(*s.begin), origin_->ms_until(*s.end)});
    return times;
  }

 private:
  class Event {
   public:
    Event() { RYLE_CUDA(cudaEventCreate(&event_)); }
    ~Event() { static_cast<void>(cudaEventDestroy(event_)); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    void record(const Queue& queue) { RYLE_CUDA(cudaEventRecord(event_, cuda::stream_of(queue))); }
    double ms_until(const Event& later) const {
      float ms = 0;
      RYLE_CUDA(cudaEventElapsedTime(&ms, event_, later.event_));
      return ms;
    }

   private:
    cudaEvent_t event_ = nullptr;
  };
  struct Span {
    const char* stage;
    std::unique_ptr<Event> begin, end;
  };
  std::unique_ptr<Event> origin_;
  std::vector<Span> spans_;
};

/// A stage while this lives; nothing where there is no timeline.
class StageSpan {
 public:
  StageSpan(CudaTimeline* timeline, const Queue& queue, const char* stage)
      : timeline_(timeline), queue_(queue) {
    if (timeline_ == nullptr) return;
    timeline_->begin(queue_, stage);
    span_ = timeline_->last();
  }
  ~StageSpan() {
    if (timeline_ != nullptr) timeline_->end(queue_, span_);
  }
  StageSpan(const StageSpan&) = delete;
  StageSpan& operator=(const StageSpan&) = delete;

 private:
  CudaTimeline* timeline_;
  const Queue& queue_;
  std::size_t span_ = 0;
};

}  // namespace ryle::grid::detail
