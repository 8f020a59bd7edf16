// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/beam/beam_sinks.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <set>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/beam/sigproc.hpp"
#include "ryle/io/beam/vdif_file.hpp"
#include "ryle/pipeline/beam/beam_heaps.hpp"

namespace ryle::pipeline {
namespace {

using beamform::OutputFormat;
using beamform::OutputKind;

class FilterbankSink final : public BeamSink {
 public:
  FilterbankSink(const std::string& path, const BeamSinkInfo& info) : info_(info) {
    if (info.kind == OutputKind::voltage)
      throw ConfigError(path + ": a filterbank holds power; voltages go to .vdif or .h5");
    if (info.products.size() != 1)
      throw ConfigError(path + ": a filterbank holds one of " +
                        std::to_string(info.products.size()) +
                        " products; --products stokes-i, or .h5 for all of them");
    if (info.format == OutputFormat::f16)
      throw ConfigError(path + ": SIGPROC has no halves; --values f32, u16 or u8");
    files_ = beam_files_of(path, info.beams);
    for (std::size_t row = 0; row < files_.size(); ++row) writers_.push_back(open(row));
  }

  void take(const BeamSinkGulp& gulp) override {
    const std::int64_t channels = info_.frequency.n_channels;
    for (std::size_t row = 0; row < writers_.size(); ++row) {
      const auto* from = static_cast<const std::byte*>(gulp.values.values) +
                         static_cast<std::int64_t>(row) * gulp.values.row_stride_bytes;
      const std::int64_t stride = gulp.values.channel_stride_bytes;
      if (info_.format == OutputFormat::f32) {
        writers_[row]->append(reinterpret_cast<const float*>(from), stride / 4, gulp.n);
      } else if (info_.format == OutputFormat::u8) {
        append_bytes(*writers_[row], from, stride, gulp);
      } else {
        floats_.resize(channels * gulp.n);
        for (std::int64_t c = 0; c < channels; ++c) {
          const auto* codes = reinterpret_cast<const std::uint16_t*>(from + c * stride);
          std::copy_n(codes, gulp.n, floats_.begin() + c * gulp.n);
        }
        writers_[row]->append(floats_.data(), gulp.n, gulp.n);
      }
    }
  }

  void finish(RecordedBeamsSummary& summary) override {
    for (std::size_t row = 0; row < writers_.size(); ++row) {
      writers_[row]->finish();
      summary.products.push_back(files_[row]);
    }
  }

 private:
  std::unique_ptr<SigprocWriter> open(std::size_t row) const {
    FilterbankInfo f;
    for (std::int64_t c = 0; c < info_.frequency.n_channels; ++c)
      f.channel_center_hz.push_back(info_.frequency.center_hz(c));
    f.channel_width_hz = info_.frequency.channel_width_hz;
    f.n_channels = info_.frequency.n_channels;
    f.sample_interval_s = 1 / info_.clock.rate_hz.value();
    f.bits = info_.format == OutputFormat::u8 ? 8 : info_.format == OutputFormat::u16 ? 16 : 32;
    f.start_tai_ns = info_.clock.tai_ns(0);
    const auto jd = utc_julian_date(f.start_tai_ns);
    f.start_mjd_utc = (jd[0] - kMjdZero_jd) + jd[1];
    f.source_name = info_.beams[row];
    f.telescope = info_.array->name;
    f.position = info_.positions[row];
    return std::make_unique<SigprocWriter>(files_[row], f,
                                           SigprocWriteOptions{info_.overwrite, true});
  }

  // What was not there becomes the mean: a hole of code 0 is a pulse to a search.
  void append_bytes(SigprocWriter& writer, const std::byte* from, std::int64_t stride,
                    const BeamSinkGulp& gulp) {
    const auto* codes = reinterpret_cast<const std::uint8_t*>(from);
    if (gulp.absent.empty()) return writer.append(codes, stride, gulp.n);
    const std::int64_t channels = info_.frequency.n_channels;
    bytes_.resize(channels * gulp.n);
    for (std::int64_t c = 0; c < channels; ++c) {
      std::uint8_t* to = bytes_.data() + c * gulp.n;
      std::copy_n(codes + c * stride, gulp.n, to);
      for (const auto& [begin, end] : gulp.absent)
        std::fill(to + begin - gulp.first, to + end - gulp.first, std::uint8_t{64});
    }
    writer.append(bytes_.data(), gulp.n, gulp.n);
  }

