// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ryle/telescope/observation.hpp"

namespace ryle {

/// Writes integrations to one file (or MS directory). Everything goes to ".NAME.part"; publish()
/// makes it final by fsync + rename (products.md 5). A writer destroyed without publish() removes
/// or leaves only the .part.
class VisibilityWriter {
 public:
  virtual ~VisibilityWriter() = default;
  virtual void write(const VisibilityDump& dump) = 0;
  /// Finishes and renames to the final name; `observation` carries what was only known at the end
  /// (levels, loss).
  virtual void publish(const Observation& observation) = 0;
  virtual const std::string& path() const = 0;
};

/// Whether this build reads and writes Measurement Sets (casacore).
bool measurement_sets_supported();

/// Throws what open_visibility_writer throws for a name whose suffix is no format of this build.
void require_visibility_suffix(const std::string& path);

/// Format from the name: .ms, .uvfits, .uvh5. Throws ConfigError for another suffix,
/// UnsupportedError without casacore, IoError when the name exists and not `overwrite`.
std::unique_ptr<VisibilityWriter> open_visibility_writer(const std::string& path,
                                                         const Observation& observation,
                                                         bool overwrite);

/// A visibility file read whole.
struct VisibilityFile {
  Observation observation;
  std::vector<VisibilityDump> dumps;
};

/// Whether the stored values must be conjugated to become V_ij with i <= j. `automatic` compares
/// the file's uvw with the antenna positions; real sets disagree, hence the override
/// (conventions.md 5).
enum class Conjugate : std::uint8_t { automatic, no, yes };
struct VisibilityReadOptions {
  Conjugate conjugate = Conjugate::automatic;
  /// Of a Measurement Set: DATA, CORRECTED_DATA or MODEL_DATA; "" = DATA, with a note where it also
  /// has CORRECTED_DATA. Other formats have no columns: ConfigError.
  std::string column{};
};

/// Reads .ms, .uvfits and .uvh5, Ryle's own and others' (conventions.md 5 for signs). Foreign
/// files: antennas that occur in the data only; weights rounded to whole counts;
/// provenance.notes["uvw"] says which direction was found.
VisibilityFile read_visibility_file(const std::string& path,
                                    const VisibilityReadOptions& options = {});

/// Flags every baseline of these antennas, given by name or by number from 0, and calls their
/// inputs bad. Returns what was left out, "A12, A13". Throws ConfigError for an antenna that is not
/// there.
std::string leave_out(Observation& observation, std::span<VisibilityDump> dumps,
                      const std::vector<std::string>& antennas);

}  // namespace ryle
