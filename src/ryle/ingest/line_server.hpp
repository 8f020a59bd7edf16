// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace ryle {

/// Answers single lines on a unix stream socket: a client connects, sends one line of at most
/// kMaxBytes, reads one line and is closed. No client can hold another up: at most kMaxClients
/// are open, each for at most `patience_s`; the next ones wait in the kernel.
class LineServer {
 public:
  /// Of the server's own thread. What it throws becomes the answer "error: ...".
  using Answer = std::function<std::string(std::string_view line)>;
  static constexpr std::size_t kMaxBytes = 4096;
  static constexpr std::size_t kMaxClients = 16;
  static constexpr double kPatience_s = 2;

  /// Listens at `path` with mode 0660: who may write to the group of the file may ask. A socket
  /// there that nobody listens on is replaced. Throws ConfigError for a path that is too long,
  /// IoError for one in use or not to be made.
  LineServer(const std::string& path, Answer answer, double patience_s = kPatience_s);
  /// Stops and removes the socket.
  ~LineServer();
  LineServer(const LineServer&) = delete;
  LineServer& operator=(const LineServer&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Sends a line to such a server and returns its answer, without the ends of lines. Throws IoError
/// when nobody listens, or nothing came within `patience_s`.
std::string ask_line_server(const std::string& path, std::string_view line, double patience_s = 10);

}  // namespace ryle
