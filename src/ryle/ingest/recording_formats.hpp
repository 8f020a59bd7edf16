// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/ingest/recording.hpp"

// The readers behind open_recording(): one file each, recording_<format>.cpp.

namespace ryle::detail {

/// open_recording() without the check that every entry of the channel map is used.
std::unique_ptr<Recording> open_one_recording(const std::string& path, std::string_view format,
                                              const RecordingOptions& options);
/// Throws ConfigError for an entry of the channel map that is in none of `used`.
void require_map_used(const std::string& name, const std::vector<std::string>& map,
                      const std::vector<std::string>& used);

std::unique_ptr<Recording> open_lwa_spectra(const std::string& path, bool tbx,
                                            const RecordingOptions& options);
std::unique_ptr<Recording> open_tbn(const std::string& path, const RecordingOptions& options);
std::unique_ptr<Recording> open_tbw(const std::string& path, const RecordingOptions& options);
std::unique_ptr<Recording> open_drx(const std::string& path, const RecordingOptions& options);
std::unique_ptr<Recording> open_tart(const std::string& path, const RecordingOptions& options);
std::unique_ptr<Recording> open_voltage_dump(const std::string& path,
                                             const RecordingOptions& options);
/// HDF5 that has what a voltage dump has; false for anything else, without an exception.
bool is_voltage_dump(const std::string& path);
std::unique_ptr<Recording> open_vdif(const std::string& path, const RecordingOptions& options);
std::unique_ptr<Recording> open_codif(const std::string& path, const RecordingOptions& options);
std::unique_ptr<Recording> open_guppi(const std::string& path, const RecordingOptions& options);
std::unique_ptr<Recording> open_dada(const std::string& path, const RecordingOptions& options);
/// `paths` = one file a receiver, or one file of groups in turn (receiver 0, 1, ... at each
/// instant).
std::unique_ptr<Recording> open_mwa32t_groups(const std::vector<std::string>& paths,
                                              const RecordingOptions& options);
std::unique_ptr<Recording> open_mwa32t_interleaved(const std::string& path,
                                                   const RecordingOptions& options);

}  // namespace ryle::detail
