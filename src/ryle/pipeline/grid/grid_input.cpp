// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/grid/grid_input.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/io/base/sha256.hpp"
#include "ryle/pipeline/grid/grid_state.hpp"
#include "ryle/pipeline/grid/grid_target.hpp"

namespace ryle::pipeline {
namespace {

// Whole files of hundreds of GB are not read to be told apart: their length and pieces are.
std::string fingerprint_of_file(const std::string& path, const std::string& chosen) {
  constexpr std::int64_t kPieces = 64, kPiece_bytes = 65'536;
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  io::Sha256 hash;
  hash.update(std::to_string(bytes) + "\n" + chosen + "\n");
  std::ifstream file(path, std::ios::binary);
  std::string piece(kPiece_bytes, '\0');
  for (std::int64_t k = 0; k < kPieces; ++k) {
    const std::int64_t at = std::max<std::int64_t>(0, bytes - kPiece_bytes) * k / (kPieces - 1);
    file.clear();
    file.seekg(at);
    file.read(piece.data(), kPiece_bytes);
    hash.update(std::string_view(piece.data(), static_cast<std::size_t>(file.gcount())));
    if (bytes <= kPiece_bytes) break;
  }
  return hash.hex();
}

std::vector<double> gains_of(const BeamGains& gains, const ScanMetadata& metadata) {
  if (metadata.beam < 0)
    throw ConfigError(metadata.path +
                      ": --gains: which beam it is, is not known; HiFAST says so in the "
                      "name of the file (-M01_)");
  if (metadata.unit != "K")
    throw ConfigError(metadata.path + ": --gains divide kelvins, these values are in " +
                      (metadata.unit.empty() ? "no unit" : metadata.unit));
  FrequencyAxis axis = metadata.frequency;
  axis.n_channels = metadata.n_channels;
  return gains.of(metadata.beam, axis);
}

double channel_word_hz(const std::string& text, const std::string& word) {
  char* end = nullptr;
  const double number = std::strtod(word.c_str(), &end);
  const std::string unit = end;
  for (const auto& [name, factor] :
       {std::pair<const char*, double>{"Hz", 1}, {"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}})
    if (end != word.c_str() && unit == name) return number * factor;
  throw ConfigError("channels \"" + text + "\": \"" + word +
                    "\" is neither an index nor a frequency; 100:200 and 1419MHz:1422MHz work");
}

}  // namespace

std::mutex& grid_file_mutex() {
  static std::mutex mutex;
  return mutex;
}

grid::Samples GridBlockData::samples(std::int64_t n, std::int64_t first) const {
  grid::Samples s;
  s.values = values.data() + first;
  s.channel_stride = n;
  if (!weights.empty()) s.weights = weights.data() + first;
  // As many as values: a channel's behind those of the one before.
  if (std::ssize(weights) > n) s.weight_channel_stride = n;
  if (!flags.empty()) s.flags = flags.data() + first;
  return s;
}

ChannelRange parse_channels(const std::string& text, const FrequencyAxis& axis,
                            std::int64_t n_channels) {
  if (text.empty()) return {0, n_channels};
  const auto colon = text.find(':');
  if (colon == std::string::npos)
    throw ConfigError("channels \"" + text + "\" are no range; 100:200 and 1419MHz:1422MHz work");
  const std::string low = text.substr(0, colon), high = text.substr(colon + 1);
  ChannelRange range{0, n_channels};
  if (text.find_first_not_of("0123456789:") == std::string::npos) {
    if (!low.empty()) range.first = std::stoll(low);
    if (!high.empty()) range.last = std::stoll(high);
    if (range.first >= range.last || range.last > n_channels)
      throw ConfigError(fmt::format("channels \"{}\" are not among the {} (0:{}) of the scans",
                                    text, n_channels, n_channels));
    return range;
  }
  const double low_hz = channel_word_hz(text, low), high_hz = channel_word_hz(text, high);
  if (!(axis.channel_width_hz > 0))
    throw ConfigError("channels \"" + text +
                      "\": the scans do not say their frequencies; indices such as 100:200 work");
  const auto index = [&](double hz) { return (hz - axis.first_center_hz) / axis.channel_width_hz; };
  const auto bound = static_cast<double>(n_channels);
  range.first = static_cast<std::int64_t>(std::clamp(std::ceil(index(low_hz) - 1e-6), 0.0, bound));
  range.last =
      static_cast<std::int64_t>(std::clamp(std::floor(index(high_hz) + 1e-6) + 1, 0.0, bound));
  if (range.first >= range.last)
    throw ConfigError(fmt::format(
        "channels \"{}\": no channel's center is between; the scans have {:.6f} to {:.6f} MHz",
        text, axis.first_center_hz * 1e-6, axis.center_hz(n_channels - 1) * 1e-6));
  return range;
}

GridInput::GridInput(const std::vector<std::string>& files, const ScanOptions& options,
                     const std::string& channels, std::int64_t block_samples,
                     const std::string& gains, const std::string& unit)
    : options_(options),
      paths_(files),
      extremes_(files.size()),
      unit_(unit),
      fingerprints_(files.size()),
      contents_(files.size()) {
  if (files.empty()) throw ConfigError("no file of scans was given");
  require_different_files();
  if (!gains.empty()) gains_ = BeamGains::read(gains);
  choose_polarizations(files[0]);
  for (std::size_t f = 0; f < files.size(); ++f) {
    open(static_cast<std::int64_t>(f));
    const ScanMetadata metadata = metadata_of_open();
    frames_.push_back(metadata.frame);
    if (f == 0) {
      metadata_ = metadata;
      has_weights_ = file_->has_weights();
      has_channel_weights_ = file_->has_channel_weights();
      metadata_.n_samples = 0;
    } else {
      require_same(*file_);
    }
    if (gains_) gain_of_.push_back(gains_of(*gains_, metadata));
    has_flags_ = has_flags_ || file_->has_flags();
    metadata_.n_samples += metadata.n_samples;
    for (std::int64_t k = 0; k < metadata.n_samples; k += block_samples)
      blocks_.push_back(
          {static_cast<std::int64_t>(f), k, std::min(block_samples, metadata.n_samples - k)});
    if (n_polarizations() > 1) require_same_samples(static_cast<std::int64_t>(f));
  }
  require_near_channels();
  if (metadata_.n_samples == 0)
    throw ConfigError(files[0] + (files.size() > 1 ? " and the others" : "") + ": no samples");
  if (gains_) metadata_.unit = "Jy/beam";
  if (metadata_.unit.empty())
    metadata_.warnings.emplace_back(
        "the files give no unit of the values: the map has none (no BUNIT); --unit K says it");
  file_axis_ = metadata_.frequency;
  file_axis_.n_channels = metadata_.n_channels;
  ChannelRange chosen = parse_channels(channels, file_axis_, metadata_.n_channels);
  if (n_polarizations() > 1) {
    // From here on the chosen channels are all there are, one polarization behind the other.
    first_channel_ = chosen.first;
    file_axis_.first_center_hz = file_axis_.center_hz(chosen.first);
    file_axis_.n_channels = chosen.last - chosen.first;
    chosen = {0, n_file_channels()};
    metadata_.polarization = comma_separated(polarizations_);
  }
  choose_channels(chosen);
}

// The same samples would count twice. Files of one length are told apart by their pieces.
void GridInput::require_different_files() const {
  std::map<std::pair<std::uintmax_t, std::uintmax_t>, std::size_t> nodes;
  std::map<std::uintmax_t, std::vector<std::size_t>> of_length;
  const auto reject = [&](std::size_t a, std::size_t b, const char* how) {
    throw ConfigError(paths_[b] + " and " + paths_[a] + " are " + how +
                      ": their samples would count twice; give it once (--weights column:NAME "
                      "weighs samples)");
  };
  for (std::size_t f = 0; f < paths_.size(); ++f) {
    struct stat node {};
    if (::stat(paths_[f].c_str(), &node) != 0 || !S_ISREG(node.st_mode)) continue;  // said later
    const auto [known, fresh] = nodes.try_emplace({node.st_dev, node.st_ino}, f);
    if (!fresh) reject(known->second, f, "the same file");
    of_length[static_cast<std::uintmax_t>(node.st_size)].push_back(f);
  }
  for (const auto& [bytes, files] : of_length) {
    std::map<std::string, std::size_t> contents;
    for (std::size_t k = 0; files.size() > 1 && k < files.size(); ++k) {
      const auto [known, fresh] =
          contents.try_emplace(fingerprint_of_file(paths_[files[k]], ""), files[k]);
      if (!fresh) reject(known->second, files[k], "copies of one file");
    }
  }
}

ScanMetadata GridInput::metadata_of_open() const {
  ScanMetadata metadata = file_->metadata();
  if (unit_.empty() || unit_ == metadata.unit) return metadata;
  if (!metadata.unit.empty())
    metadata.warnings.push_back("the values are in " + metadata.unit + " as the file says, in " +
                                unit_ + " as --unit says, which is taken");
  metadata.unit = unit_;
  return metadata;
}

// "XX,YY" or "all": what is gridded together and how FITS counts it.
void GridInput::choose_polarizations(const std::string& file) {
  const std::string wanted = options_.polarization;
  std::vector<std::string> names;
  if (wanted == "all") {
    options_.polarization = "any";
    const auto scans = open_scans(file, options_);
    names = scans->metadata().polarizations;
    options_.polarization = "mean";
    if (names.empty()) return;  // one, without a name
    std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
      return std::abs(stokes_code(a)) < std::abs(stokes_code(b));
    });
    options_.polarization = names[0];
    if (names.size() == 1) return;
  } else if (wanted.find(',') == std::string::npos) {
    return;
  } else {
    std::istringstream in(wanted);
    for (std::string name; std::getline(in, name, ',');) names.push_back(upper_case(name));
  }
  for (const std::string& name : names) {
    stokes_.push_back(stokes_code(name));
    if (stokes_.back() == 0)
      throw ConfigError("--pol " + wanted + ": FITS has no code for a polarization \"" + name +
                        "\"; XX, YY, XY, YX, RR, LL, RL, LR, I, Q, U and V have one");
  }
  const int step = stokes_.size() < 2 ? 0 : stokes_[1] - stokes_[0];
  for (std::size_t k = 1; k < stokes_.size(); ++k)
    if (step == 0 || stokes_[k] - stokes_[k - 1] != step)
      throw ConfigError("--pol " + wanted +
                        ": a STOKES axis of FITS has even steps (I,Q,U,V; RR,LL,RL,LR; "
                        "XX,YY,XY,YX); grid these one by one");
  if (stokes_.size() < 2) throw ConfigError("--pol " + wanted + " names fewer than two");
  polarizations_ = names;
}

void GridInput::choose_channels(ChannelRange channels) {
  channels_ = channels;
  metadata_.n_channels = channels_.last - channels_.first;
  if (n_polarizations() > 1) {
    metadata_.frequency = file_axis_;
    return;
  }
  metadata_.frequency.first_center_hz = file_axis_.center_hz(channels_.first);
  metadata_.frequency.n_channels = metadata_.n_channels;
}

void GridInput::open(std::int64_t file, std::int64_t polarization) {
  if (open_ == file && open_polarization_ == polarization) return;
  const std::lock_guard lock(grid_file_mutex());
  file_.reset();
  open_ = -1;
  ScanOptions options = options_;
  if (!polarizations_.empty()) options.polarization = polarizations_[polarization];
  const std::string& path = paths_[file];
  try {
    file_ = open_scans(path, options);
  } catch (const FormatError&) {
    if (!is_grid_state(path)) throw;
    throw ConfigError(path +
                      " holds sums of `ryle grid`, not scans: `ryle grid merge` makes the map of "
                      "sums, --accumulate adds scans to them");
  }
  open_ = file;
  open_polarization_ = polarization;
}

// Polarizations share their positions: rows of one are rows of the other.
void GridInput::require_same_samples(std::int64_t file) {
  std::vector<double> longitude, latitude, other_longitude, other_latitude;
  const std::int64_t n = file_->metadata().n_samples;
  const bool in_rows = file_->metadata().polarizations_in_rows;
  if (in_rows) file_->read_positions(longitude, latitude);
  const auto same = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
      return x == y || (std::isnan(x) && std::isnan(y));
    });
  };
  for (std::int64_t p = 1; p < n_polarizations(); ++p) {
    open(file, p);
    require_same(*file_);
    has_flags_ = has_flags_ || file_->has_flags();
    const auto k = static_cast<std::size_t>(p);
    if (file_->metadata().n_samples == n && in_rows)
      file_->read_positions(other_longitude, other_latitude);
    if (file_->metadata().n_samples != n ||
        (in_rows && !(same(longitude, other_longitude) && same(latitude, other_latitude))))
      throw ConfigError(fmt::format(
          "{}: polarizations {} and {} were not measured at the same places ({} and {} samples); "
          "grid them one by one",
          paths_[file], polarizations_[0], polarizations_[k], n, file_->metadata().n_samples));
  }
}

