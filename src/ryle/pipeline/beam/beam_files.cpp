// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/beam/beam_files.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/visibility/simulation.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kScaleSamples = 1024;  // most of a channel that are looked at
constexpr std::int64_t kMaxGaps = 100'000;    // listed one by one
// Longer silences begin a new file: nobody wants hours of nothing.
constexpr double kLongestGap_s = 600;

// rne(value) of |value| < 2^22 in the low bits, without a call: baseline machines have no rounding
// instruction.
std::uint8_t nearest_code(float value) {
  return static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(value + 12582912.0f));
}

// Median, then mean and rms of what lies near it. Consumes `values`.
void robust_scale(std::vector<float>& values, float& mean, float& rms) {
  mean = rms = 0;
  if (values.empty()) return;
  const auto at = [&](std::size_t k) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(k), values.end());
    return static_cast<double>(values[k]);
  };
  const std::size_t n = values.size();
  const double median = at(n / 2), low = at(n / 4), high = at(3 * n / 4);
  const double reach = 5 * (high - low) / 1.349;
  double sum = 0, squares = 0, count = 0;
  for (const float v : values) {
    const double d = static_cast<double>(v) - median;
    if (std::abs(d) > reach) continue;
    sum += d;
    squares += d * d;
    ++count;
  }
  mean = static_cast<float>(median + sum / count);
  rms = static_cast<float>(std::sqrt(std::max(0.0, squares / count - sum * sum / count / count)));
}

}  // namespace

std::string beam_file(const ObservationConfig& config, const std::string& beam,
                      std::int64_t segment) {
  std::string name = config.output.name + "_";
  for (const char c : beam) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '+';
    name += plain ? c : '_';
  }
  if (segment > 0) name += "_s" + std::to_string(segment);
  return (std::filesystem::path(config.output.directory) / (name + ".fil")).string();
}

std::string beam_notes_file(const ObservationConfig& config) {
  return (std::filesystem::path(config.output.directory) / (config.output.name + "_beams.json"))
      .string();
}

void require_new_beam_files(const ObservationConfig& config,
                            const std::vector<std::string>& beams) {
  std::filesystem::create_directories(config.output.directory);
  std::vector<std::string> files{beam_notes_file(config)};
  for (const auto& beam : beams) files.push_back(beam_file(config, beam));
  std::sort(files.begin(), files.end());
  for (std::size_t k = 0; k < files.size(); ++k) {
    if (k > 0 && files[k] == files[k - 1])
      throw ConfigError("two beams would be written to " + files[k] +
                        ": their names differ in signs only; rename one");
    if (!config.output.overwrite && std::filesystem::exists(files[k]))
      throw IoError(ExitCode::io, files[k] + " exists; --overwrite replaces it");
  }
}

BeamFiles::BeamFiles(const ObservationConfig& config, const BeamStream& stream)
    : config_(config),
      stream_(stream),
      scale_samples_(std::max<std::int64_t>(
          64, std::llround(config.beams.scale_s * stream.clock.rate_hz.value()))),
      queue_(static_cast<std::size_t>(config.beams.queue),
             is_real_time(config) ? DropPolicy::drop_newest : DropPolicy::block),
      free_(static_cast<std::size_t>(config.beams.queue) + 2, DropPolicy::drop_newest) {
  thread_ = std::make_unique<StageThread>(
      "ryle-beams", [this](const std::stop_token&) { run(); }, [this] { queue_.close(); });
}

BeamFiles::~BeamFiles() { queue_.close(); }

std::int64_t BeamFiles::memory_bytes() const {
  const std::int64_t cell = stream_.n_beams() * stream_.frequency.n_channels * 4;
  return cell * ((config_.beams.queue + 2) * stream_.max_samples + scale_samples_);
}

