// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/dump_writer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle::pipeline {

DumpWriter::DumpWriter(const ObservationConfig& config, DumpBuilder builder,
                       Observation observation, std::vector<SourceMark> marks, bool live,
                       DumpHook on_dump)
    : builder_(std::move(builder)),
      observation_(std::move(observation)),
      products_(config, std::move(marks)),
      on_dump_(std::move(on_dump)),
      bits_(config.channelize.bits),
      target_rms_lsb_(config.channelize.target_rms_lsb),
      queue_(static_cast<std::size_t>(config.runtime.dump_queue),
             live ? DropPolicy::drop_newest : DropPolicy::block) {
  thread_ = std::make_unique<StageThread>(
      "ryle-writer", [this](const std::stop_token&) { run(); }, [this] { queue_.close(); });
}

DumpWriter::~DumpWriter() { queue_.close(); }

void DumpWriter::offer(RawDump&& dump, const std::vector<double>& requantiser_scale) {
  queue_.offer({std::move(dump), requantiser_scale});
}

void DumpWriter::run() {
  try {
    while (auto item = queue_.pop()) {
      const VisibilityDump dump = build(*item);
      note_marks();
      if (products_.due(dump, item->dump.segment)) {  // levels are those of the integrations there
        products_.publish(observation_);
        begin_file();
      }
      note_levels(item->dump);
      note_loss(item->dump);
      products_.write(dump, observation_, item->dump.segment);
      ++dumps_written_;
      if (on_dump_) on_dump_(dump, observation_);
    }
  } catch (...) {
    // The data path must not wait for a writer that is gone.
    failed_ = true;
    queue_.close();
    throw;
  }
}

void DumpWriter::change(std::int64_t from_tai_ns, Change change) {
  const std::lock_guard lock(mutex_);
  changes_.emplace_back(from_tai_ns, std::move(change));
}

/// The files that end keep the header of what they hold.
VisibilityDump DumpWriter::build(const Item& item) {
  VisibilityDump dump = builder_.build(item.dump, item.scale);
  std::vector<Change> due;
  {
    const std::lock_guard lock(mutex_);
    while (!changes_.empty() && dump.start_tai_ns >= changes_.front().first) {
      due.push_back(std::move(changes_.front().second));
      changes_.erase(changes_.begin());
    }
  }
  if (due.empty()) return dump;
  note_marks();
  products_.publish(observation_);
  begin_file();
  for (Change& change : due) {
    if (!change.format.empty()) products_.write_format(change.format, change.on);
    if (!change.gains) continue;
    builder_.set_gains(std::move(*change.gains));
    observation_.applied.gains = std::move(change.applied_gains);
    dump = builder_.build(item.dump, item.scale);
  }
  return dump;
}

void DumpWriter::mark(const OperatorMark& mark) {
  const std::lock_guard lock(mutex_);
  marks_.push_back(mark);
}

/// "mark_0001: 2026-01-01T00:00:12.5 dish 3 is stowed" in the history of the open files.
void DumpWriter::note_marks() {
  const std::lock_guard lock(mutex_);
  for (const auto& mark : marks_) {
    ++n_marks_;
    observation_.provenance.notes[fmt::format("mark_{:04d}", n_marks_)] =
        utc_iso(mark.tai_ns, 6) + " " + mark.text;
  }
  marks_.clear();
}

void DumpWriter::begin_file() {
  std::erase_if(observation_.provenance.notes,
                [](const auto& note) { return note.first.rfind("mark_", 0) == 0; });
  levels_.clear();
  saturated_.clear();
  parts_.clear();
  wanted_ = used_ = 0;
}

/// Autocorrelations count the spectra of their input.
void DumpWriter::note_loss(const RawDump& dump) {
  const std::int64_t n_inputs = observation_.array.n_inputs();
  const std::int64_t n_channels = observation_.frequency.n_channels;
  for (std::int64_t c = 0; c < n_channels; ++c) {
    for (std::int64_t p = 0; p < n_inputs; ++p)
      used_ += dump.sums.counts[c * n_pairs(n_inputs) + pair_index(p, p)];
  }
  wanted_ += static_cast<double>(dump.n_spectra * n_inputs * n_channels);
  const double lost = wanted_ > 0 ? 1 - used_ / wanted_ : 0;
  observation_.provenance.notes["lost_spectra_ppm"] = std::to_string(1e6 * lost);
}

