// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/grid/grid_scans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <map>
#include <optional>

#include "ryle/core/error.hpp"
#include "ryle/core/interrupt.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/base/sha256.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/grid/cuda/make.hpp"
#endif
#include "ryle/pipeline/base/stopwatch.hpp"
#include "ryle/pipeline/grid/grid_bands.hpp"
#include "ryle/pipeline/grid/grid_checkpoint.hpp"
#include "ryle/pipeline/grid/grid_devices.hpp"
#include "ryle/pipeline/grid/grid_history.hpp"
#include "ryle/pipeline/grid/grid_order.hpp"
#include "ryle/pipeline/grid/grid_products.hpp"
#include "ryle/pipeline/grid/grid_reader.hpp"
#include "ryle/pipeline/grid/grid_setup.hpp"

namespace ryle::pipeline {
namespace {

void check_grid_options(const GridOptions& o) {
  if (o.output.empty() && o.picture.empty() && o.accumulate.empty())
    throw ConfigError(
        "neither a map (-o NAME.fits) nor a picture (--png NAME.png) nor a file of sums "
        "(--accumulate NAME.rgrid) was asked for");
  if (o.n_shards < 1 || o.shard < 1 || o.shard > o.n_shards)
    throw ConfigError(fmt::format("shard {}/{} is none; 1/{} to {}/{} are", o.shard, o.n_shards,
                                  std::max<std::int64_t>(1, o.n_shards), o.n_shards, o.n_shards));
  if (!o.accumulate.empty() && !o.checkpoint.empty())
    throw ConfigError(
        "--accumulate and --checkpoint exclude each other: a file of sums that is "
        "kept needs no second one");
  if (o.resume && o.accumulate.empty() && o.checkpoint.empty())
    throw ConfigError(
        "--resume goes on from a file of sums: name it with --checkpoint or "
        "--accumulate");
  if (o.normalize != "auto" && o.normalize != "none" && o.normalize != "beam")
    throw ConfigError("--normalize is auto, none or beam, not \"" + o.normalize + "\"");
  if (o.normalize == "beam" && !(o.accumulate.empty() && o.checkpoint.empty()))
    throw UnsupportedError(
        "files of sums do not hold the response of the beam: --normalize beam works without "
        "--accumulate, --checkpoint and --resume");
  if (o.one_file && o.output.empty())
    throw ConfigError("--one-file puts weights and counts into the map: it needs -o NAME.fits");
  require_map_outputs(o);
}

class GridRun {
 public:
  explicit GridRun(const GridOptions& options)
      : options_(options), queue_(Queue::cpu(options.n_workers)) {
    if (options_.implementation.starts_with("cuda")) start_device();
  }

  void plan() {
    const Stopwatch watch(summary_.elapsed_s);
    setup_ = make_grid_setup(queue_, options_, summary_);
    if (!setup_.is_mean()) require_whole();
    deal();
    exact_ = !state_path().empty() || setup_.input->blocks().size() > 1;
    if (!setup_.is_mean()) exact_ = false;
    if (!plan_on_device()) plan_memory();
    require_map_room(options_.output, setup_.cells->n_cells(), summary_.n_channels,
                     options_.precision == grid::Precision::f64);
  }

  void run() {
    const OwnStop own_stop;
    const Stopwatch watch(summary_.elapsed_s);
    started_ = std::chrono::steady_clock::now();
    if (!state_path().empty()) {
      setup_.notes.runs = {run_plan()};
      checkpoint_.emplace(options_, setup_.identity, setup_.notes);
      require_chosen_once(checkpoint_->runs());
    }
    make_parts();
    make_jobs();
    if (makes_products()) open_products();
    if (setup_.is_mean())
      grid_means();
    else
      grid_medians();
    if (!summary_.stopped) finish();
    if (checkpoint_)
      for (const std::string& w : checkpoint_->warnings()) summary_.warnings.push_back(w);
    summary_.peak_memory_bytes = grid_peak_memory_bytes();
  }
  const GridPlan& memory_plan() const { return summary_.plan; }
  GridSummary take() { return std::move(summary_); }