  BeamSinkInfo info_;
  std::vector<std::string> files_;
  std::vector<std::unique_ptr<SigprocWriter>> writers_;
  std::vector<float> floats_;
  std::vector<std::uint8_t> bytes_;
};

class VdifSink final : public BeamSink {
 public:
  VdifSink(const std::string& path, const BeamSinkInfo& info) : info_(info) {
    if (info.kind != OutputKind::voltage)
      throw ConfigError(path + ": VDIF holds voltages; --products voltage");
    if (info.format != OutputFormat::ci8 && info.format != OutputFormat::ci4)
      throw ConfigError(path + ": VDIF voltages are ci8 or ci4; --values");
    files_ = beam_files_of(path, info.beams);
    VdifFileInfo v;
    v.clock = info.clock;
    v.n_channels = info.frequency.n_channels;
    v.n_threads = static_cast<std::int64_t>(info.products.size());
    v.bits = info.format == OutputFormat::ci8 ? 8 : 4;
    for (const auto& file : files_)
      writers_.push_back(std::make_unique<VdifWriter>(file, v, info.overwrite));
  }

  void take(const BeamSinkGulp& gulp) override {
    std::vector<std::uint64_t> absent;
    if (!gulp.absent.empty()) absent.assign(words_for_bits(gulp.n), std::uint64_t{0});
    for (const auto& [begin, end] : gulp.absent)
      set_bits(absent.data(), begin - gulp.first, end - gulp.first);
    for (std::size_t row = 0; row < writers_.size(); ++row) {
      const auto* from = static_cast<const std::byte*>(gulp.values.values) +
                         static_cast<std::int64_t>(row) * gulp.values.row_stride_bytes;
      writers_[row]->append(from, gulp.values.channel_stride_bytes, gulp.first, gulp.n,
                            absent.empty() ? nullptr : absent.data());
    }
  }

  void finish(RecordedBeamsSummary& summary) override {
    for (std::size_t row = 0; row < writers_.size(); ++row) {
      writers_[row]->finish();
      summary.products.push_back(files_[row]);
      summary.vdif["frames"] += writers_[row]->n_frames();
      summary.vdif["invalid_frames"] += writers_[row]->n_invalid_frames();
      summary.vdif["samples_left_out"] += writers_[row]->n_left_out();
    }
    const double shift_s = writers_.front()->time_shift_s();
    if (std::fabs(shift_s) > 1e-9)
      summary.warnings.push_back("VDIF times are " + std::to_string(shift_s * 1e6) +
                                 " us later than the samples: frames start with a second");
  }

 private:
  BeamSinkInfo info_;
  std::vector<std::string> files_;
  std::vector<std::unique_ptr<VdifWriter>> writers_;
};

class Hdf5Sink final : public BeamSink {
 public:
  Hdf5Sink(const std::string& path, const BeamSinkInfo& info) : path_(path) {
    BeamFileInfo f;
    f.beams = info.beams;
    f.products = info.products;
    f.format = info.format_name;
    f.frequency = info.frequency;
    f.clock = info.clock;
    f.integration = info.integration;
    f.telescope = info.array->name;
    f.latitude_rad = info.array->latitude_rad;
    f.longitude_rad = info.array->longitude_rad;
    f.height_m = info.array->height_m;
    f.history = info.history;
    writer_ = std::make_unique<BeamFileWriter>(path, f, info.overwrite);
  }
  void take(const BeamSinkGulp& gulp) override {
    writer_->append(
        {gulp.values.values, gulp.values.row_stride_bytes, gulp.values.product_stride_bytes,
         gulp.values.channel_stride_bytes, gulp.first, gulp.n},
        *gulp.metadata);
  }
  void scales(std::int64_t from, const std::vector<float>& scale,
              const std::vector<float>& offset) override {
    writer_->scales(from, scale, offset);
  }
  void finish(RecordedBeamsSummary& summary) override {
    writer_->finish();
    summary.products.push_back(path_);
  }

