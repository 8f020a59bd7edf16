// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/core/endpoint.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <cstring>
#include <memory>

#include "ryle/core/error.hpp"

namespace ryle {
namespace {

[[noreturn]] void fail(std::string_view text, const std::string& why) {
  throw ConfigError(
      "endpoint '" + std::string(text) + "' " + why +
      "; it is not tcp://host:port, udp://host:port, pipe:/path or fd://3, for example "
      "udp://127.0.0.1:4002 or udp://239.1.2.3:7148?interface=eth1");
}

template <class T>
bool parse_whole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_address(const std::string& text) {
  in6_addr ignored{};
  return inet_pton(AF_INET, text.c_str(), &ignored) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &ignored) == 1;
}

// "interface=eth1&source=10.0.0.1&ttl=4"
void parse_options(std::string_view text, std::string_view options, Endpoint& endpoint) {
  if (!endpoint.is_udp() || !is_multicast(endpoint))
    fail(text, "has options, which only a multicast group takes");
  while (!options.empty()) {
    const auto end = options.find('&');
    const std::string_view option = options.substr(0, end);
    options = end == std::string_view::npos ? "" : options.substr(end + 1);
    const auto equals = option.find('=');
    const std::string_view key = option.substr(0, equals);
    const std::string value(equals == std::string_view::npos ? "" : option.substr(equals + 1));
    if (key == "interface" && !value.empty()) {
      endpoint.interface = value;
    } else if (key == "source" && is_address(value)) {
      endpoint.sources.push_back(value);
    } else if (key != "ttl" || !parse_whole(value, endpoint.ttl) || endpoint.ttl < 1 ||
               endpoint.ttl > 255) {
      fail(text, "has the option '" + std::string(option) +
                     "'; there are interface=NAME, source=ADDRESS and ttl=1..255");
    }
  }
}

using Interfaces = std::unique_ptr<ifaddrs, void (*)(ifaddrs*)>;
Interfaces list_interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) list = nullptr;
  return {list, [](ifaddrs* first) {
            if (first != nullptr) freeifaddrs(first);
          }};
}

std::string address_text(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address != nullptr && address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  } else if (address != nullptr && address->sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text,
              sizeof text);
  }
  return text;
}

}  // namespace

Endpoint parse_endpoint(std::string_view text) {
  Endpoint endpoint;
  if (text.starts_with("pipe:")) {
    endpoint.transport = Endpoint::Transport::pipe;
    endpoint.host = text.substr(5);
    if (endpoint.host.empty()) fail(text, "has no path");
    return endpoint;
  }
  if (text.starts_with("fd://")) {
    endpoint.transport = Endpoint::Transport::pipe;
    if (!parse_whole(text.substr(5), endpoint.port)) fail(text, "has no number of a descriptor");
    return endpoint;
  }
  if (text.starts_with("tcp://")) {
    endpoint.transport = Endpoint::Transport::tcp;
  } else if (!text.starts_with("udp://")) {
    fail(text, "has no known transport");
  }
  std::string_view rest = text.substr(6);
  const auto question = rest.find('?');
  const std::string_view options =
      question == std::string_view::npos ? "" : rest.substr(question + 1);
  rest = rest.substr(0, question);
  const auto colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0) fail(text, "has no port or no host");
  std::string_view host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.find('+') != std::string_view::npos) fail(text, "is a range of groups, not one");
  endpoint.host = host;
  if (!parse_whole(rest.substr(colon + 1), endpoint.port))
    fail(text, "has a port that is not a number from 0 to 65535");
  if (question != std::string_view::npos) parse_options(text, options, endpoint);
  return endpoint;
}

