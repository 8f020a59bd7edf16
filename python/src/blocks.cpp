// SPDX-License-Identifier: BSD-3-Clause
#include "python/src/blocks.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/engine/beamform/import.hpp"

namespace ryle::python {

Blocks::Blocks(SampleFormat format, std::int64_t n_channels, std::int64_t n_spectra,
               std::int64_t n_inputs)
    : n_spectra_(n_spectra),
      words_(words_for_bits(n_spectra)),
      bytes_(dense_blocks_bytes(format, n_channels, n_spectra, n_inputs)),
      view_(dense_blocks(bytes_.data(), format, n_channels, n_spectra, n_inputs)) {}

BlockView Blocks::from(std::int64_t first) const {
  BlockView view = view_;
  const std::int64_t skipped = first / spectra_per_block(format());
  view.data += skipped * view.block_stride_bytes;
  view.n_blocks -= skipped;
  return view;
}

correlate::VoltageLayout layout_of(const AnyArray& array, SampleFormat format) {
  const auto bytes = static_cast<std::int64_t>(array.itemsize());
  return {.format = format,
          .channel_stride_bytes = array.stride(0) * bytes,
          .input_stride_bytes = array.stride(2) * bytes,
          .spectrum_stride_bytes = array.stride(1) * bytes};
}

std::int64_t gulp_spectra(std::int64_t bytes_per_spectrum, std::int64_t n_spectra) {
  constexpr std::int64_t kGulp_bytes = std::int64_t{64} << 20, kStep = 128;
  const std::int64_t n =
      kGulp_bytes / std::max<std::int64_t>(bytes_per_spectrum, 1) / kStep * kStep;
  return std::clamp(n, kStep, std::max(kStep, (n_spectra + kStep - 1) / kStep * kStep));
}

namespace {

std::unique_ptr<Blocks> blocks_of(const AnyArray& array, const std::string& format,
                                  const std::optional<DenseArray<bool, 3>>& valid) {
  const auto n_channels = static_cast<std::int64_t>(array.shape(0));
  const auto n_spectra = static_cast<std::int64_t>(array.shape(1));
  const auto n_inputs = static_cast<std::int64_t>(array.shape(2));
  const SampleFormat type = sample_format(format);
  auto blocks = std::make_unique<Blocks>(type, n_channels, n_spectra, n_inputs);
  const bool* mask = valid ? valid->data() : nullptr;
  const std::int64_t n_masks = valid ? static_cast<std::int64_t>(valid->shape(0)) : 0;
  const auto layout = layout_of(array, type);
  if (mask != nullptr) {
    const nb::gil_scoped_release released;
    blocks->valid = pack_bits(mask, n_masks * n_inputs, n_spectra);
  }
  auto queue = shared_queue();
  const std::int64_t bytes = n_channels * n_inputs * static_cast<std::int64_t>(array.itemsize());
  const std::int64_t step = gulp_spectra(bytes, n_spectra);
  for (std::int64_t first = 0; first < n_spectra; first += step) {
    {
      const nb::gil_scoped_release released;
      correlate::ValidPlanes planes;
      if (mask != nullptr)
        planes = {blocks->valid_from(first), blocks->words(), blocks->valid_channel_stride()};
      correlate::import_voltages(
          queue, static_cast<const std::byte*>(array.data()) + first * layout.spectrum_stride_bytes,
          layout, std::min(step, n_spectra - first), blocks->from(first), planes);
    }
    check_signals();
  }
  return blocks;
}

// [channel][spectrum][input] of floats: a block is 16 real parts, then 16 imaginary ones.
void export_floats(const Blocks& blocks, cf32* to) {
  const BlockView view = blocks.from(0);
  const std::int64_t n_spectra = blocks.n_spectra(), n_inputs = blocks.n_inputs();
  auto queue = shared_queue();
  queue.parallel_for(blocks.n_channels(), [&](std::int64_t channel) {
    for (std::int64_t first = 0; first < n_spectra; first += 16) {
      const std::int64_t n = std::min<std::int64_t>(16, n_spectra - first);
      for (std::int64_t input = 0; input < n_inputs; ++input) {
        float parts[32];
        std::memcpy(parts, view.cell(channel, first / 16, input), sizeof parts);
        for (std::int64_t t = 0; t < n; ++t)
          to[(channel * n_spectra + first + t) * n_inputs + input] = {parts[t], parts[16 + t]};
      }
    }
  });
}

void export_codes(const Blocks& blocks, std::byte* to) {
  std::vector<std::int32_t> inputs(count_of(blocks.n_inputs()));
  std::iota(inputs.begin(), inputs.end(), 0);
  auto queue = shared_queue();
  beamform::import_blocks(
      queue, blocks.from(0),
      {.n_channels = blocks.n_channels(), .inputs = inputs, .n_spectra = blocks.n_spectra()}, to);
}

nb::object array_of(const Blocks& blocks) {
  const auto n = count_of(blocks.n_channels() * blocks.n_spectra() * blocks.n_inputs());
  const std::initializer_list<std::size_t> shape = {
      count_of(blocks.n_channels()), count_of(blocks.n_spectra()), count_of(blocks.n_inputs())};
  if (blocks.format() == SampleFormat::cf32) {
    std::vector<cf32> values(n);
    {
      const nb::gil_scoped_release released;
      export_floats(blocks, values.data());
    }
    return nb::cast(to_array(std::move(values), shape));
  }
  if (blocks.format() == SampleFormat::ci4) {
    std::vector<std::uint8_t> values(n);
    {
      const nb::gil_scoped_release released;
      export_codes(blocks, reinterpret_cast<std::byte*>(values.data()));
    }
    return nb::cast(to_array(std::move(values), shape));
  }
  std::vector<ci8> values(n);
  {
    const nb::gil_scoped_release released;
    export_codes(blocks, reinterpret_cast<std::byte*>(values.data()));
  }
  return nb::cast(parts_to_array(std::move(values), shape));
}

Result<bool> valid_of(const Blocks& blocks) {
  const std::int64_t n_masks = blocks.per_channel() ? blocks.n_channels() : 1;
  const std::int64_t n_spectra = blocks.n_spectra(), rows = n_masks * blocks.n_inputs();
  auto kept = std::make_unique<bool[]>(count_of(rows * n_spectra));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t t = 0; t < n_spectra; ++t)
      kept[count_of(row * n_spectra + t)] =
          blocks.valid.empty() || test_bit(blocks.valid.data() + row * blocks.words(), t);
  bool* data = kept.release();
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<bool*>(p); });
  return Result<bool>(data, {count_of(n_masks), count_of(blocks.n_inputs()), count_of(n_spectra)},
                      owner);
}

}  // namespace

void bind_blocks(nb::module_& m) {
  nb::class_<Blocks>(m, "Blocks", "Planar blocks of spectra, as the engines hand them on.")
      .def_static("of", &blocks_of, nb::arg("array").noconvert(), nb::arg("format"),
                  nb::arg("valid").noconvert() = nb::none())
      .def("array", &array_of)
      .def("valid", &valid_of)
      .def_prop_ro("format", [](const Blocks& b) { return std::string(name(b.format())); })
      .def_prop_ro("n_channels", &Blocks::n_channels)
      .def_prop_ro("n_spectra", &Blocks::n_spectra)
      .def_prop_ro("n_inputs", &Blocks::n_inputs);
}

}  // namespace ryle::python
