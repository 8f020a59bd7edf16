// SPDX-License-Identifier: BSD-3-Clause
// T-DD-16: pulses of known S/N through the whole search, without noise and with it.
#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <map>
#include <numeric>

#include "ryle/product/picture.hpp"
#include "ryle/stage/search_stream.hpp"
#include "tests/search_recovery/recovery.hpp"

namespace ryle::test {
namespace {

constexpr std::array<double, 9> kDms{0.5, 1, 2, 5, 10, 20, 40, 60, 86.4};
constexpr std::array<double, 9> kWidthsMs{0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 20};
constexpr double kSnr = 20;
constexpr std::int64_t kMaxWidth = 512, kGridBlock = 8192;

struct Case {
  std::size_t dm, width;
  Injection pulse;
};

struct Found {
  int times = 0;
  double boxcar = 0, refined = 0, late = 0, dm_off = 0;
};

/// All pulses one after another, far enough apart not to meet in (time, DM).
std::vector<Case> cases_of(const search::Band& band, int phases, std::int64_t& n_samples) {
  std::vector<Case> list;
  double tick = 4000;
  for (std::size_t d = 0; d < kDms.size(); ++d) {
    for (std::size_t w = 0; w < kWidthsMs.size(); ++w) {
      for (int phase = 0; phase < phases; ++phase) {
        Case c{d, w, {}};
        c.pulse.fwhm = kWidthsMs[w] * 1e-3 / band.sample_interval_s;
        c.pulse.dm = kDms[d];
        tick += 12 * c.pulse.fwhm + 400;
        c.pulse.tick = std::floor(tick) + static_cast<double>(phase) / phases;
        c.pulse.amplitude = kSnr / c.pulse.ideal(band);
        list.push_back(c);
        tick += 12 * c.pulse.fwhm;
      }
    }
  }
  const double sweep = band.delay_samples(0, kDms.back());
  n_samples = static_cast<std::int64_t>(tick + sweep) + 8192;
  return list;
}

stage::BeamSearchConfig search_config(const search::Band& band) {
  stage::BeamSearchConfig config;
  search::DmPlanConfig plan;  // the default one
  plan.dm_max = 100;
  config.chain.band = band;
  config.chain.dms = search::dm_trials(band, plan);
  config.chain.normalize.n_channels = band.n_channels();
  config.chain.max_width = kMaxWidth;
  config.chain.block_samples = kGridBlock;
  return config;
}

/// One block of noise and pulses. @shape data [channel][kGridBlock]
void make_block(const search::Band& band, const std::vector<Case>& cases, const NoiseTable& table,
                std::uint64_t seed, std::int64_t first, std::vector<float>& data) {
  for (std::int64_t c = 0; c < band.n_channels(); ++c) {
    float* row = data.data() + c * kGridBlock;
    table.fill(row, kGridBlock,
               combine(seed, static_cast<std::uint64_t>(c), static_cast<std::uint64_t>(first)));
    for (const Case& k : cases) {
      const double at = k.pulse.tick + band.delay_samples(c, k.pulse.dm);
      const double reach = 5 * k.pulse.fwhm + 20;
      if (at + reach < static_cast<double>(first) ||
          at - reach > static_cast<double>(first + kGridBlock))
        continue;
      k.pulse.walk(band, c, [&](std::int64_t t, double p) {
        if (t >= first && t < first + kGridBlock)
          row[t - first] += static_cast<float>(k.pulse.amplitude * p);
      });
    }
  }
}

/// Gives every event to its pulse. @return events that belong to none
int match(const search::Band& band, const std::vector<Case>& cases,
          const std::vector<stage::BeamEvent>& events, std::vector<Found>& found) {
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
    ++f.times;
    if (static_cast<double>(e.event.cluster.best.snr) < f.boxcar) continue;
    f.boxcar = static_cast<double>(e.event.cluster.best.snr);
    f.refined = p.snr;
    f.late = p.tick - cases[best].pulse.tick;
    f.dm_off = p.dm_pc_cm3 - cases[best].pulse.dm;
  }
  return strangers;
}

struct CellMean {
  double boxcar = 0, refined = 0, late = 0, dm_off = 0;
  int n = 0, found = 0, doubled = 0;
};
using Table = std::array<std::array<CellMean, kWidthsMs.size()>, kDms.size()>;

void add_to(const std::vector<Case>& cases, const std::vector<Found>& found, Table& table) {
  for (std::size_t k = 0; k < cases.size(); ++k) {
    CellMean& m = table[cases[k].dm][cases[k].width];
    ++m.n;
    m.found += found[k].times > 0 ? 1 : 0;
    m.doubled += found[k].times > 1 ? 1 : 0;
    m.boxcar += found[k].boxcar / kSnr;
    m.refined += found[k].refined / kSnr;
    m.late += std::abs(found[k].late) / cases[k].pulse.fwhm;
    m.dm_off += found[k].dm_off;
  }
}

struct Summary {
  double mean = 0, worst = 1e9, refined = 0, late = 0;
  int n = 0, found = 0, doubled = 0;
};
/// Over the cells; `from_width` leaves the narrower ones out.
Summary summary_of(const Table& table, std::size_t from_width) {
  Summary s;
  int cells = 0;
  for (const auto& row : table) {
    for (std::size_t w = from_width; w < row.size(); ++w) {
      const CellMean& m = row[w];
      s.mean += m.boxcar / m.n;
      s.worst = std::min(s.worst, m.boxcar / m.n);
      s.refined += m.refined / m.n;
      s.late += m.late / m.n;
      s.n += m.n, s.found += m.found, s.doubled += m.doubled;
      ++cells;
    }
  }
  s.mean /= cells, s.refined /= cells, s.late /= cells;
  return s;
}

template <class Value>
void print_table(const char* title, const Value& value) {
  fmt::print("\n{}\nDM \\ ms {:>7}", title, "");
  for (const double w : kWidthsMs) fmt::print("{:7.1f}", w);
  for (std::size_t d = 0; d < kDms.size(); ++d) {
    fmt::print("\n{:14.1f} ", kDms[d]);
    for (std::size_t w = 0; w < kWidthsMs.size(); ++w) fmt::print("{:7.3f}", value(d, w));
  }
  fmt::print("\n");
}

template <class Value>
Panel panel_of(const char* title, const Value& value) {
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
  for (std::size_t d = 0; d < kDms.size(); ++d)
    for (std::size_t w = 0; w < kWidthsMs.size(); ++w)
      p.values.push_back(static_cast<float>(value(d, w)));
  return p;
}

std::vector<int> bits_of(const std::string& text) {
  std::vector<int> bits;
  for (std::size_t at = 0; at < text.size();) {
    const auto comma = std::min(text.find(',', at), text.size());
    bits.push_back(std::stoi(text.substr(at, comma - at)));
    at = comma + 1;
  }
  return bits;
}

struct NoiseFree {
  Table mean;
  std::array<std::array<double, kWidthsMs.size()>, kDms.size()> worst{};
};
NoiseFree noise_free(const search::Band& band, int phases) {
  NoiseFree out;
  const auto dms = search_config(band).chain.dms;
  for (std::size_t d = 0; d < kDms.size(); ++d) {
    for (std::size_t w = 0; w < kWidthsMs.size(); ++w) {
      out.worst[d][w] = 1e9;
      for (int phase = 0; phase < phases; ++phase) {
        const Injection pulse{20000 + static_cast<double>(phase) / phases, kDms[d],
                              kWidthsMs[w] * 1e-3 / band.sample_interval_s, 1};
        const double part = noise_free_recovery(band, dms, pulse, kMaxWidth);
        out.mean[d][w].boxcar += part;
        ++out.mean[d][w].n;
        out.worst[d][w] = std::min(out.worst[d][w], part);
      }
    }
  }
  return out;
}

int run(int phases, int seeds, const std::vector<int>& bits, const std::string& picture) {
  const auto band = block_band();
  const NoiseTable table;
  const NoiseFree ideal = noise_free(band, phases);
  const auto free_mean = [&](std::size_t d, std::size_t w) {
    return ideal.mean[d][w].boxcar / ideal.mean[d][w].n;
  };
  print_table("without noise: mean over the phases of best boxcar / ideal", free_mean);
  print_table("without noise: worst phase", [&](auto d, auto w) { return ideal.worst[d][w]; });
  double worst = 1e9;
  for (const auto& row : ideal.worst)
    for (std::size_t w = 1; w < row.size(); ++w) worst = std::min(worst, row[w]);
  fmt::print("without noise: mean {:.4f}; from 0.2 ms: mean {:.4f}, worst {:.4f}\n",
             summary_of(ideal.mean, 0).mean, summary_of(ideal.mean, 1).mean, worst);
  std::fflush(stdout);
  std::int64_t n_samples = 0;
  const auto cases = cases_of(band, phases, n_samples);
  std::map<int, Table> tables;
  std::map<int, int> strangers;
  for (int seed = 0; seed < seeds; ++seed) {
    std::map<int, std::unique_ptr<stage::BeamSearch>> searches;
    std::map<int, std::vector<stage::BeamEvent>> events;
    for (const int b : bits) searches[b] = std::make_unique<stage::BeamSearch>(search_config(band));
    std::vector<float> data(static_cast<std::size_t>(band.n_channels() * kGridBlock)), codes(data);
    for (std::int64_t first = 0; first < n_samples; first += kGridBlock) {
      make_block(band, cases, table, static_cast<std::uint64_t>(seed) + 100, first, data);
      for (const int b : bits) {
        std::transform(data.begin(), data.end(), codes.begin(),
                       [&](float x) { return quantized(x, b); });
        searches[b]->feed(codes.data(), 0, kGridBlock, kGridBlock, events[b]);
      }
    }
    for (const int b : bits) {
      searches[b]->finish(events[b]);
      std::vector<Found> found(cases.size());
      strangers[b] += match(band, cases, events[b], found);
      add_to(cases, found, tables[b]);
    }
  }
  fmt::print("\n{} pulses of S/N {} in {:.1f} s, {} seed(s), {} trials\n", cases.size(), kSnr,
             static_cast<double>(n_samples) * band.sample_interval_s, seeds,
             search_config(band).chain.dms.size());
  for (const int b : bits) {
    const Summary s = summary_of(tables[b], 0), wide = summary_of(tables[b], 1);
    fmt::print(
        "{} bit: found {} of {}, {} twice, {} events of no pulse; boxcar mean {:.4f} (from 0.2 ms "
        "{:.4f}, worst cell {:.4f}), refined {:.4f}; of 8 bit {:.4f}, quantizer {:.4f}; |time "
        "error| {:.3f} FWHM\n",
        b, s.found, s.n, s.doubled, strangers[b], s.mean, wide.mean, wide.worst, s.refined,
        wide.refined / summary_of(tables[bits.front()], 1).refined, quantizer_efficiency(b),
        s.late);
  }
  const Table& first = tables[bits.front()];
  const auto boxcar = [&](std::size_t d, std::size_t w) {
    return first[d][w].boxcar / first[d][w].n;
  };
  const auto refined = [&](std::size_t d, std::size_t w) {
    return first[d][w].refined / first[d][w].n;
  };
  print_table("in noise: boxcar / ideal", boxcar);
  print_table("in noise: refined / ideal", refined);
  if (!picture.empty())
    write_png(
        picture,
        {panel_of("best boxcar, no noise", free_mean), panel_of("boxcar, S/N 20 in noise", boxcar),
         panel_of("refined, S/N 20 in noise", refined)},
        "ryle search: injected and recovered pulses, 1024 channels of 20 MHz at 408 MHz", true);
  return 0;
}

}  // namespace
}  // namespace ryle::test

int main(int argc, char** argv) {
  const int phases = argc > 1 ? std::stoi(argv[1]) : 4, seeds = argc > 2 ? std::stoi(argv[2]) : 1;
  return ryle::test::run(phases, seeds, ryle::test::bits_of(argc > 3 ? argv[3] : "8"),
                         argc > 4 ? argv[4] : "");
}
