// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/sender_list.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "ryle/core/error.hpp"

namespace ryle {
namespace {

constexpr std::size_t kMappedBytes = 12;  // of ::ffff:0:0/96, before the bytes of IPv4
using IpBytes = std::array<std::uint8_t, 16>;

IpBytes mapped_ipv4(const in_addr& v4) {
  IpBytes ip{};
  ip[10] = ip[11] = 0xFF;
  std::memcpy(ip.data() + kMappedBytes, &v4, sizeof v4);
  return ip;
}

bool is_mapped(const IpBytes& ip) {
  constexpr std::array<std::uint8_t, kMappedBytes> kPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255};
  return std::equal(kPrefix.begin(), kPrefix.end(), ip.begin());
}

// Bits from number `bits` on are 0.
IpBytes masked(IpBytes ip, int bits) {
  for (int byte = 0; byte < 16; ++byte) {
    const int kept = std::clamp(bits - 8 * byte, 0, 8);
    ip[byte] &= static_cast<std::uint8_t>(0xFF00U >> kept);
  }
  return ip;
}

std::string ip_text(const IpBytes& ip) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (is_mapped(ip)) {
    inet_ntop(AF_INET, ip.data() + kMappedBytes, text.data(), text.size());
  } else {
    inet_ntop(AF_INET6, ip.data(), text.data(), text.size());
  }
  return text.data();
}

template <class Number>
bool read_number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

SenderAddress sender_address(const void* address) {
  SenderAddress sender;
  const auto family = static_cast<const sockaddr*>(address)->sa_family;
  if (family == AF_INET) {
    const auto* v4 = static_cast<const sockaddr_in*>(address);
    sender = {mapped_ipv4(v4->sin_addr), ntohs(v4->sin_port), true};
  } else if (family == AF_INET6) {
    const auto* v6 = static_cast<const sockaddr_in6*>(address);
    std::memcpy(sender.ip.data(), &v6->sin6_addr, sender.ip.size());
    sender.port = ntohs(v6->sin6_port);
    sender.known = true;
  }
  return sender;
}

std::optional<IpBytes> numeric_ip(const std::string& host) {
  in_addr v4{};
  IpBytes ip{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return mapped_ipv4(v4);
  if (inet_pton(AF_INET6, host.c_str(), ip.data()) == 1) return ip;
  return std::nullopt;
}

std::string to_string(const SenderAddress& sender) {
  if (!sender.known) return "?";
  const std::string ip = ip_text(sender.ip);
  return is_mapped(sender.ip) ? fmt::format("{}:{}", ip, sender.port)
                              : fmt::format("[{}]:{}", ip, sender.port);
}

SenderList::SenderList(const std::vector<std::string>& entries) {
  for (const auto& entry : entries) {
    const auto fail = [&entry](const std::string& why) {
      return ConfigError(fmt::format(
          "source.allowed_senders: \"{}\" {}; write an address or a network, with or without a "
          "port: \"10.1.2.3\", \"10.1.0.0/16\", \"10.1.0.0/16:4015\", \"fd00::/8\", "
          "\"[fd00::/8]:4015\"",
          entry, why));
    };
    Network network;
    std::string_view rest = entry, port;
    if (rest.starts_with('[')) {
      const auto close = rest.find(']');
      if (close == std::string_view::npos) throw fail("lacks a ]");
      port = rest.substr(close + 1);
      rest = rest.substr(1, close - 1);
      if (!port.empty() && !port.starts_with(':')) throw fail("has no : behind the ]");
    } else if (std::ranges::count(rest, ':') == 1) {
      port = rest.substr(rest.find(':'));
      rest = rest.substr(0, rest.find(':'));
    }
    if (!port.empty() && (!read_number(port.substr(1), network.port) || network.port == 0)) {
      throw fail("has a port that is not a number from 1 to 65535");
    }
    const auto slash = rest.find('/');
    const std::string host(rest.substr(0, slash));
    const auto ip = numeric_ip(host);
    if (!ip) throw fail("is not a numeric IPv4 or IPv6 address");
    network.ip = *ip;
    const int all_bits = host.find(':') == std::string::npos ? 32 : 128;
    int bits = all_bits;
    if (slash != std::string_view::npos &&
        (!read_number(rest.substr(slash + 1), bits) || bits < 0 || bits > all_bits)) {
      throw fail(fmt::format("has a prefix length that is not a number from 0 to {}", all_bits));
    }
    network.prefix_bits = bits + 128 - all_bits;
    if (const IpBytes begin = masked(network.ip, network.prefix_bits); begin != network.ip) {
      throw fail(fmt::format("is not a network: /{} begins at {}", bits, ip_text(begin)));
    }
    networks_.push_back(network);
  }
}

bool SenderList::allows(const SenderAddress& sender) const {
  if (networks_.empty()) return true;
  return sender.known && std::ranges::any_of(networks_, [&sender](const Network& n) {
           return (n.port == 0 || n.port == sender.port) &&
                  masked(sender.ip, n.prefix_bits) == n.ip;
         });
}

}  // namespace ryle
