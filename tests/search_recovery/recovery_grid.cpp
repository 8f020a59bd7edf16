// SPDX-License-Identifier: BSD-3-Clause
// T-DD-16: pulses of known S/N through the whole search, without noise and with it; false alarms.
// Prints the tables of the page and of decision 0023; exit status 1 when a bound is missed.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "ryle/device/buffer.hpp"
#include "ryle/pipeline/search/search_stream.hpp"
#include "ryle/plot/picture.hpp"
#include "tests/search_recovery/recovery.hpp"

namespace ryle::test {
namespace {

constexpr std::array<double, 9> kDms{0.5, 1, 2, 5, 10, 20, 40, 60, 86.4};
constexpr std::array<double, 9> kWidthsMs{0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 20};
constexpr double kSnr = 20;
constexpr std::int64_t kMaxWidth = 512, kGridBlock = 8192;

/// What is searched: codes of so many bits, by exact sums or by the tree.
struct Variant {
  const char* name;
  int bits;
  const char* implementation;
};
constexpr std::array<Variant, 5> kVariants{{{"8 bit", 8, "auto"},
                                            {"4 bit", 4, "auto"},
                                            {"2 bit", 2, "auto"},
                                            {"1 bit", 1, "auto"},
                                            {"8 bit, tree", 8, "fdmt"}}};

struct Options {
  int phases = 4, seeds = 1, fewer_seeds = 1;
  int n_threads = 1;
  int device = -1;       ///< that searches; -1 = the cores
  double limit_s = 1e9;  ///< nothing is begun after it
  std::string picture;
  std::string results;  ///< what is in this file is not done again; "" = none
};

/// body(thread, 0 .. n - 1) on several threads; results must not depend on their order.
void in_parallel(int n_threads, std::size_t n,
                 const std::function<void(std::size_t, std::size_t)>& body) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (int k = 0; k < n_threads; ++k)
    threads.emplace_back([&, k] {
      for (std::size_t i = next++; i < n; i = next++) body(static_cast<std::size_t>(k), i);
    });
}

/// Pulses of one job: every fourth of 16 phases, or whatever fewer there are.
constexpr int kPhasesPerJob = 4;

struct Case {
  std::size_t width;
  Injection pulse;
};

struct Found {
  double times = 0, boxcar = 0, refined = 0, late = 0, dm_off = 0;
};

struct PulseList {
  std::vector<Case> cases;
  std::int64_t n_samples = 0;
};
/// Pulses of one DM one after another: 1200 samples and 12 widths apart.
PulseList pulse_list(const search::Band& band, double dm, int phases, int part) {
  PulseList list;
  const int n_parts = std::max(1, phases / kPhasesPerJob);
  double tick = 4000;
  for (std::size_t w = 0; w < kWidthsMs.size(); ++w) {
    for (int phase = part; phase < phases; phase += n_parts) {
      Case c{w, {}};
      c.pulse.fwhm = kWidthsMs[w] * 1e-3 / band.sample_interval_s;
      c.pulse.dm = dm;
      tick += 6 * c.pulse.fwhm + 1200;
      c.pulse.tick = std::floor(tick) + static_cast<double>(phase) / phases;
      list.cases.push_back(c);
      tick += 6 * c.pulse.fwhm;
    }
  }
  list.n_samples = static_cast<std::int64_t>(tick + band.delay_samples(0, dm)) + kGridBlock;
  return list;
}

/// What pulses add to every channel, for all seeds and bits.
struct Signal {
  struct Piece {
    std::int64_t first, n, at;  // samples; in values
  };
  PulseList list;
  std::vector<Piece> pieces;  // [case][channel]
  std::vector<float> values;
};

Signal make_signal(const search::Band& band, const PulseList& list) {
  Signal s;
  s.list = list;
  for (const Case& k : list.cases) {
    double squares = 0;
    const std::size_t begin = s.values.size();
    for (std::int64_t c = 0; c < band.n_channels(); ++c) {
      Signal::Piece piece{0, 0, std::ssize(s.values)};
      k.pulse.walk(band, c, [&](std::int64_t t, double p) {
        if (piece.n++ == 0) piece.first = t;
        s.values.push_back(static_cast<float>(p));
        squares += p * p;
      });
      s.pieces.push_back(piece);
    }
    const auto amplitude = static_cast<float>(kSnr / std::sqrt(squares));
    for (std::size_t i = begin; i < s.values.size(); ++i) s.values[i] *= amplitude;
  }
  return s;
}

/// Signals of all DMs, made when first asked for.
class Signals {
 public:
  Signals(const search::Band& band, int phases)
      : band_(band), phases_(phases), made_(kDms.size() * kMaxParts) {}
  const Signal& of(std::size_t dm, int part) {
    Entry& e = made_[dm * kMaxParts + static_cast<std::size_t>(part)];
    std::call_once(
        e.once, [&] { e.signal = make_signal(band_, pulse_list(band_, kDms[dm], phases_, part)); });
    return e.signal;
  }

