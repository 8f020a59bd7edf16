// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/line_server.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/ingest/socket.hpp"
#include "ryle/runtime/stage_thread.hpp"

namespace ryle {
namespace {

using LineClock = std::chrono::steady_clock;

LineClock::time_point after(double seconds) {
  return LineClock::now() +
         std::chrono::duration_cast<LineClock::duration>(std::chrono::duration<double>(seconds));
}
int milliseconds_until(LineClock::time_point when) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(when - LineClock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30));
}

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    throw ConfigError("socket \"" + path + "\": the path of a unix socket has 1 to " +
                      std::to_string(sizeof address.sun_path - 1) + " bytes");
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Socket unix_socket(const std::string& path) {
  Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) throw IoError::from_errno("make", path, errno, true);
  return socket;
}

int connect_to(const Socket& socket, const sockaddr_un& address) {
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

/// One that a killed run left behind; a regular file stays and makes bind() fail.
void remove_dead_socket(const std::string& path, const sockaddr_un& address) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return;
  if (connect_to(unix_socket(path), address) != 0 && errno == ECONNREFUSED) ::unlink(path.c_str());
}

Socket listen_at(const std::string& path) {
  const sockaddr_un address = unix_address(path);
  remove_dead_socket(path, address);
  Socket socket = unix_socket(path);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw IoError::from_errno("make", path, errno == EADDRINUSE ? EEXIST : errno, true);
  // Between the two lines nobody listens yet.
  if (::chmod(path.c_str(), 0660) != 0 || ::listen(socket.get(), 64) != 0) {
    const int error = errno;
    ::unlink(path.c_str());
    throw IoError::from_errno("listen on", path, error, true);
  }
  return socket;
}

}  // namespace

struct LineServer::Impl {
  struct Client {
    Socket socket;
    std::string text;
    LineClock::time_point until;
    bool done = false;
  };

  std::string path;
  Answer answer;
  double patience_s;
  Socket listener;
  Socket wake_in, wake_out;  // a byte ends the waiting
  std::vector<Client> clients;
  std::vector<pollfd> polled;
  std::unique_ptr<StageThread> thread;  // last: uses all of the above

  Impl(const std::string& p, Answer a, double patience)
      : path(p), answer(std::move(a)), patience_s(patience), listener(listen_at(path)) {
    int pair[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
      ::unlink(path.c_str());
      throw IoError::from_errno("make", path, errno, true);
    }
    wake_in = Socket(pair[0]);
    wake_out = Socket(pair[1]);
    thread = std::make_unique<StageThread>(
        "lines", [this](const std::stop_token& stop) { run(stop); },
        [this] {
          const char byte = 0;
          [[maybe_unused]] const auto sent = ::send(wake_in.get(), &byte, 1, MSG_NOSIGNAL);
        });
  }
  ~Impl() {
    thread.reset();
    ::unlink(path.c_str());
  }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      wait();
      for (std::size_t k = 0; k < clients.size(); ++k) {
        if (polled[k + 2].revents != 0) read_from(clients[k]);
        if (LineClock::now() >= clients[k].until) clients[k].done = true;
      }
      std::erase_if(clients, [](const Client& c) { return c.done; });
      if (clients.size() < kMaxClients && polled[1].revents != 0) accept_one();
    }
  }

  void wait() {
    polled.assign({{wake_out.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}});
    if (clients.size() >= kMaxClients) polled[1].events = 0;
    int timeout_ms = -1;
    for (const auto& c : clients) {
      polled.push_back({c.socket.get(), POLLIN, 0});
      const int left_ms = milliseconds_until(c.until);
      timeout_ms = timeout_ms < 0 ? left_ms : std::min(timeout_ms, left_ms);
    }
    ::poll(polled.data(), polled.size(), timeout_ms);
  }

  void accept_one() {
    Socket socket(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) clients.push_back({std::move(socket), {}, after(patience_s)});
  }

  void read_from(Client& c) {
    char buffer[1024];
    const auto n = ::recv(c.socket.get(), buffer, sizeof buffer, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
      c.done = true;
      return;
    }
    c.text.append(buffer, static_cast<std::size_t>(n));
    const std::size_t end = c.text.find('\n');
    if (std::min(end, c.text.size()) > kMaxBytes) {
      reply(c, "error: a line has at most " + std::to_string(kMaxBytes) + " bytes");
    } else if (end != std::string::npos) {
      reply(c, answer_to(std::string_view(c.text).substr(0, end)));
    }
  }

  std::string answer_to(std::string_view line) const {
    try {
      return answer(line);
    } catch (const std::exception& e) {
      return std::string("error: ") + e.what();
    }
  }

  /// Fits the kernel's buffer; who does not read it loses it.
  static void reply(Client& c, std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    text += '\n';
    [[maybe_unused]] const auto sent =
        ::send(c.socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
    c.done = true;
  }
};

LineServer::LineServer(const std::string& path, Answer answer, double patience_s)
    : impl_(std::make_unique<Impl>(path, std::move(answer), patience_s)) {}
LineServer::~LineServer() = default;

std::string ask_line_server(const std::string& path, std::string_view line, double patience_s) {
  const sockaddr_un address = unix_address(path);
  const Socket socket = unix_socket(path);
  const auto until = after(patience_s);
  const auto wait_for = [&](short what) {
    pollfd p{socket.get(), what, 0};
    while (true) {
      const int ready = ::poll(&p, 1, milliseconds_until(until));
      if (ready > 0) return;
      if (ready == 0) throw IoError::from_errno("ask", path, ETIMEDOUT, false);
      if (errno != EINTR) throw IoError::from_errno("ask", path, errno, false);
    }
  };
  while (connect_to(socket, address) != 0) {  // EAGAIN: its queue is full
    if (errno != EAGAIN || LineClock::now() >= until)
      throw IoError::from_errno("connect to", path, errno, false);
    ::usleep(1000);
  }
  std::string text(line);
  text += '\n';
  for (std::size_t at = 0; at < text.size();) {
    wait_for(POLLOUT);
    const auto n = ::send(socket.get(), text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) break;  // it has answered already
    if (n < 0 && errno != EAGAIN && errno != EINTR)
      throw IoError::from_errno("write to", path, errno, false);
    if (n > 0) at += static_cast<std::size_t>(n);
  }
  std::string reply;
  while (reply.find('\n') == std::string::npos) {
    wait_for(POLLIN);
    char buffer[1024];
    const auto n = ::recv(socket.get(), buffer, sizeof buffer, 0);
    if (n == 0) break;
    if (n < 0 && errno != EAGAIN && errno != EINTR)
      throw IoError::from_errno("read from", path, errno, false);
    if (n > 0) reply.append(buffer, static_cast<std::size_t>(n));
  }
  if (reply.empty()) throw IoError::from_errno("read from", path, ECONNRESET, false);
  return reply.substr(0, reply.find('\n'));
}

}  // namespace ryle
