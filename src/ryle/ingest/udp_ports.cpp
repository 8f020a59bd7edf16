// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/udp_ports.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ryle/core/error.hpp"

namespace ryle {

UdpPort& UdpPorts::open(const Endpoint& endpoint) {
  for (auto& port : ports_) {
    if (endpoint.port != 0 && port->endpoint.port == endpoint.port &&
        port->endpoint.host == endpoint.host && port->endpoint.interface == endpoint.interface &&
        port->endpoint.sources == endpoint.sources) {
      return *port;
    }
  }
  auto port = std::make_unique<UdpPort>();
  port->endpoint = endpoint;
  port->ip = numeric_ip(endpoint.host);
  for (const auto& source : endpoint.sources)
    if (const auto ip = numeric_ip(source)) port->source_ips.push_back(*ip);
  if (!replay_) {
    port->socket = udp_bind(endpoint);
    port->endpoint.port = port->socket.local_port();
    if (gro_) DatagramReader::enable_gro(port->socket);
  }
  ports_.push_back(std::move(port));
  return *ports_.back();
}

void UdpPorts::reserve(const UdpPort& port, double packets_per_s, double packet_bytes,
                       double stall_budget_s, bool allow_small) {
  if (replay_) return;
  // A datagram is charged about 2.06 times its size (4104 bytes: 8448, measured).
  const auto needed =
      static_cast<std::int64_t>(stall_budget_s * packets_per_s * 2.06 * packet_bytes);
  // More than needed costs nothing until it is used, and rides out longer stalls.
  const std::int64_t granted =
      set_receive_buffer(port.socket, std::max<std::int64_t>(needed, std::int64_t{64} << 20));
  if (granted >= needed) return;
  receive_buffer_ok_ = false;
  if (allow_small) return;
  const std::int64_t ask = (needed / 2 + (1 << 20) - 1) >> 20 << 20;
  throw OsLimitError(fmt::format(
      "the receive buffer of {} needs {:.1f} MB ({:.2f} s at {:.1f} kpkt/s), granted {:.1f} MB "
      "(net.core.rmem_max = {}); now: sudo sysctl -w net.core.rmem_max={}; keep: echo "
      "net.core.rmem_max={} | sudo tee /etc/sysctl.d/90-ryle.conf; or go on with losses: "
      "--allow-small-rcvbuf",
      to_string(port.endpoint), static_cast<double>(needed) * 1e-6, stall_budget_s,
      packets_per_s * 1e-3, static_cast<double>(granted) * 1e-6, system_rmem_max(), ask, ask));
}

UdpPort* UdpPorts::find(const void* from, const void* to) {
  const SenderAddress target = sender_address(to);
  UdpPort* first = nullptr;
  for (auto& port : ports_) {
    const Endpoint& endpoint = port->endpoint;
    if (endpoint.port != 0 && endpoint.port != target.port) continue;
    const bool exact = port->ip && *port->ip == target.ip;
    if (is_multicast(endpoint)) {
      const auto& wanted = port->source_ips;
      const auto source = std::ranges::find(wanted, sender_address(from).ip);
      if (exact && (wanted.empty() || source != wanted.end())) return port.get();
      continue;
    }
    if (exact) return port.get();
    if (first == nullptr) first = port.get();
  }
  return first;
}

std::string UdpPorts::silent_groups() const {
  constexpr int kListed = 4;
  std::string list;
  int n = 0;
  for (const auto& port : ports_) {
    if (!is_multicast(port->endpoint) || port->received > 0) continue;
    if (++n <= kListed) list += (n > 1 ? ", " : "") + to_string(port->endpoint);
  }
  if (n == 0) return "";
  if (n > kListed) list += fmt::format(" and {} more", n - kListed);
  return fmt::format(
      "no packet came from the multicast group{} {}: nobody sends there{}", n > 1 ? "s" : "", list,
      replay_ ? " in the capture"
              : ", or not through the interface that joined (?interface=), or a switch does not "
                "forward the group (IGMP snooping without a querier)");
}

void UdpPorts::allocate(std::size_t max_bytes) {
  reader_ = std::make_unique<DatagramReader>(max_bytes, gro_);
}

void UdpPorts::update_drops() {
  if (replay_) return;
  for (auto& port : ports_) port->drops = kernel_drops(port->socket);
}

std::uint64_t UdpPorts::drops() const {
  std::uint64_t sum = 0;
  for (const auto& port : ports_) sum += port->drops;
  return sum;
}

}  // namespace ryle
