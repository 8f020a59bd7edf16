// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/visibility/quick_look.hpp"
#include "ryle/simulate/scene.hpp"
#include "ryle/simulate/sender.hpp"

namespace ryle::pipeline {

/// The simulator at the other end of the sockets of a live run.
class PacketSimulation {
 public:
  virtual ~PacketSimulation() = default;
  simulate::Sender& sender() { return *sender_; }
  /// Flux scale of the voltages sent.
  double jy_per_count2() const { return jy_per_count2_; }

 protected:
  std::unique_ptr<simulate::Sender> sender_;
  double jy_per_count2_ = 0;
};

/// The [simulator] of an observation file: a sky over the array, sent as the array's own packets to
/// source.listen.
class Simulation final : public PacketSimulation {
 public:
  /// Draws the voltages (seconds) and packs the packets; of a moving sky while they are sent.
  /// @param sink takes the packets in the place of the network
  Simulation(const ObservationConfig& config, std::int64_t start_tai_ns,
             const simulate::PacketSink& sink = {});

  /// Where the sources that are up stand at the start, for the sky picture.
  const std::vector<SourceMark>& marks() const { return marks_; }

 private:
  std::vector<SourceMark> marks_;
};

/// The sender of the observation's packets, whatever their format.
std::unique_ptr<PacketSimulation> make_simulation(const ObservationConfig& config,
                                                  const simulate::PacketSink& sink = {});

/// simulator.sky = "moving".
bool has_moving_sky(const ObservationConfig& config);
/// What the simulator's network and boards do to packets.
simulate::SendImpairments send_impairments(const SimulatorConfig& simulator);

/// The [simulator] section as a scene over so many inputs.
simulate::Scene make_scene(const ObservationConfig& config, std::int64_t n_inputs);

/// Whether a queue that is full drops, because the sender does not wait: live data do, recordings
/// and a simulator that waits (simulator.wait_for_run) do not.
bool is_real_time(const ObservationConfig& config);

/// source.start_utc, or the host clock for "now".
std::int64_t simulation_start_tai_ns(const ObservationConfig& config);

struct SimulatedFile {
  std::int64_t n_samples = 0;
  std::int64_t n_inputs = 0;
  double jy_per_count2 = 0;
  std::int64_t n_packets = 0;  ///< of a .pcap; then the other numbers are not known
};
/// Writes simulator.duration_s of the observation's format: mwa32t as interleaved samples of all
/// inputs without markers, tbf and tbx as frames; a name that ends in .pcap gets the datagrams of
/// any format, with what happens to them on their way. Throws UnsupportedError for the others.
SimulatedFile write_simulated_file(const ObservationConfig& config, const std::string& path);

}  // namespace ryle::pipeline
