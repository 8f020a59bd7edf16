// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ryle/pipeline/base/product_hooks.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/visibility/dump_builder.hpp"
#include "ryle/pipeline/visibility/product_set.hpp"
#include "ryle/runtime/bounded_queue.hpp"
#include "ryle/runtime/stage_thread.hpp"

namespace ryle::pipeline {

/// The last stage: finishes raw dumps and writes them, so that a slow disk never holds up the
/// engines.
/// - Thread: the engine's thread calls offer(); the writer's own thread ("ryle-writer") builds and
///   writes.
/// - Reads a bounded queue of raw dumps. Live, the newest dump is dropped when the queue is full,
/// and
///   counted; offline, offer() waits (docs/design/ingest.md 8).
/// - Hands dumps to ProductSet, which opens and publishes files, then to the hook.
/// - Ends when finish() has drained the queue, or when writing throws: failed() then.
/// - What a gap left out of a dump is in its counts; the dump is written all the same.
class DumpWriter {
 public:
  DumpWriter(const ObservationConfig& config, DumpBuilder builder, Observation observation,
             std::vector<SourceMark> marks, bool live, DumpHook on_dump = {});
  ~DumpWriter();

  /// requantiser_scale as FxChain::requantiser_scale().
  void offer(RawDump&& dump, const std::vector<double>& requantiser_scale);
  /// Drains, adds what is known of the whole run, publishes, draws. Rethrows what stopped the
  /// writer.
  void finish(Queue& queue, const std::vector<std::string>& implementations,
              const std::map<std::string, std::string>& notes);

  /// What an operator asks for while the run goes on.
  struct Change {
    std::optional<std::vector<cf32>> gains;  ///< in the place of DumpBuilder::Setup::gains
    std::vector<cf64> applied_gains;         ///< with them: what the header says is applied
    std::string format;                      ///< ms, uvfits or uvh5: is written from here on ...
    bool on = true;                          ///< ... or is not
  };
  /// The first dump that begins at `from_tai_ns` or later is made with the change, in new files.
  /// Any thread.
  void change(std::int64_t from_tai_ns, Change change);
  /// Kept in the products that are open when the next dump is written. Any thread.
  void mark(const OperatorMark& mark);

  std::int64_t dumps_written() const { return dumps_written_; }
  std::int64_t dumps_dropped() const { return static_cast<std::int64_t>(queue_.dropped()); }
  const ProductSet& products() const { return products_; }
  const Observation& observation() const { return observation_; }
  /// The writer has thrown: nothing more will be written.
  bool failed() const { return failed_; }
  /// Of the whole run, all its files. @shape [input]; @pre finished
  std::vector<double> saturated_fraction() const;
  /// Empty unless the requantiser cut more than 0.1 % of an input; any thread.
  std::string saturation_warning() const;

 private:
  struct Item {
    RawDump dump;
    std::vector<double> scale;
  };
  void run();
  void note_levels(const RawDump& dump);
  void warn_of_saturation();
  void note_loss(const RawDump& dump);
  void begin_file();
  void note_marks();
  VisibilityDump build(const Item& item);

  DumpBuilder builder_;
  Observation observation_;
  ProductSet products_;
  DumpHook on_dump_;
  std::int64_t bits_;
  double target_rms_lsb_;
  BoundedQueue<Item> queue_;
  std::vector<channelize::LevelStatistics> levels_;
  std::vector<double> saturated_, parts_;          // [input] of the open files ...
  std::vector<double> run_saturated_, run_parts_;  // ... and of all
  mutable std::mutex mutex_;
  std::string saturation_;           // the warning
  std::vector<OperatorMark> marks_;  // not in the products yet
  std::int64_t n_marks_ = 0;
  std::vector<std::pair<std::int64_t, Change>> changes_;  // by the instant they were asked for
  double wanted_ = 0, used_ = 0;  // spectra of the open files, summed over inputs, channels
  std::atomic<std::int64_t> dumps_written_{0};
  std::atomic<bool> failed_{false};
  std::unique_ptr<StageThread> thread_;
};

}  // namespace ryle::pipeline
