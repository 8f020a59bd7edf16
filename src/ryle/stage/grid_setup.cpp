// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/grid_setup.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/grid/output_beam.hpp"
#include "ryle/stage/grid_target.hpp"
#include "ryle/stage/stopwatch.hpp"

namespace ryle::stage {
namespace {

/// A beam sampled at its critical spacing is this many spacings wide.
constexpr double kSpacingsPerBeam = 2.4;
/// Directions, and the copy, the plane offsets and the frame of the target's choice.
constexpr std::int64_t kChoosingBytesPerSample = 64;

class Chooser {
 public:
  Chooser(Queue& queue, const GridOptions& options, GridSummary& summary)
      : queue_(queue), options_(options), summary_(summary) {}

  GridSetup run() {
    {
      const Stopwatch watch(summary_.read_s);
      setup_.input = std::make_unique<GridInput>(options_.files, options_.scans, options_.channels,
                                                 options_.block_samples, options_.gains);
    }
    const ScanFacts& facts = setup_.input->facts();
    summary_.format = facts.format;
    summary_.unit = facts.unit;
    summary_.n_files = static_cast<std::int64_t>(options_.files.size());
    summary_.n_samples = facts.n_samples;
    summary_.n_channels = facts.n_channels;
    summary_.warnings = facts.warnings;
    read_positions();
    choose_function();
    choose_cells();
    note();
    return std::move(setup_);
  }

 private:
  // A map made again from a file and a known width ask for no positions; words for all of a map are
  // met by those of one block; everything else looks at all.
  void read_positions() {
    const std::string& t = options_.target;
    const auto says = [&](const char* word) { return t.find(word) != std::string::npos; };
    const bool words = says("center=") && says("size=") && says("proj=") && says("cell=");
    const bool explicit_map = words || (t != "auto" && std::filesystem::exists(t));
    const bool explicit_width = options_.beam_fwhm_rad > 0 ||
                                setup_.input->facts().beam_fwhm_rad > 0 ||
                                options_.kernel.find(':') != std::string::npos;
    const auto& blocks = setup_.input->blocks();
    std::int64_t n = setup_.input->facts().n_samples;
    std::size_t n_read = blocks.size();
    if (explicit_map && explicit_width) n_read = 1;
    if (n_read == 1) n = blocks[0].n;
    setup_.choosing_bytes = kChoosingBytesPerSample * n;
    const std::int64_t limit = grid_memory_limit(options_);
    if (setup_.choosing_bytes > limit)
      throw ConfigError(fmt::format(
          "to choose a map {} samples need {:.2f} GiB, {:.2f} GiB are to be used; --beam and "
          "--target \"center=.. size=.. cell=.. proj=SIN\" or a FITS file need none",
          n, static_cast<double>(setup_.choosing_bytes) / (1 << 30),
          static_cast<double>(limit) / (1 << 30)));
    all_.x.reserve(static_cast<std::size_t>(n));
    all_.y.reserve(static_cast<std::size_t>(n));
    all_.z.reserve(static_cast<std::size_t>(n));
    GridBlockData data;
    for (std::size_t b = 0; b < n_read; ++b) {
      {
        const Stopwatch watch(summary_.read_s);
        setup_.input->read_positions(blocks[b], data);
      }
      const Stopwatch watch(summary_.geometry_s);
      grid::Positions some = setup_.input->directions(queue_, blocks[b], data);
      if (n_read == 1) {
        all_ = std::move(some);
        break;
      }
      all_.x.insert(all_.x.end(), some.x.begin(), some.x.end());
      all_.y.insert(all_.y.end(), some.y.begin(), some.y.end());
      all_.z.insert(all_.z.end(), some.z.begin(), some.z.end());
    }
  }

  void choose_function() {
    const ScanFacts& facts = setup_.input->facts();
    beam_rad_ = options_.beam_fwhm_rad > 0 ? options_.beam_fwhm_rad : facts.beam_fwhm_rad;
    beam_known_ = beam_rad_ > 0;
    if (!beam_known_ && options_.kernel.find(':') == std::string::npos) {
      beam_rad_ = kSpacingsPerBeam * sampling_interval(all_);
      if (!(beam_rad_ > 0))
        throw ConfigError(facts.path +
                          ": the beam is not known and the samples do not fill a field; give "
                          "--beam 2.9arcmin or --kernel gauss:1.5arcmin");
      summary_.warnings.push_back(
          fmt::format("the beam is not known: {:.3g} arcmin is taken, {} times the spacing of the "
                      "samples; --beam says better",
                      beam_rad_ / kDegree_rad * 60, kSpacingsPerBeam));
    }
    setup_.estimator = grid::parse_estimator(options_.kernel, beam_rad_);
    setup_.config.convolution = setup_.estimator.convolution;
    setup_.config.precision = options_.precision;
    setup_.config.implementation = options_.implementation;
    setup_.config.devices = options_.devices;
    summary_.kernel = grid::to_string(setup_.estimator);
  }

