// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/beam/beam_sinks.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <set>
#include <span>

#include "ryle/core/bits.hpp"
#include "ryle/core/endpoint.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/beam/sigproc.hpp"
#include "ryle/io/beam/vdif_file.hpp"
#include "ryle/pipeline/visibility/spead_output.hpp"

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

/// Heaps as B-engines of MeerKAT send them, a stream for each polarization of each row: bf_raw
/// [channel][spectrum][re, im] of signed bytes, timestamp in spectra since the epoch, frequency 0,
/// beam_ants. A descriptor heap goes first, with the axes and the epoch.
class SpeadBeamSink final : public BeamSink {
 public:
  SpeadBeamSink(const std::string& text, const BeamSinkInfo& info)
      : n_channels_(info.frequency.n_channels),
        n_pols_(static_cast<std::int64_t>(info.products.size())),
        n_antennas_(static_cast<std::uint64_t>(info.array->n_antennas())) {
    constexpr std::int64_t kPacketBytes = 1472;
    constexpr double kMbPerS = 100;
    if (info.kind != OutputKind::voltage || info.format != OutputFormat::ci8)
      throw ConfigError("-o " + text +
                        ": heaps of beams hold ci8 voltages; --products voltage "
                        "--values ci8");
    const auto wanted = info.beams.size() * info.products.size();
    std::vector<std::string> endpoints = expand_endpoints({text});
    const Endpoint first = parse_endpoint(endpoints.front());
    if (endpoints.size() == 1) {  // ports one after the other
      for (std::size_t k = 1; k < wanted; ++k) {
        Endpoint next = first;
        next.port = static_cast<std::uint16_t>(first.port + k);
        endpoints.push_back(to_string(next));
      }
    }
    if (endpoints.size() != wanted || first.port + wanted > 65536)
      throw ConfigError("-o " + text + ": " + std::to_string(wanted) +
                        " polarizations of beams need as many groups (+" +
                        std::to_string(wanted - 1) + "), or one host with as many ports");
    for (const auto& endpoint : endpoints)
      streams_.push_back(std::make_unique<SpeadHeaps>("-o", endpoint, kPacketBytes, kMbPerS));
    texts_ = endpoints;
    heap_bytes_ = static_cast<std::size_t>(n_channels_ * kHeapSpectra * 2);
    waiting_.resize(heap_bytes_ * streams_.size());
    describe(info);
  }

  void take(const BeamSinkGulp& gulp) override {
    for (std::int64_t t = 0; t < gulp.n; ++t) {
      const std::int64_t heap = (gulp.first + t) / kHeapSpectra;
      if (heap != heap_number_) send();
      heap_number_ = heap;
      any_ = true;
      const std::int64_t place = (gulp.first + t) % kHeapSpectra;
      for (std::size_t s = 0; s < streams_.size(); ++s) {
        const auto row = static_cast<std::int64_t>(s) / n_pols_;
        const auto pol = static_cast<std::int64_t>(s) % n_pols_;
        const auto* from = static_cast<const std::byte*>(gulp.values.values) +
                           row * gulp.values.row_stride_bytes + (t * n_pols_ + pol) * 2;
        std::byte* to = waiting_.data() + s * heap_bytes_ + place * 2;
        for (std::int64_t c = 0; c < n_channels_; ++c)
          std::copy_n(from + c * gulp.values.channel_stride_bytes, 2, to + c * kHeapSpectra * 2);
      }
    }
  }

  void finish(RecordedBeamsSummary& summary) override {
    send();
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      const std::string trouble = streams_[s]->trouble();
      if (!trouble.empty()) summary.warnings.push_back(trouble);
      summary.products.push_back(texts_[s]);
    }
    streams_.clear();  // each ends with a stop
  }

 private:
  static constexpr std::int64_t kHeapSpectra = 256;
  static constexpr std::uint32_t kBeamAnts = 0x5004, kFirstCenter = 0x1803, kChannelWidth = 0x1804,
                                 kEpoch = 0x1806, kSpectraPerS = 0x1807;

  void describe(const BeamSinkInfo& info) {
    const auto f8 = spead_numpy_header("<f8", "");
    const std::vector<std::vector<std::byte>> descriptors{
        wire::spead_descriptor(wire::kSpeadTimestamp, "timestamp", "spectra since the epoch", ""),
        wire::spead_descriptor(wire::kSpeadFrequency, "frequency", "first channel", ""),
        wire::spead_descriptor(kBeamAnts, "beam_ants", "antennas of the beam", ""),
        wire::spead_descriptor(wire::kSpeadBfRaw, "bf_raw", "voltages of a beam, one polarization",
                               spead_numpy_header("|i1", std::to_string(n_channels_) + ", " +
                                                             std::to_string(kHeapSpectra) + ", 2")),
        wire::spead_descriptor(kEpoch, "epoch_tai_ns", "of timestamp 0, since 1970-01-01 TAI",
                               spead_numpy_header("<i8", "")),
        wire::spead_descriptor(kSpectraPerS, "spectra_per_s", "rate of timestamps", f8),
        wire::spead_descriptor(kFirstCenter, "first_center_hz", "sky frequency of channel 0", f8),
        wire::spead_descriptor(kChannelWidth, "channel_width_hz", "from channel to channel", f8)};
    const std::int64_t epoch_tai_ns = info.clock.epoch_tai_ns;
    const double numbers[]{info.clock.rate_hz.value(), info.frequency.first_center_hz,
                           info.frequency.channel_width_hz};
    const auto bytes = [](const auto& value) { return std::as_bytes(std::span(&value, 1)); };
    std::vector<SpeadHeaps::Item> items;
    for (const auto& d : descriptors) items.push_back({wire::kSpeadDescriptor, false, 0, d});
    items.push_back({kEpoch, false, 0, bytes(epoch_tai_ns)});
    items.push_back({kSpectraPerS, false, 0, bytes(numbers[0])});
    items.push_back({kFirstCenter, false, 0, bytes(numbers[1])});
    items.push_back({kChannelWidth, false, 0, bytes(numbers[2])});
    for (auto& stream : streams_) stream->send(items);
  }

  // Spectra that did not come are 0, as a B-engine has them.
  void send() {
    if (!any_) return;
    const auto timestamp = static_cast<std::uint64_t>(heap_number_ * kHeapSpectra);
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      const std::span values = std::span(waiting_).subspan(s * heap_bytes_, heap_bytes_);
      const SpeadHeaps::Item items[]{{wire::kSpeadTimestamp, true, timestamp, {}},
                                     {wire::kSpeadFrequency, true, 0, {}},
                                     {kBeamAnts, true, n_antennas_, {}},
                                     {wire::kSpeadBfRaw, false, 0, values}};
      streams_[s]->send(items);
    }
    std::fill(waiting_.begin(), waiting_.end(), std::byte{0});
    any_ = false;
  }

  std::int64_t n_channels_, n_pols_;
  std::uint64_t n_antennas_;
  std::vector<std::unique_ptr<SpeadHeaps>> streams_;  // [row][polarization]
  std::vector<std::string> texts_;
  std::vector<std::byte> waiting_;  // [stream][channel][spectrum][re, im] of one heap
  std::size_t heap_bytes_ = 0;
  std::int64_t heap_number_ = 0;
  bool any_ = false;
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
