// SPDX-License-Identifier: BSD-3-Clause
#include "bench/grid_case.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"

namespace ryle::bench {
namespace {

// PCG64 as numpy's default_rng seeds it: a 128-bit linear congruential generator whose halves are
// combined and turned (O'Neill 2014, XSL-RR), from the words of a seed mixed by SeedSequence.
class Pcg64 {
 public:
  explicit Pcg64(const std::vector<std::uint32_t>& seed) {
    const auto words = seed_words(seed);
    const auto wide = [&](std::size_t i) {
      return static_cast<Wide>(words[i]) << 64 | words[i + 1];
    };
    increment_ = wide(2) << 1 | 1;
    step();
    state_ += wide(0);
    step();
  }
  std::uint64_t next() {
    step();
    const auto mixed =
        static_cast<std::uint64_t>(state_ >> 64) ^ static_cast<std::uint64_t>(state_);
    const auto turn = static_cast<unsigned>(state_ >> 122);
    return mixed >> turn | mixed << (-turn & 63U);
  }
  /// The low half of a draw first, then its high half.
  std::uint32_t next32() {
    if (has_half_) {
      has_half_ = false;
      return half_;
    }
    const std::uint64_t both = next();
    half_ = static_cast<std::uint32_t>(both >> 32);
    has_half_ = true;
    return static_cast<std::uint32_t>(both);
  }
  double uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(next() >> 11) * 0x1p-53);
  }
  float uniform_float() { return static_cast<float>(next32() >> 8) * 0x1p-24F; }

 private:
  __extension__ using Wide = unsigned __int128;
  void step() {
    constexpr Wide kFactor = static_cast<Wide>(2549297995355413924U) << 64 | 4865540595714422341U;
    state_ = state_ * kFactor + increment_;
  }
  static std::uint32_t fold(std::uint32_t v) { return v ^ v >> 16; }
  static std::array<std::uint64_t, 4> seed_words(const std::vector<std::uint32_t>& seed) {
    std::uint32_t hash = 0x43b0d7e5U;
    const auto mixed = [&hash](std::uint32_t v) {
      v ^= hash;
      hash *= 0x931e8875U;
      return fold(v * hash);
    };
    const auto join = [](std::uint32_t a, std::uint32_t b) {
      return fold(0xca01f9ddU * a - 0x4973f715U * b);
    };
    std::array<std::uint32_t, 4> pool{};
    for (std::size_t i = 0; i < 4; ++i) pool[i] = mixed(i < seed.size() ? seed[i] : 0);
    for (std::size_t from = 0; from < 4; ++from)
      for (std::size_t to = 0; to < 4; ++to)
        if (from != to) pool[to] = join(pool[to], mixed(pool[from]));
    for (std::size_t from = 4; from < seed.size(); ++from)
      for (auto& p : pool) p = join(p, mixed(seed[from]));
    std::array<std::uint64_t, 4> words{};
    hash = 0x8b51f9ddU;
    for (std::size_t i = 0; i < 8; ++i) {
      std::uint32_t v = pool[i % 4] ^ hash;
      hash *= 0x58f38dedU;
      v = fold(v * hash);
      words[i / 2] |= static_cast<std::uint64_t>(v) << (32 * (i % 2));
    }
    return words;
  }
  Wide state_ = 0, increment_ = 0;
  std::uint32_t half_ = 0;
  bool has_half_ = false;
};

// Normal deviates by 256 layers of equal area (Marsaglia and Tsang 2000), in the order in which
// numpy draws.
class Ziggurat {
 public:
  Ziggurat() {
    const double area = 0.00492867323399;
    const auto height = [](double x) { return std::exp(-0.5 * x * x); };
    std::array<double, 256> x{};
    x[255] = kTail;
    for (std::size_t k = 254; k > 0; --k)
      x[k] = std::sqrt(-2 * std::log(area / x[k + 1] + height(x[k + 1])));
    const double base = area / height(kTail);
    const auto scale = [](double v) { return static_cast<float>(v * 0x1p-23); };
    for (std::size_t k = 1; k < 256; ++k) {
      width_[k] = scale(x[k]);
      inside_[k] = static_cast<std::uint32_t>(x[k - 1] / x[k] * 0x1p23);
      height_[k] = static_cast<float>(height(x[k]));
    }
    width_[0] = scale(base);
    inside_[0] = static_cast<std::uint32_t>(kTail / base * 0x1p23);
    inside_[1] = 0;
    height_[0] = 1;
  }
  float draw(Pcg64& random) const {
    for (;;) {
      const std::uint32_t r = random.next32();
      const std::size_t k = r & 255U;
      const std::uint32_t magnitude = r >> 9;
      const float size = static_cast<float>(magnitude) * width_[k];
      const float x = (r >> 8 & 1U) != 0 ? -size : size;
      if (magnitude < inside_[k]) return x;
      if (k == 0) return tail(random, magnitude);
      const float y = (height_[k - 1] - height_[k]) * random.uniform_float() + height_[k];
      const auto exact = static_cast<double>(x);
      if (static_cast<double>(y) < std::exp(-0.5 * exact * exact)) return x;
    }
  }