 private:
  static constexpr std::size_t kMaxParts = 64;
  struct Entry {
    std::once_flag once;
    Signal signal;
  };
  const search::Band& band_;
  int phases_;
  std::vector<Entry> made_;
};

pipeline::BeamSearchConfig search_config(const search::Band& band) {
  pipeline::BeamSearchConfig config;
  search::DmPlanConfig plan;  // the default one
  plan.dm_max = 100;
  config.chain.band = band;
  config.chain.dms = search::dm_trials(band, plan);
  config.chain.normalize.n_channels = band.n_channels();
  config.chain.max_width = kMaxWidth;
  config.chain.block_samples = kGridBlock;
  config.n_workers = 1;
  return config;
}

/// What one thread searches with: plans and memory that take longer to make than a block.
class Bench {
 public:
  Bench(const search::Band& band, int device)
      : block_(band.n_channels() * kGridBlock, MemorySpace::pinned), config_(search_config(band)) {
    if (device >= 0) config_.devices = {device};
  }
  float* block() { return block_.data(); }
  /// As new: the one before it was finished.
  pipeline::BeamSearch& search(const std::string& implementation) {
    auto& search = searches_[implementation];
    if (!search) {
      config_.chain.implementation = implementation;
      search = std::make_unique<pipeline::BeamSearch>(config_);
    }
    return *search;
  }

 private:
  Buffer<float> block_;  // [channel][kGridBlock]
  pipeline::BeamSearchConfig config_;
  std::map<std::string, std::unique_ptr<pipeline::BeamSearch>> searches_;
};

/// One block of noise and pulses, as codes. @shape data [channel][kGridBlock]
void make_block(const search::Band& band, const Signal* signal, const NoiseTable& table,
                std::uint64_t seed, std::int64_t first, int bits, float* data) {
  const std::size_t n_cases = signal != nullptr ? signal->list.cases.size() : 0;
  for (std::int64_t c = 0; c < band.n_channels(); ++c) {
    float* row = data + c * kGridBlock;
    table.fill(row, kGridBlock,
               combine(seed, static_cast<std::uint64_t>(c), static_cast<std::uint64_t>(first)));
    for (std::size_t k = 0; k < n_cases; ++k) {
      const auto& piece = signal->pieces[k * static_cast<std::size_t>(band.n_channels()) +
                                         static_cast<std::size_t>(c)];
      const std::int64_t from = std::max(first, piece.first);
      const std::int64_t to = std::min(first + kGridBlock, piece.first + piece.n);
      const float* value = signal->values.data() + piece.at - piece.first;
      for (std::int64_t t = from; t < to; ++t) row[t - first] += value[t];
    }
    quantize(row, kGridBlock, bits);
  }
}

/// Gives every event to its pulse. @return events that belong to none
int match(const search::Band& band, const std::vector<Case>& cases,
          const std::vector<pipeline::BeamEvent>& events, std::vector<Found>& found) {
  int strangers = 0;
  const double per_dm = band.sweep_samples_per_dm();
  for (const auto& e : events) {
    const auto& p = e.event.pulse;
    double nearest = 1e30;
    std::size_t best = 0;
    for (std::size_t k = 0; k < cases.size(); ++k) {
      const Injection& i = cases[k].pulse;
      // Middle of the band: time and DM of a noisy fit are correlated about it.
      const double mid = p.tick - i.tick + 0.5 * (p.dm_pc_cm3 - i.dm) * per_dm;
      const double off =
          std::abs(mid) / (i.fwhm + 4) + std::abs(p.dm_pc_cm3 - i.dm) * per_dm / (4 * i.fwhm + 16);
      if (off < nearest) nearest = off, best = k;
    }
    if (nearest > 3) {
      ++strangers;
      continue;
    }
    Found& f = found[best];
    f.times += 1;
    if (static_cast<double>(e.event.cluster.best.snr) < f.boxcar) continue;
    f.boxcar = static_cast<double>(e.event.cluster.best.snr);
    f.refined = p.snr;
    f.late = p.tick - cases[best].pulse.tick;
    f.dm_off = p.dm_pc_cm3 - cases[best].pulse.dm;
  }
  return strangers;
}

/// A part of the grid that one thread does. Its numbers depend on nothing else.
struct Job {
  enum class Kind { pulses, ideal, alarms } kind = Kind::pulses;
  std::size_t variant = 0, dm = 0, width = 0;  // width: ideal only
  int seed = 0, part = 0;
  std::vector<double> numbers;  // empty: not done

