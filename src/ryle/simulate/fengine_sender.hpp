// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ryle/simulate/fengine.hpp"
#include "ryle/simulate/sender.hpp"

namespace ryle::simulate {

struct FengineSenderConfig {
  std::string format = "chips";        ///< chips | tbx | tbf
  std::vector<std::string> endpoints;  ///< "udp://host:port": one for all boards, or one each
  std::int64_t first_channel = 0;      ///< number of channel 0 of the record, as the packets count
  std::int64_t channels_per_packet = 0;  ///< 0 = all (tbf: 12); must divide
  double speed = 1;                      ///< times real time; 0 = the packet ceiling
  double duration_s = 0;                 ///< of data; 0 = until stop()
  Tick start_spectrum = 0;  ///< of the first packet; record spectrum = start mod n_spectra
  /// TBX, TBF: time tag of spectrum 0 in 196 MHz ticks; -1 = from the record's start_tai_ns.
  std::int64_t first_time_tag = -1;
  std::vector<Outage> outages;  ///< receiver = board (CHIPS; otherwise 0)
  double udp_ceiling_packets_per_s = 100'000;
  bool segmentation = true;  ///< hand the kernel many packets at once where it can cut them
  SendImpairments impairments;
  PacketSink sink;
};

struct SpectraEpoch {
  Tick first_spectrum = 0;
  const SpectraRecord* record = nullptr;  ///< may come again in a later epoch
};

namespace detail {
/// Records in the order in which they are first sent, each once. Throws ConfigError when their
/// shapes differ.
std::vector<const SpectraRecord*> records_of(std::span<const SpectraEpoch> epochs);
}  // namespace detail

/// The frames that such boards send in n_spectra spectra, one after the other in a file, as
/// recorders of the LWA write them (format tbf or tbx; CHIPS packets have no file format:
/// UnsupportedError). Uses of the config: format, first_channel, channels_per_packet,
/// first_time_tag, start_spectrum.
void write_fengine_file(std::span<const SpectraEpoch> epochs, const FengineSenderConfig& config,
                        std::int64_t n_spectra, const std::string& path);
/// The same of a sky without a period.
void write_fengine_file(const SpectraStream& stream, const FengineSenderConfig& config,
                        std::int64_t n_spectra, const std::string& path);

/// The boards of an F-engine, over UDP: each sends its inputs. "Samples" of the report are spectra;
/// it has one entry per (channel block, board).
class FengineSender final : public Sender {
 public:
  FengineSender(const SpectraRecord& record, const FengineSenderConfig& config);
  /// The first record is sent from the start on, each other one from its first spectrum on, all of
  /// the same shape: a sky that changes. @pre ascending, not empty
  FengineSender(std::span<const SpectraEpoch> epochs, const FengineSenderConfig& config);
  /// Spectra that are drawn while they are sent, without a period. @pre config.start_spectrum is a
  /// multiple of the stream's n_spectra
  FengineSender(std::shared_ptr<const SpectraStream> stream, const FengineSenderConfig& config);

 private:
  void make_links(std::span<const SpectraEpoch> epochs, std::int64_t n_laps,
                  const FengineSenderConfig& config);
};

}  // namespace ryle::simulate
