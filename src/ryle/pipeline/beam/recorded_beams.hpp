// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/config/config.hpp"

/// A recording of voltages -> beams -> files: `ryle beamform`.
namespace ryle::pipeline {

struct RecordedBeamsOptions : BeamSettings {
  std::string beams;                 ///< the beams file; its array is the recording's, in its order
  std::vector<std::string> outputs;  ///< NAME.fil, NAME.vdif (a file per beam), NAME.h5 (one file)
  std::string output;  ///< power | stokes-i | stokes-iquv | voltage; "" = by the files and pols
  std::string format;  ///< f32 f16 u16 u8 | cf32 cf16 ci8 ci4; "" = f32, of VDIF ci8
  std::int64_t integration = 1;                    ///< spectra per value
  std::int64_t first_channel = 0, n_channels = 0;  ///< of the spectra; 0 = all
  double update_s = 0;             ///< between sets of weights; 0 = phases turn by 1 deg at most
  double scale_s = 10;             ///< between scales of u8 and u16; 0 = the first is kept
  std::int64_t fine_channels = 1;  ///< of each channel, made of the beams
  std::int64_t fine_taps = 4;
  bool overwrite = false;
};

struct RecordedBeamsSummary {
  std::int64_t n_beams = 0, n_incoherent = 0, n_antennas = 0, n_pols = 0, n_channels = 0;
  std::int64_t n_spectra = 0, n_values = 0;  ///< in; out, per (beam, product, channel)
  std::string output, format;
  double value_interval_s = 0;
  double data_s = 0, elapsed_s = 0, beam_s = 0;  ///< beam_s: inside the beamformer
  double update_s = 0;
  std::int64_t n_updates = 0;        ///< sets of weights
  std::int64_t n_scale_changes = 0;  ///< the first included
  std::uint64_t lost_samples = 0;    ///< of the recording
  double used_fraction = 1;          ///< of (beam, channel, spectrum, antenna with a weight)
  std::int64_t n_masked_inputs = 0;  ///< bad, or gain 0
  std::uint64_t saturated_low = 0, saturated_high = 0;
  double worst_delay_loss = 0;  ///< of power: channels too wide for phases (beamform.md 1)
  std::map<std::string, std::int64_t> vdif;  ///< frames, invalid_frames, samples_left_out
  std::vector<std::string> implementations, products, warnings;
  bool stopped = false;
};

/// `config` describes the recording (source), the channelizer and the threads. Throws ConfigError,
/// FormatError, IoError, UnsupportedError.
RecordedBeamsSummary beamform_recording(const ObservationConfig& config,
                                        const RecordedBeamsOptions& options, const RunOptions& run);
/// One JSON object; lines for people.
std::string to_json(const RecordedBeamsSummary& summary);
std::string to_text(const RecordedBeamsSummary& summary);

}  // namespace ryle::pipeline