 private:
  void plan_memory() {
    summary_.plan = plan_grid_memory(setup_, options_, queue_.n_workers(), exact_);
    if (summary_.plan.band_samples > 0) {
      setup_.bands = choose_bands(queue_, setup_, options_, summary_.plan.band_samples);
      summary_.plan.n_bands = std::ssize(setup_.bands);
    }
    plan_grid_devices(setup_, options_, summary_.plan);
  }

  // "auto": the first device, where it is worth its start and everything fits; what was asked for
  // by name is rejected instead. Files of sums stay with CPUs: their bits are not a device's.
  bool plan_on_device() {
    const std::int64_t n_values = setup_.input->metadata().n_samples * summary_.n_channels;
    if (options_.implementation != "auto" || !setup_.is_mean() || !state_path().empty() ||
        !worth_a_device(n_values, queue_.n_workers()) || !cuda_unavailable_reason().empty())
      return false;
    setup_.config.implementation = "cuda";
    try {
      Queue::cuda(0).synchronize();
      plan_memory();
      return true;
    } catch (const ConfigError&) {  // does not fit
    } catch (const UnsupportedError&) {
    } catch (const DeviceError&) {  // another process has it, or all of its memory
    }
    setup_.config.implementation = "auto";
    return false;
  }

  // A device takes tenths of a second to start: beside the opening of files. What is wrong with it
  // is said where it is planned for.
  void start_device() {
    const int device = options_.devices.empty() ? 0 : options_.devices.front();
    device_started_ = std::async(std::launch::async, [device] {
      if (cuda_unavailable_reason().empty() &&
          static_cast<std::size_t>(device) + 1 < list_devices().size())
        Queue::cuda(device).synchronize();
    });
  }

  const std::string& state_path() const {
    return options_.accumulate.empty() ? options_.checkpoint : options_.accumulate;
  }
  bool makes_products() const { return !options_.output.empty() || !options_.picture.empty(); }
  bool stopped() const { return options_.stop != nullptr && options_.stop->load() > 0; }

  void require_whole() const {
    if (state_path().empty() && options_.n_shards == 1) return;
    throw UnsupportedError(
        "medians of parts of the samples cannot be joined: --accumulate, "
        "--checkpoint and --shard work with means, not with " +
        summary_.kernel);
  }

  // What a shard without a map of its own is asked for.
  std::string sums_instead() const {
    if (options_.accumulate.empty())
      return "--accumulate NAME.rgrid in place of -o keeps the sums, `ryle grid merge` makes the "
             "map "
             "of all";
    return "leave " + std::string(options_.output.empty() ? "--png" : "-o") +
           " out: " + options_.accumulate +
           " keeps the sums, `ryle grid merge` makes the map of all";
  }

  // Which channels and blocks are this run's: enough channels for all shards, or blocks in turn.
  void deal() {
    const ChannelRange all = setup_.input->channels();
    channels_ = all;
    const auto n_blocks = setup_.input->blocks().size();
    const std::int64_t n = all.last - all.first, shards = options_.n_shards;
    const bool by_channel = n >= shards;
    all_channels_ = all;
    channels_ = shard_channels(all, options_.shard, shards);
    if (!by_channel && makes_products()) {
      throw ConfigError(fmt::format(
          "{} channels are fewer than {} shards: each grids a part of the samples, which makes no "
          "map; {}",
          n, shards, sums_instead()));
    }
    if (makes_products() && shards > 1 && !setup_.input->stokes().empty())
      throw ConfigError("a shard of several polarizations makes no cube with a STOKES axis; " +
                        sums_instead());
    for (std::size_t b = 0; b < n_blocks; ++b)
      if (by_channel || static_cast<std::int64_t>(b) % shards == options_.shard - 1)
        blocks_.push_back(b);
    setup_.input->choose_channels(channels_);
    summary_.n_channels = channels_.last - channels_.first;
  }

  // Parts begun by another run first, as it cut them.
  void make_parts() {
    std::int64_t next = channels_.first;
    if (checkpoint_)
      for (const ChannelRange& part : checkpoint_->parts_within(channels_)) {
        if (part.first != next) break;
        parts_.push_back(part);
        next = part.last;
      }
    // A part holds channels of one polarization: they share their weights.
    const std::int64_t together = setup_.input->max_channels_together();
    for (; next < channels_.last; next = parts_.back().last)
      parts_.push_back({next, std::min({channels_.last, next + summary_.plan.n_channels_at_a_time,
                                        (next / together + 1) * together})});
  }

