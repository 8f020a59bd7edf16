// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/engine/beamform/beamform.hpp"
#include "ryle/io/beam/beam_file.hpp"
#include "ryle/pipeline/beam/recorded_beams.hpp"
#include "ryle/telescope/array.hpp"
#include "ryle/telescope/pointing.hpp"

/// Files of `ryle beamform`: what the engine writes, in the format the engine wrote it.
namespace ryle::pipeline {

struct BeamSinkInfo {
  std::vector<std::string> beams;       ///< names of the rows
  std::vector<SkyDirection> positions;  ///< [row], at the start
  std::vector<std::string> products;    ///< as BeamFileInfo::products
  beamform::OutputKind kind = beamform::OutputKind::power;
  beamform::OutputFormat format = beamform::OutputFormat::f32;
  std::string format_name;
  FrequencyAxis frequency;
  SampleClock clock;  ///< of values
  std::int64_t integration = 1;
  const ArrayLayout* array = nullptr;
  std::string history;
  bool overwrite = false;
};

struct BeamSinkGulp {
  beamform::Output values;
  std::int64_t first = 0, n = 0;  ///< values since the epoch of the clock
  /// Values [begin, end) in which nothing was there: 0 in all rows, and no measurement.
  std::vector<std::pair<std::int64_t, std::int64_t>> absent;
  const BeamFileWriter::Metadata* metadata = nullptr;
};

/// One file, or one file a row, of `ryle beamform`. All calls come from the thread that reads the
/// recording, gulps in order of time; finish() publishes. What is absent is written as the format
/// has it: the value of nothing, or an invalid frame.
class BeamSink {
 public:
  virtual ~BeamSink() = default;
  virtual void take(const BeamSinkGulp& gulp) = 0;
  /// Codes from value `from` on. @shape [row][product][channel]
  virtual void scales(std::int64_t, const std::vector<float>&, const std::vector<float>&) {}
  virtual void finish(RecordedBeamsSummary& summary) = 0;
};

/// By the ending of the path, .fil .vdif .h5, or heaps of SPEAD to udp://host:port. Throws
/// ConfigError for what the file cannot hold.
std::unique_ptr<BeamSink> make_beam_sink(const std::string& path, const BeamSinkInfo& info);
/// An endpoint instead of a file.
bool is_beam_stream(const std::string& output);
/// "udp" of an endpoint. Throws ConfigError for another ending.
std::string beam_file_ending(const std::string& path);
/// The files behind a path with these rows, none behind an endpoint: one of NAME.h5 and of one row,
/// else NAME_BEAM.*. Throws ConfigError where two rows would share a file.
std::vector<std::string> beam_files_of(const std::string& path,
                                       const std::vector<std::string>& beams);
/// Names of the rows: the beams, then "incoherent_NAME".
std::vector<std::string> beam_rows(const std::vector<BeamPointing>& beams,
                                   const std::vector<std::string>& incoherent);

}  // namespace ryle::pipeline
