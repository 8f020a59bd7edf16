// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/grid/grid_setup.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/grid/output_beam.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"
#include "ryle/pipeline/grid/grid_beam.hpp"
#include "ryle/pipeline/grid/grid_target.hpp"

namespace ryle::pipeline {
namespace {

/// Directions, places of the samples in their field and the cells of it that they hit; longitudes
/// and latitudes of a block.
constexpr std::int64_t kChoosingBytesPerSample = 48, kReadingBytesPerSample = 16;

class Chooser {
 public:
  Chooser(Queue& queue, const GridOptions& options, GridSummary& summary)
      : queue_(queue), options_(options), summary_(summary) {}

  GridSetup run() {
    {
      const Stopwatch watch(summary_.read_s);
      setup_.input =
          std::make_unique<GridInput>(options_.files, options_.scans, options_.channels,
                                      options_.block_samples, options_.gains, options_.unit);
    }
    setup_.program_bytes = grid_resident_bytes();
    const ScanMetadata& metadata = setup_.input->metadata();
    summary_.format = metadata.format;
    summary_.unit = metadata.unit;
    summary_.n_files = static_cast<std::int64_t>(options_.files.size());
    summary_.n_samples = metadata.n_samples;
    summary_.n_channels = metadata.n_channels;
    summary_.warnings = metadata.warnings;
    summary_.choices = metadata.choices;
    if (!metadata.frame_known)
      summary_.choices.emplace_back(
          "nothing says the system of the positions: they are taken for ICRS");
    find_beam();
    read_positions();
    for (const std::string& w : setup_.input->position_warnings()) summary_.warnings.push_back(w);
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
    const bool explicit_width = beam_rad_ > 0 || options_.kernel.find(':') != std::string::npos;
    std::vector<GridBlock> blocks = setup_.input->blocks();
    std::int64_t n = setup_.input->metadata().n_samples;
    if (explicit_map && explicit_width) {
      blocks.resize(1);
      n = blocks[0].n = std::min(blocks[0].n, grid::kSamplesTogether);
    }
    setup_.choosing_bytes =
        kChoosingBytesPerSample * n + kReadingBytesPerSample * setup_.input->max_block_samples();
    const std::int64_t limit = grid_memory_limit(options_);
    if (setup_.choosing_bytes > limit)
      throw ConfigError(fmt::format(
          "to choose a map {} samples need {:.2f} GiB, {:.2f} GiB are to be used; --beam and "
          "--target \"center=.. size=.. cell=.. proj=SIN\" or a FITS file need none",
          n, static_cast<double>(setup_.choosing_bytes) / (1 << 30),
          static_cast<double>(limit) / (1 << 30)));
    all_.x.reserve(n);
    all_.y.reserve(n);
    all_.z.reserve(n);
    GridBlockData data;
    for (const GridBlock& block : blocks) {
      {
        const Stopwatch watch(summary_.read_s);
        setup_.input->read_positions(block, data);
      }
      const Stopwatch watch(summary_.geometry_s);
      for (std::int64_t k = 0; k < block.n; k += grid::kSamplesTogether)
        add_directions(block, data, k, std::min(grid::kSamplesTogether, block.n - k));
    }
  }

  void add_directions(const GridBlock& block, const GridBlockData& data, std::int64_t first,
                      std::int64_t n) {
    const grid::Positions some = setup_.input->directions(queue_, block, data, first, n);
    all_.x.insert(all_.x.end(), some.x.begin(), some.x.end());
    all_.y.insert(all_.y.end(), some.y.begin(), some.y.end());
    all_.z.insert(all_.z.end(), some.z.begin(), some.z.end());
  }

  // Before any position is read: as said, or of the dish.
  void find_beam() {
    const ScanMetadata& metadata = setup_.input->metadata();
    beam_rad_ = options_.beam_fwhm_rad > 0 ? options_.beam_fwhm_rad : metadata.beam_fwhm_rad;
    beam_known_ = beam_rad_ > 0;
    if (beam_known_) return note_beam(options_.beam_fwhm_rad > 0 ? "--beam" : "the file");
    if (options_.kernel.find(':') != std::string::npos) return;
    take_beam(beam_of_telescope(metadata.telescope, metadata.frequency));
  }

