// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/cluster.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"

namespace ryle::search {
namespace {

// A cell as one number: level, time, sweep, and whether it lists the cells one level finer.
using Key = std::uint64_t;

struct Place {
  std::int64_t time = 0, sweep = 0;
  std::int32_t level = 0;
};

Key key_of(const Place& p, bool finer = false) {
  constexpr std::int64_t kBias = std::int64_t{1} << 38;  // times before the file
  return static_cast<Key>(p.time + kBias) << 25 | (static_cast<Key>(p.sweep + 1) & 0xfffff) << 5 |
         static_cast<Key>(p.level) << 1 | (finer ? 1u : 0u);
}

/// Open addressing, keys to small numbers; grows, never shrinks; clear() keeps the memory.
class Table {
 public:
  Table() { resize(1024); }
  /// The slot's value, -1 when new.
  std::int32_t& at(Key key) {
    if (2 * (used_ + 1) > keys_.size()) grow();
    const std::size_t i = find(key);
    if (values_[i] == kEmpty) {
      keys_[i] = key;
      values_[i] = -1;
      ++used_;
    }
    return values_[i];
  }
  std::int32_t get(Key key) const {
    const std::int32_t value = values_[find(key)];
    return value == kEmpty ? -1 : value;
  }
  void clear() {
    std::fill(values_.begin(), values_.end(), kEmpty);
    used_ = 0;
  }

 private:
  static constexpr std::int32_t kEmpty = -2;
  std::size_t find(Key key) const {
    std::size_t i = mix64(key) & (keys_.size() - 1);
    while (values_[i] != kEmpty && keys_[i] != key) i = (i + 1) & (keys_.size() - 1);
    return i;
  }
  void resize(std::size_t n) {
    keys_.assign(n, 0);
    values_.assign(n, kEmpty);
    used_ = 0;
  }
  void grow() {
    auto keys = std::move(keys_);
    auto values = std::move(values_);
    resize(2 * keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (values[i] != kEmpty) at(keys[i]) = values[i];
  }
  std::vector<Key> keys_;
  std::vector<std::int32_t> values_;
  std::size_t used_ = 0;
};

bool better(const Token& a, const Token& b) {
  if (a.snr != b.snr) return a.snr > b.snr;
  return std::tie(a.start, a.trial, a.width) < std::tie(b.start, b.trial, b.width);
}

void merge(Cluster& into, const Cluster& other) {
  if (better(other.best, into.best)) into.best = other.best;
  into.n_tokens += other.n_tokens;
  into.begin = std::min(into.begin, other.begin);
  into.end = std::max(into.end, other.end);
  into.lowest_trial = std::min(into.lowest_trial, other.lowest_trial);
  into.highest_trial = std::max(into.highest_trial, other.highest_trial);
}

}  // namespace

struct Clusterer::Content {
  struct Cell {
    Place place;
    std::int32_t parent;  // union-find
    std::int32_t next;    // in the list of the coarser cell
    double open_until;    // a token centered before this may still join
    Cluster sum;          // of the whole cluster at the root
  };
  std::vector<double> sweep;
  double widest_step = 0;
  Table table;
  std::vector<Cell> cells;

  static double side(std::int32_t level) { return std::ldexp(4.0, 2 * level); }
  double sweep_side(std::int32_t level) const { return std::max(side(level), 2 * widest_step); }
  Place place_of(const Token& t) const {
    const std::int32_t level = (std::bit_width(static_cast<std::uint32_t>(t.width)) - 1) / 2;
    return {static_cast<std::int64_t>(std::floor(t.center() / side(level))),
            static_cast<std::int64_t>(sweep[static_cast<std::size_t>(t.trial)] / sweep_side(level)),
            level};
  }
  /// The cell one level coarser that holds the middle of a cell.
  Place coarser(const Place& p) const {
    const double middle = (static_cast<double>(p.sweep) + 0.5) * sweep_side(p.level);
    return {p.time >> 2, static_cast<std::int64_t>(middle / sweep_side(p.level + 1)), p.level + 1};
  }

  std::int32_t root(std::int32_t i) {
    while (cells[static_cast<std::size_t>(i)].parent != i) {
      auto& parent = cells[static_cast<std::size_t>(i)].parent;
      parent = cells[static_cast<std::size_t>(parent)].parent;
      i = parent;
    }
    return i;
  }
  void join(std::int32_t a, std::int32_t b) {
    a = root(a);
    b = root(b);
    if (a == b) return;
    Cell& keep = cells[static_cast<std::size_t>(std::min(a, b))];
    Cell& gone = cells[static_cast<std::size_t>(std::max(a, b))];
    gone.parent = std::min(a, b);
    keep.open_until = std::max(keep.open_until, gone.open_until);
    merge(keep.sum, gone.sum);
  }

