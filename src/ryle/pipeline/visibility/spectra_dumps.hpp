// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "ryle/pipeline/base/device_loss.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/visibility/dump_writer.hpp"
#include "ryle/pipeline/visibility/run_common.hpp"
#include "ryle/pipeline/visibility/spectra_chain.hpp"
#include "ryle/pipeline/visibility/spectra_metadata.hpp"
#include "ryle/pipeline/visibility/spectra_node.hpp"
#include "ryle/pipeline/visibility/spectra_reader.hpp"

namespace ryle::pipeline {

/// Spectra of an external F-engine to published visibilities: SpectraChain (correlator), then
/// DumpBuilder (calibration, rotation to the phase center) and DumpWriter.
/// - Thread: the engine's thread calls feed() and finish(); the writer has a thread of its own.
/// - Reads gulps of any length, and cuts them where dumps end.
/// - Ends with finish(), or early: failed() is true once a device is lost or the writer has thrown.
/// - Gaps are those of SpectraChain.
class SpectraDumps final : public SpectraNode {
 public:
  SpectraDumps(const ObservationConfig& config, const ArrayLayout& array, SpectraMetadata metadata,
               const std::string& command_line);

  std::string node() const override { return "visibilities"; }
  void set_levels(const std::vector<double>& scale,
                  const std::vector<correlate::SamplerGain>& samplers) override {
    metadata_.scale = scale;
    metadata_.samplers = samplers;
  }
  /// Before the first feed().
  void set_on_dump(DumpHook on_dump) { on_dump_ = std::move(on_dump); }
  /// Cut where dumps end.
  void feed(const SpectraGulp& gulp, std::int64_t first, std::int64_t segment,
            const SampleClock& clock) override;
  /// Spectra until the open dump is full: recordings are read so that no gulp needs cutting.
  std::int64_t room(std::int64_t first);
  void finish(const std::map<std::string, std::string>& notes, RunSummary& summary) override;

  /// As those of SamplePath; `from_tai_ns` is the end of the data so far.
  void mark(const OperatorMark& mark) {
    if (writer_) writer_->mark(mark);
  }
  CommandResult rotate(std::int64_t from_tai_ns) {
    return change_visibilities(writer_.get(), config_, from_tai_ns, {});
  }
  CommandResult switch_product(const std::string& product, bool on, std::int64_t from_tai_ns) {
    return switch_visibilities(writer_.get(), config_, from_tai_ns, product, on);
  }
  /// Gains of a CSV instead of calibration.gains.
  CommandResult set_gains(const std::string& file, std::int64_t from_tai_ns);
  double data_s() const override { return metadata_.clock.seconds(chain_->spectra_done()); }
  double busy_s() const override { return chain_->busy_s(); }
  bool failed() const override { return loss_.lost() || (writer_ && writer_->failed()); }
  void count(Progress& progress) const override {
    progress.integrations = writer_ ? writer_->dumps_written() : 0;
  }

 private:
  void begin(std::int64_t first, const SampleClock& clock);

  ObservationConfig config_;
  ArrayLayout array_;
  SpectraMetadata metadata_;
  std::string command_line_;
  DumpHook on_dump_;
  std::string low_center_;  // a warning about the phase center, or ""
  Queue queue_;
  std::unique_ptr<SpectraChain> chain_;
  std::unique_ptr<DumpWriter> writer_;
  DeviceLoss loss_;
  SpectraSlice slice_;
};

/// The correlator and the dump length of these spectra.
SpectraChain::Setup spectra_chain_setup(const ObservationConfig& config, std::int64_t n_inputs,
                                        const SpectraMetadata& metadata);

}  // namespace ryle::pipeline
