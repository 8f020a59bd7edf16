// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ryle/simulate/fengine.hpp"
#include "ryle/simulate/sender.hpp"

/// The back end of BEST-2 as a sender of its packets (wire/best2.hpp).
namespace ryle::simulate {

/// s MHz^2 pc^-1 cm^3 (conventions.md 7).
inline constexpr double kDispersion_s_mhz2 = 4148.8064;

/// Pulses of one source: in [start, start + width) of each channel's own time the packets carry
/// `record` instead of the quiet one. @unit spectra since the start of the counter, not rounded
struct Best2Pulse {
  double start_spectra = 0;  ///< of the first pulse, in the highest channel
  double width_spectra = 0;
  double period_spectra = 0;  ///< 0: once
  double dm_pc_cm3 = 0;
  const SpectraRecord* record = nullptr;  ///< of the shape of the quiet one; copied
};

struct Best2SenderConfig {
  std::string endpoint;            ///< "udp://host:port"
  std::int64_t first_channel = 0;  ///< as the sky is ordered in the packets; n = the record's
  bool descending = true;          ///< channel 0 of the packets is the highest of the record
  double speed = 1;                ///< times real time; 0 = the packet ceiling
  double duration_s = 0;           ///< of data; 0 = until stop()
  std::int64_t start_block = 0;    ///< counter of the first packet: blocks of 128 spectra
  std::vector<Outage> outages;     ///< receiver = 0
  double udp_ceiling_packets_per_s = 400'000;
  bool segmentation = true;  ///< hand the kernel many packets at once where it can cut them
};

/// Sends a periodic record again and again, block after block of all channels, with counters that
/// run on; pulses are cut into it on the way. Same rules as Mwa32tSender.
class Best2Sender {
 public:
  /// Packs the packets; the records are not needed afterwards. Throws ConfigError for a record that
  /// is not 32 inputs, whole blocks of 128 spectra, at most 1024 channels.
  Best2Sender(const SpectraRecord& quiet, const std::vector<Best2Pulse>& pulses,
              const Best2SenderConfig& config);
  ~Best2Sender();
  Best2Sender(const Best2Sender&) = delete;
  Best2Sender& operator=(const Best2Sender&) = delete;

  /// Sends nothing while `hold`, asked by the sender's thread, is true. Before start().
  void hold_while(std::function<bool()> hold);
  void start();
  void stop();
  bool running() const;
  /// "samples" are packets; one entry.
  SenderReport report() const;
  SenderReport join();
  std::int64_t memory_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ryle::simulate
