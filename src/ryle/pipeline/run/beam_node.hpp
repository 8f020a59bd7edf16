// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ryle/pipeline/beam/beam_chain.hpp"
#include "ryle/pipeline/beam/beam_heaps.hpp"
#include "ryle/pipeline/beam/beam_samples.hpp"
#include "ryle/pipeline/beam/live_beams.hpp"
#include "ryle/pipeline/beam/voltage_ring.hpp"
#include "ryle/pipeline/search/search_consumers.hpp"
#include "ryle/pipeline/visibility/spectra_node.hpp"

namespace ryle::pipeline {

/// Spectra to beams and what is made of them: filterbanks, pictures, power against time, a search,
/// a folded pulsar. Candidates ask the ring of voltages for dumps.
/// - Thread: the engine's thread calls feed() and finish(); writers and search have threads of
/// their own.
/// - Reads gulps of planar blocks, which it copies into the order of the beamformer, or packets
/// that have that order already (pairs of antennas), as they are.
/// - Gaps and segments are those of BeamChain.
class BeamNode final : public SpectraNode {
 public:
  /// Throws where a product cannot be made. Sockets of beams.spead are connected; no file is
  /// opened.
  /// @param ring of the chunks of the source; null: no voltages are kept. Must outlive finish()
  BeamNode(const ObservationConfig& config, const StreamBeams& beams, VoltageRing* ring,
           const RunOptions& options);

  std::string node() const override { return "beams"; }
  void set_levels(const std::vector<double>& scale,
                  const std::vector<correlate::SamplerGain>& samplers) override;
  void feed(const SpectraGulp& gulp, std::int64_t first, std::int64_t segment,
            const SampleClock& clock) override;
  void feed(const BeamInput& input);
  /// Other directions, gains and sub-arrays (BeamChain::steer).
  CommandResult steer(BeamsFile file) { return chain().steer(std::move(file)); }
  const BeamsFile& file() const { return chain_ ? chain_->file() : beams_.setup.file; }
  /// Else packets as they came.
  bool reads_blocks() const { return beams_.setup.order != beamform::InputOrder::pairs; }
  void finish(const std::map<std::string, std::string>& notes, RunSummary& summary) override;
  /// What became of triggers and dumps, into the database of the search, which is closed by then.
  /// @pre finish() has returned, and that of the ring
  void append_voltages(RunSummary& summary);
  bool failed() const override;
  double data_s() const override { return chain_ ? chain_->data_s() : 0; }
  double busy_s() const override { return copy_s_ + (chain_ ? chain_->busy_s() : 0); }
  void count(Progress& progress) const override {
    progress.beam_samples = chain_ ? chain_->samples() : 0;
    progress.candidates = candidates_;
  }

 private:
  BeamChain& chain();
  std::string in_output_directory(const std::string& name) const;
  void find_absent(Tick first, std::int64_t n);
  std::vector<std::unique_ptr<BeamConsumer>> make_consumers(const BeamStream& stream);
  SearchHooks hooks();

  ObservationConfig config_;
  StreamBeams beams_;
  VoltageRing* ring_;
  const RunOptions& options_;
  std::unique_ptr<BeamHeapStreams> heaps_;  // until the consumers are made
  std::unique_ptr<BeamChain> chain_;        // its search has the ring
  bool on_devices_;
  BeamSamples samples_;
  DeviceBlocks own_blocks_;  // of gulps that no other node reads
  Queue host_;
  double copy_s_ = 0;
  std::atomic<std::int64_t> candidates_{0};
  std::vector<std::uint64_t> present_, absent_bits_;
  std::vector<AbsentSpan> absent_;
  /// [channel] where the absence began that the last gulp ended in; its end otherwise.
  std::vector<Tick> absent_since_;
  Tick next_ = 0;
  std::int64_t segment_ = -1;
};

}  // namespace ryle::pipeline
