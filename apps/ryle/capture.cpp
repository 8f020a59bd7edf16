// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "apps/ryle/command.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/core/endpoint.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/ingest/capture_file.hpp"
#include "ryle/ingest/capture_writer.hpp"
#include "ryle/ingest/datagram_report.hpp"
#include "ryle/ingest/described_source.hpp"
#include "ryle/ingest/socket.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/config/config_packet.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::app {
namespace {

constexpr std::size_t kMaxDatagramBytes = 65536;
constexpr std::int64_t kBufferBytes = std::int64_t{64} << 20;

struct CaptureArguments {
  std::vector<std::string> endpoints;
  std::string output, file, describe, replay;
  std::vector<std::string> overrides;
  double seconds = 0, speed = 1;
  std::int64_t packets = 0, shown = 8;
  bool overwrite = false;
};

std::int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// The report of --describe: the streams of an observation file, or any of a layout's own file.
DatagramReport make_report(const CaptureArguments& a) {
  const auto packet = pipeline::load_packet(a.describe);
  wire::DescribedGeometry streams;
  const std::string text = read_text_file(a.describe);
  if (text.find("[source.packet]") == std::string::npos || text.find("[telescope]") == text.npos)
    return DatagramReport(wire::DescribedCodec(packet, streams));
  const auto config = pipeline::load_observation(a.describe, a.overrides);
  const std::int64_t n_inputs = pipeline::load_array(config, 0).n_inputs();
  const std::int64_t n_channels =
      config.source.n_channels > 0 ? config.source.n_channels : packet.extent(wire::Axis::channel);
  streams = described_geometry(packet, n_inputs, config.source.first_channel, n_channels);
  return DatagramReport(wire::DescribedCodec(packet, streams));
}

/// Shows the first datagrams and counts the others.
class Describer {
 public:
  Describer(const CaptureArguments& a, const Context& context)
      : report_(make_report(a)), shown_(context.json || context.quiet ? 0 : a.shown) {}
  void take(std::span<const std::byte> datagram, const SenderAddress& from) {
    const std::string text = report_.take(datagram);
    if (++n_ <= shown_)
      fmt::print("{}  {}  {} bytes: {}\n", n_, to_string(from), datagram.size(), text);
  }
  const DatagramReport& report() const { return report_; }

 private:
  DatagramReport report_;
  std::int64_t shown_, n_ = 0;
};

struct Captured {
  std::uint64_t datagrams = 0, bytes = 0, kernel_drops = 0;
};

bool finished(const CaptureArguments& a, std::uint64_t datagrams,
              std::chrono::steady_clock::time_point since) {
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
  return signal_count() > 0 || (a.seconds > 0 && elapsed >= a.seconds) ||
         (a.packets > 0 && datagrams >= static_cast<std::uint64_t>(a.packets));
}

/// What comes to the endpoints, until enough has.
Captured receive(const CaptureArguments& a, CaptureWriter* writer, Describer* describer) {
  const auto endpoints = expand_endpoints(a.endpoints);
  std::vector<Socket> sockets;
  std::vector<sockaddr_storage> addresses(endpoints.size());
  std::vector<pollfd> polled;
  for (std::size_t k = 0; k < endpoints.size(); ++k) {
    const Endpoint endpoint = parse_endpoint(endpoints[k]);
    if (endpoint.is_tcp())
      throw ConfigError("\"" + endpoints[k] + "\": datagrams are captured, from udp://host:port");
    sockets.push_back(udp_bind(endpoint));
    set_receive_buffer(sockets.back(), kBufferBytes);
    socklen_t size = sizeof addresses[k];
    ::getsockname(sockets.back().get(), reinterpret_cast<sockaddr*>(&addresses[k]), &size);
    polled.push_back({sockets.back().get(), POLLIN, 0});
  }
  DatagramReader reader(kMaxDatagramBytes, false);
  Captured out;
  const auto start = std::chrono::steady_clock::now();
  while (!finished(a, out.datagrams, start)) {
    ::poll(polled.data(), polled.size(), 50);
    for (std::size_t k = 0; k < sockets.size(); ++k) {
      for (const auto& d : reader.receive(sockets[k])) {
        if (a.packets > 0 && out.datagrams >= static_cast<std::uint64_t>(a.packets)) break;
        const std::span bytes(d.data, d.size);
        if (writer != nullptr) writer->write(bytes, d.address, &addresses[k], unix_ns());
        if (describer != nullptr) describer->take(bytes, sender_address(d.address));
        ++out.datagrams;
        out.bytes += d.size;
      }
    }
  }
  for (const auto& socket : sockets) out.kernel_drops += kernel_drops(socket);
  return out;
}

/// The datagrams of a file.
Captured read_file(const CaptureArguments& a, Describer& describer) {
  CaptureReader reader(a.file);
  CapturedDatagram d;
  Captured out;
  while (signal_count() == 0 && reader.next(d)) {
    if (a.packets > 0 && out.datagrams >= static_cast<std::uint64_t>(a.packets)) break;
    describer.take(d.payload, sender_address(&d.from));
    ++out.datagrams;
    out.bytes += d.payload.size();
  }
  return out;
}

Descriptor connect_to(const std::string& text) {
  const Endpoint endpoint = parse_endpoint(text);
  if (endpoint.is_tcp() || endpoint.port == 0)
    throw ConfigError("\"" + text + "\": datagrams are sent to udp://host:port");
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int status =
      getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (status != 0) throw IoError(ExitCode::unavailable, text + ": " + gai_strerror(status));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, &freeaddrinfo);
  Descriptor socket(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket) prepare_multicast_sender(socket.get(), endpoint);
  if (!socket || ::connect(socket.get(), found->ai_addr, found->ai_addrlen) != 0)
    throw IoError(ExitCode::unavailable, text + ": " + std::strerror(errno));
  return socket;
}

