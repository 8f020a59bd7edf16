// SPDX-License-Identifier: BSD-3-Clause
// Sums of several runs into one map.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "ryle/core/error.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"
#include "ryle/pipeline/grid/grid_history.hpp"
#include "ryle/pipeline/grid/grid_products.hpp"
#include "ryle/pipeline/grid/grid_setup.hpp"
#include "ryle/pipeline/grid/grid_state.hpp"

namespace ryle::pipeline {
namespace {

class GridMerge {
 public:
  explicit GridMerge(const GridMergeOptions& options)
      : options_(options), queue_(Queue::cpu(options.n_workers)) {}

  GridSummary run() {
    {
      const Stopwatch watch(summary_.elapsed_s);
      merge();
    }
    summary_.peak_memory_bytes = grid_peak_memory_bytes();
    return std::move(summary_);
  }

 private:
  void merge() {
    open();
    cut();
    find_missing();
    require_map_room(options_.output, cells_->n_cells(), summary_.n_channels,
                     files_[0]->identity().precision == "f64");
    std::unique_ptr<GridProducts> products;
    if (!options_.output.empty() || !options_.picture.empty()) products = make_products();
    std::unique_ptr<GridStateWriter> writer;
    if (!options_.accumulate.empty())
      writer =
          std::make_unique<GridStateWriter>(options_.accumulate, files_[0]->identity(), notes_);
    for (std::size_t k = 0; k + 1 < edges_.size(); ++k) {
      if (options_.stop != nullptr && options_.stop->load() > 0) {
        summary_.stopped = true;
        return;
      }
      merge_channels({edges_[k], edges_[k + 1]}, products.get(), writer.get());
    }
    if (writer) {
      writer->publish();
      summary_.products.push_back(options_.accumulate);
    }
    if (products) products->finish(grid_history(summary_, names_), summary_);
  }

  void open() {
    if (options_.files.empty()) throw ConfigError("no file of sums was given");
    if (options_.output.empty() && options_.picture.empty() && options_.accumulate.empty())
      throw ConfigError(
          "neither a map (-o NAME.fits), a picture (--png NAME.png) nor a file of "
          "sums (--accumulate NAME.rgrid) was asked for");
    require_map_outputs(options_);
    const Stopwatch watch(summary_.read_s);
    for (const std::string& path : options_.files) {
      files_.push_back(std::make_unique<GridStateFile>(path));
      if (const std::string what = difference(files_[0]->identity(), files_.back()->identity());
          !what.empty())
        throw ConfigError(path + " cannot be added to " + options_.files[0] + ": " + what);
      const std::string &first = files_[0]->notes().implementation,
                        &other = files_.back()->notes().implementation;
      if (first != other)
        summary_.warnings.push_back(path + " was made by grid/" + other + ", " + options_.files[0] +
                                    " by grid/" + first + ": the last bits depend on which");
    }
    const GridNotes& notes = files_[0]->notes();
    cells_ = cells_from_definition(files_[0]->identity().cells);
    describe_cells(*cells_, summary_);
    summary_.format = "sums of ryle grid";
    summary_.kernel = notes.kernel;
    summary_.implementation = notes.implementation;
    summary_.beam = notes.beam;
    summary_.unit = notes.map.unit;
    summary_.beam_fwhm_deg = notes.map.beam_fwhm_deg;
    summary_.area_factor = notes.map.area_factor;
    summary_.n_files = static_cast<std::int64_t>(files_.size());
  }

  // Channels into runs that every file has whole or not at all.
  void cut() {
    std::set<std::int64_t> edges;
    for (const auto& file : files_)
      for (const GridPart& part : file->parts()) {
        edges.insert(part.channels.first);
        edges.insert(part.channels.last);
      }
    edges_.assign(edges.begin(), edges.end());
    if (edges_.size() < 2) throw ConfigError(options_.files[0] + " holds no channel");
    summary_.n_channels = edges_.back() - edges_.front();
    const GridIdentity& id = files_[0]->identity();
    if (!id.polarizations.empty() && summary_.n_channels != id.n_channels)
      throw ConfigError(
          fmt::format("{} of {} planes of polarizations {} are there: a file of sums "
                      "that has the others is missing",
                      summary_.n_channels, id.n_channels, id.polarizations));
  }

  // Of the runs that made the sums.
  void find_missing() {
    notes_ = files_[0]->notes();
    std::vector<GridPart> parts;
    for (const auto& file : files_) {
      notes_.runs = joined(notes_.runs, file->notes().runs);
      parts.insert(parts.end(), file->parts().begin(), file->parts().end());
    }
    require_chosen_once(notes_.runs);
    summary_.missing = absent_shards(notes_.runs);
    const auto samples = unfinished(notes_.runs, parts);
    summary_.missing.insert(summary_.missing.end(), samples.begin(), samples.end());
    runs_say_ = !summary_.missing.empty();
    if (!runs_say_ || options_.partial) return;
    constexpr std::size_t kShown = 6;
    std::string list;
    for (std::size_t k = 0; k < std::min(kShown, summary_.missing.size()); ++k)
      list += (k > 0 ? ", " : "") + summary_.missing[k];
    if (summary_.missing.size() > kShown)
      list += fmt::format(" and {} more", summary_.missing.size() - kShown);
    throw ConfigError("these sums are not all of their runs: missing are " + list +
                      "; --partial makes the map without them and names them in it");
  }

