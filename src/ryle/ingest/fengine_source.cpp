// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/fengine_source.hpp"

#include <fmt/format.h>

#include <array>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/ingest/fengine_receiver.hpp"
#include "ryle/ingest/socket.hpp"
#include "ryle/wire/chips.hpp"
#include "ryle/wire/lwa.hpp"

namespace ryle {
namespace {

constexpr std::array<std::string_view, 3> kNames{"chips", "tbf", "tbx"};

void require(bool good, const std::string& message) {
  if (!good) throw ConfigError(message);
}

// Sizes that fit the fields of the packets.
void validate_format(const FengineSourceConfig& c, std::int64_t channels_per_packet) {
  const std::int64_t last = c.first_channel + c.n_channels - 1;
  if (c.format == FengineFormat::chips) {
    require(c.n_boards >= 1 && c.n_boards <= 255,
            fmt::format("source.n_boards = {} is not in 1..255", c.n_boards));
    require(channels_per_packet <= 255,
            fmt::format("source.channels_per_packet = {}: a CHIPS packet holds at most 255",
                        channels_per_packet));
    require(last <= 65535, fmt::format("the last channel is {}; CHIPS counts to 65535", last));
    return;
  }
  require(c.n_stands >= 1 && c.n_stands <= 256,
          fmt::format("source.n_stands = {} is not in 1..256", c.n_stands));
  require(last < wire::kLwaMaxChannels,
          fmt::format("the last channel is {}; there are none above {}", last,
                      wire::kLwaMaxChannels - 1));
  require(c.format != FengineFormat::tbf || channels_per_packet == wire::kTbfChannelsPerFrame,
          fmt::format("source.channels_per_packet = {}: a TBF frame has 12", channels_per_packet));
}

void validate(const FengineSourceConfig& c) {
  require(!c.endpoints.empty(),
          "source.listen is empty; give at least one endpoint, for example udp://0.0.0.0:4015");
  require(c.window_chunks >= 2, "ingest.window_chunks must be at least 2");
  require(c.n_chunks > c.window_chunks,
          fmt::format("ingest.n_chunks = {} must exceed ingest.window_chunks = {}: all of the "
                      "window's chunks are open at a time",
                      c.n_chunks, c.window_chunks));
  require(c.clock.rate_hz.num > 0 && c.clock.rate_hz.den > 0,
          "source.spectrum_rate_hz must be positive");
}

}  // namespace

std::string_view name(FengineFormat format) { return kNames[static_cast<std::size_t>(format)]; }

FengineFormat fengine_format(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<FengineFormat>(i);
  }
  throw UnsupportedError("no F-engine packet format \"" + std::string(name) +
                         "\"; known: chips, tbf, tbx");
}

FengineLayout fengine_layout(const FengineSourceConfig& c) {
  validate(c);
  FengineLayout layout;
  const bool chips = c.format == FengineFormat::chips;
  layout.n_channels = c.n_channels;
  layout.channels_per_packet = c.channels_per_packet;
  if (c.channels_per_packet == 0) {
    layout.channels_per_packet =
        c.format == FengineFormat::tbf ? wire::kTbfChannelsPerFrame : c.n_channels;
  }
  require(c.first_channel >= 0 && c.n_channels >= 1 && layout.channels_per_packet >= 1 &&
              c.n_channels % layout.channels_per_packet == 0,
          fmt::format("{} channels a packet do not divide the {} channels from number {}",
                      layout.channels_per_packet, c.n_channels, c.first_channel));
  require(c.chunk_spectra >= kBlockBytes && c.chunk_spectra % kBlockBytes == 0,
          fmt::format("ingest.chunk_spectra = {} is no multiple of the {} spectra of a block",
                      c.chunk_spectra, kBlockBytes));
  validate_format(c, layout.channels_per_packet);
  layout.n_inputs = chips ? c.n_boards * wire::kChipsInputsPerBoard : 2 * c.n_stands;
  layout.inputs_per_packet = chips ? wire::kChipsInputsPerBoard : layout.n_inputs;
  layout.chunk_spectra = c.chunk_spectra;
  require(layout.packet_payload_bytes() <= 65507 - 28,
          fmt::format("a packet of {} channels x {} inputs does not fit a UDP datagram; use fewer "
                      "source.channels_per_packet",
                      layout.channels_per_packet, layout.inputs_per_packet));
  checked_product({c.n_chunks, c.chunk_spectra, layout.n_channels, layout.n_inputs},
                  "ingest chunks");
  return layout;
}

std::int64_t fengine_source_chunk_bytes(const FengineSourceConfig& config) {
  return config.n_chunks * fengine_layout(config).chunk_bytes();
}

FengineSource::FengineSource(const FengineSourceConfig& config)
    : SpectraSource(std::make_unique<FengineReceiver>(config)) {}

const FengineReceiver& FengineSource::fengine() const {
  return static_cast<const FengineReceiver&>(receiver());
}

SourceInfo FengineSource::info() const {
  const auto& config = fengine().config();
  SourceInfo info;
  info.format = std::string(name(config.format));
  info.n_inputs = layout().n_inputs;
  info.layout.format = SampleFormat::ci4;
  // Of one channel of one stream: engines take unpack()'s blocks, not this.
  info.layout.input_stride_bits = 8;
  info.layout.sample_stride_bits = 8 * layout().packet_payload_bytes();
  info.clock = fengine().clock();
  info.time_source =
      config.format == FengineFormat::chips ? config.time_source : TimeSource::packet;
  return info;
}

SampleClock FengineSource::clock(std::int64_t segment) const { return fengine().clock(segment); }

const FengineLayout& FengineSource::layout() const { return fengine().layout(); }

void FengineSource::unpack(const Chunk& chunk, SpectraBlocks& spectra) const {
  ryle::unpack(layout(), chunk, spectra);
}

FrequencyAxis FengineSource::channels() const {
  const auto& config = fengine().config();
  return {static_cast<double>(config.first_channel) * config.channel_width_hz,
          config.channel_width_hz, config.n_channels};
}

std::unique_ptr<FengineSource> make_fengine_source(const FengineSourceConfig& config) {
  return std::make_unique<FengineSource>(config);
}

}  // namespace ryle