void GridInput::require_same(const ScanFile& file) {
  const ScanMetadata other = metadata_of_open();
  const auto reject = [&](const std::string& what) {
    throw ConfigError(other.path + " and " + paths_[0] + " " + what +
                      "; files of one map have the same channels and units");
  };
  if (other.n_channels != metadata_.n_channels)
    reject(fmt::format("have {} and {} channels", other.n_channels, metadata_.n_channels));
  const FrequencyAxis &a = metadata_.frequency, &b = other.frequency;
  const auto last = metadata_.n_channels - 1;
  const double off_hz = std::max(std::abs(a.first_center_hz - b.first_center_hz),
                                 std::abs(a.center_hz(last) - b.center_hz(last)));
  if (a.channel_width_hz > 0)
    channel_offsets_.emplace_back(other.path, off_hz / a.channel_width_hz);
  const auto unit_text = [](const std::string& unit) { return unit.empty() ? "no unit" : unit; };
  if (other.unit != metadata_.unit)
    reject("are in " + unit_text(other.unit) + " and " + unit_text(metadata_.unit));
  if (other.spectral_frame != metadata_.spectral_frame)
    reject("have frequencies of \"" + other.spectral_frame + "\" and \"" +
           metadata_.spectral_frame + "\"");
  if (file.has_weights() != has_weights_ || file.has_channel_weights() != has_channel_weights_)
    reject("do not both have weights of samples, or of their channels");
  if (other.polarization != metadata_.polarization && polarizations_.empty())
    metadata_.warnings.push_back(other.path + ": polarization " + other.polarization +
                                 ", before it " + metadata_.polarization);
  for (const std::string& w : other.warnings)
    if (std::find(metadata_.warnings.begin(), metadata_.warnings.end(), w) ==
        metadata_.warnings.end())
      metadata_.warnings.push_back(w);
  for (const std::string& c : other.choices)
    if (std::find(metadata_.choices.begin(), metadata_.choices.end(), c) == metadata_.choices.end())
      metadata_.choices.push_back(c);
  metadata_.frame_known = metadata_.frame_known && other.frame_known;
}

