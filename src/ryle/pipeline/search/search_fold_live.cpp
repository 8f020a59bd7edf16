// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_fold_live.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/search/dispersion.hpp"
#include "ryle/pipeline/base/run_summary.hpp"

namespace ryle::pipeline {
namespace {

double separation_rad(const SkyDirection& a, const SkyDirection& b) {
  const double u = std::sin(0.5 * (a.dec_rad - b.dec_rad));
  const double v = std::sin(0.5 * (a.ra_rad - b.ra_rad));
  return 2 * std::asin(std::min(
                 1.0, std::sqrt(u * u + std::cos(a.dec_rad) * std::cos(b.dec_rad) * v * v)));
}

std::int64_t beam_of(const BeamStream& stream, const std::string& name, const Pulsar& pulsar) {
  std::int64_t nearest = -1;
  double minimum = 10;
  for (std::int64_t b = 0; b < stream.n_beams(); ++b) {
    const BeamInfo& beam = stream.beams[b];
    if (!name.empty() && beam.name == name) return b;
    const double distance = separation_rad(beam.position, pulsar.position);
    if (!beam.incoherent && distance < minimum) {
      minimum = distance;
      nearest = b;
    }
  }
  if (!name.empty() || nearest < 0)
    throw ConfigError("fold: there is no beam " + (name.empty() ? "to fold" : "\"" + name + "\""));
  return nearest;
}

std::vector<double> delays_s(const BeamStream& stream, double k_dm, double dm_pc_cm3) {
  const double interval_s = stream.sample_interval_s();
  search::Band band;
  for (std::int64_t c = 0; c < stream.frequency.n_channels; ++c)
    band.center_hz.push_back(stream.frequency.center_hz(c));
  band.channel_width_hz = stream.frequency.channel_width_hz;
  band.sample_interval_s = interval_s;
  band.k_dm = k_dm;
  std::vector<double> out;
  for (std::int64_t c = 0; c < band.n_channels(); ++c)
    out.push_back(band.delay_samples(c, dm_pc_cm3) * interval_s);
  return out;
}

}  // namespace

struct LiveFold::Impl {
  LiveFoldConfig config;
  BeamStream stream;
  Pulsar pulsar;
  PulsarClock clock;
  std::int64_t beam;
  double k_dm;
  search::ChannelFolder folder;
  std::vector<float> masked;  // copy of a chunk with absent samples
  std::int64_t start_tai_ns = 0, end_tai_ns = 0;
  bool started = false;
  search::Fold result;

  Impl(const BeamStream& s, const ArrayLayout& site, const LiveFoldConfig& c)
      : config(c),
        stream(s),
        pulsar(read_par(c.par)),
        clock(pulsar, &site),
        beam(beam_of(s, c.beam, pulsar)),
        k_dm(search::dispersion_constant(c.k_dm)),
        folder(c.n_bins, delays_s(s, k_dm, pulsar.dm_pc_cm3), s.sample_interval_s(),
               c.sub_integration_s) {}

  /// Samples are means of intervals: the phase is that of the middle of each.
  std::int64_t middle_tai_ns(const SampleClock& c, std::int64_t sample) const {
    return c.tai_ns(sample) + std::llround(0.5e9 * stream.sample_interval_s());
  }

  void take(const BeamChunk& chunk) {
    const std::int64_t first = chunk.first_sample, end = first + chunk.n_samples;
    if (!started) start_tai_ns = chunk.clock.tai_ns(first);
    started = true;
    end_tai_ns = chunk.clock.tai_ns(end);
    const double turns = clock.turns(middle_tai_ns(chunk.clock, first), start_tai_ns);
    const double after = clock.turns(middle_tai_ns(chunk.clock, end), start_tai_ns);
    const float* data = chunk.row(beam, 0);
    std::int64_t stride = chunk.channel_stride;
    if (!chunk.absent.empty()) {
      stride = chunk.n_samples;
      data = with_gaps(chunk);
    }
    folder.add(data, stride, chunk.n_samples,
               static_cast<double>(chunk.clock.tai_ns(first) - start_tai_ns) * 1e-9, turns,
               (after - turns) / static_cast<double>(chunk.n_samples));
  }

  const float* with_gaps(const BeamChunk& chunk) {
    const std::int64_t n = chunk.n_samples, n_channels = stream.frequency.n_channels;
    masked.resize(n * n_channels);
    for (std::int64_t c = 0; c < n_channels; ++c)
      std::copy_n(chunk.row(beam, c), n, masked.data() + c * n);
    for (const ChannelGap& gap : chunk.absent) {
      const Tick a = std::max(chunk.first_sample, gap.begin) - chunk.first_sample;
      const Tick z = std::min(chunk.first_sample + n, gap.end) - chunk.first_sample;
      for (std::int64_t c = gap.channel_begin; c < gap.channel_end && a < z; ++c)
        std::fill_n(masked.data() + c * n + a, z - a, std::numeric_limits<float>::quiet_NaN());
    }
    return masked.data();
  }

  FoldedPulsar head() const {
    FoldedPulsar h;
    h.source = pulsar.name;
    h.telescope = stream.telescope;
    h.file = "beam " + stream.beams[beam].name;
    h.ephemeris = std::filesystem::path(config.par).filename().string();
    h.start_mjd_utc = utc_mjd_s(start_tai_ns) / 86400;
    h.period_s = 1 / clock.spin_hz((start_tai_ns / 2) + (end_tai_ns / 2));
    h.dm_pc_cm3 = pulsar.dm_pc_cm3;
    h.k_dm = k_dm;
    h.reduced_chi2 = result.reduced_chi2();
    h.command_line = config.command_line;
    for (std::int64_t c = 0; c < stream.frequency.n_channels; ++c)
      h.center_hz.push_back(stream.frequency.center_hz(c));
    return h;
  }
};

LiveFold::LiveFold(const BeamStream& stream, const ArrayLayout& site, const LiveFoldConfig& config)
    : impl_(std::make_unique<Impl>(stream, site, config)) {}
LiveFold::~LiveFold() = default;

void LiveFold::take(const BeamChunk& chunk) { impl_->take(chunk); }

void LiveFold::finish(RunSummary& summary) {
  Impl& me = *impl_;
  if (!me.started) {
    summary.warnings.emplace_back("fold: no data came");
    return;
  }
  const search::FoldCube& cube = me.folder.finish();
  me.result = cube.collapsed();
  try {
    for (const auto& p : write_fold_products(me.config.outputs, me.result, &cube, me.head()))
      summary.products.push_back(p);
  } catch (const std::exception& e) {
    summary.errors.push_back(std::string("fold: ") + e.what());
  }
}

std::int64_t LiveFold::memory_bytes() const {
  return impl_->folder.memory_bytes() +
         static_cast<std::int64_t>(impl_->masked.capacity() * sizeof(float));
}
const search::Fold& LiveFold::fold() const { return impl_->result; }

}  // namespace ryle::pipeline
