// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>
#include <type_traits>

#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/config/config_fields.hpp"
#include "ryle/pipeline/config/config_packet.hpp"

namespace ryle::pipeline {
namespace {

using Json = nlohmann::ordered_json;

/// Writes the keys of a section as JSON Schema properties.
class SchemaWriter {
 public:
  explicit SchemaWriter(Json& properties) : properties_(properties) {}
  template <class T, class Limits>
  void operator()(std::string_view key, T& member, const Limits& limits, std::string_view help) {
    Json& p = properties_[std::string(key)];
    describe(member, limits, p);
    p["description"] = help;
    if constexpr (std::is_same_v<Limits, Range>) {
      if (!limits.zero.empty()) p["description"] = fmt::format("{}; 0 = {}", help, limits.zero);
    }
  }

 private:
  template <class T, class Limits>
  void describe(const T& member, const Limits& limits, Json& p) {
    if constexpr (std::is_same_v<T, bool>) {
      p["type"] = "boolean";
      p["default"] = member;
    } else if constexpr (std::is_same_v<T, Rational>) {
      p["type"] = Json::array({"number", "string"});
      p["default"] = member.value();
    } else if constexpr (std::is_arithmetic_v<T>) {
      p["type"] = std::is_integral_v<T> ? "integer" : "number";
      p["minimum"] = limits.min;
      p["maximum"] = limits.max;
      p["default"] = member;
    } else if constexpr (std::is_same_v<T, std::string>) {
      p["type"] = "string";
      if (!limits.words.empty()) p["enum"] = limits.words;
      p["default"] = member;
    } else {
      p["type"] = "array";
      typename T::value_type element{};
      describe(element, limits, p["items"]);
      p["items"].erase("default");
    }
  }
  Json& properties_;
};

Json packet_properties(std::span<const PacketKey> keys) {
  Json properties;
  for (const auto& key : keys)
    properties[std::string(key.name)] = {{"description", key.help}, {"x-allowed", key.allowed}};
  return properties;
}

Json packet_schema() {
  const auto object = [](std::span<const PacketKey> keys) {
    return Json{{"type", "object"},
                {"additionalProperties", false},
                {"properties", packet_properties(keys)}};
  };
  Json packet = object(packet_keys());
  Json& properties = packet["properties"];
  properties["header"]["type"] = "array";
  properties["header"]["items"] = object(packet_header_keys());
  properties["payload"].update(object(packet_payload_keys()));
  packet["type"] = Json::array({"object", "string"});
  return packet;
}

}  // namespace

std::string json_schema() {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "Ryle observation file"},
              {"type", "object"},
              {"additionalProperties", false}};
  Json& sections_out = schema["properties"];
  sections_out["schema"] = {{"const", 1}};
  ObservationConfig defaults;
  sections(
      [&](const char* name, auto& section) {
        Json& s = sections_out[name];
        s = {{"type", "object"}, {"additionalProperties", false}};
        SchemaWriter writer(s["properties"]);
        fields(writer, section);
      },
      defaults);
  const auto note_options = [&](const char* section, auto shared) {
    Json& keys = sections_out[section]["properties"];
    auto note = [&](std::string_view key, auto& member, const auto&, std::string_view) {
      bool turns_off = false;
      if constexpr (std::is_same_v<std::decay_t<decltype(member)>, bool>) turns_off = member;
      keys[std::string(key)]["x-option"] = option_name(key, turns_off);
    };
    fields(note, shared);
  };
  note_options("image", SkySettings{});
  note_options("beams", BeamSettings{});
  note_options("search", SearchSettings{});
  const auto note_names = [&](std::span<const KeyOption> options) {
    for (const KeyOption& o : options)
      sections_out[std::string(o.section)]["properties"][std::string(o.key)]["x-option"] = o.name();
  };
  note_names(kRecordingOptions);
  note_names(kPlaceOptions);
  note_names(kCorrelateOptions);
  note_names(kCalibrateOptions);
  SimulatedSourceConfig source;
  Json item{{"type", "object"}, {"additionalProperties", false}};
  SchemaWriter writer(item["properties"]);
  fields(writer, source);
  sections_out["simulator"]["properties"]["source"] = {{"type", "array"}, {"items", item}};
  sections_out["source"]["properties"]["packet"] = packet_schema();
  return schema.dump(2);
}

}  // namespace ryle::pipeline
