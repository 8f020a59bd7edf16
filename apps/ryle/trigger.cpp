// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/ryle/command.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/core/error.hpp"
#include "ryle/ingest/line_server.hpp"

namespace ryle::app {
namespace {

struct TriggerArguments {
  std::string socket, utc, begin_utc, end_utc, name, reference_mhz;
  double dm_pc_cm3 = 0, dm_error = 0, width_s = 0;
};

// Arguments need not be UTF-8.
std::string text_of(const nlohmann::ordered_json& request) {
  return request.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string request_of(const TriggerArguments& a) {
  nlohmann::ordered_json request;
  if (!a.name.empty()) request["name"] = a.name;
  if (!a.begin_utc.empty() || !a.end_utc.empty()) {
    request["begin_utc"] = a.begin_utc;
    request["end_utc"] = a.end_utc;
    return text_of(request);
  }
  request["utc"] = a.utc;
  request["dm_pc_cm3"] = a.dm_pc_cm3;
  request["dm_error"] = a.dm_error;
  request["width_s"] = a.width_s;
  if (a.reference_mhz == "inf") {
    request["reference_mhz"] = "inf";
  } else if (!a.reference_mhz.empty()) {
    const auto mhz = nlohmann::json::parse(a.reference_mhz, nullptr, false);
    if (!mhz.is_number())
      throw Error(ExitCode::usage,
                  "--reference-mhz \"" + a.reference_mhz + "\" is neither a number nor inf");
    request["reference_mhz"] = mhz;
  }
  return text_of(request);
}

int run(const Context& context, const TriggerArguments& a) {
  const std::string reply = ask_line_server(a.socket, request_of(a));
  const auto answer = nlohmann::json::parse(reply, nullptr, false);
  if (!answer.is_object() || !answer.contains("result"))
    throw FormatError(a.socket + " answered \"" + reply + "\": not a socket of voltages.socket");
  if (context.json) {
    fmt::print("{}\n", answer.dump());
  } else {
    const std::string message = answer.value("message", "");
    fmt::print("{}{}{}\n", answer.value("result", ""),
               answer.contains("dump") ? fmt::format(", dump {}", answer.value("dump", 0)) : "",
               message.empty() ? "" : ": " + message);
  }
  std::fflush(stdout);
  const std::string result = answer.value("result", "");
  if (result == "accepted" || result == "merged") return 0;
  return static_cast<int>(result == "error" ? ExitCode::usage : ExitCode::unavailable);
}

}  // namespace

void add_trigger(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand("trigger", "ask a live run to write the voltages of an instant");
  auto a = std::make_shared<TriggerArguments>();
  sub->add_option("socket", a->socket, "voltages.socket of the run")->required();
  auto* utc = sub->add_option("--utc", a->utc, "of the pulse, e.g. 2025-03-01T16:10:00.5");
  sub->add_option("--dm", a->dm_pc_cm3, "pc/cm3")->check(number_in(0, 1e5));
  sub->add_option("--dm-error", a->dm_error, "pc/cm3")->check(number_in(0, 1e5));
  sub->add_option("--reference-mhz", a->reference_mhz,
                  "where --utc holds, or inf; default: the center of the highest channel");
  sub->add_option("--width", a->width_s, "s")->check(number_in(0, 3600));
  auto* begin = sub->add_option("--begin", a->begin_utc, "a span instead of a pulse: UTC");
  auto* end = sub->add_option("--end", a->end_utc, "of the span");
  begin->needs(end)->excludes(utc);
  end->needs(begin);
  sub->add_option("--name", a->name, "kept with the dump");
  add_common(*sub, context);
  sub->callback([&context, a, utc, begin] {
    if (utc->count() + begin->count() == 0)
      throw CLI::ValidationError("trigger", "give --utc, or --begin and --end");
    context.action = [&context, a] { return run(context, *a); };
  });
}

}  // namespace ryle::app
