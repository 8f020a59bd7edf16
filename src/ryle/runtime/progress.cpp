// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/runtime/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>

#include "ryle/runtime/stage_thread.hpp"

namespace ryle {

std::string to_text(const ProgressRecord& record) {
  std::string out;
  for (const auto& [key, value] : record.fields) {
    if (!out.empty()) out += "  ";
    out += key + ' ';
    if (const auto* real = std::get_if<double>(&value)) {
      out += fmt::format("{:.4g}", *real);
    } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      out += fmt::format("{}", *integer);
    } else {
      out += std::get<std::string>(value);
    }
  }
  return out;
}

std::string to_json(const ProgressRecord& record) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [key, value] : record.fields) {
    std::visit([&object, &name = key](const auto& v) { object[name] = v; }, value);
  }
  // Text from outside (a host name, a path) may not be UTF-8: it is replaced, never thrown about.
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

struct ProgressReporter::State {
  std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
};

ProgressReporter::ProgressReporter(std::chrono::milliseconds interval, Probe probe, Sink sink)
    : state_(std::make_shared<State>()) {
  auto body = [state = state_, interval, probe = std::move(probe),
               sink = std::move(sink)](const std::stop_token&) {
    auto next = std::chrono::steady_clock::now() + interval;
    for (bool last = false; !last;) {
      {
        std::unique_lock lock(state->mutex);
        last = state->wake.wait_until(lock, next, [&] { return state->stopping; });
      }
      next = std::max(next + interval, std::chrono::steady_clock::now());  // no burst after a stall
      sink(probe());
    }
  };
  auto on_stop = [state = state_] {
    const std::lock_guard lock(state->mutex);
    state->stopping = true;
    state->wake.notify_all();
  };
  thread_ = std::make_unique<StageThread>("ryle-progress", std::move(body), std::move(on_stop));
}

ProgressReporter::~ProgressReporter() = default;

void ProgressReporter::stop() {
  thread_->request_stop();
  thread_->join();
}

}  // namespace ryle
