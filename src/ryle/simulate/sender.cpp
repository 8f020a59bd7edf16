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

struct Mwa32tSender::State {
  detail::SendLoop loop;
};

Mwa32tSender::Mwa32tSender(const VoltageRecord& record, const SenderConfig& config)
    : state_(std::make_unique<State>()) {
  const std::int64_t wanted = n_receivers(record);
  if (static_cast<std::int64_t>(config.endpoints.size()) != wanted) {
    throw ConfigError("the sender has " + std::to_string(config.endpoints.size()) +
                      " endpoints for " + std::to_string(wanted) + " receivers of 16 inputs");
  }
  auto& schedule = state_->loop.schedule;
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
      state_->loop.links.push_back(detail::make_tcp_link(
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
    state_->loop.links.push_back(detail::make_udp_link(
        std::move(endpoints[r]), pack_udp(record, receiver, config.packet_samples),
        record.n_samples, config.start_tick, std::move(outages), format));
  }
}

Mwa32tSender::~Mwa32tSender() = default;
void Mwa32tSender::hold_while(std::function<bool()> hold) {
  state_->loop.schedule.hold = std::move(hold);
}
void Mwa32tSender::start() { state_->loop.start(); }
void Mwa32tSender::stop() { state_->loop.stop(); }
bool Mwa32tSender::running() const { return state_->loop.running(); }
SenderReport Mwa32tSender::report() const { return state_->loop.report(); }
SenderReport Mwa32tSender::join() { return state_->loop.join(); }
std::int64_t Mwa32tSender::memory_bytes() const { return state_->loop.memory_bytes(); }

}  // namespace ryle::simulate