void BeamFiles::take(const BeamChunk& chunk) {
  if (failed_) {
    dropped_samples_ += chunk.n_samples;
    return;
  }
  Block block;
  if (auto recycled = free_.try_pop()) block.values = std::move(*recycled);
  const std::int64_t n_channels = stream_.frequency.n_channels;
  block.n = chunk.n_samples;
  block.values.resize(stream_.n_beams() * n_channels * block.n);
  for (std::int64_t beam = 0; beam < stream_.n_beams(); ++beam) {
    for (std::int64_t c = 0; c < n_channels; ++c)
      std::copy_n(chunk.row(beam, c), block.n,
                  block.values.data() + (beam * n_channels + c) * block.n);
  }
  block.first_sample = chunk.first_sample;
  block.segment = chunk.segment;
  block.clock = chunk.clock;
  block.absent.assign(chunk.absent.begin(), chunk.absent.end());
  if (queue_.offer(std::move(block)) == QueueResult::dropped) dropped_samples_ += chunk.n_samples;
}

void BeamFiles::run() {
  try {
    while (auto block = queue_.pop()) process(std::move(*block));
    if (!measured_ && !held_.empty()) measure();
    close_segment();
    publish_notes();
  } catch (const Error& e) {
    error_ = e.what();
    failed_ = true;
    queue_.close();
    dropped_samples_ += block_samples_;
    while (auto block = queue_.try_pop()) dropped_samples_ += block->n;
    publish_whole();
  }
}

void BeamFiles::publish_notes() {
  if (published_.empty()) return;
  publish_bytes(beam_notes_file(config_), notes(), config_.output.overwrite);
  published_.push_back(beam_notes_file(config_));
}

/// One file that fails must not cost the others: all are published up to the sample that all have.
void BeamFiles::publish_whole() {
  if (writers_.empty()) return;
  std::int64_t whole = writers_.front()->n_samples();
  for (const auto& writer : writers_) whole = std::min(whole, writer->n_samples());
  std::size_t n_published = 0;
  for (std::size_t beam = 0; whole > 0 && beam < writers_.size(); ++beam) {
    try {
      writers_[beam]->finish_at(whole);
      published_.push_back(beam_file(config_, stream_.beams[beam].name, segments_ - 1));
      ++n_published;
    } catch (const Error& e) {
      error_ += std::string("; ") + e.what();
    }
  }
  writers_.clear();
  try {
    publish_notes();
  } catch (const Error& e) {
    error_ += std::string("; ") + e.what();
  }
  error_ += "; the first " + std::to_string(n_published > 0 ? whole : 0) + " samples of " +
            std::to_string(n_published) + " of " + std::to_string(stream_.n_beams()) +
            " beams are published";
}

void BeamFiles::process(Block&& block) {
  block_samples_ = block.n;
  const double gap_s = stream_.sample_interval_s() *
                       static_cast<double>(std::abs(block.first_sample - next_sample_));
  const bool cut =
      block.segment != segment_ || block.first_sample < next_sample_ || gap_s > kLongestGap_s;
  if (segment_ >= 0 && cut) {
    if (!measured_ && !held_.empty()) measure();
    close_segment();
  }
  if (segment_ < 0 || cut) {
    segment_ = block.segment;
    measured_ = false;
    held_samples_ = 0;
    for (std::int64_t beam = 0; beam < stream_.n_beams(); ++beam) {
      const std::string path = beam_file(config_, stream_.beams[beam].name, segments_);
      writers_.push_back(std::make_unique<SigprocWriter>(
          path, header(beam, block), SigprocWriteOptions{config_.output.overwrite, true}));
    }
    ++segments_;
    next_sample_ = block.first_sample;
  }
  if (!measured_) {
    held_samples_ += block.n;
    next_sample_ = block.first_sample + block.n;
    held_.push_back(std::move(block));
    if (next_sample_ - held_.front().first_sample >= scale_samples_) measure();
    return;
  }
  write(block);
  free_.try_push(block.values);
}

