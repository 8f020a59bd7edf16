// SPDX-License-Identifier: BSD-3-Clause
// What the child process that has casacore read a Measurement Set hands to its parent. Private to
// io/.
#pragma once
#include <filesystem>
#include <system_error>
#include <type_traits>

#include "ryle/core/child.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/io/visibility/ms/ms_file.hpp"

namespace ryle::ms {

/// What casacore opens at once of a set, and then some: without them it aborts.
inline constexpr std::int64_t kOpen_files = 64;

/// Writes every field, or reads it: one list of fields for both.
class FieldPipe {
 public:
  /// @param max_bytes what a single field may have
  FieldPipe(const ChildPipe& pipe, bool sends, std::int64_t max_bytes)
      : pipe_(pipe), sends_(sends), max_bytes_(static_cast<std::uint64_t>(max_bytes)) {}

  template <class... Fields>
  void operator()(Fields&... fields) const {
    (field(fields), ...);
  }

 private:
  template <class T>
  static constexpr bool kPlain = std::is_trivially_copyable_v<T>;

  void bytes(void* data, std::size_t n) const {
    if (sends_)
      pipe_.write(data, n);
    else
      pipe_.read(data, n);
  }
  template <class List>
  void resize(List& list) const {
    std::uint64_t n = list.size();
    bytes(&n, sizeof n);
    if (sends_) return;
    // The child may have gone wild: what it says is not believed either.
    if (n > max_bytes_ / sizeof(list[0]))
      throw FormatError("a field of " + std::to_string(n) + " values is no Measurement Set's");
    list.resize(n);
  }
  template <class T>
  std::enable_if_t<kPlain<T>> field(T& value) const {
    bytes(&value, sizeof value);
  }
  void field(std::string& text) const {
    resize(text);
    bytes(text.data(), text.size());
  }
  template <class T>
  void field(std::vector<T>& list) const {
    resize(list);
    if constexpr (kPlain<T>) {
      bytes(list.data(), list.size() * sizeof(T));
    } else {
      for (T& value : list) field(value);
    }
  }
  // Bindings, so that a field that is missing here does not compile.
  void field(AntennaRow& value) const {
    auto& [name, itrf_m, feed_angles_rad] = value;
    (*this)(name, itrf_m, feed_angles_rad);
  }
  void field(InputRow& value) const {
    auto& [antenna, receptor, bad, delay_s, rms_lsb, saturated_fraction, gains] = value;
    (*this)(antenna, receptor, bad, delay_s, rms_lsb, saturated_fraction, gains);
  }
  void field(Impl& value) const {
    auto& [telescope_name, observer, project, field_name, data_unit, telescope_itrf_m, n_receptors,
           antennas, phase_center_rad, pointing_rad, channel_centers_hz, channel_width_hz,
           noise_bandwidth_hz, begin_s, end_s, history, command_lines, configuration_lines, inputs,
           filter_response, n_taps, window, van_vleck, has_delays, has_gains, has_levels,
           has_saturation, configuration, observation_json, dumps] = value;
    (*this)(telescope_name, observer, project, field_name, data_unit, telescope_itrf_m, n_receptors,
            antennas, phase_center_rad, pointing_rad, channel_centers_hz, channel_width_hz,
            noise_bandwidth_hz, begin_s, end_s, history, command_lines, configuration_lines, inputs,
            filter_response, n_taps, window, van_vleck, has_delays, has_gains, has_levels,
            has_saturation, configuration, observation_json, dumps);
  }
  void field(ReadResult& value) const {
    auto& [content, is_ryle, has_feed_angles, has_corrected_data, tai, pol_convention, corr_types,
           n_rows, time_s, interval_s, uvw_m, antenna1, antenna2, data, weight_spectrum, flag] =
        value;
    (*this)(content, is_ryle, has_feed_angles, has_corrected_data, tai, pol_convention, corr_types,
            n_rows, time_s, interval_s, uvw_m, antenna1, antenna2, data, weight_spectrum, flag);
  }
  void field(UnfinishedRows& value) const {
    auto& [data, weight_spectrum] = value;
    (*this)(data, weight_spectrum);
  }

  const ChildPipe& pipe_;
  bool sends_;
  std::uint64_t max_bytes_;
};

/// Bytes of all files of a set. Throws FormatError for anything in it that is no file or folder.
inline std::int64_t bytes_of_set(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    require_regular_file(path);
    throw FormatError("cannot read Measurement Set " + path + ": it is a file, not a folder");
  }
  std::int64_t total = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (!entry.is_directory(error)) total += require_regular_file(entry.path().string());
  }
  return total;
}

/// Runs `read` (casacore) in a child process and hands its result back.
template <class Result, class Read>
Result read_in_child(const std::string& what, const std::string& path, const Read& read) {
  const std::int64_t n_bytes = bytes_of_set(path);
  require_descriptors(kOpen_files, what + " " + path);
  ChildLimits limits;
  // Columns are held twice while they are converted, compressed ones (weights, flags) grow.
  limits.memory_bytes += 8 * n_bytes;
  limits.cpu_s += n_bytes / 10'000'000;
  Result result;
  run_in_child(
      what + " " + path, limits, [&] { result = read(); },
      [&](const ChildPipe& pipe) { FieldPipe(pipe, true, limits.memory_bytes)(result); },
      [&](const ChildPipe& pipe) { FieldPipe(pipe, false, limits.memory_bytes)(result); });
  return result;
}

}  // namespace ryle::ms