/// Sends a recording, at `speed` times the pace at which it came; 0 = without waiting.
Captured replay(const CaptureArguments& a) {
  CaptureReader reader(a.replay);
  const Descriptor socket = connect_to(a.endpoints.front());
  CapturedDatagram d;
  Captured out;
  std::optional<std::int64_t> first_ns;
  const auto start = std::chrono::steady_clock::now();
  while (!finished(a, out.datagrams, start) && reader.next(d)) {
    if (!first_ns) first_ns = d.unix_ns;
    if (a.speed > 0) {
      const auto due = static_cast<double>(d.unix_ns - *first_ns) / a.speed;
      std::this_thread::sleep_until(start +
                                    std::chrono::nanoseconds(static_cast<std::int64_t>(due)));
    }
    // A rejection tells of an earlier datagram: nobody listens yet.
    if (::send(socket.get(), d.payload.data(), d.payload.size(), MSG_NOSIGNAL) < 0 &&
        errno != ECONNREFUSED && errno != ENOBUFS)
      throw IoError(ExitCode::io, a.endpoints.front() + ": " + std::strerror(errno));
    ++out.datagrams;
    out.bytes += d.payload.size();
  }
  return out;
}

void print(const Context& context, const CaptureArguments& a, const Captured& out,
           const Describer* describer) {
  if (context.json) {
    nlohmann::ordered_json o{
        {"datagrams", out.datagrams}, {"bytes", out.bytes}, {"kernel_drops", out.kernel_drops}};
    if (!a.output.empty()) o["product"] = a.output;
    if (describer != nullptr) {
      o["accepted"] = describer->report().accepted();
      o["rejected"] = describer->report().rejected();
      o["report"] = describer->report().summary();
    }
    fmt::print("{}\n", o.dump());
    return;
  }
  fmt::print("{} datagrams, {}{}{}\n", out.datagrams, bytes_text(static_cast<double>(out.bytes)),
             a.output.empty() ? "" : ": " + a.output,
             out.kernel_drops > 0 ? fmt::format("; the kernel dropped {}", out.kernel_drops) : "");
  if (describer == nullptr) return;
  for (const auto& line : describer->report().summary()) fmt::print("{}\n", line);
}

int run(const Context& context, const CaptureArguments& a) {
  if (!a.replay.empty()) {
    print(context, a, replay(a), nullptr);
    return 0;
  }
  std::optional<Describer> describer;
  if (!a.describe.empty()) describer.emplace(a, context);
  std::optional<CaptureWriter> writer;
  if (!a.output.empty()) {
    require_creatable(a.output, a.overwrite);
    writer.emplace(a.output);
  }
  const Captured out =
      a.file.empty() ? receive(a, writer ? &*writer : nullptr, describer ? &*describer : nullptr)
                     : read_file(a, *describer);
  if (writer) writer->finish();
  print(context, a, out, describer ? &*describer : nullptr);
  const bool nothing = out.datagrams == 0;
  if (nothing)
    fmt::print(stderr, "no datagram came; is the sender on, to this address and port?\n");
  const bool none_fits = describer && describer->report().accepted() == 0;
  return nothing || none_fits ? static_cast<int>(ExitCode::bad_data) : 0;
}

}  // namespace

void add_capture(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand("capture",
                                 "record the datagrams of an array, show what a description makes "
                                 "of them, send a recording again");
  auto a = std::make_shared<CaptureArguments>();
  auto* endpoints = sub->add_option("endpoints", a->endpoints,
                                    "udp://host:port to listen on, or with --replay to send to");
  auto* output = sub->add_option("-o,--output", a->output, "PCAP file to write");
  auto* describe =
      sub->add_option("--describe", a->describe,
                      "observation file with a [source.packet], or a file of its keys: show the "
                      "first datagrams decoded, and why others are rejected");
  auto* file = sub->add_option("--file", a->file, "describe the datagrams of this PCAP or PCAPNG");
  auto* replay =
      sub->add_option("--replay", a->replay, "PCAP or PCAPNG file to send to the endpoint");
  sub->add_option("--speed", a->speed, "--replay: times the recorded speed; 0 = without waiting")
      ->check(number_from_zero())
      ->needs(replay);
  sub->add_option("--seconds", a->seconds, "stop after so long; default: at a signal")
      ->check(number_from_zero());
  sub->add_option("--packets", a->packets, "stop after so many datagrams")
      ->check(CLI::NonNegativeNumber);
  sub->add_option("--show", a->shown, "--describe: datagrams printed one by one, default 8")
      ->check(CLI::NonNegativeNumber)
      ->needs(describe);
  sub->add_option("--set", a->overrides, "--describe: change a key, section.key=value")
      ->needs(describe);
  sub->add_flag("--overwrite", a->overwrite, "replace the output");
  file->needs(describe)->excludes(endpoints)->excludes(output);
  replay->excludes(describe)->excludes(output);
  add_common(*sub, context);
  sub->callback([&context, a, file, replay] {
    if (file->count() == 0 && a->endpoints.empty())
      throw CLI::ValidationError("capture", "give an endpoint, udp://host:port, or --file");
    if (replay->count() > 0 && a->endpoints.size() != 1)
      throw CLI::ValidationError("capture", "--replay sends to one endpoint");
    if (file->count() == 0 && replay->count() == 0 && a->output.empty() && a->describe.empty())
      throw CLI::ValidationError("capture", "give -o FILE.pcap, --describe FILE.toml or both");
    context.action = [&context, a] { return run(context, *a); };
  });
}

}  // namespace ryle::app
