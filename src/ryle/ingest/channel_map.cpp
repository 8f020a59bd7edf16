// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/channel_map.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "ryle/core/error.hpp"
#include "ryle/wire/text_header.hpp"

namespace ryle {
namespace {

[[noreturn]] void refuse(const std::string& entry, const std::string& what) {
  throw ConfigError("source.channel_map: \"" + entry + "\": " + what +
                    "; \"[STATION:]THREAD[/CHANNEL] MHZ [U|L]\" is wanted, as \"0/1 1658.49 L\"");
}

std::int64_t whole_number(const std::string& entry, const std::string& text) {
  const auto value = wire::parse_integer(text);
  if (!value || *value < 0 || *value > 65535) refuse(entry, "\"" + text + "\" is no number");
  return *value;
}

ChannelMapEntry parse_place(const std::string& entry) {
  std::istringstream words(entry);
  std::string where, mhz, sideband, rest;
  words >> where >> mhz >> sideband >> rest;
  if (mhz.empty() || !rest.empty()) refuse(entry, "two or three words are wanted");
  ChannelMapEntry place;
  place.text = entry;
  if (const auto colon = where.find(':'); colon != std::string::npos) {
    place.station = where.substr(0, colon);
    where.erase(0, colon + 1);
  }
  if (const auto slash = where.find('/'); slash != std::string::npos) {
    place.channel = whole_number(entry, where.substr(slash + 1));
    where.erase(slash);
  }
  if (where != "*") place.thread = whole_number(entry, where);
  const auto frequency = wire::parse_real(mhz);
  if (!frequency || !(*frequency >= 0 && *frequency < 1e6))
    refuse(entry, "\"" + mhz + "\" is no frequency in MHz");
  place.zero_hz = *frequency * 1e6;
  if (!sideband.empty() && sideband != "U" && sideband != "L")
    refuse(entry, "the sideband is U or L, not \"" + sideband + "\"");
  place.lower = sideband == "L";
  return place;
}

}  // namespace

std::vector<ChannelMapEntry> parse_channel_map(const std::vector<std::string>& entries) {
  std::vector<ChannelMapEntry> map;
  map.reserve(entries.size());
  for (const auto& entry : entries) map.push_back(parse_place(entry));
  return map;
}

std::string station_letters(std::uint32_t station) {
  const char first = static_cast<char>(station >> 8 & 0xFF),
             second = static_cast<char>(station & 0xFF);
  const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  if (!letter(first) || std::isdigit(static_cast<unsigned char>(first)) || !letter(second))
    return "";
  return {first, second};
}

const ChannelMapEntry* find_channel(const std::vector<ChannelMapEntry>& map,
                                    std::string_view letters, std::int64_t station,
                                    std::int64_t thread, std::int64_t channel,
                                    std::int64_t n_channels) {
  const auto at = std::find_if(map.begin(), map.end(), [&](const ChannelMapEntry& place) {
    return (place.station.empty() || place.station == letters ||
            place.station == std::to_string(station)) &&
           (place.thread < 0 || place.thread == thread) &&
           (place.channel < 0 || place.channel == channel);
  });
  if (at == map.end()) return nullptr;
  if (at->channel < 0 && n_channels > 1)
    refuse(at->text, "its thread has " + std::to_string(n_channels) + " channels: say which");
  return &*at;
}

}  // namespace ryle
