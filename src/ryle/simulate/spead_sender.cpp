// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/spead_sender.hpp"

#include <algorithm>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/simulate/lap_feeder.hpp"
#include "ryle/simulate/send_loop.hpp"
#include "ryle/wire/spead.hpp"

namespace ryle::simulate {

/// How a record is cut into heaps, and these into packets.
struct SpeadSender::Heaps {
  std::int64_t n_pols = 2, n_channels = 1, n_spectra = 1;  ///< of a heap
  std::int64_t n_fengines = 1, n_blocks = 1;
  std::int64_t heap_bytes = 0, n_pieces = 1;  ///< packets of a heap
  std::int64_t first_channel = 0, heap_ticks = 1;
  bool beams = false;

  Heaps(const SpectraRecord& record, const SpeadSenderConfig& c)
      : n_pols(c.beams ? 1 : 2),
        n_channels(c.channels_per_heap > 0 ? c.channels_per_heap : record.n_channels),
        n_spectra(c.spectra_per_heap),
        n_fengines(record.n_inputs / n_pols),
        n_blocks(record.n_channels / n_channels),
        heap_bytes(n_channels * n_spectra * n_pols * 2),
        first_channel(c.first_channel),
        heap_ticks(c.ticks_per_spectrum * n_spectra),
        beams(c.beams) {
    if (record.n_spectra % n_spectra != 0)
      throw ConfigError("simulator.period_samples = " + std::to_string(record.n_spectra) +
                        " is no multiple of the " + std::to_string(n_spectra) +
                        " spectra of a heap (source.spectra_per_heap)");
    if (record.n_channels % n_channels != 0 || record.n_inputs % n_pols != 0)
      throw ConfigError("heaps of " + std::to_string(n_channels) +
                        " channels and two polarizations do not divide the " +
                        std::to_string(record.n_channels) + " channels of " +
                        std::to_string(record.n_inputs) + " inputs");
    // Packets of one size, of whole cells of the receiver where heaps have these.
    const std::int64_t cell = heap_bytes % 8 == 0 ? 8 : 2;
    n_pieces = (heap_bytes + c.max_payload_bytes - 1) / c.max_payload_bytes;
    while (heap_bytes % (n_pieces * cell) != 0) ++n_pieces;
  }

  std::int64_t payload_bytes() const { return heap_bytes / n_pieces; }
  std::int64_t header_bytes() const {
    return static_cast<std::int64_t>(wire::spead_header_bytes(beams ? 3 : 4));
  }
  std::int64_t packet_bytes() const { return header_bytes() + payload_bytes(); }

  /// Header of packet `k` of the schedule of a link.
  void stamp(std::int64_t link, Tick k, std::span<std::byte> bytes) const {
    const std::int64_t heap = k / n_pieces, piece = k % n_pieces;
    wire::SpeadPacket p;
    p.heap_counter = static_cast<std::uint64_t>(heap * n_fengines * n_blocks + link + 1);
    p.heap_bytes = static_cast<std::uint64_t>(heap_bytes);
    p.offset = static_cast<std::uint64_t>(piece * payload_bytes());
    p.payload_bytes = static_cast<std::size_t>(payload_bytes());
    const auto add = [&p](std::uint32_t id, bool immediate, std::int64_t value) {
      p.items[p.n_items++] = {id, immediate, static_cast<std::uint64_t>(value)};
    };
    add(wire::kSpeadTimestamp, true, heap * heap_ticks);
    if (!beams) add(wire::kSpeadFengId, true, link % n_fengines);
    add(wire::kSpeadFrequency, true, first_channel + link / n_fengines * n_channels);
    add(beams ? wire::kSpeadBfRaw : wire::kSpeadFengRaw, false, 0);
    wire::write_spead_header(p, bytes);
  }

