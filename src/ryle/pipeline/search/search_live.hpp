// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ryle/pipeline/base/beam_chunk.hpp"
#include "ryle/pipeline/base/product_hooks.hpp"
#include "ryle/pipeline/search/search_settings.hpp"

/// The search as the last stage of a live run: beam power -> blocks -> events of all beams ->
/// products, in a thread of its own.
namespace ryle::pipeline {

struct LiveSearchConfig : SearchSettings {  // of its plan dm_max must be given
  double max_hits_per_s = SearchChainConfig{}.max_hits_per_s;
  std::int64_t n_blocks = 3;  ///< buffered; when all are full a block is dropped, counted
  int n_workers = 0;
  std::vector<int> devices;  ///< see BeamSearchConfig; what they cannot do, the CPU does, and says
  SearchProductOptions products;  ///< set_products() sets the rest
  std::string command_line;
  CandidateHook on_candidate;
  /// Asked by the thread of the search from time to time: what the ring of voltages has to tell the
  /// database since the last call. May be empty.
  std::function<VoltageRecords()> voltage_records;
};

/// What each beam of such a stream goes through. Throws ConfigError.
SearchChainConfig live_search_chain(const BeamStream& stream, const SearchSettings& settings);

/// What the search did so far; any thread may ask.
struct LiveSearchProgress {
  std::int64_t blocks = 0;
  std::int64_t dropped_blocks = 0;  ///< the search was too slow for the data
  std::int64_t restarts = 0;        ///< a new segment, or a gap too long to bridge
  std::int64_t events = 0, candidates = 0;
  double data_s = 0, busy_s = 0;
  double latency_s = 0;  ///< longest, from the last sample of a block to its candidates' products
};

/// The search of a live run.
/// - Thread: take() and place() fill blocks on the engine's thread (BlockGatherer); the search's
/// own
///   thread ("search") normalizes, dedisperses, detects, and writes products.
/// - Reads blocks of block_samples of all beams from n_blocks buffers. When all are full a block is
///   dropped, counted, and searched as absent.
/// - Hands candidates to SearchProducts and to on_candidate as soon as their block has been
/// searched.
/// - Ends when finish() has searched what remains, or when the thread throws: failed() then.
/// - A gap inside the grid is absent (NaN); a new segment or a long gap ends the data and starts
/// anew.
class LiveSearch final : public BeamConsumer {
 public:
  /// Throws ConfigError. Output names are taken at once, memory is all allocated here.
  LiveSearch(const BeamStream& stream, const LiveSearchConfig& config);
  ~LiveSearch() override;

  void take(const BeamChunk& chunk) override;
  BeamDestination place(const BeamChunk& next) override;
  void finish(RunSummary& summary) override;
  bool failed() const override;
  bool wants_host_values() const override;
  std::int64_t memory_bytes() const override;
  LiveSearchProgress progress() const;
  /// Offline use and tests: wait for a free block instead of dropping one.
  void wait_when_full(bool wait);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle::pipeline