 private:
  static constexpr double kTail = 3.6541528853610087963519472518;
  static float tail(Pcg64& random, std::uint32_t magnitude) {
    constexpr auto kFrom = static_cast<float>(kTail), kInverse = static_cast<float>(1 / kTail);
    for (;;) {
      const float xx = -kInverse * std::log1p(-random.uniform_float());
      const float yy = -std::log1p(-random.uniform_float());
      if (yy + yy > xx * xx) return (magnitude >> 8 & 1U) != 0 ? -(kFrom + xx) : kFrom + xx;
    }
  }
  std::array<float, 256> width_{}, height_{};
  std::array<std::uint32_t, 256> inside_{};
};

struct Map {
  std::int64_t width, height;
  double longitude_deg, latitude_deg;
};
Map map_of(char name) { return name == 'A' ? Map{1650, 300, 70.04, 36.29} : Map{150, 150, 60, 30}; }

void drift_scans(GridCase& c, const Map& map) {
  constexpr std::int64_t kTracks = 521, kPerTrack = 5432;
  Pcg64 random({20250001});
  std::vector<double> phase(kTracks), wobble(kTracks);
  for (auto& p : phase) p = random.uniform(-0.5, 0.5);
  for (auto& w : wobble) w = random.uniform(0, 2 * kPi);
  const double half = 27.5 / std::cos(map.latitude_deg * kDegree_rad), step = 2 * half / kPerTrack;
  for (std::int64_t i = 0; i < kTracks; ++i) {
    const double track = map.latitude_deg - 5 + 10 * (static_cast<double>(i) + 0.5) / kTracks;
    for (std::int64_t j = 0; j < kPerTrack; ++j) {
      const double ra =
          map.longitude_deg - half + (static_cast<double>(j) + 0.5) * step + phase[i] * step;
      c.longitude_deg.push_back(ra);
      c.latitude_deg.push_back(
          track + 5.0 / 3600 * std::sin(2 * kPi * (ra - map.longitude_deg) / 7.3 + wobble[i]));
    }
  }
}

void scattered(GridCase& c, const Map& map, std::size_t n) {
  Pcg64 random({20250002});
  const double half = 2.5 / std::cos(map.latitude_deg * kDegree_rad);
  c.longitude_deg.resize(n);
  c.latitude_deg.resize(n);
  for (auto& v : c.longitude_deg)
    v = random.uniform(map.longitude_deg - half, map.longitude_deg + half);
  for (auto& v : c.latitude_deg) v = random.uniform(map.latitude_deg - 2.5, map.latitude_deg + 2.5);
}

template <class T>
bool sums_to(const T* begin, std::int64_t n, double expected) {
  long double sum = 0;
  for (std::int64_t k = 0; k < n; ++k) sum += static_cast<long double>(begin[k]);
  return std::abs(static_cast<double>(sum) / expected - 1) < 1e-9;
}

// Pixel centers of SIN with CRPIX = n / 2 counted from 1.
void take_cells(GridCase& c, const Map& map, double share) {
  c.width =
      std::clamp<std::int64_t>(std::llround(share * static_cast<double>(map.width)), 1, map.width);
  c.height = map.height;
  const std::int64_t first = (map.width - c.width) / 2;
  const double d0 = map.latitude_deg * kDegree_rad;
  for (std::int64_t j = 1; j <= map.height; ++j)
    for (std::int64_t i = first + 1; i <= first + c.width; ++i) {
      const double x = static_cast<double>(i - map.width / 2) * -kGridCell_deg * kDegree_rad;
      const double y = static_cast<double>(j - map.height / 2) * kGridCell_deg * kDegree_rad;
      const double z = std::sqrt(1 - x * x - y * y);
      c.cell_latitude_deg.push_back(std::asin(y * std::cos(d0) + z * std::sin(d0)) / kDegree_rad);
      c.cell_longitude_deg.push_back(
          map.longitude_deg + std::atan2(x, z * std::cos(d0) - y * std::sin(d0)) / kDegree_rad);
    }
}