  void take_beam(const BeamFound& found) {
    if (!(found.fwhm_rad > 0)) return;
    beam_rad_ = found.fwhm_rad;
    summary_.warnings.push_back(
        fmt::format("the beam is not known: {:.3g} arcmin is taken, {}; --beam says better",
                    beam_rad_ / kDegree_rad * 60, found.from));
    note_beam(found.from);
  }

  void note_beam(const std::string& from) {
    setup_.notes.beam =
        fmt::format("beam of the telescope {:.4g} arcmin: {}", beam_rad_ / kDegree_rad * 60, from);
    summary_.beam = setup_.notes.beam;
  }

  void choose_function() {
    if (!(beam_rad_ > 0) && options_.kernel.find(':') == std::string::npos) {
      take_beam(beam_of_spacing(all_));
      if (!(beam_rad_ > 0))
        throw ConfigError(setup_.input->metadata().path +
                          ": the beam is not known and the samples do not fill a field; give "
                          "--beam 2.9arcmin or --kernel gauss:1.5arcmin");
    }
    setup_.estimator = grid::parse_estimator(options_.kernel, beam_rad_);
    setup_.config.convolution = setup_.estimator.convolution;
    setup_.config.precision = options_.precision;
    setup_.config.implementation = options_.implementation;
    setup_.config.devices = options_.devices;
    summary_.kernel = grid::to_string(setup_.estimator);
  }

  void choose_cells() {
    const ScanMetadata& metadata = setup_.input->metadata();
    const double kernel_rad = grid::fwhm_rad(setup_.config.convolution);
    // Half the beam is the default; a beam nobody named is twice the function then.
    const double map_beam_rad = std::hypot(beam_known_ ? beam_rad_ : 2 * kernel_rad, kernel_rad);
    setup_.cells = make_sky_cells(options_.target, all_, metadata.frame, map_beam_rad / 3,
                                  setup_.config.convolution.support_rad);
    describe_cells(*setup_.cells, summary_);
    all_ = {};
    setup_.cell_memory = estimate_cell_memory(queue_, *setup_.cells, setup_.config.convolution);
  }

  void note() {
    const ScanMetadata& metadata = setup_.input->metadata();
    GridIdentity& id = setup_.identity;
    describe(setup_.config, id);
    id.cells = setup_.cells->definition();
    id.n_cells = setup_.cells->n_cells();
    id.weights = options_.scans.weights;
    id.unit = metadata.unit;
    id.frequency = metadata.frequency;
    id.frequency.first_center_hz = metadata.frequency.center_hz(-setup_.input->channels().first);
    id.n_channels = setup_.input->n_file_channels();
    id.frequency.n_channels = id.n_channels;
    id.polarizations = setup_.input->stokes().empty() ? std::string() : metadata.polarization;
    setup_.notes.kernel = summary_.kernel;
    MapMetadata& map = setup_.notes.map;
    map.unit = metadata.unit;
    map.object = options_.object.empty() ? metadata.object : options_.object;
    map.telescope = metadata.telescope;
    map.frequency = id.frequency;
    map.stokes = setup_.input->stokes();
    map.spectral_frame = metadata.spectral_frame;
    map.observed_utc = metadata.observed_utc;
    map.rest_frequency_hz = metadata.rest_frequency_hz;
    normalize();
    if (!beam_known_ || !setup_.is_mean()) return;
    const grid::OutputBeam beam = grid::output_beam(setup_.config.convolution, beam_rad_);
    map.beam_fwhm_deg = beam.major_rad / kDegree_rad;
    map.beam_minor_deg = beam.minor_rad / kDegree_rad;
    map.beam_position_angle_deg = beam.position_angle_rad / kDegree_rad;
    if (options_.normalize == "auto" && metadata.unit.find("/beam") != std::string::npos)
      map.area_factor = beam.area_factor;
    summary_.beam_fwhm_deg = map.beam_fwhm_deg;
    summary_.area_factor = map.area_factor;
  }