 private:
  std::string path_;
  std::unique_ptr<BeamFileWriter> writer_;
};

/// Heaps of SPEAD, a stream for each polarization of each row. What did not come is 0, as a
/// B-engine has it.
class SpeadBeamSink final : public BeamSink {
 public:
  SpeadBeamSink(const std::string& text, const BeamSinkInfo& info)
      : clock_(info.clock),
        cutter_(static_cast<std::int64_t>(info.beams.size() * info.products.size()),
                static_cast<std::int64_t>(info.products.size()), info.frequency.n_channels) {
    if (info.kind != OutputKind::voltage || info.format != OutputFormat::ci8)
      throw ConfigError("-o " + text +
                        ": heaps of beams hold ci8 voltages; --products voltage "
                        "--values ci8");
    BeamHeapStreams::Info to;
    to.frequency = info.frequency;
    to.n_antennas = info.array->n_antennas();
    to.n_pols = static_cast<std::int64_t>(info.products.size());
    streams_ = std::make_unique<BeamHeapStreams>(
        "-o", beam_endpoints("-o", text, info.beams.size() * info.products.size()), to);
  }

  void take(const BeamSinkGulp& gulp) override {
    const auto& v = gulp.values;
    cutter_.take({static_cast<const std::byte*>(v.values), v.row_stride_bytes,
                  v.channel_stride_bytes, gulp.first, gulp.n, scale_},
                 clock_, [this](const BeamHeap& heap) { streams_->send(heap); });
  }

  void scales(std::int64_t /*from*/, const std::vector<float>& scale,
              const std::vector<float>& /*offset*/) override {
    scale_ = std::make_shared<const std::vector<float>>(scale);
  }

  void finish(RecordedBeamsSummary& summary) override {
    cutter_.flush([this](const BeamHeap& heap) { streams_->send(heap); });
    for (auto& text : streams_->troubles()) summary.warnings.push_back(std::move(text));
    for (const auto& endpoint : streams_->endpoints()) summary.products.push_back(endpoint);
    streams_.reset();  // each ends with a stop
  }

 private:
  SampleClock clock_;
  std::shared_ptr<const std::vector<float>> scale_;
  BeamHeapCutter cutter_;
  std::unique_ptr<BeamHeapStreams> streams_;
};

}  // namespace

bool is_beam_stream(const std::string& output) { return output.starts_with("udp://"); }

std::string beam_file_ending(const std::string& path) {
  if (is_beam_stream(path)) return "udp";
  const std::string end = std::filesystem::path(path).extension().string();
  if (end != ".fil" && end != ".vdif" && end != ".h5")
    throw ConfigError("-o " + path +
                      ": beams are written as .fil, .vdif or .h5, or sent to udp://host:port");
  return end;
}

std::vector<std::string> beam_files_of(const std::string& path,
                                       const std::vector<std::string>& beams) {
  if (is_beam_stream(path)) return {};
  if (beams.size() == 1 || beam_file_ending(path) == ".h5") return {path};
  const std::filesystem::path p(path);
  std::vector<std::string> files;
  std::set<std::string> seen;
  for (const auto& beam : beams) {
    std::string name = p.stem().string() + "_";
    for (const char c : beam) {
      const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '+';
      name += plain ? c : '_';
    }
    files.push_back((p.parent_path() / (name + p.extension().string())).string());
    if (!seen.insert(files.back()).second)
      throw ConfigError("two beams would be written to " + files.back() +
                        ": their names differ in signs only; rename one");
  }
  return files;
}

std::vector<std::string> beam_rows(const std::vector<BeamPointing>& beams,
                                   const std::vector<std::string>& incoherent) {
  std::vector<std::string> rows;
  for (const auto& beam : beams) rows.push_back(beam.name);
  for (const auto& name : incoherent) rows.push_back("incoherent_" + name);
  return rows;
}

std::unique_ptr<BeamSink> make_beam_sink(const std::string& path, const BeamSinkInfo& info) {
  const std::string end = beam_file_ending(path);
  if (end == ".fil") return std::make_unique<FilterbankSink>(path, info);
  if (end == ".vdif") return std::make_unique<VdifSink>(path, info);
  if (is_beam_stream(path)) return std::make_unique<SpeadBeamSink>(path, info);
  return std::make_unique<Hdf5Sink>(path, info);
}

}  // namespace ryle::pipeline
