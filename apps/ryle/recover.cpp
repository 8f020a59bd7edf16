// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/ryle/command.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/core/error.hpp"
#include "ryle/io/recover/unfinished.hpp"

namespace ryle::app {
namespace {

using Outcome = Recovered::Outcome;

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::in_use:
      return "in_use";
    case Outcome::whole:
      return "whole";
    case Outcome::published:
      return "published";
    case Outcome::nothing:
      return "nothing";
    case Outcome::failed:
      return "failed";
    case Outcome::not_judged:
      return "not_judged";
    default:
      return "lost";
  }
}

std::string sentence(const Recovered& r) {
  const std::string what = r.unit == "spectrum" ? "spectra" : r.unit + "s";
  switch (r.outcome) {
    case Outcome::in_use:
      return "in use: a running process is writing it; left alone";
    case Outcome::whole:
      return fmt::format("{} whole {}", r.integrations, what);
    case Outcome::published:
      return fmt::format("{} whole {} -> {}", r.integrations, what, r.product);
    case Outcome::nothing:
      return "no whole " + r.unit + " in it";
    case Outcome::failed:
      return fmt::format("{} whole {} could not be published and stay", r.integrations, what);
    case Outcome::not_judged:
      return "not judged";
    default:
      return "cannot be recovered";
  }
}

void print_text(const Recovered& r) {
  const bool gone = r.removed && r.outcome != Outcome::published;
  fmt::print("{} ({}): {}{}{}\n", r.source.path, bytes_text(static_cast<double>(r.source.bytes)),
             sentence(r), r.message.empty() ? "" : ": " + r.message, gone ? "; removed" : "");
}

nlohmann::ordered_json to_json(const Recovered& r) {
  return {
      {"path", r.source.path},         {"name", r.source.final_path},    {"bytes", r.source.bytes},
      {"outcome", name_of(r.outcome)}, {"integrations", r.integrations}, {"unit", r.unit},
      {"product", r.product},          {"removed", r.removed},           {"message", r.message}};
}

struct RecoverArguments {
  std::vector<std::string> places;
  bool list = false;
  bool remove = false;
};

int run(const Context& context, const RecoverArguments& arguments) {
  std::vector<Unfinished> sources;
  for (const auto& place : arguments.places) {
    for (auto& found : find_unfinished(place)) sources.push_back(std::move(found));
  }
  const auto results =
      recover(sources, {.write = !arguments.list, .remove = arguments.remove && !arguments.list});
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  bool lost = false;
  bool failed = false;
  bool not_judged = false;
  bool left = false;
  for (const auto& r : results) {
    context.json ? rows.push_back(to_json(r)) : print_text(r);
    lost = lost || r.outcome == Outcome::lost;
    failed = failed || r.outcome == Outcome::failed;
    not_judged = not_judged || r.outcome == Outcome::not_judged;
    left = left || ((r.outcome == Outcome::lost || r.outcome == Outcome::nothing) && !r.removed);
  }
  if (context.json) fmt::print("{}\n", nlohmann::ordered_json{{"unfinished", rows}}.dump());
  if (!context.json && results.empty()) fmt::print("nothing unfinished\n");
  if (!context.json && left && !arguments.list)
    fmt::print("add --delete to remove what cannot be recovered\n");
  std::fflush(stdout);
  if (failed) return static_cast<int>(ExitCode::io);
  if (arguments.list) return 0;
  if (lost) return static_cast<int>(ExitCode::bad_data);
  return not_judged ? static_cast<int>(ExitCode::unavailable) : 0;
}

}  // namespace

void add_recover(CLI::App& app, Context& context) {
  auto* sub =
      app.add_subcommand("recover",
                         "publish the whole integrations, images and spectra of files whose "
                         "writer was killed");
  auto a = std::make_shared<RecoverArguments>();
  sub->add_option("place", a->places, "directory, or the name of a product")->required();
  sub->add_flag("--list", a->list, "say what is there and change nothing");
  sub->add_flag("--delete", a->remove, "remove what holds no whole integration or cannot be read");
  add_common(*sub, context);
  sub->callback([&context, a] { context.action = [&context, a] { return run(context, *a); }; });
}

}  // namespace ryle::app
