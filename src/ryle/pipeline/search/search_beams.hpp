// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/search/dispersion.hpp"
#include "ryle/pipeline/search/search_chain.hpp"
#include "ryle/telescope/geometry.hpp"

/// Events of many beams -> one event per pulse. A pulse of the sky is in one beam and its
/// neighbours, a bright one in theirs, too: in one group of beams that hang together. What is in
/// many groups at once, or in all beams, came in through side lobes: interference.
namespace ryle::pipeline {

struct BeamGroupConfig {
  std::int64_t n_beams = 1;
  std::vector<std::vector<std::int64_t>> neighbours;  ///< [beam], symmetric; empty = none touch
  std::vector<SkyDirection> positions;                ///< [beam]; empty = not known
  /// More groups of adjacent beams than this, at one time and DM: `rfi_multibeam`.
  std::int64_t max_beams = 4;
  std::vector<std::uint8_t> incoherent;  ///< [beam], 1 = an incoherent sum; empty = none
  /// S/N of an incoherent beam over that of the best coherent one, for a source in the latter.
  double incoherent_ratio = 0;  ///< 0 = not tested
};

/// Beams closer than `separation_rad` touch.
std::vector<std::vector<std::int64_t>> beam_neighbours(const std::vector<SkyDirection>& positions,
                                                       double separation_rad);

/// 1.5 times the smallest distance between two beams: the six nearest of a hexagonal grid touch,
/// the next ring (1.73) does not. 0 when no two positions differ.
double usual_adjacency(const std::vector<SkyDirection>& positions);

struct BeamEvent {
  SearchEvent event;               ///< of the strongest beam
  std::int64_t beam = 0;           ///< strongest; coherent ones before incoherent ones
  std::vector<std::int64_t> seen;  ///< beams that saw it, ascending
  std::int64_t n_groups = 1;       ///< of them that hang together; incoherent beams do not count
  bool multibeam = false;          ///< interference: too many groups, or everywhere
  bool has_position = false;
  SkyDirection position;  ///< mean of the strongest beam and its neighbours, weighted by S/N
};

/// Friends across beams: |dt| at mid band <= the wider boxcar, |dDM| <= the DM that smears it by
/// the wider boxcar. Groups do not depend on the order in which beams are added.
class BeamGrouper {
 public:
  BeamGrouper(const BeamGroupConfig& config, const search::Band& band, std::int64_t max_width);

  void add(std::int64_t beam, std::vector<SearchEvent>& events);  ///< takes them
  /// No beam will add an event centered before `tick`. Appends what is complete, in order of time.
  void take_complete(std::int64_t tick, std::vector<BeamEvent>& out);
  void take_all(std::vector<BeamEvent>& out);
  std::int64_t n_waiting() const { return static_cast<std::int64_t>(waiting_.size()); }

 private:
  struct Waiting {
    std::int64_t beam;
    double middle;  // tick at mid band
    SearchEvent event;
  };
  bool friends(const Waiting& a, const Waiting& b) const;
  bool touch(std::int64_t a, std::int64_t b) const;
  bool incoherent(const Waiting* w) const;
  BeamEvent merged(std::vector<Waiting*>& group) const;
  std::int64_t n_groups(const std::vector<std::int64_t>& beams) const;
  bool everywhere(const std::vector<std::int64_t>& beams) const;

  BeamGroupConfig config_;
  double middle_per_dm_, sweep_per_dm_, reach_;
  std::int64_t n_coherent_ = 0;
  std::vector<Waiting> waiting_;
};

}  // namespace ryle::pipeline
