// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/voltage_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <system_error>

#include "ryle/ingest/receiver_source.hpp"
#include "ryle/pipeline/base/run_summary.hpp"

namespace ryle::pipeline {

VoltageStream spectra_voltages(const SpectraShape& shape, const FrequencyAxis& frequency,
                               const SampleClock& clock, const std::string& telescope) {
  VoltageStream stream;
  VoltageForm& form = stream.chunks.form;
  form.content = VoltageForm::Content::spectra;
  form.n_rows = shape.n_channels;
  form.n_inputs = shape.n_inputs;
  form.format = shape.format;
  stream.chunks.chunk_ticks = shape.chunk_spectra;
  stream.chunks.blocks = shape;
  stream.frequency = frequency;
  stream.clock = clock;
  stream.input_line.resize(shape.n_inputs);
  std::iota(stream.input_line.begin(), stream.input_line.end(), 0);
  stream.telescope = telescope;
  return stream;
}

VoltageNode::VoltageNode(const ObservationConfig& config, const VoltageRingConfig& ring,
                         ChunkSource& source)
    : config_(config),
      margin_s_(ring.shape.margin_s),
      ring_s_(ring.shape.clock.seconds((ring.n_chunks - 1) * ring.chunks.chunk_ticks)),
      source_(source),
      ring_(ring) {
  // The first lap through gigabytes must not wait for the system to give them.
  if (auto* receiver = dynamic_cast<ReceiverSource*>(&source)) receiver->poison(std::byte{0});
  if (config.voltages.socket.empty()) return;
  std::error_code ignored;  // the socket says what is wrong
  std::filesystem::create_directories(config.output.directory, ignored);
  socket_ = std::make_unique<TriggerSocket>(
      (std::filesystem::path(config.output.directory) / config.voltages.socket).string(),
      ring.shape, ring_);
}

void VoltageNode::take(Chunk* chunk, const SampleClock& clock) {
  if (chunk->segment != segment_) begin_tai_ns_ = clock.tai_ns(chunk->first_tick);
  segment_ = chunk->segment;
  freed_.clear();
  ring_.take(chunk, clock, freed_);
  for (Chunk* old : freed_) source_.release(old);
}

void VoltageNode::note_event(std::int64_t tai_ns, double duration_s, std::span<const double> snr) {
  DumpTrigger trigger;
  for (const double of_plane : snr)
    if (std::isfinite(of_plane)) trigger.snr = std::max(trigger.snr, std::abs(of_plane));
  if (trigger.snr < config_.voltages.trigger_snr) return;
  trigger.tai_ns = tai_ns;
  trigger.width_s = duration_s;
  trigger.beam = "image";
  ring_.trigger(trigger);
}

// The window ends with the newest data: nothing of it is still to come.
CommandResult VoltageNode::dump(double seconds, std::int64_t data_tai_ns) {
  if (data_tai_ns == 0)
    return CommandResult::refused("no data have come yet that could be dumped; ask again");
  if (seconds > ring_s_)
    return CommandResult::refused(
        fmt::format("the ring holds {:.6g} s (voltages.ring_s), not {:.6g} s", ring_s_, seconds));
  const double received_s = 1e-9 * static_cast<double>(data_tai_ns - begin_tai_ns_);
  seconds = std::min(seconds == 0 ? ring_s_ : seconds, received_s);
  if (seconds < 2 * margin_s_)
    return CommandResult::refused(
        fmt::format("a dump has at least {:.6g} s, twice voltages.margin_s; {:.6g} s were asked "
                    "for, or have come so far",
                    2 * margin_s_, seconds));
  DumpTrigger trigger;
  trigger.width_s = seconds - 2 * margin_s_;
  trigger.tai_ns = data_tai_ns - std::llround(0.5e9 * seconds);
  trigger.beam = "command";
  TriggerReply reply;
  const TriggerResult result = ring_.trigger(trigger, &reply);
  if (result != TriggerResult::accepted && result != TriggerResult::merged)
    return CommandResult::refused(reply.message);
  return {true,
          fmt::format("{}_voltages_{:05d}.h5 will hold the last {:.6g} s", config_.output.name,
                      reply.dump, seconds),
          data_tai_ns - std::llround(1e9 * seconds)};
}

void VoltageNode::finish(RunSummary& summary) {
  socket_.reset();
  ring_.finish(summary);
}

}  // namespace ryle::pipeline
