// SPDX-License-Identifier: BSD-3-Clause
// What a user or another telescope says to a run, and what a run of the gridder left.
#include <fstream>
#include <iterator>

#include "ryle/core/error.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/grid/grid_state.hpp"
#include "ryle/pipeline/run/trigger_socket.hpp"
#include "tests/fuzz/bodies.hpp"
#include "tests/io/scratch.hpp"

namespace ryle::fuzz {
namespace {

void observation(std::span<const std::byte> data) {
  const std::string text = text_of(data);
  accepts([&] {
    const auto config = pipeline::parse_observation(text, "fuzz.toml");
    // What it prints is what it read.
    const auto again = pipeline::parse_observation(pipeline::to_toml(config), "again.toml");
    require(pipeline::to_toml(again) == pipeline::to_toml(config), "a configuration prints itself");
  });
  accepts([&] { pipeline::parse_observation("schema = 1\n", "fuzz.toml", {text}); });
}
std::vector<Bytes> observation_seeds() {
  return {bytes_of("schema = 1\n[telescope]\nlayout = \"a.csv\"\nlatitude_deg = -26.7\n"
                   "[channelize]\nn_channels = 256\n[[simulator.source]]\nl = 0.5\nflux_jy = 2.0\n"
                   "[source]\nsample_rate_hz = \"78125/4\"\nlisten = [\"udp://127.0.0.1:1\"]\n"
                   "[output]\nms = true\n"),
          bytes_of("source.listen=[\"udp://127.0.0.1:1\"]"), bytes_of("telescope.name='a.b'")};
}

void trigger(std::span<const std::byte> data) {
  pipeline::VoltageShape shape;
  shape.frequency = {408e6, 1e6, 16};
  shape.clock = {1'700'000'000'000'000'000, {20'000, 1}};
  shape.unit_ticks = 128;
  shape.per_channel = !data.empty() && std::to_integer<int>(data.back()) % 2 == 1;
  accepts([&] {
    const auto window =
        pipeline::voltage_window(shape, pipeline::parse_trigger(text_of(data), shape));
    require(window.first.size() == 16 || window.first.size() == 1, "a window a channel");
    require(window.n_ticks >= 0, "it has a length");
  });
}
std::vector<Bytes> trigger_seeds() {
  return {
      bytes_of("{\"utc\": \"2025-03-01T16:10:00.5\", \"dm_pc_cm3\": 348.8, \"reference_mhz\": "
               "1400, \"dm_error\": 0.5, \"width_s\": 0.003, \"name\": \"x\"}"),
      bytes_of("{\"utc\": \"2025-03-01T16:10:00.5\", \"reference_mhz\": \"inf\"}"),
      bytes_of("{\"begin_utc\": \"2025-03-01T16:10:00\", \"end_utc\": \"2025-03-01T16:10:01\"}")};
}

void rgrid(std::span<const std::byte> data) {
  accepts([&] {
    const pipeline::GridStateFile file(memory_file(data));
    for (std::size_t k = 0; k < file.parts().size() && k < 3; ++k) {
      const auto& channels = file.parts()[k].channels;
      const pipeline::GridSums sums = file.load(k, {channels.first, channels.first + 1});
      require(sums.n_cells() == file.identity().n_cells, "the cells it says");
    }
  });
}
std::vector<Bytes> rgrid_seeds() {
  const test::Scratch scratch;
  const std::string path = scratch / "x.rgrid";
  pipeline::GridIdentity identity;
  identity.cells = "cells";
  identity.function = "f";
  identity.precision = "f32";
  identity.weights = "none";
  identity.unit = "K";
  identity.n_cells = 12;
  identity.n_channels = 2;
  identity.frequency = {1.4e9, 1e6, 2};
  pipeline::GridStateWriter writer(path, identity, {});
  pipeline::ConsumedBlock block;
  block.source = "source";
  block.name = "name";
  block.n = 5;
  pipeline::GridPart part;
  part.channels = {0, 2};
  part.blocks = {block};
  writer.add(part, pipeline::GridSums(12, 2, false));
  writer.publish();
  return {bytes_of(test::contents(path))};
}

}  // namespace

std::vector<Body> stage_bodies() {
  return {{"observation", observation, observation_seeds},
          {"trigger", trigger, trigger_seeds},
          {"rgrid", rgrid, rgrid_seeds}};
}

}  // namespace ryle::fuzz
