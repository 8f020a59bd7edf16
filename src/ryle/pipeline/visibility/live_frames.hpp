// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "ryle/ingest/described_source.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/wire/described.hpp"

/// Standard formats live: VDIF, CODIF, streams of DADA and GUPPI RAW, as described packets.
namespace ryle::pipeline {

/// The layout of [source.packet], or the one that the keys of [source] make of a standard. Throws
/// ConfigError naming the key. @pre is_described(source)
wire::PacketDescription described_packet(const SourceConfig& source, std::int64_t n_inputs);

/// What the headers of a stream must say. @pre is_recorded_stream(source)
StreamShape stream_shape(const SourceConfig& source, const DescribedSourceConfig& receiver);

/// Says in words what the header of a frame says, for those that are refused. @pre VDIF or CODIF
std::function<std::string(std::span<const std::byte>)> frame_text(const SourceConfig& source);

}  // namespace ryle::pipeline
