// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

#include "apps/ryle/command.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/core/error.hpp"
#include "ryle/pipeline/config/config.hpp"

/// `ryle top`: a running observation, from the metrics file it rewrites every second.
namespace ryle::app {
namespace {

namespace fs = std::filesystem;

constexpr double kStale_s = 10;  // ten times the interval at which a run writes

/// One line of the Prometheus text format.
struct MetricSample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

/// The value of a label from `at` on, which is behind its first quote; moves `at` behind the last.
std::string label_value(const std::string& line, std::size_t& at) {
  std::string value;
  for (; at < line.size() && line[at] != '"'; ++at) {
    if (line[at] == '\\' && at + 1 < line.size()) {
      ++at;
      value += line[at] == 'n' ? '\n' : line[at];
    } else {
      value += line[at];
    }
  }
  ++at;
  return value;
}

bool parse_sample(const std::string& line, MetricSample& sample) {
  if (line.empty() || line[0] == '#') return false;
  std::size_t at = line.find_first_of("{ ");
  if (at == std::string::npos) return false;
  sample = {line.substr(0, at), {}, 0};
  if (line[at] == '{') {
    ++at;
    while (at < line.size() && line[at] != '}') {
      const std::size_t equals = line.find("=\"", at);
      if (equals == std::string::npos) return false;
      const std::string name = line.substr(at, equals - at);
      at = equals + 2;
      sample.labels[name] = label_value(line, at);
      if (at < line.size() && line[at] == ',') ++at;
    }
    ++at;
  }
  if (at >= line.size()) return false;
  sample.value = std::strtod(line.c_str() + at, nullptr);
  return true;
}

/// What a metrics file says.
class Metrics {
 public:
  /// Throws IoError when it is missing, FormatError when it is no metrics file of a run.
  explicit Metrics(const std::string& path) {
    std::ifstream in(path);
    if (!in) throw IoError::from_errno("read", path, errno, false);
    std::string line;
    for (MetricSample sample; std::getline(in, line);)
      if (parse_sample(line, sample)) samples_.push_back(sample);
    if (find("ryle_up") == nullptr)
      throw FormatError(path + " has no line ryle_up: not the runtime.metrics_file of a live run");
  }

  double value(std::string_view name) const {
    const MetricSample* sample = find(name);
    return sample != nullptr ? sample->value : 0;
  }
  std::string label(std::string_view name, const std::string& label) const {
    const MetricSample* sample = find(name);
    if (sample == nullptr) return "";
    const auto found = sample->labels.find(label);
    return found == sample->labels.end() ? "" : found->second;
  }
  std::vector<MetricSample> all(std::string_view name) const {
    std::vector<MetricSample> found;
    for (const auto& s : samples_)
      if (s.name == name) found.push_back(s);
    return found;
  }

 private:
  const MetricSample* find(std::string_view name) const {
    for (const auto& s : samples_)
      if (s.name == name) return &s;
    return nullptr;
  }
  std::vector<MetricSample> samples_;
};

/// Of a directory the newest file that is one: runs of one machine often share a folder.
std::string metrics_file_in(const fs::path& directory) {
  fs::path newest;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".prom") continue;
    if (newest.empty() || fs::last_write_time(entry) > fs::last_write_time(newest))
      newest = entry.path();
  }
  if (newest.empty())
    throw IoError(ExitCode::no_input,
                  directory.string() +
                      ": no .prom file is there; runs write one where runtime.metrics_file says, "
                      "such as --set runtime.metrics_file=out/obs.prom");
  return newest.string();
}

std::string metrics_file_of(const std::string& given) {
  if (fs::is_directory(given)) return metrics_file_in(given);
  if (fs::path(given).extension() != ".toml") return given;
  const auto config = pipeline::load_observation(given);
  if (config.runtime.metrics_file.empty())
    throw ConfigError(given +
                      ": runtime.metrics_file is empty: runs of it write none; set it, or name the "
                      "file of a run that has one");
  return config.runtime.metrics_file;
}

struct Age {
  double s = 0;
  bool ended = false, stale = false;
};

Age age_of(const Metrics& m) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  Age age;
  age.s = now.count() - m.value("ryle_updated_seconds");
  age.ended = m.value("ryle_ended") > 0;
  age.stale = !age.ended && age.s > kStale_s;
  return age;
}

std::string head_text(const Metrics& m, const Age& age) {
  std::string text = fmt::format(
      "{} ({}) in {}    {}", m.label("ryle_run_info", "name"), m.label("ryle_run_info", "format"),
      m.label("ryle_run_info", "directory"), m.label("ryle_state", "state"));
  if (age.ended) text += fmt::format("    ENDED {:.0f} s ago", age.s);
  if (age.stale)
    text += fmt::format("    STALE: not written for {:.0f} s; the process is gone or stuck", age.s);
  return text + "\n";
}

std::string rates_text(const Metrics& m) {
  const double planned_s = m.value("ryle_planned_seconds");
  std::string text = fmt::format("data       {:.1f} s", m.value("ryle_data_seconds"));
  if (planned_s > 0) text += fmt::format(" of {:.1f} s", planned_s);
  text += fmt::format(", running for {:.1f} s\n", m.value("ryle_elapsed_seconds"));
  text += fmt::format(
      "input      {:.3f} Gb/s    real-time margin {:.2f}x    ring {:.0f} of {:.0f} "
      "chunks wait\n",
      1e-9 * m.value("ryle_input_bits_per_second"), m.value("ryle_realtime_margin_ratio"),
      m.value("ryle_ring_waiting_chunks"), m.value("ryle_ring_chunks"));
  text += fmt::format(
      "packets    {:.0f} received, {:.0f} used    lost {:.4f} %    kernel drops {:.0f}    chunks "
      "dropped {:.0f}\n",
      m.value("ryle_ingest_datagrams_total"), m.value("ryle_ingest_used_total"),
      100 * m.value("ryle_lost_ratio"), m.value("ryle_kernel_drops_total"),
      m.value("ryle_ingest_dropped_chunks_total"));
  return text;
}

