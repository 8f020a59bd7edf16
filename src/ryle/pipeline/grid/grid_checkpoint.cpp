// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/grid/grid_checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "ryle/core/error.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"

namespace ryle::pipeline {
namespace {

bool same_range(ChannelRange a, ChannelRange b) { return a.first == b.first && a.last == b.last; }

}  // namespace

GridCheckpoint::GridCheckpoint(const GridOptions& options, GridIdentity identity, GridNotes notes)
    : path_(options.accumulate.empty() ? options.checkpoint : options.accumulate),
      resume_(options.resume),
      interval_s_(options.checkpoint_interval_s),
      identity_(std::move(identity)),
      notes_(std::move(notes)) {
  const std::lock_guard lock(grid_file_mutex());
  if (!std::filesystem::exists(path_)) return;
  if (options.accumulate.empty() && !resume_) {
    if (options.overwrite) return;
    throw ConfigError(path_ +
                      ": sums of a run that did not end; --resume goes on from them, --overwrite "
                      "begins again");
  }
  file_.emplace(path_);
  if (const std::string what = difference(file_->identity(), identity_); !what.empty())
    throw ConfigError(path_ + " holds sums of another map: " + what);
  notes_.runs = joined(file_->notes().runs, notes_.runs);
}

std::vector<std::string> GridCheckpoint::unfinished_runs() const {
  return file_ ? unfinished(notes_.runs, file_->parts()) : std::vector<std::string>();
}

void GridCheckpoint::set_implementation(const std::string& name) {
  notes_.implementation = name;
  if (!file_ || file_->notes().implementation == name) return;
  const std::string w = path_ + " was made by grid/" + file_->notes().implementation +
                        ", this run is grid/" + name + ": the last bits depend on which";
  if (std::find(warnings_.begin(), warnings_.end(), w) == warnings_.end()) warnings_.push_back(w);
}

std::size_t GridCheckpoint::index(ChannelRange channels) const {
  if (!file_) return 0;
  std::size_t i = 0;
  while (i < file_->parts().size() && !same_range(file_->parts()[i].channels, channels)) ++i;
  return i;
}

std::vector<ChannelRange> GridCheckpoint::parts_within(ChannelRange channels) const {
  std::vector<ChannelRange> found;
  if (!file_) return found;
  for (const GridPart& part : file_->parts()) {
    const ChannelRange p = part.channels;
    if (p.last <= channels.first || p.first >= channels.last) continue;
    if (p.first < channels.first || p.last > channels.last)
      throw ConfigError(fmt::format(
          "{} holds channels {}:{} together, this run is about {}:{}; all or none of them work",
          path_, p.first, p.last, channels.first, channels.last));
    found.push_back(p);
  }
  std::sort(found.begin(), found.end(),
            [](ChannelRange a, ChannelRange b) { return a.first < b.first; });
  std::int64_t next = channels.first;
  for (const ChannelRange& p : found) {
    if (p.first != next)
      throw ConfigError(
          fmt::format("{} holds channels {}:{} but not {}:{} before them; --channels "
                      "{}:{} grids those",
                      path_, p.first, p.last, next, p.first, next, p.first));
    next = p.last;
  }
  return found;
}

const GridPart* GridCheckpoint::find(ChannelRange channels) const {
  if (!file_ || index(channels) == file_->parts().size()) return nullptr;
  return &file_->parts()[index(channels)];
}

GridSums GridCheckpoint::load(ChannelRange channels) const {
  const std::lock_guard lock(grid_file_mutex());
  return file_->load(index(channels), channels);
}

bool GridCheckpoint::has(ChannelRange channels, const ConsumedBlock& block) const {
  const GridPart* part = find(channels);
  if (part == nullptr) return false;
  const ConsumedBlock* there = part->overlap({block});
  if (there == nullptr) return false;
  if (there->first != block.first || there->n != block.n)
    throw ConfigError(fmt::format(
        "{} holds samples {}:{} of {}, which are no block of this run ({}:{}); the same "
        "--block-samples would do",
        path_, there->first, there->first + there->n, block.name, block.first,
        block.first + block.n));
  if (!resume_)
    throw ConfigError(fmt::format(
        "{} holds samples {}:{} of {} already: they would count twice; --resume leaves them out",
        path_, block.first, block.first + block.n, block.name));
  return true;
}

void GridCheckpoint::offer(const GridPart& part, const GridSums& sums) {
  if (seconds_since(last_) >= interval_s_) save(part, sums);
}

void GridCheckpoint::save(const GridPart& part, const GridSums& sums) {
  if (same_range(saved_, part.channels) && saved_blocks_ == part.blocks.size()) return;
  const std::lock_guard lock(grid_file_mutex());
  {
    GridStateWriter writer(path_, identity_, notes_);
    const std::size_t own = index(part.channels);
    const std::size_t n = file_ ? file_->parts().size() : 0;
    for (std::size_t p = 0; p < n; ++p) {
      if (p == own)
        writer.add(part, sums);
      else
        writer.add(*file_, p);
    }
    if (own == n) writer.add(part, sums);
    file_.reset();
    writer.publish();
  }
  file_.emplace(path_);
  saved_ = part.channels;
  saved_blocks_ = part.blocks.size();
  last_ = std::chrono::steady_clock::now();
}

void GridCheckpoint::remove() {
  file_.reset();
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace ryle::pipeline