  /// The packets of a link in a record, without their headers.
  void pack(const SpectraRecord& record, std::int64_t link, std::span<std::byte> lap) const {
    const std::int64_t first = link / n_fengines * n_channels;
    const std::int64_t input = link % n_fengines * n_pols;
    std::vector<std::byte> heap(static_cast<std::size_t>(heap_bytes));
    std::byte* packet = lap.data();
    for (std::int64_t begin = 0; begin < record.n_spectra; begin += n_spectra) {
      std::byte* value = heap.data();
      for (std::int64_t c = 0; c < n_channels; ++c) {
        for (std::int64_t t = 0; t < n_spectra; ++t) {
          const std::uint8_t* from =
              record.spectrum(begin + t) + (first + c) * record.n_inputs + input;
          for (std::int64_t p = 0; p < n_pols; ++p) {
            for (const int code : {from[p] >> 4, from[p] & 15})
              *value++ = static_cast<std::byte>((code ^ 8) - 8);
          }
        }
      }
      for (std::int64_t piece = 0; piece < n_pieces; ++piece, packet += packet_bytes())
        std::copy_n(heap.data() + piece * payload_bytes(), payload_bytes(),
                    packet + header_bytes());
    }
  }
};

std::shared_ptr<const SpeadSender::Heaps> SpeadSender::make_links(
    const SpectraRecord& record, std::int64_t n_laps, std::span<const SpectraEpoch> epochs,
    const SpeadSenderConfig& config) {
  const auto heaps = std::make_shared<const Heaps>(record, config);
  const auto n_endpoints = static_cast<std::int64_t>(config.endpoints.size());
  if (n_endpoints != heaps->n_fengines && (n_endpoints != 1 || config.beams))
    throw ConfigError(
        "the sender has " + std::to_string(n_endpoints) + " endpoints for " +
        std::to_string(heaps->n_fengines) +
        (config.beams ? " beams; one each works" : " F-engines; one for all or one each works"));
  auto& schedule = loop().schedule;
  const double heaps_per_s =
      record.spectrum_rate_hz.value() / static_cast<double>(heaps->n_spectra);
  schedule.rate_hz = heaps_per_s * static_cast<double>(heaps->n_pieces);
  schedule.speed = config.speed;
  // Whole heaps: a last one without its last packets would look like loss.
  if (config.duration_s > 0)
    schedule.duration_s = std::max(1.0, std::round(config.duration_s * heaps_per_s)) / heaps_per_s;
  schedule.udp_ceiling_packets_per_s = config.udp_ceiling_packets_per_s;
  schedule.in_turn = static_cast<bool>(config.sink);
  schedule.any_udp = true;
  schedule.in_step = true;
  validate(schedule, config.outages, heaps->n_fengines);
  detail::UdpPacketFormat format;
  format.packet_bytes = heaps->packet_bytes();
  format.header_bytes = heaps->header_bytes();
  if (config.segmentation)
    format.packets_per_message = detail::packets_per_message(format.packet_bytes);
  const auto records = detail::records_of(epochs);
  for (const auto& epoch : epochs) {  // from the next heap on
    const auto at = std::find(records.begin(), records.end(), epoch.record);
    const std::int64_t heap = (epoch.first_spectrum + heaps->n_spectra - 1) / heaps->n_spectra;
    format.epochs.push_back({heap * heaps->n_pieces, at - records.begin()});
  }
  const std::int64_t lap = record.n_spectra / heaps->n_spectra * heaps->n_pieces;
  const bool is_stream = epochs.empty();
  for (std::int64_t link = 0; link < heaps->n_fengines * heaps->n_blocks; ++link) {
    const std::int64_t fengine = link % heaps->n_fengines;
    auto endpoint = detail::parse_target(
        config.endpoints[n_endpoints == 1 ? 0 : static_cast<std::size_t>(fengine)]);
    detail::UdpPacketFormat own = format;
    own.stamp = [heaps, link](Tick k, std::span<std::byte> bytes) { heaps->stamp(link, k, bytes); };
    complete_format(own, config.impairments, config.sink, endpoint,
                    {link, fengine, schedule.rate_hz});
    own.impairments.step_ticks -= own.impairments.step_ticks % heaps->n_pieces;
    std::vector<std::byte> image(static_cast<std::size_t>(n_laps * lap * format.packet_bytes));
    loop().links.push_back(
        detail::make_udp_link(std::move(endpoint), std::move(image), is_stream ? n_laps * lap : lap,
                              0, outages_of(config.outages, fengine, schedule), own));
  }
  return heaps;
}

SpeadSender::SpeadSender(std::span<const SpectraEpoch> epochs, const SpeadSenderConfig& config) {
  const auto records = detail::records_of(epochs);
  const auto heaps =
      make_links(*records.front(), static_cast<std::int64_t>(records.size()), epochs, config);
  for (std::size_t k = 0; k < loop().links.size(); ++k) {
    const std::span image = loop().links[k]->image();
    const std::size_t lap = image.size() / records.size();
    for (std::size_t r = 0; r < records.size(); ++r)
      heaps->pack(*records[r], static_cast<std::int64_t>(k), image.subspan(r * lap, lap));
  }
}

SpeadSender::SpeadSender(std::shared_ptr<const SpectraStream> stream,
                         const SpeadSenderConfig& config) {
  const auto record = std::make_shared<SpectraRecord>(stream->make_record());
  const auto heaps = make_links(*record, detail::LapFeeder::kLaps, {}, config);
  auto* links = &loop().links;
  const std::int64_t lap_packets = record->n_spectra / heaps->n_spectra * heaps->n_pieces;
  detail::feed_laps(
      loop(), lap_packets, 0, [stream, record, heaps, links](Tick first, std::int64_t slot) {
        stream->draw(first / heaps->n_pieces * heaps->n_spectra, *record);
        for (std::size_t k = 0; k < links->size(); ++k) {
          const std::span image = (*links)[k]->image();
          const std::size_t lap = image.size() / static_cast<std::size_t>(detail::LapFeeder::kLaps);
          heaps->pack(*record, static_cast<std::int64_t>(k),
                      image.subspan(static_cast<std::size_t>(slot) * lap, lap));
        }
      });
}

}  // namespace ryle::simulate
