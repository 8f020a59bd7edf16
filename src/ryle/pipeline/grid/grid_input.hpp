// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ryle/device/queue.hpp"
#include "ryle/engine/grid/grid.hpp"
#include "ryle/io/map/beam_gains.hpp"
#include "ryle/io/scan/scan_file.hpp"
#include "ryle/pipeline/base/block_values.hpp"

namespace ryle::pipeline {

/// Samples [first, first + n) of a file: what is gridded at a time and added whole.
struct GridBlock {
  std::int64_t file = 0, first = 0, n = 0;
};

/// A block with some of its channels. Buffers are kept from one block to the next.
struct GridBlockData {
  std::vector<double> longitude_deg, latitude_deg;
  BlockValues values;               ///< @shape [channel][sample]
  std::vector<float> weights;       ///< @shape [sample], or as values
  std::vector<std::uint8_t> flags;  ///< as values; empty: none
  /// Of a block of n samples those from `first` on.
  grid::Samples samples(std::int64_t n, std::int64_t first = 0) const;
};

/// Channels [first, last) of the files; of several polarizations channels of the first, then those
/// of the next.
struct ChannelRange {
  std::int64_t first = 0, last = 0;
};
/// "10:20" (indices, the last left out) or "1419MHz:1422MHz" (channels whose centers are between).
/// Empty: all. Throws ConfigError.
ChannelRange parse_channels(const std::string& text, const FrequencyAxis& axis,
                            std::int64_t n_channels);

/// Files of scans that go into one map, cut into blocks.
class GridInput {
 public:
  /// `gains`: a file of BeamGains that kelvins are divided by; empty: none. `unit`: of the values,
  /// whatever the files say; empty: theirs. Throws ConfigError, naming both files, when they are
  /// the same, their channels are not the same within kMaxChannelOffset of a channel, or their
  /// units differ.
  GridInput(const std::vector<std::string>& files, const ScanOptions& options,
            const std::string& channels, std::int64_t block_samples, const std::string& gains = "",
            const std::string& unit = "");
  static constexpr double kMaxChannelOffset = 0.05;

  /// Of all files and the chosen channels; n_channels counts those of all polarizations, the axis
  /// those of one.
  const ScanMetadata& metadata() const { return metadata_; }
  /// FITS codes of the polarizations that are gridded together (--pol XX,YY); else empty.
  const std::vector<int>& stokes() const { return stokes_; }
  /// Most channels that one read() may ask for: those of a polarization have one weight.
  std::int64_t max_channels_together() const { return file_axis_.n_channels; }
  const ChannelRange& channels() const { return channels_; }
  /// Fewer of them, counted as in the files. Before anything but positions is read.
  void choose_channels(ChannelRange channels);
  std::int64_t n_file_channels() const { return file_axis_.n_channels * n_polarizations(); }
  const std::vector<GridBlock>& blocks() const { return blocks_; }
  std::int64_t max_block_samples() const;
  const std::string& path(const GridBlock& block) const;
  bool has_weights() const { return has_weights_; }
  /// Weights of all channels in place of those of samples.
  bool has_channel_weights() const { return has_channel_weights_; }
  bool has_flags() const { return has_flags_; }
  /// What tells a file, and what was chosen from it, from others: 64 hexadecimal digits.
  std::string fingerprint(const GridBlock& block);
  /// The same of the file alone, whatever was chosen from it.
  std::string content(const GridBlock& block);

  /// What positions read so far say of their unit; empty: nothing is wrong with it.
  const std::vector<std::string>& position_warnings() const { return position_warnings_; }
  /// Positions only; the frame is that of metadata(). Throws ConfigError for longitudes that are
  /// none.
  void read_positions(const GridBlock& block, GridBlockData& data);
  /// Channels [first, first + n) counted as in the files, weights and flags; of one polarization.
  void read(const GridBlock& block, std::int64_t first, std::int64_t n, GridBlockData& data);
  /// Of samples [first, first + n) of the block.
  grid::Positions directions(Queue& queue, const GridBlock& block, const GridBlockData& data,
                             std::int64_t first, std::int64_t n) const;
  std::int64_t bytes_read() const { return bytes_read_; }

 private:
  std::int64_t n_polarizations() const {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(polarizations_.size()));
  }
  void choose_polarizations(const std::string& file);
  ScanMetadata metadata_of_open() const;
  void require_different_files() const;
  void require_same(const ScanFile& file);
  void require_near_channels();
  void require_same_samples(std::int64_t file);
  void divide_by_gains(std::int64_t file, std::int64_t first, std::int64_t n, GridBlockData& data,
                       std::int64_t n_samples) const;
  void open(std::int64_t file, std::int64_t polarization = 0);
  ScanOptions options_;
  std::vector<std::string> paths_, polarizations_;
  std::vector<int> stokes_;
  std::optional<BeamGains> gains_;
  std::vector<std::vector<double>> gain_of_;  ///< [file][channel] K/Jy; empty: not divided by any
  std::vector<std::pair<std::string, double>> channel_offsets_;  ///< of files, in widths
  std::vector<SkyFrame> frames_;
  std::vector<PositionExtremes> extremes_;  ///< of the positions read of each file
  std::vector<std::string> position_warnings_;
  std::string unit_;  ///< that takes the place of the files'
  std::vector<std::string> fingerprints_, contents_;
  ScanMetadata metadata_;
  FrequencyAxis file_axis_;
  ChannelRange channels_;
  std::vector<GridBlock> blocks_;
  bool has_weights_ = false, has_channel_weights_ = false, has_flags_ = false;
  std::int64_t first_channel_ = 0;  ///< in the files, of channel 0 of several polarizations
  std::int64_t open_ = -1, open_polarization_ = -1, bytes_read_ = 0;
  std::unique_ptr<ScanFile> file_;
};

/// HDF5 is used from one thread at a time: readers of scans and writers of states take this.
std::mutex& grid_file_mutex();

}  // namespace ryle::pipeline