// Of all files at once: of nineteen beams one says little about the others.
void GridInput::require_near_channels() {
  constexpr double kWorthSaying = 0.005;
  std::string off;
  std::int64_t n_off = 0;
  std::pair<std::string, double> maximum{"", kWorthSaying};
  for (const auto& [path, widths] : channel_offsets_) {
    if (widths > kMaxChannelOffset) {
      off += fmt::format("{}{} by {:.3f}", n_off > 0 ? ", " : "", path, widths);
      ++n_off;
    }
    if (widths > maximum.second) maximum = {path, widths};
  }
  if (n_off > 0)
    throw ConfigError(fmt::format(
        "channels of {} of {} files are off those of {}: {} of a channel's width; files of one map "
        "have the same to {}",
        n_off, paths_.size(), paths_[0], off, kMaxChannelOffset));
  if (!maximum.first.empty())
    metadata_.warnings.push_back(
        fmt::format("channels of the files agree to {:.3f} of one's width ({})", maximum.second,
                    maximum.first));
}

std::int64_t GridInput::max_block_samples() const {
  std::int64_t maximum = 0;
  for (const GridBlock& b : blocks_) maximum = std::max(maximum, b.n);
  return maximum;
}

const std::string& GridInput::path(const GridBlock& block) const { return paths_[block.file]; }