  void normalize() {
    if (options_.normalize != "beam") return;
    if (!beam_known_)
      throw ConfigError(setup_.input->metadata().path +
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
                                      const GridBlockData& data, std::int64_t first,
                                      std::int64_t n) const {
  grid::Positions p = input->directions(queue, block, data, first, n);
  const SkyFrame from = input->metadata().frame, to = cells->frame();
  if (from != to) rotate(p, frame_rotation(from, to));
  return p;
}

GridSetup make_grid_setup(Queue& queue, const GridOptions& options, GridSummary& summary) {
  if (options.block_samples < 1 || options.block_samples > kMaxBlockSamples)
    throw ConfigError(fmt::format("blocks of {} samples are none; 1 to {} work",
                                  options.block_samples, kMaxBlockSamples));
  return Chooser(queue, options, summary).run();
}

grid::CellMemory estimate_cell_memory(Queue& queue, const SkyCells& cells,
                                      const grid::Convolution& convolution) {
  constexpr std::int64_t kAll = 1 << 16, kPieces = 4, kTileRows = 16;
  const std::int64_t n = cells.n_cells(),
                     unit = std::max<std::int64_t>(1, cells.width()) * kTileRows;
  // Whole tiles; pieces of a list lie together on the sky.
  const std::int64_t piece = n <= kAll ? n : std::min(n, (kAll / kPieces + unit - 1) / unit * unit);
  const std::int64_t n_pieces = std::clamp<std::int64_t>(n / piece, 1, kPieces);
  grid::CellMemory sum;
  std::int64_t looked_at = 0;
  std::vector<double> longitude(piece), latitude(longitude.size());
  for (std::int64_t p = 0; p < n_pieces; ++p) {
    const std::int64_t first = n_pieces > 1 ? (n - piece) * p / (n_pieces - 1) / unit * unit : 0,
                       here = std::min(piece, n - first);
    cells.directions(first, here, longitude.data(), latitude.data());
    const grid::CellMemory some = grid::cell_memory(
        convolution,
        {grid::positions(queue, longitude.data(), latitude.data(), here), cells.width()});
    sum = {sum.n_tiles + some.n_tiles, sum.kept + some.kept, sum.making + some.making,
           sum.planned + some.planned};
    looked_at += here;
  }
  const auto of_all = [&](std::int64_t bytes) {
    return static_cast<std::int64_t>(static_cast<double>(bytes) * static_cast<double>(n) /
                                     static_cast<double>(looked_at));
  };
  return {of_all(sum.n_tiles), of_all(sum.kept), of_all(sum.making), of_all(sum.planned)};
}

grid::Cells grid_cells(Queue& queue, const SkyCells& cells) {
  const std::int64_t n = cells.n_cells();
  // Whole rows: a projection is computed row by row. Longitudes and latitudes of some at a time.
  const std::int64_t row = std::max<std::int64_t>(1, cells.width());
  const std::int64_t together = (grid::kSamplesTogether + row - 1) / row * row;
  grid::LargeVector<double> longitude(static_cast<std::size_t>(std::min(n, together))),
      latitude(longitude.size());
  grid::Cells made{{}, cells.width()};
  for (auto* v : {&made.directions.x, &made.directions.y, &made.directions.z}) v->resize(n);
  for (std::int64_t first = 0; first < n; first += together) {
    const std::int64_t here = std::min(together, n - first), n_rows = (here + row - 1) / row;
    const std::int64_t n_parts = std::min<std::int64_t>(n_rows, 64);
    queue.parallel_for(n_parts, [&](std::int64_t p) {
      const std::int64_t a = n_rows * p / n_parts * row,
                         b = std::min(here, n_rows * (p + 1) / n_parts * row);
      cells.directions(first + a, b - a, longitude.data() + a, latitude.data() + a);
    });
    const grid::Positions some = grid::positions(queue, longitude.data(), latitude.data(), here);
    std::copy(some.x.begin(), some.x.end(), made.directions.x.begin() + first);
    std::copy(some.y.begin(), some.y.end(), made.directions.y.begin() + first);
    std::copy(some.z.begin(), some.z.end(), made.directions.z.begin() + first);
  }
  return made;
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

}  // namespace ryle::pipeline
