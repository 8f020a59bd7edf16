// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/sender.hpp"

#include "ryle/core/error.hpp"
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

Mwa32tSender::Mwa32tSender(const VoltageRecord& record, const SenderConfig& config) {
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
  validate(schedule, config.outages, wanted);
  std::vector<Endpoint> endpoints;
  for (const auto& text : config.endpoints) endpoints.push_back(detail::parse_target(text));
  for (std::size_t r = 0; r < endpoints.size(); ++r) {
    const auto receiver = static_cast<std::int64_t>(r);
    auto outages = outages_of(config.outages, receiver, schedule);
    if (endpoints[r].is_tcp()) {
      loop().links.push_back(detail::make_tcp_link(
          std::move(endpoints[r]), pack_groups(record, receiver, config.marker), record.n_samples,
          config.start_tick, std::move(outages)));
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
    loop().links.push_back(detail::make_udp_link(
        std::move(endpoints[r]), pack_udp(record, receiver, config.packet_samples),
        record.n_samples, config.start_tick, std::move(outages), format));
  }
}

}  // namespace ryle::simulate