  void choose_cells() {
    const ScanFacts& facts = setup_.input->facts();
    const double kernel_rad = grid::fwhm_rad(setup_.config.convolution);
    // Half the beam is the default; a beam nobody named is twice the function then.
    const double map_beam_rad = std::hypot(beam_known_ ? beam_rad_ : 2 * kernel_rad, kernel_rad);
    setup_.cells = make_sky_cells(options_.target, all_, facts.frame, map_beam_rad / 3,
                                  setup_.config.convolution.support_rad);
    describe_cells(*setup_.cells, summary_);
    const SkyFrame frame = setup_.cells->frame();
    if (setup_.input->blocks().size() > 1) {
      all_ = {};
      return;
    }
    if (frame != facts.frame) rotate(all_, frame_rotation(facts.frame, frame));
    setup_.positions = std::move(all_);
  }

  void note() {
    const ScanFacts& facts = setup_.input->facts();
    GridIdentity& id = setup_.identity;
    describe(setup_.config, id);
    id.cells = setup_.cells->definition();
    id.n_cells = setup_.cells->n_cells();
    id.weights = options_.scans.weights;
    id.unit = facts.unit;
    id.frequency = facts.frequency;
    id.frequency.first_center_hz = facts.frequency.center_hz(-setup_.input->channels().first);
    id.n_channels = setup_.input->n_file_channels();
    id.frequency.n_channels = id.n_channels;
    id.polarizations = setup_.input->stokes().empty() ? std::string() : facts.polarization;
    setup_.notes.kernel = summary_.kernel;
    MapFacts& map = setup_.notes.map;
    map.unit = facts.unit;
    map.object = facts.object;
    map.telescope = facts.telescope;
    map.frequency = id.frequency;
    map.stokes = setup_.input->stokes();
    map.spectral_frame = facts.spectral_frame;
    map.observed_utc = facts.observed_utc;
    map.rest_frequency_hz = facts.rest_frequency_hz;
    normalize();
    if (!beam_known_ || !setup_.is_mean()) return;
    const grid::OutputBeam beam = grid::output_beam(setup_.config.convolution, beam_rad_);
    map.beam_fwhm_deg = beam.major_rad / kDegree_rad;
    map.beam_minor_deg = beam.minor_rad / kDegree_rad;
    map.beam_position_angle_deg = beam.position_angle_rad / kDegree_rad;
    if (options_.normalize == "auto" && facts.unit.find("/beam") != std::string::npos)
      map.area_factor = beam.area_factor;
    summary_.beam_fwhm_deg = map.beam_fwhm_deg;
    summary_.area_factor = map.area_factor;
  }

  void normalize() {
    if (options_.normalize != "beam") return;
    if (!beam_known_)
      throw ConfigError(setup_.input->facts().path +
                        ": --normalize beam needs the beam of the telescope: --beam 2.9arcmin");
    setup_.notes.map.per_beam = true;
    if (setup_.is_mean())
      setup_.response = grid::times_beam(setup_.config.convolution, beam_rad_);
    else
      setup_.response_beam_rad = beam_rad_;
  }

  Queue& queue_;
  const GridOptions& options_;
  GridSummary& summary_;
  GridSetup setup_;
  grid::Positions all_;
  double beam_rad_ = 0;
  bool beam_known_ = false;
};

}  // namespace

grid::Positions GridSetup::directions(Queue& queue, const GridBlock& block,
                                      const GridBlockData& data) const {
  grid::Positions p = input->directions(queue, block, data);
  const SkyFrame from = input->facts().frame, to = cells->frame();
  if (from != to) rotate(p, frame_rotation(from, to));
  return p;
}

GridSetup make_grid_setup(Queue& queue, const GridOptions& options, GridSummary& summary) {
  if (options.block_samples < 1 || options.block_samples > kMostBlockSamples)
    throw ConfigError(fmt::format("blocks of {} samples are none; 1 to {} work",
                                  options.block_samples, kMostBlockSamples));
  return Chooser(queue, options, summary).run();
}

grid::Cells grid_cells(Queue& queue, const SkyCells& cells) {
  const std::int64_t n = cells.n_cells();
  std::vector<double> longitude(static_cast<std::size_t>(n)), latitude(longitude.size());
  // Whole rows: a projection is computed row by row.
  const std::int64_t row = std::max<std::int64_t>(1, cells.width());
  const std::int64_t n_rows = (n + row - 1) / row;
  const std::int64_t n_parts = std::min<std::int64_t>(n_rows, 64);
  queue.parallel_for(n_parts, [&](std::int64_t p) {
    const std::int64_t first = n_rows * p / n_parts * row,
                       last = std::min(n, n_rows * (p + 1) / n_parts * row);
    cells.directions(first, last - first, longitude.data() + first, latitude.data() + first);
  });
  return {grid::positions(queue, longitude.data(), latitude.data(), n), cells.width()};
}

void describe_cells(const SkyCells& cells, GridSummary& summary) {
  summary.width = cells.width() > 0 ? cells.width() : cells.n_cells();
  summary.height = cells.n_cells() / std::max<std::int64_t>(1, summary.width);
  summary.cell_deg = cells.cell_deg();
  summary.projection = cells.description();
  summary.frame = to_string(cells.frame());
  const auto center = cells.center();
  summary.center_longitude_deg = center[0];
  summary.center_latitude_deg = center[1];
}

}  // namespace ryle::stage
