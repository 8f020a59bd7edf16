// SPDX-License-Identifier: BSD-3-Clause
// T-BF-18, as far as the engine goes: plane waves in BEST-2 packets, through the codec into heaps,
// through the beams of a grid. A wrong antenna map or swapped pairs miss the source.
#include <numbers>

#include "ryle/core/units.hpp"
#include "ryle/engine/beamform/weights.hpp"
#include "ryle/telescope/array.hpp"
#include "ryle/wire/best2.hpp"
#include "tests/engine/beamform/harness.hpp"

namespace ryle::beamform::test {
namespace {

constexpr std::uint32_t kChannel = 300;  // sky order
constexpr double kTop_hz = 418e6, kWidth_hz = 19531.25, kCenter_hz = kTop_hz - 300.5 * kWidth_hz;

// Antenna of a packet (an ADC channel) -> element 4 row + column, rows south to north, columns west
// to east, as the published antenna file has it. pair_swap: antennas 4a + j and 4a + (j ^ 2) of
// each 32-bit word are exchanged, as in the weights of the published kernel.
std::uint32_t element_of_antenna(std::uint32_t antenna, bool pair_swap = false) {
  const std::uint32_t adc = pair_swap ? antenna ^ 2u : antenna;
  const std::uint32_t column = adc / 8, k = adc % 8;
  const std::uint32_t row = k < 4 ? 2 * k : 2 * (k - 4) + 1;
  return 4 * row + column;
}

Vector3 element_m(std::uint32_t element) {
  return {5.878 * (element % 4), 10.0 * (element / 4), 0};
}

// Inputs in the order of the packets.
ArrayLayout layout(bool right_map, bool pair_swap) {
  ArrayLayout array;
  for (std::uint32_t antenna = 0; antenna < 32; ++antenna) {
    const std::uint32_t element = right_map ? element_of_antenna(antenna, pair_swap) : antenna;
    ArrayInput input;
    input.antenna = array.n_antennas();
    array.antennas.push_back({"", element_m(element)});
    array.inputs.push_back(input);
  }
  return array;
}

// Heaps of two packets of one channel with a wave from s, 5 LSB, phase turning in time.
std::vector<std::byte> heaps(const Vector3& s) {
  std::vector<std::byte> memory;
  const wire::DescribedCodec codec(wire::best2_packet(), {0, 1024, 1});
  const wire::PayloadMap map(wire::best2_packet());
  for (std::uint64_t block = 0; block < 2; ++block) {
    std::vector<std::byte> payload(4096), datagram(4104);
    for (std::uint32_t antenna = 0; antenna < 32; ++antenna) {
      const Vector3 r = element_m(element_of_antenna(antenna));
      const double early_s = (r[0] * s[0] + r[1] * s[1]) / kSpeedOfLight_m_per_s;
      for (std::uint32_t t = 0; t < 128; ++t) {
        const double turns =
            kCenter_hz * early_s + 0.037 * (128.0 * static_cast<double>(block) + t);
        const cf64 v = std::polar(5.0, 2 * std::numbers::pi * turns);
        map.set_part(payload.data(), 0, t, antenna, 0, static_cast<int>(std::rint(v.real())));
        map.set_part(payload.data(), 0, t, antenna, 1, static_cast<int>(std::rint(v.imag())));
      }
    }
    wire::Packet packet;
    packet.tick_raw = block;
    packet.stream = kChannel;
    EXPECT_EQ(codec.encode(packet, payload, datagram), datagram.size());
    wire::Packet got;
    EXPECT_EQ(codec.decode(datagram, got), wire::Reject::none);
    EXPECT_EQ(got.channel, kChannel);
    EXPECT_EQ(got.tick_raw, block);
    memory.insert(memory.end(), datagram.begin() + got.payload_offset,
                  datagram.begin() + got.payload_offset + got.payload_bytes);
  }
  return memory;
}

// What the beams of a grid see, as a share of the most there can be.
std::vector<double> seen(const ArrayLayout& array, const std::vector<Vector3>& grid,
                         const std::vector<std::byte>& samples, const std::string& name) {
  Config c;
  c.n_antennas = 32;
  c.n_beams = static_cast<std::int64_t>(grid.size());
  c.n_channels = 1;
  c.max_spectra = 256;
  c.order = InputOrder::pairs;
  c.integration = 256;
  WeightConfig w;
  w.n_antennas = 32;
  w.channels = {kCenter_hz, -kWidth_hz, 1};
  std::vector<cf32> weights(grid.size() * 32);
  WeightMaker(w, {}, {}).make(steer(array, grid, 408e6), 0, {},
                              {weights.data(), {c.n_beams, 1, 32}});
  Input input;
  input.samples = samples.data();
  input.n_spectra = 256;
  auto power = numbers(c, run(c, name, weights, input));
  for (double& p : power) p /= 32 * 25.0;
  return power;
}

TEST(Best2, LayoutOfTheExampleIsThatOfThePublishedAntennaFile) {
  const ArrayLayout array =
      read_layout_csv(std::string(RYLE_SOURCE_DIR) + "/examples/best2.csv", 44.52358, 11.64599, 28);
  ASSERT_EQ(array.n_inputs(), 32);
  for (std::uint32_t antenna = 0; antenna < 32; ++antenna) {
    const std::uint32_t element = element_of_antenna(antenna);
    const auto& placed = array.antennas[array.inputs[antenna].antenna];
    EXPECT_EQ(placed.name, (element < 10 ? "e0" : "e") + std::to_string(element));
    EXPECT_NEAR(placed.enu_m[0], element_m(element)[0] - 8.817, 1e-9);
    EXPECT_NEAR(placed.enu_m[1], element_m(element)[1] - 35, 1e-9);
  }
}

TEST(Best2, WavesAppearInTheirBeam) {
  std::vector<Vector3> grid;
  for (int m = -3; m <= 3; ++m) {
    for (int l = -3; l <= 3; ++l) {
      const double x = 0.025 * l, y = 0.0055 * m;
      grid.push_back({x, y, std::sqrt(1 - x * x - y * y)});
    }
  }
  const ArrayLayout right = layout(true, false), file_order = layout(false, false),
                    swapped = layout(true, true);
  Config any;
  any.order = InputOrder::pairs;
  any.n_antennas = 32;
  any.n_beams = any.n_channels = any.max_spectra = 1;
  for (std::size_t source = 0; source < grid.size(); source += 5) {
    const auto samples = heaps(grid[source]);
    for (const auto& name : cpu_names(any)) {
      const auto share = seen(right, grid, samples, name);
      EXPECT_EQ(std::max_element(share.begin(), share.end()) - share.begin(),
                static_cast<std::ptrdiff_t>(source))
          << name;
      EXPECT_NEAR(share[source], 1, 0.03) << name;  // 4-bit samples of 5 LSB
    }
    if (source == 24) continue;  // straight ahead every order of antennas is right
    EXPECT_LT(seen(file_order, grid, samples, "reference")[source], 0.8) << source;
    // The swap exchanges the northern and the southern half: only north-south offsets show it.
    if (source / 7 != 3) {
      EXPECT_LT(seen(swapped, grid, samples, "reference")[source], 0.8) << source;
    }
  }
}

}  // namespace
}  // namespace ryle::beamform::test
