// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/fengine_sender.hpp"

#include <algorithm>

#include "ryle/core/error.hpp"
#include "ryle/simulate/fengine_packets.hpp"
#include "ryle/simulate/lap_feeder.hpp"
#include "ryle/simulate/send_loop.hpp"
#include "ryle/simulate/whole_file.hpp"

namespace ryle::simulate {
namespace detail {

std::vector<const SpectraRecord*> records_of(std::span<const SpectraEpoch> epochs) {
  std::vector<const SpectraRecord*> records;
  for (const auto& epoch : epochs) {
    const auto& first = *epochs.front().record;
    const auto& record = *epoch.record;
    if (record.n_spectra != first.n_spectra || record.n_channels != first.n_channels ||
        record.n_inputs != first.n_inputs) {
      throw ConfigError("the records of a sender differ in shape; they must be of one F-engine");
    }
    if (std::find(records.begin(), records.end(), &record) == records.end())
      records.push_back(&record);
  }
  return records;
}

}  // namespace detail

namespace {

/// Frames of spectra [first, first + n), of the record that `record_at` says.
template <class RecordAt>
void write_frames(const SpectraRecord& shape, const FengineSenderConfig& config, std::int64_t n,
                  const std::string& path, const RecordAt& record_at) {
  if (config.format != "tbf" && config.format != "tbx")
    throw UnsupportedError("packets of " + config.format +
                           " have no file format of their own; a name that ends in .pcap keeps the "
                           "datagrams of every format");
  const auto packets = detail::fengine_packets(shape, config.format, config.first_channel,
                                               config.channels_per_packet, config.first_time_tag);
  detail::WholeFile file(path);
  std::vector<std::byte> payload, frame(packets.packet_bytes);
  for (Tick t = config.start_spectrum; t < config.start_spectrum + n; ++t) {
    const SpectraRecord& record = record_at(t);
    for (std::int64_t block = 0; block < packets.n_blocks; ++block) {
      for (std::int64_t board = 0; board < packets.n_boards; ++board) {
        detail::pack_one(record, packets, block, board, t, payload, frame.data());
        file.write(frame.data(), frame.size());
      }
    }
  }
  file.publish();
}

}  // namespace

void write_fengine_file(std::span<const SpectraEpoch> epochs, const FengineSenderConfig& config,
                        std::int64_t n_spectra, const std::string& path) {
  detail::records_of(epochs);  // one shape
  std::size_t epoch = 0;
  write_frames(*epochs.front().record, config, n_spectra, path,
               [&](Tick t) -> const SpectraRecord& {
                 while (epoch + 1 < epochs.size() && epochs[epoch + 1].first_spectrum <= t) ++epoch;
                 return *epochs[epoch].record;
               });
}

void write_fengine_file(const SpectraStream& stream, const FengineSenderConfig& config,
                        std::int64_t n_spectra, const std::string& path) {
  SpectraRecord record = stream.make_record();
  write_frames(record, config, n_spectra, path, [&](Tick t) -> const SpectraRecord& {
    if (t % record.n_spectra == 0) stream.draw(t, record);
    return record;
  });
}

FengineSender::FengineSender(const SpectraRecord& record, const FengineSenderConfig& config)
    : FengineSender(std::vector<SpectraEpoch>{{0, &record}}, config) {}

FengineSender::FengineSender(std::span<const SpectraEpoch> epochs,
                             const FengineSenderConfig& config) {
  make_links(epochs, 1, config);
}

FengineSender::FengineSender(std::shared_ptr<const SpectraStream> stream,
                             const FengineSenderConfig& config) {
  const auto record = std::make_shared<SpectraRecord>(stream->make_record());
  make_links(std::vector<SpectraEpoch>{{0, record.get()}}, detail::LapFeeder::kLaps, config);
  auto* links = &loop().links;
  const auto packets = detail::fengine_packets(*record, config.format, config.first_channel,
                                               config.channels_per_packet, config.first_time_tag);
  detail::feed_laps(
      loop(), record->n_spectra, config.start_spectrum,
      [stream, record, links, packets](Tick first, std::int64_t slot) {
        stream->draw(first, *record);
        for (std::size_t k = 0; k < links->size(); ++k) {
          const auto link = static_cast<std::int64_t>(k);
          const auto lap =
              detail::pack(*record, packets, link / packets.n_boards, link % packets.n_boards);
          std::copy(lap.begin(), lap.end(),
                    (*links)[k]->image().begin() + slot * static_cast<std::int64_t>(lap.size()));
        }
      });
}

void FengineSender::make_links(std::span<const SpectraEpoch> epochs, std::int64_t n_laps,
                               const FengineSenderConfig& config) {
  const auto records = detail::records_of(epochs);
  const SpectraRecord& record = *records.front();
  const auto packets = detail::fengine_packets(record, config.format, config.first_channel,
                                               config.channels_per_packet, config.first_time_tag);
  if (config.endpoints.size() != 1 &&
      static_cast<std::int64_t>(config.endpoints.size()) != packets.n_boards) {
    throw ConfigError("the sender has " + std::to_string(config.endpoints.size()) +
                      " endpoints for " + std::to_string(packets.n_boards) +
                      " boards; one for all or one each works");
  }
  auto& schedule = loop().schedule;
  schedule.rate_hz = record.spectrum_rate_hz.value();
  schedule.speed = config.speed;
  schedule.duration_s = config.duration_s;
  schedule.udp_ceiling_packets_per_s = config.udp_ceiling_packets_per_s;
  schedule.in_turn = static_cast<bool>(config.sink);
  schedule.any_udp = true;
  schedule.in_step = true;
  validate(schedule, config.outages, packets.n_boards);
  detail::UdpPacketFormat format;
  format.packet_bytes = packets.packet_bytes;
  format.header_bytes =
      packets.packet_bytes - packets.channels_per_packet * packets.inputs_per_packet;
  format.counter_offset = packets.counter_offset;
  format.counter_bias = packets.counter_bias;
  format.counter_scale = packets.counter_scale;
  if (config.segmentation)
    format.packets_per_message = detail::packets_per_message(packets.packet_bytes);
  for (const auto& epoch : epochs) {
    const auto at = std::find(records.begin(), records.end(), epoch.record);
    format.epochs.push_back({epoch.first_spectrum, at - records.begin()});
  }
  for (std::int64_t block = 0; block < packets.n_blocks; ++block) {
    for (std::int64_t board = 0; board < packets.n_boards; ++board) {
      auto endpoint = detail::parse_target(
          config.endpoints[config.endpoints.size() == 1 ? 0 : static_cast<std::size_t>(board)]);
      std::vector<std::byte> laps;
      for (const auto* r : records) {
        const auto lap = detail::pack(*r, packets, block, board);
        laps.insert(laps.end(), lap.begin(), lap.end());
      }
      laps.resize(static_cast<std::size_t>(n_laps) * laps.size());  // drawn when they are due
      detail::UdpPacketFormat own = format;
      complete_format(own, config.impairments, config.sink, endpoint,
                      {block * packets.n_boards + board, board, schedule.rate_hz});
      loop().links.push_back(detail::make_udp_link(
          std::move(endpoint), std::move(laps), n_laps * record.n_spectra, config.start_spectrum,
          outages_of(config.outages, board, schedule), own));
    }
  }
}

}  // namespace ryle::simulate