std::vector<std::string> expand_endpoints(const std::vector<std::string>& texts) {
  constexpr std::uint32_t kMaxGroups = 4096;
  std::vector<std::string> result;
  for (const auto& text : texts) {
    const auto plus = text.find('+');
    const auto colon = text.find(':', plus == std::string::npos ? 0 : plus);
    if (plus == std::string::npos || plus < 6 || colon == std::string::npos) {
      result.push_back(text);
      continue;
    }
    std::uint32_t more = 0;
    if (!parse_whole(std::string_view(text).substr(plus + 1, colon - plus - 1), more) ||
        more >= kMaxGroups)
      fail(text, "has '+' without the number of further groups, 1 to 4095");
    in_addr first{};
    if (inet_pton(AF_INET, text.substr(6, plus - 6).c_str(), &first) != 1)
      fail(text, "counts groups from a host that is no IPv4 address");
    for (std::uint32_t k = 0; k <= more; ++k) {
      const in_addr group{htonl(ntohl(first.s_addr) + k)};
      char name[INET_ADDRSTRLEN] = "";
      inet_ntop(AF_INET, &group, name, sizeof name);
      result.push_back(text.substr(0, 6) + name + text.substr(colon));
      if (!is_multicast(parse_endpoint(result.back())))
        fail(text, "counts groups that are not all multicast, 224.0.0.0 to 239.255.255.255");
    }
  }
  return result;
}

std::string to_string(const Endpoint& endpoint) {
  if (endpoint.is_pipe())
    return endpoint.host.empty() ? "fd://" + std::to_string(endpoint.port)
                                 : "pipe:" + endpoint.host;
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  std::string text = (endpoint.is_tcp() ? "tcp://" : "udp://") +
                     (v6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" +
                     std::to_string(endpoint.port);
  char separator = '?';
  const auto add = [&](const char* key, const std::string& value) {
    text += separator + (key + value);
    separator = '&';
  };
  if (!endpoint.interface.empty()) add("interface=", endpoint.interface);
  for (const auto& source : endpoint.sources) add("source=", source);
  if (endpoint.ttl > 0) add("ttl=", std::to_string(endpoint.ttl));
  return text;
}

bool is_multicast(const Endpoint& endpoint) {
  in_addr v4{};
  if (inet_pton(AF_INET, endpoint.host.c_str(), &v4) == 1) return IN_MULTICAST(ntohl(v4.s_addr));
  in6_addr v6{};
  return inet_pton(AF_INET6, endpoint.host.c_str(), &v6) == 1 && IN6_IS_ADDR_MULTICAST(&v6);
}

unsigned interface_index(const Endpoint& endpoint) {
  if (endpoint.interface.empty()) return 0;
  if (const unsigned index = if_nametoindex(endpoint.interface.c_str()); index != 0) return index;
  const Interfaces interfaces = list_interfaces();
  std::string known;
  for (const ifaddrs* i = interfaces.get(); i != nullptr; i = i->ifa_next) {
    const std::string address = address_text(i->ifa_addr);
    if (address.empty()) continue;
    if (address == endpoint.interface) return if_nametoindex(i->ifa_name);
    known += (known.empty() ? "" : ", ") + std::string(i->ifa_name) + " (" + address + ")";
  }
  throw IoError(ExitCode::unavailable, "endpoint " + to_string(endpoint) +
                                           ": this machine has no interface '" +
                                           endpoint.interface + "'; it has " + known);
}

void prepare_multicast_sender(int socket, const Endpoint& endpoint) {
  if (!is_multicast(endpoint)) return;
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  const int index = static_cast<int>(interface_index(endpoint));
  if (v6) {
    if (index > 0) setsockopt(socket, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof index);
    if (endpoint.ttl > 0)
      setsockopt(socket, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &endpoint.ttl, sizeof endpoint.ttl);
    return;
  }
  ip_mreqn request{};
  request.imr_ifindex = index;
  if (index > 0) setsockopt(socket, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof request);
  if (endpoint.ttl > 0)
    setsockopt(socket, IPPROTO_IP, IP_MULTICAST_TTL, &endpoint.ttl, sizeof endpoint.ttl);
}

}  // namespace ryle
