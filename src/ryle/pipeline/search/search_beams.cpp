// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_beams.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle::pipeline {
namespace {

Vector3 unit_vector(const SkyDirection& d) {
  return {std::cos(d.dec_rad) * std::cos(d.ra_rad), std::cos(d.dec_rad) * std::sin(d.ra_rad),
          std::sin(d.dec_rad)};
}

double distance(const Vector3& a, const Vector3& b) {
  return std::sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) +
                   (a[2] - b[2]) * (a[2] - b[2]));
}

double width_of_event(const SearchEvent& e) {
  return std::max(static_cast<double>(e.cluster.best.width), e.pulse.whole_fwhm_samples());
}

}  // namespace

std::vector<std::vector<std::int64_t>> beam_neighbours(const std::vector<SkyDirection>& positions,
                                                       double separation_rad) {
  std::vector<Vector3> units;
  for (const auto& p : positions) units.push_back(unit_vector(p));
  const double chord = 2 * std::sin(0.5 * std::clamp(separation_rad, 0.0, kPi));
  std::vector<std::vector<std::int64_t>> out(positions.size());
  for (std::size_t a = 0; a < units.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (distance(units[a], units[b]) <= chord) {
        out[a].push_back(static_cast<std::int64_t>(b));
        out[b].push_back(static_cast<std::int64_t>(a));
      }
  for (auto& list : out) std::sort(list.begin(), list.end());
  return out;
}

double usual_adjacency(const std::vector<SkyDirection>& positions) {
  std::vector<Vector3> units;
  for (const auto& p : positions) units.push_back(unit_vector(p));
  double minimum = 2;
  bool any = false;
  for (std::size_t a = 0; a < units.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const double d = distance(units[a], units[b]);
      if (d < 1e-9) continue;  // the same direction, or none was given
      any = true;
      minimum = std::min(minimum, d);
    }
  return any ? 1.5 * 2 * std::asin(0.5 * minimum) : 0;
}

BeamGrouper::BeamGrouper(const BeamGroupConfig& config, const search::Band& band,
                         std::int64_t max_width)
    : config_(config),
      middle_per_dm_(band.delay_samples(band.n_channels() / 2, 1)),
      sweep_per_dm_(band.sweep_samples_per_dm()),
      // Refinement moves a pulse by a part of its boxcar, and friends are one boxcar apart.
      reach_(4.0 * static_cast<double>(max_width)) {
  const auto fits = [&](std::size_t n) {
    return n == 0 || n == static_cast<std::size_t>(config.n_beams);
  };
  if (config.n_beams < 1 || !fits(config.neighbours.size()) || !fits(config.positions.size()) ||
      !fits(config.incoherent.size()))
    throw ConfigError("search: neighbours or positions of another number of beams than " +
                      std::to_string(config.n_beams));
  n_coherent_ =
      config.n_beams - std::count_if(config.incoherent.begin(), config.incoherent.end(),
                                     [](std::uint8_t is_incoherent) { return is_incoherent != 0; });
}

void BeamGrouper::add(std::int64_t beam, std::vector<SearchEvent>& events) {
  for (auto& e : events) {
    // Time and DM errors are correlated; at mid band the time is what the data fix best.
    const double middle = e.pulse.tick + e.pulse.dm_pc_cm3 * middle_per_dm_;
    waiting_.push_back({beam, middle, std::move(e)});
  }
  events.clear();
}

bool BeamGrouper::friends(const Waiting& a, const Waiting& b) const {
  const double width = std::max(width_of_event(a.event), width_of_event(b.event));
  const double d_dm = std::abs(a.event.pulse.dm_pc_cm3 - b.event.pulse.dm_pc_cm3);
  return std::abs(a.middle - b.middle) <= width + 1 && d_dm * sweep_per_dm_ <= 2 * width + 1;
}

bool BeamGrouper::touch(std::int64_t a, std::int64_t b) const {
  if (a == b) return true;
  if (config_.neighbours.empty()) return false;
  const auto& list = config_.neighbours[a];
  return std::binary_search(list.begin(), list.end(), b);
}

bool BeamGrouper::incoherent(const Waiting* w) const {
  return !config_.incoherent.empty() && config_.incoherent[w->beam] != 0;
}

std::int64_t BeamGrouper::n_groups(const std::vector<std::int64_t>& beams) const {
  std::vector<std::int64_t> left = beams, open;
  std::int64_t n = 0;
  while (!left.empty()) {
    ++n;
    open.push_back(left.back());
    left.pop_back();
    while (!open.empty()) {
      const std::int64_t beam = open.back();
      open.pop_back();
      const auto mine =
          std::partition(left.begin(), left.end(), [&](std::int64_t b) { return !touch(beam, b); });
      open.insert(open.end(), mine, left.end());
      left.erase(mine, left.end());
    }
  }
  return n;
}

// Of few beams all, of 8 and more one may be missing, of 16 and more half of them. Beams that all
// touch each other may see one source.
bool BeamGrouper::everywhere(const std::vector<std::int64_t>& beams) const {
  const std::int64_t missing = n_coherent_ < 8 ? 0 : n_coherent_ < 16 ? 1 : n_coherent_ / 2;
  if (n_coherent_ < 3 || std::ssize(beams) < n_coherent_ - missing) return false;
  for (const std::int64_t a : beams)
    for (const std::int64_t b : beams)
      if (!touch(a, b)) return true;
  return false;
}

BeamEvent BeamGrouper::merged(std::vector<Waiting*>& group) const {
  std::sort(group.begin(), group.end(), [&](const Waiting* a, const Waiting* b) {
    return std::make_tuple(incoherent(a), -a->event.pulse.snr, a->event.pulse.tick, a->beam) <
           std::make_tuple(incoherent(b), -b->event.pulse.snr, b->event.pulse.tick, b->beam);
  });
  BeamEvent out;
  out.beam = group.front()->beam;
  std::vector<std::int64_t> coherent, strong;
  double weight = 0;
  Vector3 mean{};
  for (const Waiting* w : group) {
    out.seen.push_back(w->beam);
    if (incoherent(w)) continue;
    coherent.push_back(w->beam);
    // A bright source is in the side lobes of all beams, weaker there.
    if (w->event.pulse.snr >= 0.25 * group.front()->event.pulse.snr) strong.push_back(w->beam);
    if (config_.positions.empty() || !touch(out.beam, w->beam)) continue;
    const Vector3 u = unit_vector(config_.positions[w->beam]);
    for (std::size_t k = 0; k < 3; ++k) mean[k] += w->event.pulse.snr * u[k];
    weight += w->event.pulse.snr;
  }
  const auto once = [](std::vector<std::int64_t>& beams) {
    std::sort(beams.begin(), beams.end());
    beams.erase(std::unique(beams.begin(), beams.end()), beams.end());
  };
  once(out.seen);
  once(coherent);
  once(strong);
  out.n_groups = std::max<std::int64_t>(1, n_groups(coherent));
  out.multibeam = out.n_groups > config_.max_beams || everywhere(strong);
  const Waiting* best = group.front();
  for (const Waiting* w : group)
    // Twice what a source in the strongest beam could give: it comes in elsewhere.
    if (incoherent(w) && !incoherent(best) && config_.incoherent_ratio > 0 &&
        w->event.pulse.snr > 2 * config_.incoherent_ratio * best->event.pulse.snr)
      out.multibeam = true;
  if (weight > 0) {
    out.has_position = true;
    out.position.ra_rad = std::atan2(mean[1], mean[0]);
    if (out.position.ra_rad < 0) out.position.ra_rad += 2 * kPi;
    out.position.dec_rad = std::atan2(mean[2], std::hypot(mean[0], mean[1]));
  }
  out.event = std::move(group.front()->event);
  return out;
}

void BeamGrouper::take_complete(std::int64_t tick, std::vector<BeamEvent>& out) {
  if (waiting_.empty()) return;
  const auto limit = static_cast<double>(tick);
  std::sort(waiting_.begin(), waiting_.end(), [](const Waiting& a, const Waiting& b) {
    return std::make_tuple(a.middle, a.beam, a.event.cluster.best.trial) <
           std::make_tuple(b.middle, b.beam, b.event.cluster.best.trial);
  });
  std::vector<std::size_t> parent(waiting_.size());
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  const auto root = [&](std::size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  double widest = 0;
  for (const auto& w : waiting_) widest = std::max(widest, width_of_event(w.event));
  for (std::size_t i = 0; i < waiting_.size() && config_.n_beams > 1; ++i)
    for (std::size_t j = i; j-- > 0 && waiting_[i].middle - waiting_[j].middle <= widest + 1;)
      if (waiting_[i].beam != waiting_[j].beam && friends(waiting_[i], waiting_[j]))
        parent[root(i)] = root(j);
  std::vector<std::vector<Waiting*>> groups(waiting_.size());
  std::vector<char> open(waiting_.size(), 0);
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    groups[root(i)].push_back(&waiting_[i]);
    const auto& e = waiting_[i].event;
    const double last = std::max(e.pulse.tick, e.cluster.best.center());
    if (config_.n_beams > 1 && last + reach_ >= limit) open[root(i)] = 1;
  }
  const auto first_new = static_cast<std::ptrdiff_t>(out.size());
  std::vector<char> done(waiting_.size(), 0);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].empty() || open[i] != 0) continue;
    for (const Waiting* w : groups[i]) done[w - waiting_.data()] = 1;
    out.push_back(merged(groups[i]));
  }
  std::vector<Waiting> rest;
  for (std::size_t i = 0; i < waiting_.size(); ++i)
    if (done[i] == 0) rest.push_back(std::move(waiting_[i]));
  waiting_ = std::move(rest);
  std::sort(out.begin() + first_new, out.end(), [](const BeamEvent& a, const BeamEvent& b) {
    return std::make_tuple(a.event.pulse.tick, a.beam) <
           std::make_tuple(b.event.pulse.tick, b.beam);
  });
}

void BeamGrouper::take_all(std::vector<BeamEvent>& out) {
  take_complete(std::numeric_limits<std::int64_t>::max(), out);
}

}  // namespace ryle::pipeline
