// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/ryle/command.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/hdf5/filters.hpp"
#include "ryle/ingest/capture_file.hpp"

namespace ryle::app {
namespace {

/// One line of the table: what was looked at, how it stands, and the command that mends it.
struct Finding {
  std::string name;
  std::string verdict;  // pass, warn, fail
  std::string detail;
  std::string remedy;
};

std::string read_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::int64_t read_number(const std::string& path) {
  const std::string line = read_line(path);
  return line.empty() ? -1 : std::strtoll(line.c_str(), nullptr, 10);
}

Finding check_rcvbuf() {
  constexpr std::int64_t kWanted = 64 << 20;
  const std::int64_t granted = read_number("/proc/sys/net/core/rmem_max");
  const bool root = geteuid() == 0;
  Finding f{"net.core.rmem_max", granted >= kWanted || root ? "pass" : "warn",
            fmt::format("{}{}", bytes_text(static_cast<double>(granted)),
                        root ? " (root may exceed it)" : ""),
            ""};
  if (granted < kWanted) f.remedy = fmt::format("sudo sysctl -w net.core.rmem_max={}", kWanted);
  return f;
}

Finding check_udp_mem() {
  std::ifstream in("/proc/sys/net/ipv4/udp_mem");
  std::int64_t low = 0, pressure = 0, high = 0;
  in >> low >> pressure >> high;
  const std::int64_t bytes = high * sysconf(_SC_PAGESIZE);
  constexpr std::int64_t kWanted = 256 << 20;
  return {"net.ipv4.udp_mem", bytes >= kWanted ? "pass" : "warn",
          bytes_text(static_cast<double>(bytes)),
          bytes >= kWanted ? "" : "sudo sysctl -w net.ipv4.udp_mem=\"65536 98304 131072\""};
}

Finding check_cpu() {
  return {"instruction sets", cpu_instruction_sets().size() > 1 ? "pass" : "warn",
          comma_separated(cpu_instruction_sets()),
          cpu_instruction_sets().size() > 1
              ? ""
              : "this CPU has neither AVX2 nor AVX-512: everything runs, slowly"};
}

Finding check_gpu() {
  const std::string reason = cuda_unavailable_reason();
  if (!reason.empty()) return {"GPU", "pass", "none used: " + reason, ""};
  std::string found;
  for (const auto& d : list_devices()) {
    if (d.name.rfind("cuda", 0) == 0)
      found += (found.empty() ? "" : "; ") + d.name + " " + d.description;
  }
  return {"GPU", "pass", found, ""};
}

Finding check_governor() {
  const std::string governor = read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (governor.empty() || governor == "performance") {
    return {"cpu governor", "pass", governor.empty() ? "not settable here" : governor, ""};
  }
  return {"cpu governor", "warn", governor, "sudo cpupower frequency-set -g performance"};
}

Finding check_disk(const std::string& directory) {
  struct statvfs s {};
  if (statvfs(directory.c_str(), &s) != 0)
    return {"disk", "warn", "cannot look at " + directory, ""};
  const double free = static_cast<double>(s.f_bavail) * static_cast<double>(s.f_frsize);
  constexpr double kWanted = 4.0 * (1LL << 30);
  return {"disk here", free > kWanted ? "pass" : "warn", bytes_text(free) + " free",
          free > kWanted ? "" : "free some space"};
}

Finding check_memory() {
  const double memory = static_cast<double>(list_devices().front().memory_bytes);
  return {"memory", memory > 2.0 * (1LL << 30) ? "pass" : "warn", bytes_text(memory), ""};
}

Finding check_descriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const bool enough = limit.rlim_cur >= 256;
  return {"open files", enough ? "pass" : "fail", fmt::format("{}", limit.rlim_cur),
          enough ? "" : "ulimit -n 1024"};
}

Finding check_measurement_sets() {
#ifdef RYLE_HAVE_CASACORE
  constexpr bool kHave = true;
#else
  constexpr bool kHave = false;
#endif
  return {
      "Measurement Sets", kHave ? "pass" : "warn",
      kHave ? "casacore is in" : "built without casacore",
      kHave ? ""
            : "sudo apt-get install casacore-dev and build again; .uvfits and .uvh5 work without"};
}

Finding check_captures() {
  const bool have = captures_supported();
  return {"captures", have ? "pass" : "warn", have ? "libpcap is in" : "built without libpcap",
          have ? "" : "sudo apt-get install libpcap-dev and build again, to replay captures"};
}

Finding check_hdf5_filters() { return {"HDF5 filters", "pass", hdf5::filter_names(), ""}; }

Finding check_clock() {
  const std::string source =
      read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  return {"clock source", source == "hpet" || source == "acpi_pm" ? "warn" : "pass",
          source.empty() ? "unknown" : source, ""};
}

int run(const Context& context) {
  const std::vector<Finding> findings{check_cpu(),         check_gpu(),
                                      check_memory(),      check_disk("."),
                                      check_rcvbuf(),      check_udp_mem(),
                                      check_descriptors(), check_governor(),
                                      check_clock(),       check_measurement_sets(),
                                      check_captures(),    check_hdf5_filters()};
  bool failed = false;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const auto& f : findings) {
    failed = failed || f.verdict == "fail";
    if (context.json) {
      json.push_back(
          {{"name", f.name}, {"verdict", f.verdict}, {"detail", f.detail}, {"remedy", f.remedy}});
    } else {
      fmt::print("{:<5} {:<20} {}\n", f.verdict, f.name, f.detail);
      if (!f.remedy.empty()) fmt::print("      {:<20} {}\n", "", f.remedy);
    }
  }
  if (context.json) fmt::print("{}\n", json.dump());
  return failed ? static_cast<int>(ExitCode::check_failed) : 0;
}

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand(
      "doctor", "what of this machine helps or hurts, with the commands that mend it");
  add_common(*sub, context);
  sub->callback([&context] { context.action = [&context] { return run(context); }; });
}

}  // namespace ryle::app
