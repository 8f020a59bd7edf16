// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/impair_relay.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "ryle/core/descriptor.hpp"
#include "ryle/core/error.hpp"

namespace ryle::simulate {
namespace {

[[noreturn]] void fail(const char* operation, int error) {
  throw IoError(ExitCode::unavailable,
                std::string("relay cannot ") + operation + ": " + std::strerror(error));
}

}  // namespace

struct ImpairRelay::Impl {
  Impl(const ImpairConfig& config, const std::string& host, std::uint16_t port)
      : impairer(config, [this](std::span<const std::byte> bytes, const LedgerRecord& record) {
          const int out =
              record.action == ImpairAction::foreign_sender ? stranger.get() : sender.get();
          [[maybe_unused]] const auto n =
              sendto(out, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&target),
                     sizeof target);
        }) {
    target.sin_family = AF_INET;
    target.sin_port = htons(port);
    if (inet_pton(AF_INET, host.c_str(), &target.sin_addr) != 1) {
      throw ConfigError("relay target '" + host + "' is not a numeric IPv4 address");
    }
    for (Descriptor* s : {&in, &sender, &stranger}) {
      *s = Descriptor(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      if (!*s) fail("make a socket", errno);
    }
    const int buffer = 32 << 20;
    if (setsockopt(in.get(), SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) != 0) {
      setsockopt(in.get(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    }
    sockaddr_in local{};
    local.sin_family = AF_INET;
    local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(in.get(), reinterpret_cast<sockaddr*>(&local), sizeof local) != 0)
      fail("listen", errno);
    socklen_t size = sizeof local;
    getsockname(in.get(), reinterpret_cast<sockaddr*>(&local), &size);
    in_port = ntohs(local.sin_port);
    thread = std::thread([this] { run(); });
  }
  ~Impl() { stop(); }

  void run() {
    std::vector<std::byte> buffer(65536);
    for (bool quiet = false; !stopping || !quiet;) {
      pollfd polled{in.get(), POLLIN, 0};
      quiet = ::poll(&polled, 1, 20) == 0;
      if (quiet) continue;
      const ssize_t n = recv(in.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (n >= 0) impairer.offer(std::span(buffer).first(n));
    }
    impairer.flush();
  }
  void stop() {
    stopping = true;
    if (thread.joinable()) thread.join();
  }

  Descriptor in, sender, stranger;
  std::uint16_t in_port = 0;
  sockaddr_in target{};
  Impairer impairer;
  std::atomic<bool> stopping{false};
  std::thread thread;
};

ImpairRelay::ImpairRelay(const ImpairConfig& config, const std::string& target_host,
                         std::uint16_t target_port)
    : impl_(std::make_unique<Impl>(config, target_host, target_port)) {}
ImpairRelay::~ImpairRelay() = default;
std::uint16_t ImpairRelay::in_port() const { return impl_->in_port; }
void ImpairRelay::stop() { impl_->stop(); }
const std::vector<LedgerRecord>& ImpairRelay::ledger() const { return impl_->impairer.ledger(); }

}  // namespace ryle::simulate