std::string GridInput::fingerprint(const GridBlock& block) {
  std::string& known = fingerprints_[block.file];
  if (known.empty()) {
    std::string chosen = options_.longitude + "," + options_.latitude + "," + options_.data + "," +
                         options_.polarization;
    for (const std::string& p : polarizations_) chosen += "," + p;
    if (gains_)
      for (const double gain : gain_of_[block.file]) chosen += fmt::format(",{}", gain);
    for (const auto& [column, value] : options_.select) chosen += "," + column + "=" + value;
    if (!options_.flags.empty()) chosen += ",flags " + options_.flags;
    known = fingerprint_of_file(path(block), chosen);
  }
  return known;
}

std::string GridInput::content(const GridBlock& block) {
  std::string& known = contents_[block.file];
  if (known.empty()) known = fingerprint_of_file(path(block), "");
  return known;
}

void GridInput::read_positions(const GridBlock& block, GridBlockData& data) {
  if (open_ != block.file) open(block.file);
  const auto n = static_cast<std::size_t>(block.n);
  data.longitude_deg.resize(n);
  data.latitude_deg.resize(n);
  const std::lock_guard lock(grid_file_mutex());
  file_->read_positions_of(block.first, block.n, data.longitude_deg.data(),
                           data.latitude_deg.data());
  bytes_read_ += 16 * block.n;
  PositionExtremes& extremes = extremes_[block.file];
  extremes.add(data.longitude_deg.data(), data.latitude_deg.data(), block.n);
  std::string text = doubt_of_longitudes(extremes, file_->metadata());
  if (text.empty()) return;
  text = path(block) + ": " + text;
  // Of a file's blocks the last says all.
  if (!position_warnings_.empty() && position_warnings_.back().rfind(path(block) + ":", 0) == 0)
    position_warnings_.back() = text;
  else
    position_warnings_.push_back(text);
}