  std::string key() const {
    constexpr const char* kNames[] = {"pulses", "ideal", "alarms"};
    return fmt::format("{} {} {} {} {} {}", kNames[static_cast<int>(kind)], variant, seed, part, dm,
                       width);
  }
};

/// Pulses of one variant, seed, DM and some phases through the search. @return events of no pulse,
/// seconds of data, then every pulse
std::vector<double> find_pulses(const search::Band& band, const NoiseTable& table,
                                const Signal& signal, const Job& job, Bench& bench) {
  const Variant& variant = kVariants[job.variant];
  pipeline::BeamSearch& search = bench.search(variant.implementation);
  std::vector<pipeline::BeamEvent> events;
  const std::uint64_t seed =
      combine(100, static_cast<std::uint64_t>(64 * job.seed + job.part), job.dm);
  for (std::int64_t first = 0; first < signal.list.n_samples; first += kGridBlock) {
    make_block(band, &signal, table, seed, first, variant.bits, bench.block());
    search.feed(bench.block(), 0, kGridBlock, kGridBlock, events);
  }
  search.finish(events);
  std::vector<Found> found(signal.list.cases.size());
  const int strangers = match(band, signal.list.cases, events, found);
  std::vector<double> numbers{static_cast<double>(strangers),
                              static_cast<double>(signal.list.n_samples) * band.sample_interval_s};
  for (const Found& f : found)
    numbers.insert(numbers.end(), {f.times, f.boxcar, f.refined, f.late, f.dm_off});
  return numbers;
}

struct CellMean {
  double boxcar = 0, refined = 0, late = 0, dm_off = 0;
  int n = 0, found = 0, doubled = 0;
};
using Table = std::array<std::array<CellMean, kWidthsMs.size()>, kDms.size()>;
using Cells = std::array<std::array<double, kWidthsMs.size()>, kDms.size()>;

Cells cells_of(const std::function<double(std::size_t, std::size_t)>& value) {
  Cells cells{};
  for (std::size_t d = 0; d < kDms.size(); ++d)
    for (std::size_t w = 0; w < kWidthsMs.size(); ++w) cells[d][w] = value(d, w);
  return cells;
}
double mean_of(const Cells& cells) {
  double sum = 0;
  for (const auto& row : cells)
    for (const double x : row) sum += x;
  return sum / static_cast<double>(kDms.size() * kWidthsMs.size());
}
double min_of(const Cells& cells) {
  double low = cells[0][0];
  for (const auto& row : cells) low = std::min(low, *std::min_element(row.begin(), row.end()));
  return low;
}

void add_to(const search::Band& band, int phases, const Job& job, Table& table) {
  const PulseList list = pulse_list(band, kDms[job.dm], phases, job.part);
  for (std::size_t k = 0; k < list.cases.size(); ++k) {
    CellMean& m = table[job.dm][list.cases[k].width];
    const double* const n = job.numbers.data() + 2 + 5 * k;
    const Found f{n[0], n[1], n[2], n[3], n[4]};
    const Injection& pulse = list.cases[k].pulse;
    ++m.n;
    m.found += f.times > 0 ? 1 : 0;
    m.doubled += f.times > 1 ? 1 : 0;
    if (!(f.times > 0)) continue;
    m.boxcar += f.boxcar / kSnr;
    m.refined += f.refined / kSnr;
    m.late += std::abs(f.late) / pulse.fwhm;
    // In units of the DM that sweeps the band in the width the pulse has, smeared and sampled.
    const double wide =
        std::hypot(pulse.fwhm, band.smearing_samples(band.n_channels() / 2, pulse.dm), 1.0);
    m.dm_off += std::abs(f.dm_off) * band.sweep_samples_per_dm() / wide;
  }
}

struct Summary {
  Cells boxcar, refined, late, dm_off;
  int n = 0, found = 0, doubled = 0;
  int lost = 0, lost_flat = 0, flat = 0;  // flat: hardly swept
};
/// Cells whose pulses sweep less than half their width: as good as without dispersion.
bool hardly_swept(std::size_t dm, std::size_t width) {
  const auto band = block_band();
  return kDms[dm] * band.sweep_samples_per_dm() <
         0.5 * kWidthsMs[width] * 1e-3 / band.sample_interval_s;
}

Summary summary_of(const Table& table) {
  Summary s;
  s.boxcar =
      cells_of([&](auto d, auto w) { return table[d][w].boxcar / std::max(1, table[d][w].found); });
  s.refined = cells_of(
      [&](auto d, auto w) { return table[d][w].refined / std::max(1, table[d][w].found); });
  s.late =
      cells_of([&](auto d, auto w) { return table[d][w].late / std::max(1, table[d][w].found); });
  s.dm_off =
      cells_of([&](auto d, auto w) { return table[d][w].dm_off / std::max(1, table[d][w].found); });
  for (std::size_t d = 0; d < kDms.size(); ++d)
    for (std::size_t w = 0; w < kWidthsMs.size(); ++w) {
      const CellMean& m = table[d][w];
      s.n += m.n, s.found += m.found, s.doubled += m.doubled;
      (hardly_swept(d, w) ? s.lost_flat : s.lost) += m.n - m.found;
      s.flat += hardly_swept(d, w) ? m.n : 0;
    }
  return s;
}

struct NoiseFree {
  Cells mean{}, worst{};
};
/// @return mean and worst of the phases
std::vector<double> recover_without_noise(const search::Band& band, int phases, const Job& job) {
  static const auto dms = search_config(band).chain.dms;
  double mean = 0, worst = 1e9;
  for (int phase = 0; phase < phases; ++phase) {
    const Injection pulse{20000 + static_cast<double>(phase) / phases, kDms[job.dm],
                          kWidthsMs[job.width] * 1e-3 / band.sample_interval_s, 1};
    const double part = noise_free_recovery(band, dms, pulse, kMaxWidth);
    mean += part / phases;
    worst = std::min(worst, part);
  }
  return {mean, worst};
}

constexpr int kAlarmTrials = 60, kAlarmBlocks = 48, kAlarmRuns = 16;
// 70 samples of sweep between trials: their sums share next to nothing.
constexpr double kAlarmStep = 1.5;
constexpr std::array<double, 3> kAlarmsAbove{4.5, 5, 5.5};

/// Events of single samples above so many sigma in noise.
std::vector<double> count_alarms(const search::Band& band, const NoiseTable& table, int run,
                                 Bench& bench) {
  auto config = search_config(band);
  config.chain.dms.clear();
  for (int k = 0; k < kAlarmTrials; ++k) config.chain.dms.push_back(kAlarmStep * k);
  config.chain.max_width = 1;
  config.chain.threshold = kAlarmsAbove[0];
  pipeline::BeamSearch search(config);
  std::vector<pipeline::BeamEvent> events;
  for (std::int64_t block = 0; block < kAlarmBlocks; ++block) {
    make_block(band, nullptr, table, combine(7, static_cast<std::uint64_t>(run)),
               block * kGridBlock, 8, bench.block());
    search.feed(bench.block(), 0, kGridBlock, kGridBlock, events);
  }
  search.finish(events);
  std::vector<double> found(kAlarmsAbove.size());
  for (const auto& e : events)
    for (std::size_t k = 0; k < found.size(); ++k)
      found[k] += static_cast<double>(e.event.cluster.best.snr) > kAlarmsAbove[k] ? 1 : 0;
  return found;
}

struct FalseAlarms {
  std::array<double, 3> expected{}, found{};
};
void add_to(const search::Band& band, const Job& job, FalseAlarms& sum) {
  // The last sweep of each trial has few channels: left out of the expectation, half of it seen.
  double n = 0;
  for (int k = 0; k < kAlarmTrials; ++k)
    n += kAlarmBlocks * static_cast<double>(kGridBlock) - band.delay_samples(0, kAlarmStep * k) / 2;
  for (std::size_t k = 0; k < kAlarmsAbove.size(); ++k) {
    sum.expected[k] += n * 0.5 * std::erfc(kAlarmsAbove[k] * 0.7071067811865476);
    sum.found[k] += job.numbers[k];
  }
}

void print_table(const char* title, const Cells& cells) {
  fmt::print("\n{}:\n\n| DM \\ width, ms |", title);
  for (const double w : kWidthsMs) fmt::print(" {} |", w);
  fmt::print("\n|---|");
  for (std::size_t w = 0; w < kWidthsMs.size(); ++w) fmt::print("---|");
  for (std::size_t d = 0; d < kDms.size(); ++d) {
    fmt::print("\n| {} |", kDms[d]);
    for (std::size_t w = 0; w < kWidthsMs.size(); ++w) fmt::print(" {:.3f} |", cells[d][w]);
  }
  fmt::print("\n");
}

Panel panel_of(const char* title, const Cells& cells) {
  Panel p;
  p.title = title;
  p.x_label = "width: 0.1 0.2 0.3 0.5 1 2 5 10 20 ms";
  p.y_label = "DM: 0.5 1 2 5 10 20 40 60 86.4";
  p.color_label = "S/N recovered / ideal";
  p.n_rows = kDms.size();
  p.n_columns = kWidthsMs.size();
  p.x_max = p.y_max = 9;
  p.first_row_at_top = false;
  p.color_min = 0.85;
  p.color_max = 1.05;
  for (const auto& row : cells)
    for (const double x : row) p.values.push_back(static_cast<float>(x));
  return p;
}

/// One row of the table of bounds. @return whether it holds
bool bound(const char* what, double value, double minimum, double maximum) {
  const bool good = value >= minimum && value <= maximum;
  const std::string range = maximum > 1e8    ? fmt::format(">= {}", minimum)
                            : minimum < -1e8 ? fmt::format("<= {}", maximum)
                                             : fmt::format("{} .. {}", minimum, maximum);
  fmt::print("| {} | {:.4f} | {} | {} |\n", what, value, range, good ? "holds" : "**missed**");
  return good;
}
bool at_least(const char* what, double value, double minimum) {
  return bound(what, value, minimum, 1e9);
}
bool at_most(const char* what, double value, double maximum) {
  return bound(what, value, -1e9, maximum);
}

struct Results {
  NoiseFree ideal;
  Table all{};  // 8 bit, every seed
  std::array<Table, kVariants.size()> variant{};
  std::array<Table, kVariants.size()> beside{};  // 8 bit, what was done of the variant too
  std::array<int, kVariants.size()> strangers{};
  double seconds = 0;  // of data searched as 8 bit
  FalseAlarms alarms;
  std::size_t n_left = 0;
};

/// Fewer bits, and the tree, against 8 bits and exact sums of the same noise.
bool print_variant_bounds(const std::array<Summary, kVariants.size()>& of,
                          const std::array<Summary, kVariants.size()>& beside) {
  bool good = true;
  for (std::size_t v = 1; v < 4; ++v) {
    if (of[v].n == 0) continue;
    const double eta = quantizer_efficiency(kVariants[v].bits);
    good &=
        bound(fmt::format("refined, {} / 8 bit; quantizer {:.4f}", kVariants[v].name, eta).c_str(),
              mean_of(of[v].refined) / mean_of(beside[v].refined), eta - 0.02, eta + 0.02);
  }
  if (of[4].n == 0) return good;
  const Cells loss =
      cells_of([&](auto d, auto w) { return 1 - of[4].boxcar[d][w] / beside[4].boxcar[d][w]; });
  double maximum = 0, narrow = 0;
  for (const auto& row : loss) {
    maximum = std::max(maximum, *std::max_element(row.begin(), row.end()));
    narrow += row[0] / static_cast<double>(loss.size());
  }
  good &= at_most("loss of the tree against exact sums: mean", mean_of(loss), 0.03);
  good &= at_most("the same: mean of the 0.1 ms cells (2 samples)", narrow, 0.03);
  good &= at_most("the same: worst cell", maximum, 0.03);
  return good;
}

bool print_bounds(const Results& r) {
  const Summary s = summary_of(r.all);
  std::array<Summary, kVariants.size()> of, beside;
  for (std::size_t v = 0; v < of.size(); ++v) {
    of[v] = summary_of(r.variant[v]);
    beside[v] = summary_of(r.beside[v]);
  }
  fmt::print("\n| figure | measured | asked | |\n|---|---|---|---|\n");
  bool good = true;
  good &= at_least("best boxcar / ideal, without noise: mean", mean_of(r.ideal.mean), 0.93);
  good &= at_least("the same: worst cell and phase", min_of(r.ideal.worst), 0.88);
  good &= at_least("best boxcar / ideal, S/N 20 in noise: mean", mean_of(s.boxcar), 0.93);
  // A cell of n pulses scatters by 1 / (S/N sqrt(n)); the lowest of 81 lies 2.5 of that below.
  const double scatter = 2.5 / (kSnr * std::sqrt(static_cast<double>(s.n) / 81));
  good &=
      at_least("the same: worst cell, and 2.5 of its scatter", min_of(s.boxcar) + scatter, 0.88);
  good &= bound("refined S/N / ideal: mean", mean_of(s.refined), 0.97, 1.01);
  good &=
      at_least("the same: worst cell, and 2.5 of its scatter", min_of(s.refined) + scatter, 0.97);
  good &= at_most("pulses lost, 8 bit, of those a sweep of half their width tells from DM 0",
                  s.lost, 0);
  good &= at_most("the same, of the others (DM 0.5, 5 ms and more; DM 1, 10 ms and more)",
                  s.lost_flat, 0.2 * s.flat);
  good &= at_most("pulses found twice, 8 bit", s.doubled, 0);
  good &= at_most("events that are no pulse, 8 bit", r.strangers[0], 0);
  good &= at_most("mean time error, widths", mean_of(s.late), 0.25);
  good &= at_most("mean DM error, widths of sweep", mean_of(s.dm_off), 1);
  good &= print_variant_bounds(of, beside);
  for (std::size_t k = 0; k < kAlarmsAbove.size(); ++k)
    good &= bound(fmt::format("false alarms above {} sigma / Gaussian expectation ({:.0f} found)",
                              kAlarmsAbove[k], r.alarms.found[k])
                      .c_str(),
                  r.alarms.found[k] / r.alarms.expected[k], 0.5, 2);
  return good;
}

void print_page(const Options& o, const Results& r, bool& good) {
  const auto band = block_band();
  fmt::print(
      "# What the search recovers of injected pulses\n\n"
      "Made by `scripts/search_recovery.sh`. Gaussian pulses, integrated over every sample and "
      "swept within every\nchannel, in white noise: 1024 channels of 20 MHz at 408 MHz, samples of "
      "51.2 us, through the whole search\n(normalization, flags, {} trials to DM 100 by the "
      "default "
      "plan, boxcars to {} samples, clusters, refinement).\nThe ideal is a matched filter on the "
      "time-frequency plane that knows DM, time, width and smearing. {} DMs x {}\nwidths x {} "
      "phases of a sample; up to {} seeds of noise for 8 bits, {} for fewer bits and the tree, "
      "which see "
      "the same\nnoise; {:.0f} s of data with {} pulses of "
      "S/N {} at 8 bits. One bit is compressed "
      "where a pulse is strong in one\nchannel, so it is judged by the mean.\n",
      search_config(band).chain.dms.size(), kMaxWidth, kDms.size(), kWidthsMs.size(), o.phases,
      o.seeds, o.fewer_seeds, r.seconds, summary_of(r.all).n, kSnr);
  fmt::print("\n![Recovered over ideal S/N](images/search_recovery.png)\n");
  good = print_bounds(r);
  fmt::print(
      "\n| variant | pulses | found | twice | events of no pulse | boxcar | refined | time "
      "error, widths |\n|---|---|---|---|---|---|---|---|\n");
  for (std::size_t v = 0; v < kVariants.size(); ++v) {
    const Summary s = summary_of(v == 0 ? r.all : r.variant[v]);
    if (s.n == 0) continue;
    fmt::print("| {} | {} | {} | {} | {} | {:.4f} | {:.4f} | {:.3f} |\n", kVariants[v].name, s.n,
               s.found, s.doubled, r.strangers[v], mean_of(s.boxcar), mean_of(s.refined),
               mean_of(s.late));
  }
  const Summary s = summary_of(r.all), exact = summary_of(r.beside[4]),
                tree = summary_of(r.variant[4]);
  print_table("Best boxcar / ideal without noise, mean of the phases", r.ideal.mean);
  print_table("The same, worst phase", r.ideal.worst);
  print_table("Boxcar / ideal in noise, 8 bit", s.boxcar);
  print_table("Refined / ideal in noise, 8 bit", s.refined);
  if (tree.n > 0)
    print_table("Boxcar of the tree / of exact sums, same noise",
                cells_of([&](auto d, auto w) { return tree.boxcar[d][w] / exact.boxcar[d][w]; }));
  if (!o.picture.empty())
    write_picture(o.picture,
                  {panel_of("best boxcar, no noise", r.ideal.mean),
                   panel_of("boxcar, S/N 20 in noise", s.boxcar),
                   panel_of("refined, S/N 20 in noise", s.refined)},
                  "ryle search: injected and recovered pulses, 1024 channels of 20 MHz at 408 MHz",
                  true);
}

std::vector<Job> all_jobs(const Options& o) {
  std::vector<Job> jobs;
  const int n_parts = std::max(1, o.phases / kPhasesPerJob);
  for (std::size_t d = 0; d < kDms.size(); ++d)
    for (std::size_t w = kWidthsMs.size(); w-- > 0;)
      jobs.push_back({Job::Kind::ideal, 0, d, w, 0, 0, {}});
  for (int run = 0; run < kAlarmRuns; ++run)
    jobs.push_back({Job::Kind::alarms, 0, 0, 0, run, 0, {}});
  // The seeds that all variants share first.
  for (int seed = 0; seed < o.seeds; ++seed)
    for (std::size_t v = 0; v < kVariants.size(); ++v)
      for (int part = 0; part < n_parts; ++part)
        for (std::size_t d = kDms.size(); d-- > 0;)
          if (v == 0 || seed < o.fewer_seeds)
            jobs.push_back({Job::Kind::pulses, v, d, 0, seed, part, {}});
  return jobs;
}

/// Lines "key: numbers" of jobs that were done before.
void read_results(const std::string& path, std::vector<Job>& jobs) {
  std::map<std::string, std::string> done;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (const auto at = line.find(": "); at != std::string::npos && line.back() == ';')
      done[line.substr(0, at)] = line.substr(at + 2);
  for (Job& job : jobs) {
    const auto found = done.find(job.key());
    if (found == done.end()) continue;
    std::istringstream numbers(found->second);
    for (double x = 0; numbers >> x;) job.numbers.push_back(x);
  }
}

void do_jobs(const search::Band& band, const Options& o, std::vector<Job>& jobs) {
  const NoiseTable table;
  Signals signals(band, o.phases);
  std::mutex writing;
  std::ofstream out;
  if (!o.results.empty()) out.open(o.results, std::ios::app);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<Bench>> benches(static_cast<std::size_t>(o.n_threads));
  in_parallel(o.n_threads, jobs.size(), [&](std::size_t thread, std::size_t i) {
    Job& job = jobs[i];
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (!job.numbers.empty() || took.count() > o.limit_s) return;
    auto& bench = benches[thread];
    if (!bench) bench = std::make_unique<Bench>(band, o.device);
    job.numbers = job.kind == Job::Kind::ideal ? recover_without_noise(band, o.phases, job)
                  : job.kind == Job::Kind::alarms
                      ? count_alarms(band, table, job.seed, *bench)
                      : find_pulses(band, table, signals.of(job.dm, job.part), job, *bench);
    if (!out.is_open()) return;
    std::string line = job.key() + ":";
    for (const double x : job.numbers) line += fmt::format(" {:.6g}", x);
    const std::lock_guard lock(writing);
    out << line << " ;" << std::endl;
  });
}

Results results_of(const search::Band& band, const Options& o, const std::vector<Job>& jobs) {
  Results r;
  std::map<std::string, const Job*> exact;  // 8 bit, by key
  for (const Job& job : jobs)
    if (job.variant == 0 && job.kind == Job::Kind::pulses && !job.numbers.empty())
      exact[job.key()] = &job;
  for (const Job& job : jobs) {
    r.n_left += job.numbers.empty() ? 1 : 0;
    if (job.numbers.empty()) continue;
    if (job.kind == Job::Kind::ideal) {
      r.ideal.mean[job.dm][job.width] = job.numbers[0];
      r.ideal.worst[job.dm][job.width] = job.numbers[1];
    } else if (job.kind == Job::Kind::alarms) {
      add_to(band, job, r.alarms);
    } else if (job.variant == 0) {
      add_to(band, o.phases, job, r.all);
      r.seconds += job.numbers[1];
      r.strangers[0] += static_cast<int>(job.numbers[0]);
    } else {
      Job same = job;
      same.variant = 0;
      const auto found = exact.find(same.key());
      if (found == exact.end()) continue;
      add_to(band, o.phases, job, r.variant[job.variant]);
      add_to(band, o.phases, *found->second, r.beside[job.variant]);
      r.strangers[job.variant] += static_cast<int>(job.numbers[0]);
    }
  }
  return r;
}

int run(const Options& options) {
  const auto band = block_band();
  auto jobs = all_jobs(options);
  if (!options.results.empty()) read_results(options.results, jobs);
  do_jobs(band, options, jobs);
  const Results r = results_of(band, options, jobs);
  bool good = false;
  print_page(options, r, good);
  if (r.n_left > 0) fmt::print(stderr, "{} of {} jobs were not done\n", r.n_left, jobs.size());
  return good && r.n_left == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ryle::test

// search_recovery [PHASES [SEEDS [FEWER_SEEDS [PICTURE [THREADS [SECONDS [RESULTS [DEVICE]]]]]]]]
int main(int argc, char** argv) {
  ryle::test::Options options;
  if (argc > 1) options.phases = std::stoi(argv[1]);
  if (argc > 2) options.seeds = std::stoi(argv[2]);
  options.fewer_seeds = std::min(options.seeds, argc > 3 ? std::stoi(argv[3]) : options.seeds);
  if (argc > 4) options.picture = argv[4];
  options.n_threads = argc > 5 ? std::stoi(argv[5])
                               : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (argc > 6) options.limit_s = std::stod(argv[6]);
  if (argc > 7) options.results = argv[7];
  if (argc > 8) options.device = std::stoi(argv[8]);
  return ryle::test::run(options);
}
