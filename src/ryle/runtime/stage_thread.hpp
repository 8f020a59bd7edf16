// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace ryle {

/// One stage of the graph: a named thread whose exception is kept and rethrown by join(). `body`
/// must return soon after its token is asked to stop. `on_stop` (optional) runs in the thread that
/// asks, to wake a body that waits (close a queue, shut a socket down).
class StageThread {
 public:
  using Body = std::function<void(std::stop_token)>;

  StageThread(std::string name, Body body, std::function<void()> on_stop = {});
  /// Asks to stop and waits; an exception that nobody joined for is dropped here.
  ~StageThread();
  StageThread(const StageThread&) = delete;
  StageThread& operator=(const StageThread&) = delete;

  void request_stop();
  /// The body has returned or thrown.
  bool finished() const;
  /// Waits for the end however long it takes; rethrows what the body threw, once.
  void join();
  const std::string& name() const { return name_; }

 private:
  void rethrow();

  std::string name_;
  std::function<void()> on_stop_;
  mutable std::mutex mutex_;
  bool finished_ = false;
  std::exception_ptr error_;
  std::stop_source stop_;
  std::thread thread_;  // last: starts when everything above exists
};

}  // namespace ryle
