// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/ryle/command.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/core/error.hpp"
#include "ryle/ingest/line_server.hpp"
#include "ryle/pipeline/config/config.hpp"

/// `ryle command`: asks a live run to do something while it works.
namespace ryle::app {
namespace {

namespace fs = std::filesystem;

struct CommandArguments {
  std::string run, command, argument;
};

/// The socket itself, or that of an observation file.
std::string socket_of(const std::string& given) {
  if (fs::path(given).extension() != ".toml") return given;
  const auto config = pipeline::load_observation(given);
  if (config.runtime.command_socket.empty())
    throw ConfigError(given +
                      ": runtime.command_socket is empty: runs of it cannot be asked; set it (a "
                      "file name in output.directory) and start the run again");
  return (fs::path(config.output.directory) / config.runtime.command_socket).string();
}

std::string command_request(const CommandArguments& a) {
  nlohmann::ordered_json request{{"command", a.command}};
  const auto needs = [&](const char* what) {
    if (a.argument.empty())
      throw Error(ExitCode::usage, "ryle command RUN " + a.command + " needs " + what);
  };
  if (a.command == "mark") {
    needs("a text");
    request["text"] = a.argument;
  } else if (a.command == "gains" || a.command == "beams") {
    needs("a file");
    request["file"] = fs::absolute(a.argument).string();  // the run may work elsewhere
  } else if (a.command == "start") {
    needs("a product");
    request["product"] = a.argument;
  } else if (a.command == "dump" && !a.argument.empty()) {
    const auto seconds = nlohmann::json::parse(a.argument, nullptr, false);
    if (!seconds.is_number())
      throw Error(ExitCode::usage,
                  "ryle command RUN dump SECONDS: \"" + a.argument + "\" is no number");
    request["seconds"] = seconds;
  } else if (a.command == "stop" && !a.argument.empty()) {
    request["product"] = a.argument;
  } else if (!a.argument.empty()) {
    throw Error(ExitCode::usage, "ryle command RUN " + a.command + " takes nothing more, but \"" +
                                     a.argument + "\" was given");
  }
  return request.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

int ask_run(const Context& context, const CommandArguments& a) {
  const std::string socket = socket_of(a.run);
  const std::string reply = ask_line_server(socket, command_request(a));
  const auto answer = nlohmann::json::parse(reply, nullptr, false);
  if (!answer.is_object() || !answer.contains("result"))
    throw FormatError(socket + " answered \"" + reply +
                      "\": not a socket of runtime.command_socket");
  const std::string result = answer.value("result", "");
  if (context.json) {
    fmt::print("{}\n", answer.dump());
  } else {
    const std::string from = answer.value("from_utc", "");
    fmt::print("{}: {}{}\n", result, answer.value("message", ""),
               from.empty() ? "" : " (" + from + " UTC)");
  }
  std::fflush(stdout);
  if (result == "done") return 0;
  return static_cast<int>(result == "error" ? ExitCode::usage : ExitCode::unavailable);
}

}  // namespace

void add_command(CLI::App& app, Context& context) {
  auto* sub =
      app.add_subcommand("command", "ask a live run for its state, a mark, new files, its end");
  auto a = std::make_shared<CommandArguments>();
  sub->add_option("run", a->run,
                  "runtime.command_socket of the run, or its observation file (.toml)")
      ->required();
  sub->add_option(
         "command", a->command,
         "status | rotate (new files) | mark TEXT | stop [PRODUCT] | start PRODUCT | gains "
         "FILE | beams FILE | dump [SECONDS] (the last voltages to a file)")
      ->required()
      ->check(
          CLI::IsMember({"status", "rotate", "mark", "stop", "start", "gains", "beams", "dump"}));
  sub->add_option("argument", a->argument, "text, product, file or seconds of the command");
  add_common(*sub, context);
  sub->callback([&context, a] { context.action = [&context, a] { return ask_run(context, *a); }; });
}

}  // namespace ryle::app
