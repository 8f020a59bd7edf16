// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/trigger_socket.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle::pipeline {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestTriggerName = 64;

[[noreturn]] void reject_request(const std::string& why) { throw ConfigError("trigger: " + why); }

json parse_request(std::string_view line) {
  json request = json::parse(line, nullptr, false);
  if (!request.is_object())
    reject_request(
        R"(a JSON object is asked for, such as {"utc": "2025-03-01T16:10:00.5", "dm_pc_cm3": 30})");
  static constexpr std::string_view kKnown[] = {"utc",     "dm_pc_cm3", "dm_error", "reference_mhz",
                                                "width_s", "begin_utc", "end_utc",  "name"};
  for (const auto& [key, value] : request.items()) {
    if (std::find(std::begin(kKnown), std::end(kKnown), key) != std::end(kKnown)) continue;
    reject_request("unknown key \"" + key.substr(0, kLongestTriggerName) +
                   "\"; known: " + comma_separated(kKnown));
  }
  return request;
}

double trigger_number(const json& request, const char* key, double otherwise, double maximum) {
  if (!request.contains(key)) return otherwise;
  const json& value = request.at(key);
  const double number = value.is_number() ? value.get<double>() : std::nan("");
  if (!(number >= 0 && number <= maximum))
    reject_request(std::string(key) + " is no number from 0 to " + json(maximum).dump());
  return number;
}

std::int64_t trigger_instant(const json& request, const char* key) {
  if (!request.contains(key) || !request.at(key).is_string())
    reject_request(std::string(key) + R"( must be a text such as "2025-03-01T16:10:00.5")");
  const std::string text = request.at(key).get<std::string>();
  const std::int64_t tai_ns = tai_ns_from_utc_iso(text);
  // Nanoseconds since 2000 and their differences: others leave an int64.
  if (text.substr(0, 4) < "1960" || text.substr(0, 4) > "2199")
    reject_request(std::string(key) + " is not of the years 1960 to 2199");
  return tai_ns;
}

/// Printable ASCII: it goes into files and logs.
std::string trigger_name(const json& request) {
  if (!request.contains("name")) return "external";
  const json& value = request.at("name");
  const std::string name = value.is_string() ? value.get<std::string>() : "";
  bool plain = !name.empty() && name.size() <= kLongestTriggerName;
  for (const char c : name) plain = plain && c >= ' ' && c <= '~';
  if (!plain)
    reject_request("name must be 1 to " + std::to_string(kLongestTriggerName) +
                   " printable characters of ASCII");
  return name;
}

/// Seconds from the reference frequency of a request to that of triggers.
double to_top_s(const json& request, const VoltageShape& shape, double dm_pc_cm3) {
  if (!request.contains("reference_mhz")) return 0;
  const json& value = request.at("reference_mhz");
  double mhz = std::nan("");
  if (value.is_number()) mhz = value.get<double>();
  if (value == "inf") mhz = std::numeric_limits<double>::infinity();
  if (!(mhz >= 1)) reject_request("reference_mhz is no number from 1 up, and not \"inf\"");
  const double top_mhz = shape.trigger_hz() * 1e-6;
  if (!(top_mhz > 0)) return 0;
  return shape.k_dm * dm_pc_cm3 * (1 / (top_mhz * top_mhz) - 1 / (mhz * mhz));
}

DumpTrigger span_trigger(const json& request) {
  for (const char* key : {"utc", "dm_pc_cm3", "dm_error", "reference_mhz", "width_s"})
    if (request.contains(key))
      reject_request(std::string(key) + " belongs to a pulse, begin_utc and end_utc to a span");
  const std::int64_t begin = trigger_instant(request, "begin_utc");
  const std::int64_t end = trigger_instant(request, "end_utc");
  if (end <= begin) reject_request("end_utc is not after begin_utc");
  DumpTrigger t;
  t.tai_ns = begin + (end - begin) / 2;
  t.width_s = static_cast<double>(end - begin) * 1e-9;
  return t;
}

}  // namespace

DumpTrigger parse_trigger(std::string_view line, const VoltageShape& shape) {
  const json request = parse_request(line);
  DumpTrigger t;
  if (request.contains("begin_utc") || request.contains("end_utc")) {
    t = span_trigger(request);
  } else {
    t.dm_pc_cm3 = trigger_number(request, "dm_pc_cm3", 0, 1e5);
    t.dm_error = trigger_number(request, "dm_error", 0, 1e5);
    t.width_s = trigger_number(request, "width_s", 0, 3600);
    t.tai_ns =
        trigger_instant(request, "utc") + std::llround(to_top_s(request, shape, t.dm_pc_cm3) * 1e9);
  }
  t.beam = trigger_name(request);
  return t;
}

std::string answer_trigger(std::string_view line, const VoltageShape& shape, VoltageRing& ring) {
  nlohmann::ordered_json answer;
  try {
    TriggerReply reply;
    const TriggerResult result = ring.trigger(parse_trigger(line, shape), &reply);
    answer["result"] = name_of(result);
    if (reply.dump > 0) answer["dump"] = reply.dump;
    if (!reply.message.empty()) answer["message"] = reply.message;
  } catch (const std::exception& e) {
    answer["result"] = "error";
    answer["message"] = e.what();
  }
  // What a client sent may be in a message, and need not be UTF-8.
  return answer.dump(-1, ' ', true, json::error_handler_t::replace);
}

TriggerSocket::TriggerSocket(const std::string& path, const VoltageShape& shape, VoltageRing& ring)
    : shape_(shape),
      server_(std::make_unique<LineServer>(path, [this, &ring](std::string_view line) {
        return answer_trigger(line, shape_, ring);
      })) {}

}  // namespace ryle::pipeline