void GridInput::read(const GridBlock& block, std::int64_t first, std::int64_t n,
                     GridBlockData& data) {
  std::int64_t polarization = 0;
  if (n_polarizations() > 1) {
    polarization = first / file_axis_.n_channels;
    first = first_channel_ + first % file_axis_.n_channels;
  }
  open(block.file, polarization);
  const std::lock_guard lock(grid_file_mutex());
  data.values.resize(n * block.n);
  file_->read_channels_of(first, n, block.first, block.n, data.values.data());
  divide_by_gains(block.file, first, n, data, block.n);
  bytes_read_ += 4 * n * block.n;
  if (has_weights_) {
    data.weights.resize(block.n);
    file_->read_weights_of(block.first, block.n, data.weights.data());
    bytes_read_ += 4 * block.n;
  }
  if (has_channel_weights_) {
    data.weights.resize(n * block.n);
    file_->read_channel_weights_of(first, n, block.first, block.n, data.weights.data());
    bytes_read_ += 4 * n * block.n;
  }
  data.flags.clear();
  if (file_->has_flags()) {
    data.flags.resize(n * block.n);
    file_->read_flags_of(first, n, block.first, block.n, data.flags.data());
    bytes_read_ += n * block.n;
  }
}

void GridInput::divide_by_gains(std::int64_t file, std::int64_t first, std::int64_t n,
                                GridBlockData& data, std::int64_t n_samples) const {
  if (gain_of_.empty()) return;
  for (std::int64_t c = 0; c < n; ++c) {
    const auto factor = static_cast<float>(1 / gain_of_[file][first + c]);
    float* values = data.values.data() + c * n_samples;
    for (std::int64_t k = 0; k < n_samples; ++k) values[k] *= factor;
  }
}

grid::Positions GridInput::directions(Queue& queue, const GridBlock& block,
                                      const GridBlockData& data, std::int64_t first,
                                      std::int64_t n) const {
  grid::Positions p = grid::positions(queue, data.longitude_deg.data() + first,
                                      data.latitude_deg.data() + first, n);
  const SkyFrame own = frames_[block.file];
  if (own != metadata_.frame) rotate(p, frame_rotation(own, metadata_.frame));
  return p;
}

}  // namespace ryle::pipeline
