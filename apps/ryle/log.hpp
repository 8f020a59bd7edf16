// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ryle::app {

enum class LogLevel : std::uint8_t { info, warning, error };

/// What the program says on standard error.
/// - As text (the default): lines for a person. Those of a long command begin with time and level,
///   "2026-11-29T00:12:33Z ryle: info: ", unless standard error is a terminal.
/// - As JSON: one object a line: time (UTC, ISO 8601 with microseconds), level, event, message, and
///   the fields of the event with units in their names.
/// One thread writes.
class Log {
 public:
  /// That of the program.
  static Log& get();

  void use_json(bool json) { json_ = json; }
  bool json() const { return json_; }
  /// A long command has begun: from here on lines of text carry time and level.
  void begin() { begun_ = true; }
  /// A person watches: a status may rewrite its line.
  bool has_status_line() const { return terminal_ && !json_; }

  /// A line of its own. @param fields an object, in JSON mode after the message
  void line(LogLevel level, std::string_view event, const std::string& text,
            const nlohmann::ordered_json& fields);
  void line(LogLevel level, std::string_view event, const std::string& text);
  /// Rewrites the last line of the terminal. @pre has_status_line()
  void status(const std::string& text);
  /// Leaves the status where it is, or wipes it out.
  void end_status(bool erase = false);

 private:
  Log();

  bool json_ = false, begun_ = false, terminal_ = false, open_line_ = false;
};

/// "text" or "json", of --log or runtime.log.
void choose_log(const std::string& format);

}  // namespace ryle::app
