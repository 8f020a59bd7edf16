// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>

#include "ryle/pipeline/base/beam_chunk.hpp"
#include "ryle/pipeline/search/search_fold_products.hpp"
#include "ryle/telescope/array.hpp"

namespace ryle::pipeline {

struct LiveFoldConfig {
  std::string par;   ///< ephemeris
  std::string beam;  ///< name of the beam that follows the pulsar; "" = the nearest to it
  std::int64_t n_bins = 128;
  double sub_integration_s = 10;
  std::string k_dm = "physical";
  FoldOutputs outputs;
  std::string command_line;
};

/// Folds one beam of a live run by an ephemeris, channels each at their own phase. Works on the
/// engine's thread: 4 ns a sample of one beam. Absent samples do not count; phases follow the clock
/// of each chunk, so that neither a gap nor a new segment disturbs them. Products are written in
/// finish().
class LiveFold final : public BeamConsumer {
 public:
  /// @param site where the telescope stands. Throws ConfigError, FormatError.
  LiveFold(const BeamStream& stream, const ArrayLayout& site, const LiveFoldConfig& config);
  ~LiveFold() override;

  void take(const BeamChunk& chunk) override;
  void finish(RunSummary& summary) override;
  bool failed() const override { return false; }
  std::int64_t memory_bytes() const override;
  /// After finish().
  const search::Fold& fold() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle::pipeline
