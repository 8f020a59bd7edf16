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

Mwa32tSource::Mwa32tSource(const Mwa32tSourceConfig& config)
    : ReceiverSource(std::make_unique<Mwa32tReceiver>(config)) {}

SourceInfo Mwa32tSource::info() const {
  const auto& config = static_cast<const Mwa32tReceiver&>(receiver()).config();
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

std::unique_ptr<ChunkSource> make_mwa32t_source(const Mwa32tSourceConfig& config) {
  return std::make_unique<Mwa32tSource>(config);
}

}  // namespace ryle
