// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/runtime/stage_thread.hpp"

#include <pthread.h>

#include <utility>

namespace ryle {

StageThread::StageThread(std::string name, Body body, std::function<void()> on_stop)
    : name_(std::move(name)), on_stop_(std::move(on_stop)) {
  thread_ = std::thread([this, body = std::move(body)] {
    // Linux shows 15 characters; `top -H` and debuggers then tell stages apart.
    pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
    std::exception_ptr error;
    try {
      body(stop_.get_token());
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      error_ = std::move(error);
      finished_ = true;
    }
  });
}

StageThread::~StageThread() {
  request_stop();
  if (thread_.joinable()) thread_.join();
}

void StageThread::request_stop() {
  if (stop_.request_stop() && on_stop_) on_stop_();
}

bool StageThread::finished() const {
  const std::lock_guard lock(mutex_);
  return finished_;
}

void StageThread::join() {
  if (thread_.joinable()) thread_.join();
  rethrow();
}

void StageThread::rethrow() {
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    error = std::exchange(error_, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace ryle
