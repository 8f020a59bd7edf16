// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <toml++/toml.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "ryle/wire/described.hpp"

/// [source.packet]: the layout of datagrams that no codec knows.
namespace ryle::pipeline {

/// A key of the section, for messages, the JSON schema and docs/configuration.md.
struct PacketKey {
  std::string_view name, allowed, help;
};
/// Keys of [source.packet], of one entry of its `header`, of its `payload`.
std::span<const PacketKey> packet_keys();
std::span<const PacketKey> packet_header_keys();
std::span<const PacketKey> packet_payload_keys();

/// Place of a node in the file, "FILE:LINE:COLUMN".
using TomlPosition = std::function<std::string(const toml::source_region&)>;

/// Throws ConfigError "FILE:LINE:COLUMN: source.packet: ..." for unknown keys and words (with the
/// nearest known one) and for all that wire::validate() refuses.
wire::PacketDescription parse_packet(const toml::table& table, const TomlPosition& place);
/// Of a file that holds the keys of [source.packet], or an observation file with that section.
wire::PacketDescription load_packet(const std::string& path);
/// The section as TOML; parse_packet() gives the same description back.
std::string packet_toml(const wire::PacketDescription& packet);

}  // namespace ryle::pipeline