  std::string chosen_rows() const {
    std::string rows;
    for (const auto& [column, value] : options_.scans.select) rows += column + "=" + value + "\n";
    return rows;
  }

  ConsumedBlock name_of(std::size_t block) {
    const GridBlock& b = setup_.input->blocks()[block];
    return {setup_.input->fingerprint(b),
            std::filesystem::path(setup_.input->path(b)).filename().string(),
            b.first,
            b.n,
            setup_.input->content(b),
            setup_.input->metadata().polarization,
            chosen_rows()};
  }

  GridRunPlan run_plan() {
    // The first file stands for its content and what was chosen from it, others for their names.
    std::string all =
        fmt::format("{} shards of channels {}:{}, {}\n", options_.n_shards, all_channels_.first,
                    all_channels_.last, setup_.input->fingerprint(setup_.input->blocks()[0]));
    for (const GridBlock& b : setup_.input->blocks())
      all += fmt::format("{} {}\n",
                         std::filesystem::path(setup_.input->path(b)).filename().string(), b.n);
    GridRunPlan plan{io::sha256_hex(all), options_.shard, options_.n_shards,
                     channels_,           all_channels_,  {}};
    for (const std::size_t block : blocks_) plan.blocks.push_back(name_of(block));
    return plan;
  }

  void make_jobs() {
    for (std::size_t p = 0; p < parts_.size(); ++p)
      for (const std::size_t block : blocks_) {
        if (checkpoint_ && checkpoint_->has(parts_[p], name_of(block))) {
          ++summary_.blocks_resumed;
          continue;
        }
        // Plans of the only block are kept from part to part.
        ChannelRange channels = parts_[p];
        jobs_.push_back({p, block, channels, !keeps_plans() || jobs_.empty() || plans_anew(p)});
      }
  }

  bool keeps_plans() const { return summary_.plan.keeps_plans; }
  // Parts of other sizes may be split over other devices, which hold the plans.
  bool plans_anew(std::size_t part) const {
    const auto size = [&](std::size_t p) { return parts_[p].last - parts_[p].first; };
    return setup_.config.implementation.starts_with("cuda") && part > 0 &&
           size(part) != size(part - 1);
  }

  void open_products() {
    MapMetadata metadata = setup_.notes.map;
    metadata.velocity_axis = options_.velocity_axis;
    metadata.frequency = setup_.input->metadata().frequency;
    metadata.history = {options_.command_line};
    const GridBlock& first = setup_.input->blocks()[0];
    products_ = std::make_unique<GridProducts>(
        GridProductOptions{options_.output, options_.picture,
                           std::filesystem::path(setup_.input->path(first)).filename().string(),
                           options_.weights, options_.noise, options_.overwrite, options_.one_file,
                           options_.precision == grid::Precision::f64, options_.n_workers},
        *setup_.cells, metadata, summary_.n_channels);
  }

  void make_gridder(std::int64_t n_channels) {
    if (gridder_ && setup_.config.n_channels == n_channels) {
      gridder_->sums().reset();
      if (response_) response_->sums().reset();
      return;
    }
    gridder_.reset();
    if (setup_.config.implementation.starts_with("cuda")) plans_.clear();
    setup_.config.n_channels = n_channels;
    gridder_ = grid::make_gridder(setup_.config, grid_cells(queue_, *setup_.cells));
    response_.reset();
    if (setup_.response) {
      grid::Config config = setup_.config;
      config.convolution = *setup_.response;
      response_ = grid::make_gridder(config, grid_cells(queue_, *setup_.cells));
    }
    setup_.notes.implementation = summary_.implementation = gridder_->implementation();
    if (checkpoint_) checkpoint_->set_implementation(summary_.implementation);
  }