std::string rejected_lines(const Metrics& m) {
  std::string text;
  for (const auto& s : m.all("ryle_ingest_rejected_total")) {
    if (s.value == 0) continue;
    const std::string reason = s.labels.at("reason");
    text += fmt::format("rejected   {:.0f} {}", s.value, reason);
    for (const auto& last : m.all("ryle_last_rejected_bytes")) {
      if (last.labels.at("reason") != reason) continue;
      text += fmt::format("; the last from {}, {:.0f} bytes: {}", last.labels.at("sender"),
                          last.value, last.labels.at("header"));
    }
    text += "\n";
  }
  const double connections = m.value("ryle_ingest_refused_connections_total");
  if (connections > 0) text += fmt::format("refused    {:.0f} connections\n", connections);
  return text;
}

/// One character an input, from no signal to the loudest: a dead or a mad one is seen at once.
std::string levels_text(const Metrics& m) {
  constexpr std::string_view kBars = "_.:-=+*#";
  constexpr std::size_t kPerLine = 64;
  std::map<std::int64_t, double> levels;
  for (const auto& s : m.all("ryle_input_level_lsb"))
    levels[std::atoll(s.labels.at("input").c_str())] = s.value;
  if (levels.empty()) return "";
  double high = 0, sum = 0;
  for (const auto& [input, level] : levels) {
    high = std::max(high, level);
    sum += level;
  }
  std::string text = fmt::format("levels     {} inputs, mean {:.2f} LSB, highest {:.2f} LSB\n",
                                 levels.size(), sum / static_cast<double>(levels.size()), high);
  std::size_t k = 0;
  for (const auto& [input, level] : levels) {
    if (k % kPerLine == 0) text += fmt::format("{}{:>9}  ", k > 0 ? "\n" : "", input);
    const auto bar =
        static_cast<std::size_t>(high > 0 ? level / high * static_cast<double>(kBars.size()) : 0);
    text += kBars[std::min(bar, kBars.size() - 1)];
    ++k;
  }
  return text + "\n";
}

std::string products_text(const Metrics& m) {
  std::string text = "products  ";
  for (const auto& [name, word] : {std::pair{"ryle_integrations_total", "integrations"},
                                   std::pair{"ryle_images_total", "images"},
                                   std::pair{"ryle_beam_samples_total", "samples of beams"},
                                   std::pair{"ryle_candidates_total", "candidates"}}) {
    if (m.value(name) > 0) text += fmt::format(" {:.0f} {}", m.value(name), word);
  }
  return text == "products  " ? text + " none yet\n" : text + "\n";
}

nlohmann::ordered_json top_json(const Metrics& m, const Age& age) {
  nlohmann::ordered_json rejected = nlohmann::ordered_json::object();
  for (const auto& s : m.all("ryle_ingest_rejected_total"))
    if (s.value > 0) rejected[s.labels.at("reason")] = s.value;
  return {{"name", m.label("ryle_run_info", "name")},
          {"state", m.label("ryle_state", "state")},
          {"up", m.value("ryle_up") > 0},
          {"ended", age.ended},
          {"stale", age.stale},
          {"age_s", age.s},
          {"data_s", m.value("ryle_data_seconds")},
          {"input_bits_per_s", m.value("ryle_input_bits_per_second")},
          {"realtime_margin_ratio", m.value("ryle_realtime_margin_ratio")},
          {"lost_fraction", m.value("ryle_lost_ratio")},
          {"rejected", rejected},
          {"integrations", m.value("ryle_integrations_total")},
          {"images", m.value("ryle_images_total")},
          {"beam_samples", m.value("ryle_beam_samples_total")},
          {"candidates", m.value("ryle_candidates_total")}};
}

/// 0 while the run goes on or has ended as it should, 69 where nothing is heard of it any more.
int show_once(const Context& context, const std::string& path) {
  const Metrics m(path);
  const Age age = age_of(m);
  if (context.json) {
    fmt::print("{}\n", top_json(m, age).dump());
  } else {
    fmt::print("{}{}{}{}{}", head_text(m, age), rates_text(m), rejected_lines(m), levels_text(m),
               products_text(m));
  }
  std::fflush(stdout);
  return age.stale ? static_cast<int>(ExitCode::unavailable) : 0;
}

int watch_run(const Context& context, const std::string& given, bool once) {
  const std::string path = metrics_file_of(given);
  if (once || context.json || isatty(STDOUT_FILENO) != 1) return show_once(context, path);
  int code = 0;
  while (signal_count() == 0) {
    fmt::print("\033[H\033[2J");
    code = show_once(context, path);
    if (age_of(Metrics(path)).ended) break;
    for (int k = 0; k < 10 && signal_count() == 0; ++k)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return code;
}

}  // namespace

void add_top(CLI::App& app, Context& context) {
  auto* sub =
      app.add_subcommand("top", "watch a running observation: rates, losses, levels, products");
  auto given = std::make_shared<std::string>(".");
  auto once = std::make_shared<bool>(false);
  sub->add_option(
         "run", *given,
         "its observation file (.toml), its runtime.metrics_file, or a directory with .prom "
         "files, of which the newest is taken")
      ->capture_default_str();
  sub->add_flag("--once", *once, "print once; always so where the output is no terminal");
  add_common(*sub, context);
  sub->callback([&context, given, once] {
    context.action = [&context, given, once] { return watch_run(context, *given, *once); };
  });
}

}  // namespace ryle::app