// Unit noise on a smooth sky of mean 10.
void take_values(Queue& queue, GridCase& c, const Map& map, std::int64_t step) {
  const auto n_all = c.n_samples();
  const std::int64_t n = (n_all + step - 1) / step;
  c.values = Buffer<float>(c.n_channels * n);
  const Ziggurat normal;
  const double shrink = std::cos(map.latitude_deg * kDegree_rad);
  std::vector<double> sum(c.n_channels);
  queue.parallel_for(c.n_channels, [&](std::int64_t channel) {
    // H draws from the streams of B.
    Pcg64 random({20250003, c.name == 'A' ? 65U : 66U, static_cast<std::uint32_t>(channel)});
    float* to = c.values.data() + channel * n;
    double total = 0;
    for (std::int64_t k = 0; k < n_all; ++k) {
      const auto i = static_cast<std::size_t>(k);
      const float noise = normal.draw(random);
      if (k % step != 0 && channel > 0) continue;
      const double x = (c.longitude_deg[i] - map.longitude_deg) * shrink,
                   y = c.latitude_deg[i] - map.latitude_deg;
      const float value =
          noise + static_cast<float>(10 + std::sin(0.9 * x + 0.1 * static_cast<double>(channel)) *
                                              std::cos(1.3 * y) * 4);
      total += static_cast<double>(value);
      if (k % step == 0) to[k / step] = value;
    }
    sum[channel] = total;
  });
  if (c.name != 'H')
    c.sums_agree =
        c.sums_agree &&
        std::abs(sum[0] / (c.name == 'A' ? 28303154.10786748 : 19996912.403671503) - 1) < 1e-9;
}

void thin_out(std::vector<double>& v, std::int64_t step) {
  std::size_t n = 0;
  for (std::size_t k = 0; k < v.size(); k += static_cast<std::size_t>(step)) v[n++] = v[k];
  v.resize(n);
  v.shrink_to_fit();
}

}  // namespace

GridCase make_grid_case(Queue& queue, char name, const GridCaseSize& size) {
  GridCase c;
  c.name = name;
  c.n_channels = size.n_channels;
  const Map map = map_of(name);
  if (name == 'A') {
    c.longitude_deg.reserve(2'830'072);
    c.latitude_deg.reserve(2'830'072);
    drift_scans(c, map);
  } else {
    scattered(c, map, name == 'B' ? 2'000'000 : 15'000'000);
  }
  if (name != 'H')
    c.sums_agree = sums_to(c.longitude_deg.data(), c.n_samples(),
                           name == 'A' ? 198218157.8228417 : 120002305.29108529) &&
                   sums_to(c.latitude_deg.data(), c.n_samples(),
                           name == 'A' ? 102703311.432512 : 59997611.93670495);
  take_values(queue, c, map, size.sample_step);
  thin_out(c.longitude_deg, size.sample_step);
  thin_out(c.latitude_deg, size.sample_step);
  take_cells(c, map, size.map_share);
  return c;
}

grid::Config grid_config_of(const GridCase& c, const std::string& implementation) {
  grid::Config config;
  config.convolution.sigma_rad = kGridSigma_deg * kDegree_rad;
  config.convolution.support_rad = 5 * config.convolution.sigma_rad;
  config.n_channels = c.n_channels;
  config.implementation = implementation;
  return config;
}

bool verify_grid_cells(
    Queue& host, const GridCase& c, const float* values,
    const std::function<GridCellSeen(std::int64_t channel, std::int64_t cell)>& seen,
    const std::function<float(std::int64_t channel, std::int64_t cell)>& value) {
  constexpr std::uint64_t kChecked = 24;
  const std::int64_t n_cells = c.width * c.height;
  std::vector<std::int64_t> chosen;
  std::vector<double> lon, lat;
  for (std::uint64_t k = 0; k < kChecked; ++k) {
    const auto cell =
        static_cast<std::int64_t>(combine(11, k) % static_cast<std::uint64_t>(n_cells));
    chosen.push_back(cell);
    lon.push_back(c.cell_longitude_deg[cell]);
    lat.push_back(c.cell_latitude_deg[cell]);
  }
  const auto reference = grid::make_gridder(
      grid_config_of(c, "reference"), {grid::positions(host, lon.data(), lat.data(), kChecked), 0});
  const auto plan = reference->plan(
      host, grid::positions(host, c.longitude_deg.data(), c.latitude_deg.data(), c.n_samples()));
  grid::Samples data;
  data.values = values;
  data.channel_stride = c.n_samples();
  reference->execute(host, *plan, data);
  std::int64_t covered = 0;
  for (std::int64_t channel = 0; channel < c.n_channels; ++channel) {
    const grid::Plane want = grid::finish(reference->sums(), {}, channel);
    for (std::size_t k = 0; k < kChecked; ++k) {
      const GridCellSeen cell = seen(channel, chosen[k]);
      if (cell.count != want.count[k]) return false;
      const float got = value(channel, chosen[k]);
      if (std::isnan(got) != std::isnan(want.value[k])) return false;
      if (want.weight[k] <= 1) continue;
      ++covered;
      if (std::abs(got / want.value[k] - 1) > 2e-6F) return false;
      if (std::abs(cell.weight / static_cast<double>(want.weight[k]) - 1) > 2e-6) return false;
    }
  }
  return covered > 0;
}

}  // namespace ryle::bench