  void grid_means() {
    reader_ = std::make_unique<GridReader>(*setup_.input, jobs_, copying_device());
    std::size_t job = 0;
    for (std::size_t p = 0; p < parts_.size() && !summary_.stopped; ++p) {
      const std::int64_t n = parts_[p].last - parts_[p].first;
      {
        const Stopwatch watch(summary_.geometry_s);
        make_gridder(n);
      }
      part_ = GridPart{parts_[p], {}, {}};
      sums_ = GridSums();
      if (exact_) {
        if (checkpoint_ && checkpoint_->find(parts_[p]) != nullptr) {
          part_ = *checkpoint_->find(parts_[p]);
          sums_ = checkpoint_->load(parts_[p]);
        } else {
          sums_ = GridSums(setup_.cells->n_cells(), n, setup_.identity.lobes);
          if (response_) seen_ = GridSums(setup_.cells->n_cells(), n, setup_.identity.lobes);
        }
      }
      bool fresh = true;  // the gridder holds nothing
      for (; job < jobs_.size() && jobs_[job].part == p; ++job) {
        if (stopped()) {
          summary_.stopped = true;
          break;
        }
        if (!fresh) forget_block();
        grid_block(jobs_[job]);
        fresh = false;
        show(job + 1);
      }
      finish_part(p);
    }
    summary_.read_s += reader_->read_s();
    summary_.bytes_read = setup_.input->bytes_read();
  }

  // The device that copies from the reader's buffers; -1: none, or more than is to be page-locked.
  int copying_device() const {
    constexpr std::int64_t kMaxLockedBytes = std::int64_t{512} << 20;
    const std::int64_t bytes =
        2 * 4 * summary_.plan.n_channels_at_a_time * setup_.input->max_block_samples();
    if (!setup_.config.implementation.starts_with("cuda") || bytes > kMaxLockedBytes) return -1;
    return options_.devices.empty() ? 0 : options_.devices.front();
  }

  void grid_block(const GridJob& job) {
    const GridBlock& block = setup_.input->blocks()[job.block];
    const std::int64_t n = job.channels.last - job.channels.first;
    auto data = reader_->next();
    GridTally tally;
    const std::int64_t together = std::min(block.n, gridder_->samples_together());
    reached_.clear();
    for (std::int64_t first = 0; first < block.n; first += together)
      tally.add(grid_samples(block, *data, first, std::min(together, block.n - first)));
    {
      const Stopwatch watch(summary_.grid_s);
      tally.absent = grid::count_absent(queue_, data->samples(block.n), block.n, n);
    }
    part_.tally.add(tally);
    ++summary_.blocks_done;
    summary_.values_gridded += block.n * n;
    reader_->give_back(std::move(data));
    if (!exact_) return;
    {
      const Stopwatch watch(summary_.add_s);
      sums_.add(queue_, gridder_->sums(), reached_);
      if (response_) seen_.add(queue_, response_->sums(), reached_);
    }
    if (checkpoint_) {
      part_.blocks.push_back(name_of(job.block));
      const Stopwatch watch(summary_.write_s);
      checkpoint_->offer(part_, sums_);
    }
  }

  // Samples of a block with one plan.
  GridTally grid_samples(const GridBlock& block, const GridBlockData& data, std::int64_t first,
                         std::int64_t n) {
    std::shared_ptr<const grid::GeometryPlan>& plan = plans_[keeps_plans() ? first : 0];
    if (!keeps_plans() || !plan) {
      const Stopwatch watch(summary_.geometry_s);
      plan.reset();
      plan = gridder_->plan(queue_, setup_.directions(queue_, block, data, first, n));
    }
    const Stopwatch watch(summary_.grid_s);
    const grid::Samples samples = data.samples(block.n, first);
    gridder_->execute(queue_, *plan, samples);
#ifdef RYLE_HAVE_CUDA
    summary_.transfer_s += grid::cuda_transfer_s(*gridder_);
#endif
    // The same support, the same plan.
    if (response_) response_->execute(queue_, *plan, samples);
    if (exact_) reach(gridder_->cells_of(*plan));
    const grid::PlanMetadata metadata = grid::metadata(*plan);
    return {metadata.n_samples,
            metadata.bad_positions,
            metadata.out_of_reach,
            metadata.n_candidates,
            {}};
  }

