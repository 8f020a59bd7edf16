// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/stream_inputs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ryle/core/error.hpp"

namespace ryle {
namespace {

constexpr std::size_t kMaxConnections = 1024;                          // of one port
constexpr std::size_t kMaxPortBytes = std::size_t{128} * 1024 * 1024;  // of their buffers
constexpr std::size_t kReadBytes = std::size_t{1} << 18;

Descriptor open_pipe(const Endpoint& endpoint) {
  const bool named = !endpoint.host.empty();
  // Not blocking: a named pipe opens before there is somebody who writes to it.
  Descriptor descriptor(named ? ::open(endpoint.host.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)
                              : ::fcntl(endpoint.port, F_DUPFD_CLOEXEC, 3));
  if (!descriptor)
    throw IoError(
        errno == EACCES ? ExitCode::no_permission : ExitCode::unavailable,
        fmt::format("cannot read from {}: {}{}", to_string(endpoint), std::strerror(errno),
                    named ? "; make the pipe with mkfifo"
                          : "; start with the descriptor open, ... 3< pipe"));
  return descriptor;
}

}  // namespace

void StreamInputs::open(const Endpoint& endpoint) {
  Source source;
  source.endpoint = endpoint;
  if (endpoint.is_pipe()) {
    sources_.push_back(std::move(source));
    add(sources_.size() - 1, open_pipe(endpoint), {}, 0);
    return;
  }
  source.listener = tcp_listen(endpoint);
  source.endpoint.port = source.listener.local_port();
  sources_.push_back(std::move(source));
}

void StreamInputs::add(std::size_t source, Descriptor descriptor, const sockaddr_storage& peer,
                       std::int64_t position) {
  auto input = std::make_unique<Input>();
  input->source = source;
  input->port.endpoint = sources_[source].endpoint;
  input->port.position = position;
  input->descriptor = std::move(descriptor);
  input->peer = peer;
  if (make_) set_cutter(*input);
  inputs_.push_back(std::move(input));
}

void StreamInputs::set_cutters(const std::function<std::unique_ptr<StreamCutter>()>& make) {
  make_ = make;
  for (auto& input : inputs_) set_cutter(*input);
}

void StreamInputs::set_cutter(Input& input) const {
  input.cutter = make_();
  input.buffer.resize(buffer_bytes(*input.cutter));
}

std::size_t StreamInputs::buffer_bytes(const StreamCutter& cutter) {
  return kReadBytes + cutter.max_bytes();
}

std::size_t StreamInputs::max_connections(const StreamCutter& cutter) {
  return std::clamp<std::size_t>(kMaxPortBytes / buffer_bytes(cutter), 1, kMaxConnections);
}

std::vector<std::string> StreamInputs::endpoints() const {
  std::vector<std::string> texts;
  for (const auto& source : sources_) texts.push_back(to_string(source.endpoint));
  return texts;
}

void StreamInputs::add_polled(std::vector<pollfd>& polled) {
  for (const auto& source : sources_)
    polled.push_back({source.listener ? source.listener.get() : -1, POLLIN, 0});
  std::erase_if(inputs_, [](const auto& input) { return !input->descriptor; });
  for (const auto& input : inputs_) polled.push_back({input->descriptor.get(), POLLIN, 0});
}

std::size_t StreamInputs::n_of(std::size_t source) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      inputs_, [&](const auto& i) { return i->source == source && i->descriptor; }));
}

void StreamInputs::accept(std::span<const pollfd> polled, std::int64_t position,
                          const std::function<bool(const SenderAddress&)>& allowed) {
  for (std::size_t k = 0; k < sources_.size(); ++k) {
    if (polled[k].revents == 0) continue;
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    for (;;) {
      Descriptor connection(accept4(sources_[k].listener.get(), reinterpret_cast<sockaddr*>(&peer),
                                    &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!connection) break;
      const auto cutter = make_();
      const bool full = cutter->ends_run() ? sources_[k].came : n_of(k) >= max_connections(*cutter);
      if (full || !allowed(sender_address(&peer))) {
        ++rejected_;
        last_rejected_ = sender_address(&peer);
        continue;  // closed at once
      }
      sources_[k].came = true;
      add(k, std::move(connection), peer, position);
    }
  }
}

std::vector<StreamInputs::Input*> StreamInputs::readable(std::span<const pollfd> polled) {
  std::vector<Input*> found;
  for (std::size_t k = sources_.size(); k < polled.size(); ++k) {
    Input& input = *inputs_[k - sources_.size()];
    if (polled[k].revents != 0 && input.descriptor) found.push_back(&input);
  }
  return found;
}

void StreamInputs::close(Input& input) {
  rest_bytes_ += input.n_bytes;
  input.n_bytes = 0;
  input.descriptor.close();
}

void StreamInputs::read(Input& input, std::int64_t max_units, StreamSink& sink) {
  const std::size_t room = input.buffer.size() - input.n_bytes;
  const std::size_t wanted = static_cast<std::size_t>(max_units) * input.cutter->unit_bytes();
  const ssize_t n =
      ::read(input.descriptor.get(), input.buffer.data() + input.n_bytes, std::min(room, wanted));
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  // One that ends without a byte has been there, too.
  sources_[input.source].came = true;
  if (n <= 0) return close(input);
  input.n_bytes += static_cast<std::size_t>(n);
  const StreamCutter::Cut cut =
      input.cutter->cut(std::span(input.buffer).first(input.n_bytes), sink);
  input.n_bytes -= cut.bytes;
  std::memmove(input.buffer.data(), input.buffer.data() + cut.bytes, input.n_bytes);
  if (cut.good) return;
  ++broken_;
  last_broken_ = sender_address(&input.peer);
  input.n_bytes = 0;
  close(input);
}

void StreamInputs::close_all() {
  for (auto& input : inputs_) {
    if (input->descriptor) close(*input);
  }
}

bool StreamInputs::ended() const {
  if (sources_.empty()) return false;
  for (std::size_t k = 0; k < sources_.size(); ++k) {
    const bool ends = sources_[k].endpoint.is_pipe() || make_()->ends_run();
    if (!ends || !sources_[k].came || n_of(k) > 0) return false;
  }
  return true;
}

void StreamInputs::rewind(std::int64_t origin) {
  for (auto& input : inputs_) input->port.position = origin;
}

std::string StreamInputs::note() const {
  std::string text;
  if (broken_ > 0)
    text = fmt::format("{} connection{} closed, for what came were no packets (the last from {})",
                       broken_, broken_ == 1 ? "" : "s", to_string(last_broken_));
  if (rest_bytes_ > 0)
    text += fmt::format("{}streams ended {} bytes after their last whole packet",
                        text.empty() ? "" : "; ", rest_bytes_);
  return text;
}

std::int64_t StreamInputs::memory_bytes() const {
  std::int64_t sum = 0;
  for (const auto& input : inputs_) sum += static_cast<std::int64_t>(input->buffer.size());
  return sum;
}

}  // namespace ryle
