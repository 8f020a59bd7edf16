// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/visibility/visibility_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <filesystem>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/io/visibility/described_visibilities.hpp"
#include "ryle/io/visibility/visibility_layout.hpp"

namespace ryle {
namespace {

std::string suffix_of(const std::string& path) {
  std::filesystem::path p = std::filesystem::path(path).lexically_normal();
  if (!p.has_filename()) p = p.parent_path();  // "vis.ms/"
  return p.extension().string();
}

[[noreturn]] void reject_suffix(const std::string& path) {
  throw ConfigError("visibility file " + path +
                    ": its name must end in .ms (Measurement Set), .uvfits or .uvh5; a description "
                    "(.toml) of matrices is read, not written");
}

}  // namespace

bool measurement_sets_supported() {
#ifdef RYLE_HAVE_CASACORE
  return true;
#else
  return false;
#endif
}

void require_visibility_suffix(const std::string& path) {
  const std::string suffix = suffix_of(path);
  if (suffix != ".ms" && suffix != ".uvfits" && suffix != ".uvh5") reject_suffix(path);
  if (suffix == ".ms" && !measurement_sets_supported())
    throw UnsupportedError(
        path +
        ": this build has no casacore and writes no Measurement Sets; "
        "give a name that ends in .uvfits or .uvh5, an observation output.ms = false");
}

std::unique_ptr<VisibilityWriter> open_visibility_writer(const std::string& path,
                                                         const Observation& observation,
                                                         bool overwrite) {
  io::check_observation(observation);
  const std::string suffix = suffix_of(path);
  if (suffix == ".ms") return io::open_measurement_set_writer(path, observation, overwrite);
  if (suffix == ".uvfits") return io::open_uvfits_writer(path, observation, overwrite);
  if (suffix == ".uvh5") return io::open_uvh5_writer(path, observation, overwrite);
  reject_suffix(path);
}

VisibilityFile read_visibility_file(const std::string& path, const VisibilityReadOptions& options) {
  if (!std::filesystem::exists(path)) throw IoError::from_errno("read", path, ENOENT);
  const std::string suffix = suffix_of(path);
  if (suffix == ".ms") return io::read_measurement_set(path, options);
  if (!options.column.empty())
    throw ConfigError(path + ": column " + options.column +
                      " is asked for; only Measurement Sets have columns, leave --column out");
  if (suffix == ".uvfits") return io::read_uvfits(path, options);
  if (suffix == ".uvh5") return io::read_uvh5(path, options);
  if (suffix == ".toml") return read_described_visibilities(path, options);
  reject_suffix(path);
}

namespace {

std::int64_t antenna_named(const ArrayLayout& array, const std::string& name) {
  for (std::size_t a = 0; a < array.antennas.size(); ++a) {
    if (array.antennas[a].name == name) return static_cast<std::int64_t>(a);
  }
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc{} && end == name.data() + name.size() && number >= 0 &&
      number < array.n_antennas()) {
    return number;
  }
  throw ConfigError(
      fmt::format("antenna \"{}\": the data have antennas 0 to {}, named \"{}\" to \"{}\"", name,
                  array.n_antennas() - 1, array.antennas.front().name, array.antennas.back().name));
}

}  // namespace

std::string leave_out(Observation& observation, std::span<VisibilityDump> dumps,
                      const std::vector<std::string>& antennas) {
  std::string names;
  for (const auto& name : antennas) {
    const std::int64_t a = antenna_named(observation.array, name);
    names += (names.empty() ? "" : ", ") + name;
    for (auto& input : observation.array.inputs) input.bad = input.bad || input.antenna == a;
    for (auto& dump : dumps) {
      for (std::int64_t b = 0; b < dump.n_baselines; ++b) {
        const auto [i, j] = pair_of(b);
        if (i != a && j != a) continue;
        for (std::int64_t c = 0; c < dump.n_channels; ++c) {
          for (std::int64_t pol = 0; pol < dump.n_pol_products; ++pol) {
            const auto at = static_cast<std::size_t>(dump.index(c, b, pol));
            dump.counts[at] = 0;
            dump.data[at] = 0;
          }
        }
      }
    }
  }
  return names;
}

}  // namespace ryle
