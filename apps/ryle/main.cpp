// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>

#include "apps/ryle/command.hpp"
#include "apps/ryle/log.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/interrupt.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/version.hpp"

namespace ryle::app {
namespace {

std::atomic<int> g_signals{0};

// The first signal asks the run to close, drain and publish; the second ends the process at once.
void on_signal(int signal) {
  if (g_signals.fetch_add(1) > 0) _exit(128 + signal);
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

/// What a word that is not understood may have meant; "" when all are understood.
std::string did_you_mean(const CLI::App& cli, const std::vector<std::string>& arguments) {
  const CLI::App* chosen = &cli;
  std::string name = "ryle";
  for (std::size_t k = 1; k < arguments.size(); ++k) {
    const std::string word = arguments[k].substr(0, arguments[k].find('='));
    const auto commands = commands_of(*chosen);
    if (word[0] != '-' && !commands.empty()) {
      if (std::find(commands.begin(), commands.end(), word) != commands.end()) {
        chosen = chosen->get_subcommand(word);
        name += " " + word;
        continue;
      }
      if (chosen->get_require_subcommand_min() > 0)
        return "there is no command \"" + (chosen == &cli ? word : name.substr(5) + " " + word) +
               "\"; did you mean \"" + name + " " + nearest_word(word, commands) + "\"?";
    }
    const bool option = word.size() > 2 && word.rfind("--", 0) == 0;
    if (chosen == &cli || !option || chosen->get_option_no_throw(word) != nullptr) continue;
    std::vector<std::string> known;
    for (const auto* o : chosen->get_options())
      for (const auto& long_name : o->get_lnames()) known.push_back("--" + long_name);
    return name + " has no option " + word + "; did you mean " + nearest_word(word, known) + "?";
  }
  return "";
}

}  // namespace

std::atomic<int>& signal_count() { return g_signals; }

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  set_interrupt_count(&g_signals);
  std::signal(SIGXFSZ, SIG_IGN);  // a file too large is a write error, not a death
  std::signal(SIGPIPE, SIG_IGN);  // a sender that goes away is an error code, not a death
}

std::string shell_quoted(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\"'\\$&;|<>()*?[]#~") == std::string::npos)
    return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string Context::command_line() const {
  std::string line;
  for (const auto& a : arguments) line += (line.empty() ? "" : " ") + shell_quoted(a);
  return line;
}

std::string bytes_text(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text;
}

}  // namespace ryle::app

namespace {

void report_error(const std::string& text, ryle::ExitCode code) {
  ryle::app::Log::get().line(ryle::app::LogLevel::error, "error", text,
                             {{"exit_code", static_cast<int>(code)}});
}

// A sub-command that this program lacks: it says where it is to be had.
void add_absent(CLI::App& cli, ryle::app::Context& context, const std::string& name,
                const std::string& what, const std::string& where) {
  auto* sub = cli.add_subcommand(name, what);
  sub->allow_extras();
  sub->callback([&context, name, where] {
    context.action = [name, where]() -> int { throw ryle::UnsupportedError(name + ": " + where); };
  });
}

}  // namespace

int main(int argc, char** argv) {
  using namespace ryle;
  app::Context context;
  context.arguments.assign(argv, argv + argc);
  CLI::App cli{"ryle: what radio telescopes deliver, into what astronomers use, in real time",
               "ryle"};
  cli.set_version_flag("--version", std::string("ryle ") + std::string(version()));
  cli.require_subcommand(1);
  cli.add_flag("--debug", context.debug, "errors name their type");
  app::add_run(cli, context);
  app::add_correlate(cli, context);
  app::add_recover(cli, context);
  app::add_image(cli, context);
  app::add_apply(cli, context);
  app::add_calibrate(cli, context);
  app::add_flag(cli, context);
  app::add_search(cli, context);
  app::add_fold(cli, context);
  app::add_trigger(cli, context);
  app::add_top(cli, context);
  app::add_command(cli, context);
  app::add_grid(cli, context);
  app::add_simulate(cli, context);
  app::add_capture(cli, context);
  app::add_info(cli, context);
  app::add_plan(cli, context);
  app::add_beamform(cli, context);
  app::add_beampattern(cli, context);
  app::add_import(cli, context);
  app::add_doctor(cli, context);
#if RYLE_HAVE_BENCH
  app::add_bench(cli, context);
#else
  add_absent(
      cli, context, "bench", "measure an engine (not in this build)",
      "this build has no benchmarks; in a checkout `cmake --preset release` makes one that has");
#endif
  // The program of the package, python/_ryle_program, does it before this one is asked.
  add_absent(
      cli, context, "data", "list, fetch and verify real recordings (of the Python package)",
      "the Python package fetches recordings; `pip install .` in a checkout, then `ryle data` "
      "of that environment or `python -m ryle.data`. Addresses and hashes: docs/data.md");
  app::add_manual(cli, context);
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = cli.exit(e);
    const std::string hint = code == 0 ? "" : app::did_you_mean(cli, context.arguments);
    if (!hint.empty()) std::fprintf(stderr, "ryle: error: %s\n", hint.c_str());
    return code == 0 ? 0 : static_cast<int>(ExitCode::usage);
  }
  try {
    app::install_signal_handlers();
    return context.action ? context.action() : static_cast<int>(ExitCode::usage);
  } catch (const Error& e) {
    report_error(e.what(), e.exit_code());
    return static_cast<int>(e.exit_code());
  } catch (const std::bad_alloc&) {
    report_error("out of memory; `ryle plan` prints what an observation needs", ExitCode::os_limit);
    return static_cast<int>(ExitCode::os_limit);
  } catch (const std::exception& e) {
    report_error(std::string("internal error: ") + e.what(), ExitCode::internal);
    return static_cast<int>(ExitCode::internal);
  }
}