  // Of several plans of a block the cells of all.
  void reach(std::vector<grid::CellRange> cells) {
    if (reached_.empty()) {
      reached_ = std::move(cells);
      return;
    }
    reached_.insert(reached_.end(), cells.begin(), cells.end());
    std::sort(reached_.begin(), reached_.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::size_t n = 0;
    for (const grid::CellRange& r : reached_) {
      if (n > 0 && r.first <= reached_[n - 1].last)
        reached_[n - 1].last = std::max(reached_[n - 1].last, r.last);
      else
        reached_[n++] = r;
    }
    reached_.resize(n);
  }

  // Thousands of small files touch a few cells each.
  void forget_block() {
    for (const grid::CellRange& r : reached_) {
      gridder_->sums().reset(r.first, r.last);
      if (response_) response_->sums().reset(r.first, r.last);
    }
  }

  void finish_part(std::size_t p) {
    if (p == 0) {
      note_positions(part_.tally);
      const GridTally& t = part_.tally;
      if (makes_products() && !summary_.stopped && t.bad_positions + t.out_of_reach == t.n_samples)
        throw ConfigError(fmt::format(
            "none of the {} samples is within reach of the map ({}); --target auto makes one that "
            "holds them",
            t.n_samples, summary_.projection));
    }
    grid::AbsentCounts& absent = summary_.absent;
    absent.nan_value += part_.tally.absent.nan_value;
    absent.inf_value += part_.tally.absent.inf_value;
    absent.bad_weight += part_.tally.absent.bad_weight;
    absent.flagged += part_.tally.absent.flagged;
    if (checkpoint_) {
      const Stopwatch watch(summary_.write_s);
      checkpoint_->save(part_, sums_);
    }
    if (summary_.stopped || !products_) return;
    if (exact_) {
      const Stopwatch watch(summary_.add_s);
      sums_.store(queue_, gridder_->sums());
      if (response_) seen_.store(queue_, response_->sums());
    }
    append_planes(queue_, gridder_->sums(), response_ ? &response_->sums() : nullptr,
                  options_.finish, setup_.notes.map.area_factor, parts_[p].last - parts_[p].first,
                  *products_);
  }

  void note_positions(const GridTally& tally) {
    summary_.n_samples = tally.n_samples;
    summary_.bad_positions = tally.bad_positions;
    summary_.out_of_reach = tally.out_of_reach;
    summary_.n_candidates = tally.n_candidates;
  }

  void grid_medians() {
    OrderRun run(queue_, options_, setup_, parts_, summary_);
    run.grid([&](std::vector<grid::Plane> planes) { products_->append(std::move(planes)); },
             [&](double done) { show_share(done); });
  }

  void show(std::size_t jobs_done) {
    show_share(static_cast<double>(jobs_done) / static_cast<double>(jobs_.size()));
  }
  void show_share(double share) {
    if (!options_.on_progress) return;
    const double since_s = seconds_since(started_);
    options_.on_progress({"grid", share, static_cast<double>(summary_.values_gridded) / since_s,
                          share > 0 ? since_s * (1 - share) / share : 0});
  }

  void finish() {
    if (checkpoint_) summary_.missing = checkpoint_->unfinished_runs();
    if (products_) {
      if (options_.on_progress) options_.on_progress({"write", 1, 0, 0});
      products_->finish(grid_history(summary_, options_.files), summary_);
    }
    if (checkpoint_) {
      if (options_.checkpoint.empty())
        summary_.products.push_back(options_.accumulate);
      else
        checkpoint_->remove();
    }
  }

  const GridOptions& options_;
  Queue queue_;
  std::future<void> device_started_;
  GridSummary summary_;
  GridSetup setup_;
  bool exact_ = false;
  ChannelRange channels_, all_channels_;  ///< of this shard; of all
  std::vector<std::size_t> blocks_;
  std::vector<ChannelRange> parts_;
  std::vector<GridJob> jobs_;
  std::optional<GridCheckpoint> checkpoint_;
  std::unique_ptr<grid::Gridder> gridder_, response_;
  std::map<std::int64_t, std::shared_ptr<const grid::GeometryPlan>> plans_;  ///< by first sample
  GridPart part_;
  std::vector<grid::CellRange> reached_;  ///< by the block in the gridder
  GridSums sums_, seen_;                  ///< seen_: of response_
  std::unique_ptr<GridProducts> products_;
  std::unique_ptr<GridReader> reader_;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace

GridSummary grid_scans(const GridOptions& options) {
  check_grid_options(options);
  GridRun run(options);
  run.plan();
  if (options.on_plan) options.on_plan(run.memory_plan());
  run.run();
  return run.take();
}

GridSummary plan_grid(const GridOptions& options) {
  GridRun run(options);
  run.plan();
  return run.take();
}

}  // namespace ryle::pipeline