void DumpWriter::note_levels(const RawDump& dump) {
  const std::size_t n = dump.levels.size();
  levels_.resize(n);
  saturated_.resize(n);
  parts_.resize(n);
  run_saturated_.resize(n);
  run_parts_.resize(n);
  for (std::size_t p = 0; p < n; ++p) {
    levels_[p].n_samples += dump.levels[p].n_samples;
    levels_[p].sum_of_squares += dump.levels[p].sum_of_squares;
  }
  for (std::size_t k = 0; k < dump.statistics.size(); ++k) {  // [channel][input]
    const auto& s = dump.statistics[k];
    saturated_[k % n] += static_cast<double>(s.saturated_low + s.saturated_high);
    parts_[k % n] += 2.0 * static_cast<double>(s.n_samples);
    run_saturated_[k % n] += static_cast<double>(s.saturated_low + s.saturated_high);
    run_parts_[k % n] += 2.0 * static_cast<double>(s.n_samples);
  }
  auto& applied = observation_.applied;
  applied.input_rms_lsb.assign(n, 0);
  applied.saturated_fraction.assign(n, 0);
  for (std::size_t p = 0; p < n; ++p) {
    if (levels_[p].n_samples > 0) {
      applied.input_rms_lsb[p] =
          std::sqrt(levels_[p].sum_of_squares / static_cast<double>(levels_[p].n_samples));
    }
    if (parts_[p] > 0) applied.saturated_fraction[p] = saturated_[p] / parts_[p];
  }
  warn_of_saturation();
}

std::vector<double> DumpWriter::saturated_fraction() const {
  std::vector<double> fraction(run_parts_.size());
  for (std::size_t p = 0; p < fraction.size(); ++p)
    fraction[p] = run_parts_[p] > 0 ? run_saturated_[p] / run_parts_[p] : 0;
  return fraction;
}

/// Gaussian noise at the usual level is cut once in 10^14 parts: what is cut more often than this
/// is not what the level was set for.
void DumpWriter::warn_of_saturation() {
  constexpr double kMuch = 1e-3;
  if (bits_ != 8) return;  // four bits cut a known share of noise, which is corrected
  const std::lock_guard lock(mutex_);
  if (!saturation_.empty()) return;
  const std::vector<double> fraction = saturated_fraction();
  std::size_t n_much = 0, worst = 0;
  for (std::size_t p = 0; p < fraction.size(); ++p) {
    n_much += fraction[p] > kMuch ? 1 : 0;
    if (fraction[p] > fraction[worst]) worst = p;
  }
  if (n_much == 0) return;
  saturation_ = fmt::format(
      "{} of {} inputs are cut by the 8-bit requantiser, input {} in {:.3g} % of its values: "
      "impulsive, or stronger than the first samples that set its level; channelize.bits = 32 cuts "
      "nothing, a lower channelize.target_rms_lsb (now {:g}) cuts less",
      n_much, fraction.size(), worst, 100 * fraction[worst], target_rms_lsb_);
}

std::string DumpWriter::saturation_warning() const {
  const std::lock_guard lock(mutex_);
  return saturation_;
}

void DumpWriter::finish(Queue& queue, const std::vector<std::string>& implementations,
                        const std::map<std::string, std::string>& notes) {
  queue_.close();
  try {
    thread_->join();
  } catch (const IoError& error) {  // a disk: the other files may be on another, or small enough
    throw IoError(error.exit_code(), error.what() + products_.publish_rest(observation_));
  }
  note_marks();
  auto& provenance = observation_.provenance;
  if (!implementations.empty()) provenance.implementations = implementations;
  for (const auto& [name, text] : notes) provenance.notes[name] = text;
  products_.publish(observation_);
  products_.draw(queue, observation_);
  products_.finish_manifest();
}

}  // namespace ryle::pipeline
