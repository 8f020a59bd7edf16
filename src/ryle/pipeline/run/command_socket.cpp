// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/command_socket.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/ingest/line_server.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle::pipeline {
namespace {

using CommandJson = nlohmann::ordered_json;

constexpr std::size_t kLongestText = 1024;

std::string command_answer(const char* result, const std::string& message) {
  // What a client sent may be in a message, and need not be UTF-8.
  return CommandJson{{"result", result}, {"message", message}}.dump(
      -1, ' ', true, nlohmann::json::error_handler_t::replace);
}

/// The key that a command needs, "" for none; "?" for one that may be there.
std::string_view key_of(std::string_view command) {
  if (command == "mark") return "text";
  if (command == "start") return "product";
  if (command == "gains" || command == "beams") return "file";
  return "";
}

}  // namespace

CommandRequest CommandRequest::parse(std::string_view line) {
  static constexpr std::string_view kCommands[] = {"status", "mark",  "rotate", "stop",
                                                   "start",  "gains", "beams",  "dump"};
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("command") || !json["command"].is_string())
    throw ConfigError(R"(a JSON object is asked for, such as {"command": "status"})");
  CommandRequest request;
  request.command = json["command"].get<std::string>();
  if (std::find(std::begin(kCommands), std::end(kCommands), request.command) ==
      std::end(kCommands)) {
    throw ConfigError("there is no command \"" + request.command.substr(0, 64) +
                      "\"; known: " + comma_separated(kCommands));
  }
  const std::string_view needed = key_of(request.command);
  for (const auto& [key, value] : json.items()) {
    if (key == "command") continue;
    if (key == "seconds" && request.command == "dump") {
      if (value.is_number()) request.seconds = value.get<double>();
      if (!(request.seconds > 0 && request.seconds <= 3600))
        throw ConfigError("\"seconds\" must be a number above 0, of at most 3600");
      continue;
    }
    if (key != needed && !(request.command == "stop" && key == "product"))
      throw ConfigError("\"" + request.command + "\" takes no \"" + key.substr(0, 64) + "\"");
    if (!value.is_string() || value.get<std::string>().empty() ||
        value.get<std::string>().size() > kLongestText)
      throw ConfigError("\"" + key + "\" must be a text of 1 to " + std::to_string(kLongestText) +
                        " bytes");
    (key == "text"   ? request.text
     : key == "file" ? request.file
                     : request.product) = value.get<std::string>();
  }
  if (!needed.empty() && !json.contains(needed))
    throw ConfigError("\"" + request.command + "\" needs a \"" + std::string(needed) + "\"");
  return request;
}

std::string to_json(const CommandResult& result) {
  CommandJson json{{"result", result.done ? "done" : "refused"}, {"message", result.message}};
  if (result.from_tai_ns != 0) json["from_utc"] = utc_iso(result.from_tai_ns, 6);
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

struct CommandSocket::Impl {
  struct Waiting {
    CommandRequest request;
    std::promise<std::string> answer;
  };

  explicit Impl(const std::string& path)
      : server(std::make_unique<LineServer>(
            path, [this](std::string_view line) { return wait_for_answer(line); })) {}
  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      ended = true;
      for (auto& w : waiting) w->answer.set_value(command_answer("refused", "the run has ended"));
      waiting.clear();
    }
    server.reset();
  }

  std::string wait_for_answer(std::string_view line) {
    auto w = std::make_shared<Waiting>();
    try {
      w->request = CommandRequest::parse(line);
    } catch (const Error& e) {
      return command_answer("error", e.what());
    }
    auto answer = w->answer.get_future();
    {
      const std::lock_guard lock(mutex);
      if (ended) return command_answer("refused", "the run has ended");
      waiting.push_back(w);
    }
    if (answer.wait_for(std::chrono::duration<double>(kPatience_s)) == std::future_status::ready)
      return answer.get();
    const std::lock_guard lock(mutex);
    if (std::erase(waiting, w) == 0) return answer.get();  // it was answered in between
    return command_answer("refused",
                          "the engines are busy with one chunk for longer than " +
                              std::to_string(static_cast<int>(kPatience_s)) +
                              " s: nothing was done; ask again, or for less work at a time "
                              "(source.chunk_ms)");
  }

  std::mutex mutex;
  std::vector<std::shared_ptr<Waiting>> waiting;
  bool ended = false;
  std::unique_ptr<LineServer> server;
};

CommandSocket::CommandSocket(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
CommandSocket::~CommandSocket() = default;

void CommandSocket::poll(const Answer& answer) {
  // Held while a request is worked on: its client must not give up in the middle.
  const std::lock_guard lock(impl_->mutex);
  for (auto& w : impl_->waiting) {
    try {
      w->answer.set_value(answer(w->request));
    } catch (const std::exception& e) {
      w->answer.set_value(command_answer("error", e.what()));
    }
  }
  impl_->waiting.clear();
}

}  // namespace ryle::pipeline
