// SPDX-License-Identifier: BSD-3-Clause
// Planar blocks in the order of the beamformer: by the definition, on the CPU and by the kernel
// thread by thread.
#include "ryle/engine/beamform/import.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "tests/support/simt/cuda_names.hpp"
// The kernel follows the words of CUDA it is written in.
#include "ryle/engine/beamform/cuda/import.cuh"

namespace ryle::beamform {
namespace {

struct Case {
  SampleFormat format = SampleFormat::ci4;
  InputOrder order = InputOrder::spectra;
  std::int64_t n_inputs = 2, n_spectra = 1;

  static constexpr std::int64_t kChannels = 3, kFirst = 1, kBlockInputs = 75;
  Buffer<std::byte> memory{dense_blocks_bytes(format, kChannels + kFirst, n_spectra, kBlockInputs)};
  BlockView blocks =
      dense_blocks(memory.data(), format, kChannels + kFirst, n_spectra, kBlockInputs);
  std::vector<std::int32_t> inputs;
  BlocksImport what;

  Case(SampleFormat f, InputOrder o, std::int64_t n, std::int64_t t)
      : format(f), order(o), n_inputs(n), n_spectra(t) {
    for (std::int64_t k = 0; k < memory.size(); ++k)
      memory[k] = static_cast<std::byte>(mix64(static_cast<std::uint64_t>(k)));
    for (std::int64_t k = 0; k < n; ++k)
      inputs.push_back(static_cast<std::int32_t>((k * 31 + 7) % kBlockInputs));
    what = {order, 128, kFirst, kChannels, inputs, n_spectra};
  }
  std::int64_t channel_bytes() const { return imported_channel_bytes(what, format); }

  /// Samples that are not those of the definition, out of all.
  std::int64_t wrong(const std::vector<std::byte>& found) const {
    const std::int64_t bytes = sample_bytes(format);
    std::int64_t n = 0;
    for (std::int64_t c = 0; c < kChannels; ++c)
      for (std::int64_t t = 0; t < n_spectra; ++t)
        for (std::int64_t k = 0; k < n_inputs; ++k) {
          const std::int64_t at =
              order == InputOrder::spectra
                  ? t * n_inputs + k
                  : (t / 128 * (n_inputs / 2) + k / 2) * 256 + t % 128 * 2 + k % 2;
          const std::byte* sample = found.data() + c * channel_bytes() + at * bytes;
          const cf64 want = get_sample(blocks, kFirst + c, t, inputs[static_cast<std::size_t>(k)]);
          const auto code = [](std::byte b) {
            return static_cast<int>(static_cast<signed char>(b));
          };
          const cf64 is = bytes == 2 ? cf64(code(sample[0]), code(sample[1]))
                                     : cf64(code(sample[0]) >> 4, code(sample[0] << 4) >> 4);
          n += is != want;
        }
    return n;
  }
  detail::ImportArguments arguments(std::vector<std::byte>& to) const {
    detail::ImportArguments a{};
    a.from = blocks.data + kFirst * blocks.channel_stride_bytes;
    a.to = to.data();
    a.inputs = inputs.data();
    a.channel_stride_bytes = blocks.channel_stride_bytes;
    a.block_stride_bytes = blocks.block_stride_bytes;
    a.input_stride_bytes = blocks.input_stride_bytes;
    a.to_channel_bytes = channel_bytes();
    a.n_spectra = n_spectra;
    a.block_spectra = order == InputOrder::pairs ? 128 : 0;
    a.n_inputs = static_cast<int>(n_inputs);
    a.n_blocks = static_cast<int>(n_blocks(format, n_spectra));
    a.n_tiles = static_cast<int>((n_inputs + detail::kImportInputs - 1) / detail::kImportInputs);
    return a;
  }
};

// Chosen inputs in any order, whole and broken tiles of inputs, whole and broken blocks.
TEST(Import, SamplesLieWhereTheBeamformerReadsThem) {
  std::uint64_t seed = 0;
  Queue cpu = Queue::cpu(2);
  for (const SampleFormat format : {SampleFormat::ci4, SampleFormat::ci8}) {
    for (const InputOrder order : {InputOrder::spectra, InputOrder::pairs}) {
      for (const std::int64_t n_inputs : {2, 32, 70}) {
        for (const std::int64_t n_spectra : {1, 64, 128, 300}) {
          const Case c(format, order, n_inputs, n_spectra);
          std::vector<std::byte> found(
              static_cast<std::size_t>(Case::kChannels * c.channel_bytes()), std::byte{0xCD});
          import_blocks(cpu, c.blocks, c.what, found.data());
          EXPECT_EQ(c.wrong(found), 0) << name(format) << " N=" << n_inputs << " T=" << n_spectra;
          std::vector<std::byte> by_kernel(found.size(), std::byte{0xCD});
          const detail::ImportArguments a = c.arguments(by_kernel);
          const auto grid = static_cast<unsigned>(a.n_tiles * a.n_blocks * Case::kChannels);
          simt::launch({{grid}, {detail::kImportThreads}}, seed++, [&] {
            if (format == SampleFormat::ci4)
              detail::import_tile<true>(a);
            else
              detail::import_tile<false>(a);
          });
          EXPECT_EQ(c.wrong(by_kernel), 0)
              << name(format) << " N=" << n_inputs << " T=" << n_spectra;
        }
      }
    }
  }
}

TEST(Import, OtherFormatsAreRejected) {
  EXPECT_THROW(sample_bytes(SampleFormat::cf32), UnsupportedError);
}

}  // namespace
}  // namespace ryle::beamform
