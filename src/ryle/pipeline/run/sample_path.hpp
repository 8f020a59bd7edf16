// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ryle/pipeline/base/command_result.hpp"
#include "ryle/pipeline/base/device_loss.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/visibility/dump_writer.hpp"
#include "ryle/pipeline/visibility/fx_chain.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/pipeline/visibility/spectra_metadata.hpp"
#include "ryle/pipeline/visibility/spectra_node.hpp"

namespace ryle::pipeline {

/// What is made of the spectra of a SamplePath.
struct SpectraUse {
  bool visibilities = true;
  bool nodes = false;  ///< others will read them
};

/// Raw samples to published products: FxChain and the DumpWriter behind it, for live and recorded
/// samples alike, and the nodes that read the same spectra. These see the sky as the ground does:
/// where there are any, delays and gains are applied to the visibilities after the correlator, not
/// in the channelizer. Everything is allocated by the constructor but the product header, which
/// needs the time of the first sample.
/// - Thread: the engine's thread calls feed() and finish(); the writer has a thread of its own.
/// - Ends with finish(), or early: failed() is true once a device is lost, or the writer has given
/// up
///   and the observation asks to stop then.
/// - Gaps and segments are those of FxChain.
class SamplePath {
 public:
  SamplePath(const ObservationConfig& config, const SampleMetadata& metadata,
             const ArrayLayout& array, bool live, const std::string& command_line, SpectraUse use);
  SamplePath(const ObservationConfig& config, const SampleMetadata& metadata,
             const ArrayLayout& array, bool live, const std::string& command_line)
      : SamplePath(config, metadata, array, live, command_line, SpectraUse()) {}
  /// On these queues instead of those of the configuration.
  SamplePath(const ObservationConfig& config, const SampleMetadata& metadata,
             const ArrayLayout& array, bool live, const std::string& command_line,
             std::vector<Queue> queues, SpectraUse use = SpectraUse());

  /// What nodes must know of the spectra.
  SpectraMetadata spectra() const;
  /// Readers of the spectra, which must outlive feed() and finish(). @pre SpectraUse::nodes,
  /// nothing fed
  void set_nodes(std::vector<SpectraNode*> nodes) { nodes_ = std::move(nodes); }

  /// Labels for the sky picture, before the first feed().
  void set_marks(std::vector<SourceMark> marks) { marks_ = std::move(marks); }
  /// Before the first feed().
  void set_on_dump(DumpHook on_dump) { on_dump_ = std::move(on_dump); }
  /// Flux scale when the configuration has none (the simulator knows its own), before the first
  /// feed().
  void set_flux_scale(double jy_per_count2);

  void feed(const void* samples, Tick first, std::int64_t n, std::span<const AbsentSpan> absent,
            std::int64_t segment, const SampleClock& clock);
  /// Closes the last dump, drains the writer, publishes; fills in what the summary knows of engines
  /// and products. Then throws DeviceError if a device was lost in flight.
  void finish(RunSummary& summary, const std::map<std::string, std::string>& notes);

  /// Where samples to feed lie best.
  MemorySpace memory() const { return sample_memory(queues_); }
  double data_s() const;
  /// With that of the nodes.
  double busy_s() const { return chain_->busy_s(); }
  /// Engines, sums and dumps on their way to the disk.
  std::int64_t memory_bytes() const;
  std::int64_t integrations() const { return writer_ ? writer_->dumps_written() : 0; }
  /// Of the requantiser, once there is one.
  std::string warning() const { return writer_ ? writer_->saturation_warning() : ""; }
  /// Of the data, where the next integration that has not begun begins at the earliest; 0 = no
  /// data.
  std::int64_t data_tai_ns() const { return data_tai_ns_; }
  void mark(const OperatorMark& mark);
  /// New files from the first integration on that begins at data_tai_ns() or later.
  CommandResult rotate();
  /// The same with the gains of a CSV in the place of calibration.gains.
  CommandResult set_gains(const std::string& file);
  /// The same, with or without "ms", "uvfits" or "uvh5".
  CommandResult switch_product(const std::string& product, bool on);
  /// Delays were asked of the channelizer, and are applied after the correlator.
  bool tracks_late() const { return tracks_late_; }
  /// The writer has given up and the observation asks to stop then, or a device was lost.
  bool failed() const { return loss_.lost() || (writer_ && writer_->failed()); }

 private:
  void begin(const SampleClock& clock, Tick first);
  void hand_on(const SpectraGulp& gulp, std::int64_t first, std::int64_t segment,
               SampleClock clock);
  std::vector<std::string> implementations() const;

  SpectraUse use_;
  ObservationConfig config_;
  SampleMetadata metadata_;
  ArrayLayout array_;
  bool live_;
  std::string command_line_;
  std::vector<SourceMark> marks_;
  DumpHook on_dump_;
  std::vector<SpectraNode*> nodes_;
  std::vector<cf32> late_gains_;  // of the calibration, where the channelizer does not apply them
  bool begun_ = false, tracks_late_ = false;
  std::vector<Queue> queues_;
  FxChain::Setup setup_;
  FrequencyAxis frequency_;
  std::optional<DelayModel> model_;
  std::unique_ptr<DumpWriter> writer_;
  std::unique_ptr<FxChain> chain_;  // gives the writer its dumps to the last
  DeviceLoss loss_;
  std::int64_t data_tai_ns_ = 0;
};

}  // namespace ryle::pipeline