// Scales from the first scale_samples_ of the segment, whatever blocks they came in; then what was
// held is written.
void BeamFiles::measure() {
  const std::int64_t n_channels = stream_.frequency.n_channels;
  const std::int64_t first = held_.front().first_sample;
  const std::int64_t step = std::max<std::int64_t>(1, scale_samples_ / kScaleSamples);
  scales_.assign(stream_.n_beams(), {});
  std::vector<float> values;
  for (std::int64_t beam = 0; beam < stream_.n_beams(); ++beam) {
    auto& scale = scales_[beam];
    for (std::int64_t c = 0; c < n_channels; ++c) {
      values.clear();
      for (const auto& block : held_) {
        const float* row = block.row(beam, c, n_channels);
        for (std::int64_t t = 0; t < block.n; ++t) {
          const std::int64_t sample = block.first_sample + t - first;
          // Nothing arrived: exactly 0, which a power of noise is not.
          if (sample % step == 0 && sample < scale_samples_ && row[t] != 0)
            values.push_back(row[t]);
        }
      }
      float mean = 0, rms = 0;
      robust_scale(values, mean, rms);
      scale.mean.push_back(mean);
      scale.rms.push_back(rms);
    }
  }
  measured_ = true;
  next_sample_ = first;
  for (auto& block : held_) write(block);
  held_.clear();
}

void BeamFiles::codes_of(const Block& block, std::int64_t beam) {
  const std::int64_t n_channels = stream_.frequency.n_channels;
  const auto& scale = scales_[beam];
  codes_.resize(n_channels * block.n);
  for (std::int64_t c = 0; c < n_channels; ++c) {
    const auto at = static_cast<std::size_t>(c);
    const float factor = scale.rms[at] > 0 ? BeamScale::kRmsCodes / scale.rms[at] : 0;
    const float mean = scale.mean[at];
    const float* row = block.row(beam, c, n_channels);
    std::uint8_t* codes = codes_.data() + c * block.n;
    std::int64_t low = 0, high = 0;
    for (std::int64_t t = 0; t < block.n; ++t) {
      const float value = (row[t] - mean) * factor + BeamScale::kMeanCode;
      low += value < -0.5f;
      high += value > 255.5f;
      codes[t] = nearest_code(std::clamp(value, 0.0f, 255.0f));
    }
    low_ += low;
    high_ += high;
  }
}

// The mean where nothing arrived: SIGPROC has no mask, and zeros would look like a signal.
void BeamFiles::fill_absent(Block& block) const {
  for (std::int64_t beam = 0; beam < stream_.n_beams(); ++beam) {
    for (const auto& gap : block.absent) {
      float* row =
          block.values.data() + (beam * stream_.frequency.n_channels + gap.channel_begin) * block.n;
      std::fill(row + gap.begin - block.first_sample, row + gap.end - block.first_sample,
                scales_[beam].mean[gap.channel_begin]);
    }
  }
}

void BeamFiles::write(Block& block) {
  fill_absent(block);
  if (block.first_sample > next_sample_) write_gap(block.first_sample - next_sample_);
  for (std::int64_t beam = 0; beam < stream_.n_beams(); ++beam) {
    auto& writer = *writers_[beam];
    if (config_.beams.bits == 8) {
      codes_of(block, beam);
      writer.append(codes_.data(), block.n, block.n);
    } else {
      writer.append(block.row(beam, 0, stream_.frequency.n_channels), block.n, block.n);
    }
  }
  for (const auto& gap : block.absent) {
    ++n_gaps_;
    if (n_gaps_ <= kMaxGaps) gaps_.push_back({segments_ - 1, gap});
  }
  next_sample_ = block.first_sample + block.n;
}

// Samples that never came, so that time in the file goes on.
void BeamFiles::write_gap(std::int64_t n) {
  const std::int64_t n_channels = stream_.frequency.n_channels;
  ++n_gaps_;
  gaps_.push_back({segments_ - 1, {0, n_channels, next_sample_, next_sample_ + n}});
  filled_ += n;
  constexpr std::int64_t kAtOnce = 256;
  for (std::int64_t done = 0; done < n; done += kAtOnce) {
    const std::int64_t now = std::min(kAtOnce, n - done);
    for (std::int64_t beam = 0; beam < stream_.n_beams(); ++beam) {
      const auto at = static_cast<std::size_t>(beam);
      if (config_.beams.bits == 8) {
        codes_.assign(n_channels * now, static_cast<std::uint8_t>(BeamScale::kMeanCode));
        writers_[at]->append(codes_.data(), now, now);
      } else {
        floats_.clear();
        for (const float mean : scales_[at].mean)
          floats_.insert(floats_.end(), static_cast<std::size_t>(now), mean);
        writers_[at]->append(floats_.data(), now, now);
      }
    }
  }
}

