// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/receiver_source.hpp"

#include "ryle/ingest/receiver_thread.hpp"

namespace ryle {

ReceiverSource::ReceiverSource(std::unique_ptr<ReceiverThread> receiver)
    : receiver_(std::move(receiver)) {}
ReceiverSource::~ReceiverSource() = default;

void ReceiverSource::start() { receiver_->start(); }
Chunk* ReceiverSource::next(std::chrono::milliseconds timeout) {
  return receiver_->pool().next(timeout);
}
void ReceiverSource::release(Chunk* chunk) { receiver_->pool().release(chunk); }
bool ReceiverSource::ended() const { return receiver_->pool().finished(); }
void ReceiverSource::stop() { receiver_->stop(); }
IngestCounters ReceiverSource::counters() const { return receiver_->counters(); }
std::string ReceiverSource::state() const { return receiver_->state(); }
std::int64_t ReceiverSource::memory_bytes() const { return receiver_->memory_bytes(); }
std::vector<std::string> ReceiverSource::endpoints() const { return receiver_->endpoints(); }
bool ReceiverSource::receive_buffer_ok() const { return receiver_->receive_buffer_ok(); }
void ReceiverSource::poison(std::byte value) { receiver_->pool().poison(value); }

}  // namespace ryle
