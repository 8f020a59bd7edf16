// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ryle/pipeline/base/command_result.hpp"

/// What an operator asks of a live run while it works (`ryle command`).
namespace ryle::pipeline {

/// One request: a JSON object on one line, {"command": "rotate"}.
struct CommandRequest {
  std::string command;  ///< status | mark | rotate | stop | start | gains | beams | dump
  std::string text;     ///< of a mark
  std::string product;  ///< of start and stop; empty: the run
  std::string file;     ///< of gains and beams, absolute
  double seconds = 0;   ///< of a dump; 0: all that is kept

  /// Throws ConfigError that says what would work: an unknown command or key, one too many or
  /// missing.
  static CommandRequest parse(std::string_view line);
};

/// The unix socket of runtime.command_socket. Requests are answered by poll(), on the thread of the
/// caller: between two chunks, so that what a command changes is not in use.
/// - Thread: the socket's own waits for clients; each request waits there for the next poll(), at
///   most kPatience_s, and is refused after that.
/// - After the destructor nobody waits.
class CommandSocket {
 public:
  /// @param answer {"result": "done" | "refused" | "error", ...}, one line
  using Answer = std::function<std::string(const CommandRequest&)>;
  static constexpr double kPatience_s = 8;

  /// Listens at `path`. Throws as LineServer.
  explicit CommandSocket(const std::string& path);
  ~CommandSocket();
  CommandSocket(const CommandSocket&) = delete;
  CommandSocket& operator=(const CommandSocket&) = delete;

  /// Answers what was asked since the last call.
  void poll(const Answer& answer);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// {"result": "done", "message": ..., "from_utc": ...}
std::string to_json(const CommandResult& result);

}  // namespace ryle::pipeline
