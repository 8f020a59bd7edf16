// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ryle {

/// Address and port of a sender. IPv4 is kept as the IPv6 address it is mapped to, which is how a
/// socket of both families reports it.
struct SenderAddress {
  std::array<std::uint8_t, 16> ip{};
  std::uint16_t port = 0;
  bool known = false;  ///< false: neither IPv4 nor IPv6
};
/// Of a sockaddr.
SenderAddress sender_address(const void* address);
/// Bytes of an address that is written as a number, IPv4 as SenderAddress has it; nothing for a
/// name.
std::optional<std::array<std::uint8_t, 16>> numeric_ip(const std::string& host);
/// "10.1.2.3:4015", "[fe80::1]:4015", "?" when not known.
std::string to_string(const SenderAddress& sender);

/// Who may send (source.allowed_senders): networks, each with or without a port.
class SenderList {
 public:
  /// Entries are "10.1.2.3", "10.1.0.0/16", "10.1.0.0/16:4015", "fd00::/8", "[fd00::/8]:4015".
  /// Throws ConfigError naming the entry and a form that would work.
  explicit SenderList(const std::vector<std::string>& entries);
  /// An empty list allows everybody.
  bool empty() const { return networks_.empty(); }
  bool allows(const SenderAddress& sender) const;

 private:
  struct Network {
    std::array<std::uint8_t, 16> ip{};
    int prefix_bits = 128;
    std::uint16_t port = 0;  ///< 0 = any
  };
  std::vector<Network> networks_;
};

}  // namespace ryle