  std::unique_ptr<GridProducts> make_products() {
    const GridIdentity& id = files_[0]->identity();
    MapMetadata metadata = files_[0]->notes().map;
    metadata.velocity_axis = options_.velocity_axis;
    metadata.frequency.first_center_hz = id.frequency.center_hz(edges_.front());
    metadata.frequency.n_channels =
        summary_.n_channels /
        std::max<std::int64_t>(1, static_cast<std::int64_t>(metadata.stokes.size()));
    metadata.history = {options_.command_line};
    return std::make_unique<GridProducts>(
        GridProductOptions{options_.output, options_.picture,
                           std::filesystem::path(options_.files[0]).filename().string(),
                           options_.weights, options_.noise, options_.overwrite, options_.one_file,
                           id.precision == "f64", options_.n_workers},
        *cells_, metadata, summary_.n_channels);
  }

  void merge_channels(ChannelRange channels, GridProducts* products, GridStateWriter* writer) {
    GridPart sum{channels, {}, {}};
    struct Source {
      const GridStateFile* file;
      std::size_t part;
    };
    std::vector<Source> sources;
    for (const auto& file : files_)
      for (std::size_t p = 0; p < file->parts().size(); ++p) {
        const GridPart& part = file->parts()[p];
        if (part.channels.first > channels.first || part.channels.last < channels.last) continue;
        if (const ConsumedBlock* twice = part.overlap(sum.blocks); twice != nullptr)
          throw ConfigError(fmt::format(
              "{} holds samples {}:{} of {}, which another of these files holds, too: they would "
              "count twice in channels {}:{}",
              file->path(), twice->first, twice->first + twice->n, twice->name, channels.first,
              channels.last));
        sum.blocks.insert(sum.blocks.end(), part.blocks.begin(), part.blocks.end());
        sum.tally.add(part.tally);
        sources.push_back({file.get(), p});
      }
    require_whole(sum);
    note(sum.tally, channels.first == edges_.front());
    const GridIdentity& id = files_[0]->identity();
    // One channel at a time: merging takes no more memory than its planes.
    const std::int64_t n = writer != nullptr ? channels.last - channels.first : 1;
    for (std::int64_t c = channels.first; c < channels.last; c += n) {
      GridSums total(id.n_cells, n, id.lobes);
      for (const Source& source : sources) {
        const Stopwatch watch(summary_.read_s);
        const GridSums part = source.file->load(source.part, {c, c + n});
        const Stopwatch adding(summary_.add_s);
        total.add(queue_, part);
      }
      if (writer != nullptr) writer->add(sum, total);
      if (products == nullptr) continue;
      grid::Sums sums(id.n_cells, n);
      total.store(queue_, sums);
      append_planes(queue_, sums, nullptr, options_.finish, files_[0]->notes().map.area_factor, n,
                    *products);
      summary_.blocks_done += static_cast<std::int64_t>(sources.size());
    }
    if (options_.on_progress)
      options_.on_progress({"merge",
                            static_cast<double>(channels.last - edges_.front()) /
                                static_cast<double>(summary_.n_channels),
                            0, 0});
  }

  // A map is of the same samples in all its channels.
  void require_whole(const GridPart& part) {
    std::set<std::string> names;
    for (const ConsumedBlock& b : part.blocks) {
      names.insert(fmt::format("{} {}:{} {}", b.source, b.first, b.first + b.n, b.name));
      if (std::find(names_.begin(), names_.end(), b.name) == names_.end()) names_.push_back(b.name);
    }
    if (part.channels.first == edges_.front()) {
      first_ = names;
      return;
    }
    if (names == first_ || (options_.partial && runs_say_)) return;
    for (const auto* have : {&first_, &names})
      for (const std::string& name : *have) {
        if ((have == &first_ ? names : first_).count(name) != 0) continue;
        const std::string what = fmt::format(
            "samples {} are in channels from {} on, but not in those from {} on",
            name.substr(name.find(' ') + 1), have == &first_ ? edges_.front() : part.channels.first,
            have == &first_ ? part.channels.first : edges_.front());
        if (!options_.partial)
          throw ConfigError(what + "; a file of sums that has them is missing");
        summary_.missing.push_back(what);
      }
  }

  void note(const GridTally& t, bool first) {
    summary_.absent.nan_value += t.absent.nan_value;
    summary_.absent.inf_value += t.absent.inf_value;
    summary_.absent.bad_weight += t.absent.bad_weight;
    summary_.absent.flagged += t.absent.flagged;
    if (!first) return;
    summary_.n_samples = t.n_samples;
    summary_.bad_positions = t.bad_positions;
    summary_.out_of_reach = t.out_of_reach;
    summary_.n_candidates = t.n_candidates;
  }

  const GridMergeOptions& options_;
  Queue queue_;
  GridSummary summary_;
  std::vector<std::unique_ptr<GridStateFile>> files_;
  std::unique_ptr<SkyCells> cells_;
  std::vector<std::int64_t> edges_;
  GridNotes notes_;
  bool runs_say_ = false;  ///< what is missing is known from the runs
  std::set<std::string> first_;
  std::vector<std::string> names_;
};

}  // namespace

GridSummary merge_grids(const GridMergeOptions& options) { return GridMerge(options).run(); }

}  // namespace ryle::pipeline
