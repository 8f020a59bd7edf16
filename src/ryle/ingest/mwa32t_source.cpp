// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/mwa32t_source.hpp"

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/ingest/mwa32t_receiver.hpp"

namespace ryle {

std::int64_t mwa32t_source_chunk_bytes(const Mwa32tSourceConfig& config) {
  return checked_product(
      {config.n_chunks, config.chunk_ticks, static_cast<std::int64_t>(config.endpoints.size()),
       static_cast<std::int64_t>(wire::kMwa32tPayloadBytesPerInstant)},
      "ingest chunks");
}

class Mwa32tSource::Impl : public Mwa32tReceiver {
 public:
  using Mwa32tReceiver::Mwa32tReceiver;
};

Mwa32tSource::Mwa32tSource(const Mwa32tSourceConfig& config)
    : impl_(std::make_unique<Impl>(config)) {}
Mwa32tSource::~Mwa32tSource() = default;

SourceInfo Mwa32tSource::info() const {
  const auto& config = impl_->config();
  SourceInfo info;
  info.format = "mwa32t";
  info.n_inputs = static_cast<std::int64_t>(config.endpoints.size()) *
                  static_cast<std::int64_t>(wire::kMwa32tInputsPerReceiver);
  info.layout.format = SampleFormat::ci5;
  info.layout.re_shift = config.geometry.re_shift;
  info.layout.im_shift = config.geometry.im_shift;
  info.layout.input_stride_bits = 16;
  info.layout.sample_stride_bits = 16 * info.n_inputs;
  info.clock = config.clock;
  info.time_source = config.time_source;
  return info;
}

void Mwa32tSource::start() { impl_->start(); }
Chunk* Mwa32tSource::next(std::chrono::milliseconds timeout) { return impl_->pool().next(timeout); }
void Mwa32tSource::release(Chunk* chunk) { impl_->pool().release(chunk); }
bool Mwa32tSource::ended() const { return impl_->pool().finished(); }
void Mwa32tSource::stop() { impl_->stop(); }
IngestCounters Mwa32tSource::counters() const { return impl_->counters(); }
std::string Mwa32tSource::state() const { return impl_->state(); }
std::int64_t Mwa32tSource::memory_bytes() const { return impl_->memory_bytes(); }
std::vector<std::string> Mwa32tSource::endpoints() const { return impl_->endpoints(); }
bool Mwa32tSource::receive_buffer_ok() const { return impl_->receive_buffer_ok(); }
void Mwa32tSource::poison(std::byte value) { impl_->pool().poison(value); }

std::unique_ptr<ChunkSource> make_mwa32t_source(const Mwa32tSourceConfig& config) {
  return std::make_unique<Mwa32tSource>(config);
}

}  // namespace ryle
