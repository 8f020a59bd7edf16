// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "apps/ryle/command.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/version.hpp"

/// Man pages and completions of shells, made from the options that the commands declare: what
/// `cmake --install` puts beside the program.
namespace ryle::app {
namespace {

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!sub->get_group().empty()) commands.push_back(sub);
  return commands;
}

/// "-o", "--output" and so on; empty of a positional argument.
std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const auto& s : option.get_snames()) flags.push_back("-" + s);
  for (const auto& l : option.get_lnames()) flags.push_back("--" + l);
  return flags;
}

/// Text for roff: a hyphen is a minus that can be copied, no line begins a request.
std::string roff(const std::string& text) {
  std::string out = text.rfind('.', 0) == 0 || text.rfind('\'', 0) == 0 ? "\\&" : "";
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  if (!(std::ofstream(path) << text).flush())
    throw IoError(ExitCode::cannot_create, path.string() + " cannot be written");
}

std::string page_name(const CLI::App& command, const std::string& parent) {
  return parent.empty() ? command.get_name() : parent + "-" + command.get_name();
}

std::string options_text(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    const bool positional = option->get_positional();
    std::string head = positional ? "\\fI" + roff(option->get_name(true)) + "\\fR" : "";
    for (const auto& flag : flags_of(*option))
      head += (head.empty() ? "\\fB" : ", \\fB") + roff(flag) + "\\fR";
    const std::string type = option->get_items_expected_max() > 0 ? option->get_type_name() : "";
    if (!type.empty() && !positional) head += " \\fI" + roff(type) + "\\fR";
    const std::string value = option->get_default_str();
    text += ".TP\n" + head + "\n" + roff(option->get_description());
    if (!value.empty()) text += " (default: " + roff(value) + ")";
    text += "\n";
  }
  return text;
}

/// The page of a command; those of its own commands are pages too.
void write_page(const std::filesystem::path& folder, const CLI::App& command,
                const std::string& parent) {
  const std::string name = page_name(command, parent);
  std::string text =
      fmt::format(".TH {} 1 \"\" \"ryle {}\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n", name,
                  version(), roff(name), roff(command.get_description()),
                  parent.empty() ? name : roff(parent) + " " + roff(command.get_name()));
  const auto commands = subcommands_of(command);
  text += commands.empty() ? "[options]" : "\\fIcommand\\fR [options]";
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional()) text += " \\fI" + roff(option->get_name(true)) + "\\fR";
  text += "\n";
  if (!commands.empty()) {
    text += ".SH COMMANDS\n";
    for (const CLI::App* sub : commands) {
      text += ".TP\n\\fB" + roff(page_name(*sub, name)) + "\\fR(1)\n" +
              roff(sub->get_description()) + "\n";
      write_page(folder, *sub, name);
    }
  }
  text += ".SH OPTIONS\n" + options_text(command);
  text +=
      ".SH EXIT STATUS\n0 when everything asked for was made; other values are those of "
      "sysexits.h, "
      "with what was wrong on standard error.\n";
  write_text(folder / (name + ".1"), text);
}

std::string joined_flags(const CLI::App& command) {
  std::string words;
  for (const CLI::Option* option : command.get_options())
    for (const auto& flag : flags_of(*option)) words += (words.empty() ? "" : " ") + flag;
  return words;
}

std::string bash_completion(const CLI::App& app) {
  std::string names, cases;
  for (const CLI::App* sub : subcommands_of(app)) {
    names += " " + sub->get_name();
    std::string words = joined_flags(*sub);
    for (const CLI::App* own : subcommands_of(*sub)) words += " " + own->get_name();
    cases += fmt::format("    {}) words=\"{}\" ;;\n", sub->get_name(), words);
  }
  return fmt::format(R"(_ryle() {{
  local words current="${{COMP_WORDS[COMP_CWORD]}}"
  case "${{COMP_WORDS[1]}}" in
{}    *) words="{}{}" ;;
  esac
  [ "$COMP_CWORD" -eq 1 ] && words="{}{}"
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o bashdefault -o default -F _ryle ryle
)",
                     cases, joined_flags(app), names, joined_flags(app), names);
}

std::string fish_completion(const CLI::App& app) {
  std::string text;
  for (const CLI::App* sub : subcommands_of(app)) {
    text += fmt::format("complete -c ryle -n __fish_use_subcommand -a {} -d {}\n", sub->get_name(),
                        shell_quoted(sub->get_description()));
    for (const CLI::Option* option : sub->get_options()) {
      if (option->get_positional()) continue;
      text += fmt::format("complete -c ryle -n '__fish_seen_subcommand_from {}'", sub->get_name());
      for (const auto& s : option->get_snames()) text += " -s " + s;
      for (const auto& l : option->get_lnames()) text += " -l " + l;
      if (option->get_items_expected_max() > 0) text += " -r";
      text += " -d " + shell_quoted(option->get_description()) + "\n";
    }
  }
  return text;
}

std::string zsh_completion(const CLI::App& app) {
  std::string names, cases;
  const auto escaped = [](std::string text) {
    for (std::size_t at = 0; (at = text.find_first_of("[]:\\", at)) != std::string::npos; at += 2)
      text.insert(at, 1, '\\');
    return text;
  };
  for (const CLI::App* sub : subcommands_of(app)) {
    names += " " + shell_quoted(sub->get_name() + ":" + sub->get_description());
    std::string options;
    for (const CLI::Option* option : sub->get_options())
      for (const auto& flag : flags_of(*option))
        options +=
            " " + shell_quoted(flag + "[" + escaped(option->get_description()) + "]" +
                               (option->get_items_expected_max() > 0 ? ":value:_files" : ""));
    cases += fmt::format("    {}) _arguments{} '*:file:_files' ;;\n", sub->get_name(), options);
  }
  return fmt::format(R"(#compdef ryle
local -a commands=({})
if ((CURRENT == 2)); then
  _describe command commands
else
  local command=$words[2]
  words=($words[2,-1]) CURRENT=$((CURRENT - 1))
  case $command in
{}  esac
fi
)",
                     names, cases);
}

int write_manual(const CLI::App& app, const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder / "man1", failed);
  if (failed)
    throw IoError(ExitCode::cannot_create,
                  "cannot make the folder " + (folder / "man1").string() + ": " + failed.message());
  write_page(folder / "man1", app, "");
  const std::pair<const char*, std::string> shells[] = {{"ryle.bash", bash_completion(app)},
                                                        {"ryle.fish", fish_completion(app)},
                                                        {"_ryle", zsh_completion(app)}};
  for (const auto& [name, text] : shells) write_text(folder / name, text);
  return 0;
}

}  // namespace

void add_manual(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand("manual", "write man pages and completions of shells to a folder");
  auto folder = std::make_shared<std::string>();
  sub->add_option("folder", *folder, "where man1/ and the completions go")->required();
  sub->callback([&app, &context, folder] {
    context.action = [&app, folder] { return write_manual(app, *folder); };
  });
}

}  // namespace ryle::app