  template <class Body>
  static void for_neighbours(const Place& p, const Body& body) {
    for (std::int64_t u = -1; u <= 1; ++u)
      for (std::int64_t v = -1; v <= 1; ++v) body(Place{p.time + u, p.sweep + v, p.level});
  }

  void list_in_coarser(std::int32_t index) {
    Cell& cell = cells[static_cast<std::size_t>(index)];
    std::int32_t& head = table.at(key_of(coarser(cell.place), true));
    cell.next = head;
    head = index;
  }

  /// Links a new cell with those around it, of its own, the finer and the coarser level.
  void connect(std::int32_t index) {
    const Place own = cells[static_cast<std::size_t>(index)].place;
    for_neighbours(own, [&](const Place& p) {
      if (const std::int32_t other = table.get(key_of(p)); other >= 0) join(index, other);
      const std::int32_t head = table.get(key_of(p, true));
      for (std::int32_t fine = head; fine >= 0; fine = cells[static_cast<std::size_t>(fine)].next)
        join(index, fine);
      // They are one set now: the next cell needs to join one of them only.
      if (head >= 0) cells[static_cast<std::size_t>(head)].next = -1;
    });
    for_neighbours(coarser(own), [&](const Place& p) {
      if (const std::int32_t other = table.get(key_of(p)); other >= 0) join(index, other);
    });
    list_in_coarser(index);
  }

  void insert(const Token& t) {
    const Cluster single{t, 1, t.start, t.start + t.width, t.trial, t.trial};
    const Place place = place_of(t);
    std::int32_t& slot = table.at(key_of(place));
    if (slot >= 0) {
      merge(cells[static_cast<std::size_t>(root(slot))].sum, single);
      return;
    }
    const auto index = static_cast<std::int32_t>(cells.size());
    slot = index;
    // The farthest cell that may still reach this one is a coarser one, two cells on.
    const double end = (static_cast<double>(place.time) + 1) * side(place.level);
    cells.push_back({place, index, -1, end + 2 * side(place.level + 1), single});
    connect(index);
  }

  /// Keeps the cells of clusters that are still open.
  void rebuild(const std::vector<char>& keep) {
    std::vector<std::int32_t> renumbered(cells.size(), -1);
    std::vector<Cell> rest;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!keep[static_cast<std::size_t>(root(static_cast<std::int32_t>(i)))]) continue;
      renumbered[i] = static_cast<std::int32_t>(rest.size());
      rest.push_back(cells[i]);
    }
    for (auto& cell : rest) {
      cell.parent = renumbered[static_cast<std::size_t>(root(cell.parent))];
    }
    cells = std::move(rest);
    table.clear();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      table.at(key_of(cells[i].place)) = static_cast<std::int32_t>(i);
      list_in_coarser(static_cast<std::int32_t>(i));
    }
  }

  void close(double before, std::vector<Cluster>& closed) {
    std::vector<char> keep(cells.size(), 0);
    const std::size_t first = closed.size();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (cells[i].parent != static_cast<std::int32_t>(i)) continue;
      keep[i] = cells[i].open_until >= before ? 1 : 0;
      if (!keep[i]) closed.push_back(cells[i].sum);
    }
    std::sort(closed.begin() + static_cast<std::ptrdiff_t>(first), closed.end(),
              [](const Cluster& a, const Cluster& b) {
                return std::tie(a.best.start, a.best.trial, a.best.width) <
                       std::tie(b.best.start, b.best.trial, b.best.width);
              });
    if (closed.size() > first) rebuild(keep);
  }
};

Clusterer::Clusterer(const ClusterConfig& config) : content_(std::make_unique<Content>()) {
  if (config.sweep_samples.empty()) throw ConfigError("clusters: no trials");
  content_->sweep = config.sweep_samples;
  for (std::size_t k = 1; k < config.sweep_samples.size(); ++k)
    content_->widest_step =
        std::max(content_->widest_step, config.sweep_samples[k] - config.sweep_samples[k - 1]);
}
Clusterer::~Clusterer() = default;

void Clusterer::add(std::span<const Token> tokens) {
  for (const Token& t : tokens) content_->insert(t);
}
void Clusterer::close_before(std::int64_t tick, std::vector<Cluster>& closed) {
  content_->close(static_cast<double>(tick), closed);
}
void Clusterer::close_all(std::vector<Cluster>& closed) {
  content_->close(std::numeric_limits<double>::infinity(), closed);
}
std::int64_t Clusterer::earliest_open() const {
  std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
  for (const auto& cell : content_->cells) earliest = std::min(earliest, cell.sum.begin);
  return earliest;
}
std::int64_t Clusterer::n_open_cells() const {
  return static_cast<std::int64_t>(content_->cells.size());
}

}  // namespace ryle::search