void BeamFiles::close_segment() {
  for (std::size_t beam = 0; beam < writers_.size(); ++beam) {
    writers_[beam]->finish();
    published_.push_back(beam_file(config_, stream_.beams[beam].name, segments_ - 1));
  }
  writers_.clear();
}

FilterbankInfo BeamFiles::header(std::int64_t beam, const Block& first) const {
  const auto& b = stream_.beams[beam];
  FilterbankInfo info;
  for (std::int64_t c = 0; c < stream_.frequency.n_channels; ++c)
    info.channel_center_hz.push_back(stream_.frequency.center_hz(c));
  info.channel_width_hz = stream_.frequency.channel_width_hz;
  info.n_channels = stream_.frequency.n_channels;
  info.sample_interval_s = stream_.sample_interval_s();
  info.bits = static_cast<int>(config_.beams.bits);
  info.start_tai_ns = first.clock.tai_ns(first.first_sample);
  const auto jd = utc_julian_date(info.start_tai_ns);
  info.start_mjd_utc = (jd[0] - kMjdZero_jd) + jd[1];
  info.source_name = b.name;
  info.telescope = stream_.telescope;
  info.position = b.position;
  return info;
}

std::string BeamFiles::notes() const {
  nlohmann::ordered_json beams = nlohmann::ordered_json::array();
  for (std::size_t k = 0; k < stream_.beams.size(); ++k) {
    const auto& b = stream_.beams[k];
    nlohmann::ordered_json files = nlohmann::ordered_json::array();
    for (std::int64_t s = 0; s < segments_; ++s)
      files.push_back(std::filesystem::path(beam_file(config_, b.name, s)).filename().string());
    beams.push_back({{"name", b.name},
                     {"files", files},
                     {"incoherent", b.incoherent},
                     {"ra_deg", b.position.ra_rad / kDegree_rad},
                     {"dec_deg", b.position.dec_rad / kDegree_rad},
                     {"az_deg", b.azimuth_rad / kDegree_rad},
                     {"el_deg", b.elevation_rad / kDegree_rad},
                     {"antennas", b.n_antennas}});
    if (k < scales_.size()) {
      beams.back()["mean"] = scales_[k].mean;
      beams.back()["rms"] = scales_[k].rms;
    }
  }
  nlohmann::ordered_json absent = nlohmann::ordered_json::array();
  for (const auto& g : gaps_)
    absent.push_back({g.segment, g.gap.channel_begin, g.gap.channel_end, g.gap.begin, g.gap.end});
  return nlohmann::ordered_json{
      {"telescope", stream_.telescope},
      {"first_center_hz", stream_.frequency.first_center_hz},
      {"channel_width_hz", stream_.frequency.channel_width_hz},
      {"n_channels", stream_.frequency.n_channels},
      {"sample_interval_s", stream_.sample_interval_s()},
      {"integration_spectra", stream_.integration},
      {"bits", config_.beams.bits},
      {"mean_code", BeamScale::kMeanCode},
      {"rms_codes", BeamScale::kRmsCodes},
      {"absent_columns", {"segment", "channel_begin", "channel_end", "begin", "end"}},
      {"absent", absent},
      {"absent_runs", n_gaps_},
      {"beams", beams}}
      .dump(1);
}

void BeamFiles::finish(RunSummary& summary) {
  queue_.close();
  thread_->join();
  summary.products.insert(summary.products.end(), published_.begin(), published_.end());
  if (!error_.empty()) summary.errors.push_back(error_);
  if (summary.beams) {
    summary.beams->filled_samples = filled_;
    summary.beams->dropped_samples = dropped_samples_;
    summary.beams->clamped_low = low_;
    summary.beams->clamped_high = high_;
  }
  if (dropped_samples_ > 0)
    summary.warnings.push_back(
        std::string(error_.empty() ? "the disk did not keep up: " : "the disk failed: ") +
        std::to_string(dropped_samples_.load()) + " samples of every beam were not written");
}

}  // namespace ryle::pipeline
