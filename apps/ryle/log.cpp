// SPDX-License-Identifier: BSD-3-Clause
#include "apps/ryle/log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

namespace ryle::app {
namespace {

/// UTC of this moment, with so many digits of a second.
std::string utc_now(int digits) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const std::time_t seconds = us / 1'000'000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  return digits == 0 ? fmt::format("{}Z", text.data())
                     : fmt::format("{}.{:06}Z", text.data(), us % 1'000'000);
}

std::string_view level_name(LogLevel level) {
  switch (level) {
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      break;
  }
  return "error";
}

void write_line(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);  // at once: lines of two programs do not mix
  std::fflush(stderr);
}

}  // namespace

Log::Log() : terminal_(isatty(STDERR_FILENO) == 1) {}

Log& Log::get() {
  static Log log;
  return log;
}

void Log::line(LogLevel level, std::string_view event, const std::string& text) {
  line(level, event, text, nlohmann::ordered_json::object());
}

void Log::line(LogLevel level, std::string_view event, const std::string& text,
               const nlohmann::ordered_json& fields) {
  end_status();
  if (json_) {
    nlohmann::ordered_json object{
        {"time", utc_now(6)}, {"level", level_name(level)}, {"event", event}, {"message", text}};
    object.update(fields);
    // Names and bytes from outside need not be UTF-8.
    return write_line(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  if (begun_ && !terminal_)
    return write_line(fmt::format("{} ryle: {}: {}\n", utc_now(0), level_name(level), text));
  if (level == LogLevel::error) return write_line("ryle: error: " + text + "\n");
  write_line((level == LogLevel::warning ? "warning: " : "") + text + "\n");
}

void Log::status(const std::string& text) {
  write_line("\r\033[K" + text);
  open_line_ = true;
}

void Log::end_status(bool erase) {
  if (open_line_) write_line(erase ? "\r\033[K" : "\n");
  open_line_ = false;
}

void choose_log(const std::string& format) { Log::get().use_json(format == "json"); }

}  // namespace ryle::app
