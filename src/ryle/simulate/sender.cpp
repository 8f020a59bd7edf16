// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/sender.hpp"

#include <algorithm>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/simulate/lap_feeder.hpp"
#include "ryle/simulate/link.hpp"
#include "ryle/simulate/packets.hpp"
#include "ryle/simulate/send_loop.hpp"

namespace ryle::simulate {

std::int64_t SenderReport::samples_sent() const {
  std::int64_t sum = 0;
  for (const auto& receiver : receivers) sum += receiver.samples_sent;
  return sum;
}

Sender::Sender() : loop_(std::make_unique<detail::SendLoop>()) {}
Sender::~Sender() = default;
void Sender::hold_while(std::function<bool()> hold) { loop_->schedule.hold = std::move(hold); }
void Sender::start() { loop_->start(); }
void Sender::stop() { loop_->stop(); }
bool Sender::running() const { return loop_->running(); }
SenderReport Sender::report() const { return loop_->report(); }
SenderReport Sender::join() { return loop_->join(); }
std::int64_t Sender::memory_bytes() const { return loop_->memory_bytes(); }

SendImpairments SendImpairments::of_link(std::int64_t link, std::int64_t receiver,
                                         double rate_hz) const {
  SendImpairments own = *this;
  own.seed = combine(seed, static_cast<std::uint64_t>(link));
  const bool steps =
      clock_step_s != 0 && (clock_step_receiver < 0 || clock_step_receiver == receiver);
  own.step_ticks = steps ? std::llround(clock_step_s * rate_hz) : 0;
  own.step_at_tick = std::llround(clock_step_at_s * rate_hz);
  return own;
}

namespace {

/// Ticks of a link to seconds, for who takes its packets.
std::function<void(Tick, std::span<const std::byte>)> sink_of(const PacketSink& sink,
                                                              const Endpoint& to, double rate_hz) {
  if (!sink) return {};
  return [sink, to, rate_hz](Tick tick, std::span<const std::byte> packet) {
    sink(static_cast<double>(tick) / rate_hz, to, packet);
  };
}

}  // namespace

namespace detail {

void require_datagrams(const SendImpairments& impairments, const PacketSink& sink,
                       const Endpoint& to) {
  if (!to.is_tcp() || (!impairments.any() && !sink)) return;
  throw ConfigError("endpoint \"" + to_string(to) + "\": " +
                    (sink ? "a file of packets holds datagrams"
                          : "loss, duplicates, order and steps of the clock are of datagrams, a "
                            "stream has none") +
                    "; udp:// works");
}

void complete_format(UdpPacketFormat& format, const SendImpairments& impairments,
                     const PacketSink& sink, const Endpoint& to, const LinkInfo& place) {
  require_datagrams(impairments, sink, to);
  if (to.is_tcp()) format.packets_per_message = 1;
  format.impairments = impairments.of_link(place.link, place.receiver, place.rate_hz);
  // A step of the counter that is no whole number of packets would be another fault.
  format.impairments.step_ticks -= format.impairments.step_ticks % format.packet_samples;
  format.sink = sink_of(sink, to, place.rate_hz);
  if (format.sink || format.impairments.any_packet()) format.packets_per_message = 1;
}

}  // namespace detail

Mwa32tSender::Mwa32tSender(const VoltageRecord& record, const SenderConfig& config) {
  make_links(record, 1, config);
}

Mwa32tSender::Mwa32tSender(std::shared_ptr<const VoltageStream> stream,
                           const SenderConfig& config) {
  const auto record = std::make_shared<VoltageRecord>(stream->make_record());
  make_links(*record, detail::LapFeeder::kLaps, config);
  auto* links = &loop().links;
  detail::feed_laps(
      loop(), record->n_samples, config.start_tick,
      [stream, record, links, config](Tick first, std::int64_t slot) {
        stream->draw(first, *record);
        for (std::size_t r = 0; r < links->size(); ++r) {
          const auto receiver = static_cast<std::int64_t>(r);
          const auto lap = (*links)[r]->endpoint().is_tcp()
                               ? pack_groups(*record, receiver, config.marker)
                               : pack_udp(*record, receiver, config.packet_samples);
          std::copy(lap.begin(), lap.end(),
                    (*links)[r]->image().begin() + slot * static_cast<std::int64_t>(lap.size()));
        }
      });
}

void Mwa32tSender::make_links(const VoltageRecord& record, std::int64_t n_laps,
                              const SenderConfig& config) {
  const std::int64_t wanted = n_receivers(record);
  if (static_cast<std::int64_t>(config.endpoints.size()) != wanted) {
    throw ConfigError("the sender has " + std::to_string(config.endpoints.size()) +
                      " endpoints for " + std::to_string(wanted) + " receivers of 16 inputs");
  }
  auto& schedule = loop().schedule;
  schedule.rate_hz = record.sample_rate_hz.value();
  schedule.speed = config.speed;
  schedule.duration_s = config.duration_s;
  schedule.packet_samples = config.packet_samples;
  schedule.connect_timeout_s = config.connect_timeout_s;
  schedule.udp_ceiling_packets_per_s = config.udp_ceiling_packets_per_s;
  schedule.in_turn = static_cast<bool>(config.sink);
  validate(schedule, config.outages, wanted);
  std::vector<Endpoint> endpoints;
  for (const auto& text : config.endpoints) endpoints.push_back(detail::parse_target(text));
  const auto laps = [n_laps](std::vector<std::byte> lap) {
    const std::size_t bytes = lap.size();
    lap.resize(static_cast<std::size_t>(n_laps) * bytes);  // drawn when they are due
    return lap;
  };
  for (std::size_t r = 0; r < endpoints.size(); ++r) {
    const auto receiver = static_cast<std::int64_t>(r);
    detail::require_datagrams(config.impairments, config.sink, endpoints[r]);
    auto outages = outages_of(config.outages, receiver, schedule);
    if (endpoints[r].is_tcp()) {
      loop().links.push_back(detail::make_tcp_link(
          std::move(endpoints[r]), laps(pack_groups(record, receiver, config.marker)),
          n_laps * record.n_samples, config.start_tick, std::move(outages)));
      continue;
    }
    if (config.start_tick % config.packet_samples != 0) {
      throw ConfigError("start_tick = " + std::to_string(config.start_tick) +
                        " is no multiple of the " + std::to_string(config.packet_samples) +
                        " samples of a packet");
    }
    schedule.any_udp = true;
    detail::UdpPacketFormat format;
    format.packet_samples = config.packet_samples;
    format.packet_bytes =
        static_cast<std::int64_t>(wire::kMwa32tUdpHeaderBytes) + 32 * config.packet_samples;
    complete_format(format, config.impairments, config.sink, endpoints[r],
                    {receiver, receiver, schedule.rate_hz});
    loop().links.push_back(detail::make_udp_link(
        std::move(endpoints[r]), laps(pack_udp(record, receiver, config.packet_samples)),
        n_laps * record.n_samples, config.start_tick, std::move(outages), format));
  }
}

}  // namespace ryle::simulate
