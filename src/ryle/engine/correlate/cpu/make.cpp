// SPDX-License-Identifier: BSD-3-Clause
// Driver of all cpu implementations: expands, packs, multiplies, folds; the arithmetic is in
// cpu/<instruction set>.cpp, the layout of rows, panels and sums in cpu/tile.hpp.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/device/buffer.hpp"
#include "ryle/device/tasks.hpp"
#include "ryle/engine/correlate/counts.hpp"
#include "ryle/engine/correlate/cpu/fold.hpp"
#include "ryle/engine/correlate/cpu/kernel.hpp"
#include "ryle/engine/correlate/implementations.hpp"

namespace ryle::correlate::detail {
namespace {

// |sum of one spectrum| <= 2 * 128^2 for signed bytes: 65 535 spectra fit int32; 1023 cells of 64
// stay below.
constexpr std::int64_t kMaxSpectraInInt32 = 65'472;
// Share of a level-2 cache of 1 MB or more that the rows of a chunk may take.
constexpr std::int64_t kCachedRowsBytes = std::int64_t{512} << 10;
// Sums of a dump that no cache near the cores keeps until they are used.
constexpr std::int64_t kStreamedBytes = std::int64_t{4} << 20;

Expansion expansion_of(SampleFormat format, const CpuKernel& kernel) {
  const bool shorts = kernel.cell_bytes == 256;
  switch (format) {
    case SampleFormat::ci4:
      return shorts ? Expansion::ci4_to_s16 : Expansion::ci4_to_s8;
    case SampleFormat::ci16:
      return shorts ? Expansion::ci16_to_s16 : Expansion::ci16_to_s8;
    case SampleFormat::cf16:
      return Expansion::cf16_to_f32;
    default:
      return shorts ? Expansion::ci8_to_s16 : Expansion::none;
  }
}

// All sizes that follow from the problem and the kernel; pure.
struct Shape {
  Shape(const Config& config, const CpuKernel& k)
      : kernel(k),
        expansion(expansion_of(config.format, k)),
        n_inputs(config.n_inputs),
        n_channels(config.n_channels),
        split(config.format == SampleFormat::ci16 ? 2 : 1),
        n_rows(config.n_inputs * split),
        n_panels((n_rows + k.columns - 1) / k.columns),
        cells_per_block(spectra_per_block(config.format) / k.spectra_per_cell),
        chunk_blocks(std::min(choose_chunk_blocks(), n_blocks(config.format, config.max_spectra))),
        chunk_cells(chunk_blocks * cells_per_block),
        row_elements(2 * k.columns),
        element_bytes(k.floating ? 8 : 4) {
    panel_first.resize(static_cast<std::size_t>(n_panels) + 1);
    for (std::int64_t p = 0; p < n_panels; ++p) {
      panel_first[p + 1] = panel_first[p] + (n_rows - p * k.columns) * row_elements;
    }
  }

  // The rows all panels of a chunk multiply stay in the level-2 cache (512 KB, twice that for many
  // inputs), while the accumulators are read and written once per 1024 spectra at least.
  std::int64_t choose_chunk_blocks() const {
    const std::int64_t rows = std::min(n_rows, kernel.superrows);
    const std::int64_t fitting = kCachedRowsBytes / (rows * kernel.cell_bytes);
    const std::int64_t minimum = 1024 / kernel.spectra_per_cell;
    return std::clamp(fitting, minimum, 4 * minimum) / cells_per_block;
  }

  std::int64_t acc_bytes() const { return panel_first.back() * element_bytes; }
  std::int64_t panel_bytes() const { return kernel.cells_per_pass * kernel.panel_cell_bytes; }
  std::int64_t expanded_bytes() const {
    return expansion == Expansion::none ? 0 : chunk_cells * n_rows * kernel.cell_bytes;
  }

  const CpuKernel& kernel;
  Expansion expansion;
  std::int64_t n_inputs;
  std::int64_t n_channels;
  std::int64_t split;   // virtual inputs per input
  std::int64_t n_rows;  // virtual inputs
  std::int64_t n_panels;
  std::int64_t cells_per_block;  // kernel cells in time per planar block
  std::int64_t chunk_blocks;
  std::int64_t chunk_cells;
  std::int64_t row_elements;
  std::int64_t element_bytes;
  std::vector<std::int64_t> panel_first;  // element of row `panel * columns` of each panel
};

// A worker inside a kernel's own machine state (AMX tile configuration).
class Entered {
 public:
  explicit Entered(const CpuKernel& kernel) : kernel_(kernel) {
    if (kernel_.enter != nullptr) kernel_.enter();
  }
  ~Entered() {
    if (kernel_.leave != nullptr) kernel_.leave();
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  const CpuKernel& kernel_;
};

class CpuCorrelator final : public Correlator {
 public:
  CpuCorrelator(Queue& queue, const Config& config, const CpuKernel& kernel);
  void execute(Queue& queue, const Input& input) override;
  void finish(Queue& queue, Sums& sums) override;
  void reset(Queue& queue) override;
  std::string_view implementation() const override { return name_; }
  const Config& config() const override { return config_; }

 private:
  struct Chunk {
    std::int64_t channel;
    std::int64_t first_block;
    std::int64_t n_blocks;
    std::int64_t slot;
  };
  void accumulate_channel(const Input& input, std::int64_t blocks, std::int64_t slot,
                          std::int64_t channel);
  void accumulate_together(Queue& queue, const Input& input, std::int64_t blocks,
                           std::int64_t channel);
  std::int64_t spectra_after(std::int64_t spectra, const Chunk& chunk);
  void expand(const Input& input, const Chunk& chunk, std::int64_t first_input,
              std::int64_t n_inputs);
  Cells cells_of(const Input& input, const Chunk& chunk) const;
  void multiply(const Cells& cells, const Chunk& chunk, std::int64_t panel, std::int64_t row_begin,
                std::int64_t row_end, Ahead& ahead);
  Ahead ahead_of(const Input& input, std::int64_t blocks, const Chunk& chunk,
                 std::int64_t n_workers) const;
  void fold(std::int64_t channel);
  void fold_all(Queue& queue);
  void fold_rows(std::int64_t channel, std::int64_t row_begin, std::int64_t row_end);
  void fold_integers(std::int64_t channel, std::int64_t row_begin, std::int64_t row_end);
  void fold_split_integers(std::int64_t channel);
  void fold_floats(std::int64_t channel, std::int64_t row_begin, std::int64_t row_end);
  void recenter(std::int64_t channel);
  ci32 correction(std::int64_t channel, std::int64_t j) const;
  ci32 corrected(std::int64_t channel, std::int64_t i, std::int64_t j) const;
  std::byte* acc(std::int64_t channel) const { return acc_.data() + channel * acc_stride_; }
  std::int32_t* row_sums(std::int64_t channel) const {
    return row_sums_.data() + channel * 2 * sums_stride_;
  }
  std::uint8_t* panel_data(std::int64_t slot) const {
    return reinterpret_cast<std::uint8_t*>(panels_.data()) + slot * shape_.panel_bytes();
  }

  Config config_;
  Shape shape_;
  std::string name_;
  int n_workers_;
  std::int64_t pairs_;
  std::int64_t acc_stride_;
  std::int64_t sums_stride_;
  Buffer<std::byte> acc_;           // [channel][panel][row][re, im][column]
  Buffer<std::int32_t> row_sums_;   // [channel][re, im][row], since the last fold
  Buffer<std::int64_t> long_sums_;  // ci16: the same since reset()
  Buffer<std::byte> panels_;  // [slot] one pass of one panel, in the level-1 cache while it is used
  Buffer<std::byte> expanded_;  // [slot][cell][row]
  std::vector<ci64> integer_;   // [channel][pair], folded
  std::vector<cf64> real_;
  std::vector<std::uint8_t> folded_;  // [channel]: integer_ / real_ hold something to add to
  PairCounter counter_;
  std::int64_t in_int32_ = 0;        // spectra in acc_, padding included
  std::int64_t padded_spectra_ = 0;  // since reset(), padding included
  std::int64_t n_spectra_ = 0;
};

CpuCorrelator::CpuCorrelator(Queue& queue, const Config& config, const CpuKernel& kernel)
    : config_(config),
      shape_(config, kernel),
      name_(std::string("correlate/cpu/") + kernel.instruction_set),
      n_workers_(queue.n_workers()),
      pairs_(n_pairs(config.n_inputs)),
      acc_stride_((shape_.acc_bytes() + 127) / 128 * 128),
      sums_stride_((shape_.n_rows + 15) / 16 * 16),
      acc_(checked_product({config.n_channels, acc_stride_}, "correlator accumulators")),
      row_sums_(config.n_channels * 2 * sums_stride_),
      long_sums_(shape_.split == 2 ? config.n_channels * 2 * sums_stride_ : 0),
      panels_(checked_product({queue.n_workers(), shape_.panel_bytes()}, "correlator panels")),
      expanded_(checked_product({queue.n_workers(), shape_.expanded_bytes()}, "correlator cells")),
      folded_(config.n_channels),
      counter_(config, queue.n_workers()) {
  const auto n = static_cast<std::size_t>(config.n_channels * pairs_);
  if (kernel.floating) {
    real_.resize(n);
  } else {
    integer_.resize(n);
  }
}

void CpuCorrelator::execute(Queue& queue, const Input& input) {
  const std::int64_t blocks = n_blocks(config_.format, input.n_spectra);
  RYLE_ASSERT(input.n_spectra >= 0 && input.n_spectra <= config_.max_spectra);
  RYLE_ASSERT(input.blocks.format == config_.format && input.blocks.n_inputs == config_.n_inputs);
  RYLE_ASSERT(input.blocks.n_channels == config_.n_channels && input.blocks.n_blocks >= blocks);
  RYLE_ASSERT(queue.n_workers() <= n_workers_);  // scratch memory is per worker
  if (input.n_spectra == 0) return;
  // Whole channels are independent; only when they are too few to share out, workers join on the
  // panels of each.
  if (queue.n_workers() == 1 || config_.n_channels >= 2 * queue.n_workers()) {
    for_each_task(queue, config_.n_channels, [&](std::int64_t slot, std::int64_t channel) {
      accumulate_channel(input, blocks, slot, channel);
    });
  } else {
    for (std::int64_t channel = 0; channel < config_.n_channels; ++channel) {
      accumulate_together(queue, input, blocks, channel);
    }
  }
  // Every channel went through the same chunks.
  for (std::int64_t block = 0; block < blocks; block += shape_.chunk_blocks) {
    const Chunk chunk{0, block, std::min(shape_.chunk_blocks, blocks - block), 0};
    const std::int64_t spectra = chunk.n_blocks * spectra_per_block(config_.format);
    in_int32_ = in_int32_ + spectra > kMaxSpectraInInt32 ? spectra : in_int32_ + spectra;
    padded_spectra_ += spectra;
  }
  n_spectra_ += input.n_spectra;
  counter_.add(queue, input);
}

// Spectra the int32 sums of a channel hold with this chunk; folds first when they would not fit.
std::int64_t CpuCorrelator::spectra_after(std::int64_t spectra, const Chunk& chunk) {
  const std::int64_t more = chunk.n_blocks * spectra_per_block(config_.format);
  if (spectra + more <= kMaxSpectraInInt32) return spectra + more;
  fold(chunk.channel);
  return more;
}

void CpuCorrelator::accumulate_channel(const Input& input, std::int64_t blocks, std::int64_t slot,
                                       std::int64_t channel) {
  std::int64_t spectra = in_int32_;
  const std::int64_t columns = shape_.kernel.columns;
  const Entered entered(shape_.kernel);
  for (std::int64_t block = 0; block < blocks; block += shape_.chunk_blocks) {
    const Chunk chunk{channel, block, std::min(shape_.chunk_blocks, blocks - block), slot};
    spectra = spectra_after(spectra, chunk);
    if (shape_.expansion != Expansion::none) expand(input, chunk, 0, shape_.n_inputs);
    const Cells cells = cells_of(input, chunk);
    Ahead ahead = ahead_of(input, blocks, chunk, n_workers_);
    for (std::int64_t row = 0; row < shape_.n_rows; row += shape_.kernel.superrows) {
      const std::int64_t row_end = std::min(row + shape_.kernel.superrows, shape_.n_rows);
      for (std::int64_t panel = 0; panel * columns < row_end; ++panel) {
        multiply(cells, chunk, panel, row, row_end, ahead);
      }
    }
  }
}

void CpuCorrelator::accumulate_together(Queue& queue, const Input& input, std::int64_t blocks,
                                        std::int64_t channel) {
  std::int64_t spectra = in_int32_;
  const std::int64_t columns = shape_.kernel.columns;
  for (std::int64_t block = 0; block < blocks; block += shape_.chunk_blocks) {
    const Chunk chunk{channel, block, std::min(shape_.chunk_blocks, blocks - block), 0};
    spectra = spectra_after(spectra, chunk);
    const Cells cells = cells_of(input, chunk);
    if (shape_.expansion != Expansion::none) {
      constexpr std::int64_t kStep = 32;
      for_each_task(
          queue, (shape_.n_inputs + kStep - 1) / kStep, [&](std::int64_t, std::int64_t task) {
            expand(input, chunk, task * kStep, std::min(kStep, shape_.n_inputs - task * kStep));
          });
    }
    const std::int64_t n_super =
        (shape_.n_rows + shape_.kernel.superrows - 1) / shape_.kernel.superrows;
    for_each_task(queue, n_super * shape_.n_panels, [&](std::int64_t slot, std::int64_t task) {
      const std::int64_t panel = task % shape_.n_panels;
      const std::int64_t row = (n_super - 1 - task / shape_.n_panels) * shape_.kernel.superrows;
      const std::int64_t row_end = std::min(row + shape_.kernel.superrows, shape_.n_rows);
      const Entered entered(shape_.kernel);
      Ahead nothing{};
      Chunk own = chunk;
      own.slot = slot;
      if (panel * columns < row_end) multiply(cells, own, panel, row, row_end, nothing);
    });
  }
}

// The blocks and sums this worker will need next; nothing where they do not lie in one piece.
Ahead CpuCorrelator::ahead_of(const Input& input, std::int64_t blocks, const Chunk& chunk,
                              std::int64_t n_workers) const {
  const auto& view = input.blocks;
  Ahead ahead{};
  if (view.block_stride_bytes != view.n_inputs * view.input_stride_bytes) return ahead;
  std::int64_t channel = chunk.channel;
  std::int64_t block = chunk.first_block + chunk.n_blocks;
  if (block >= blocks) {
    block = 0;
    channel += n_workers;  // tasks are handed out in order
    if (channel >= config_.n_channels) return ahead;
    ahead.at[1] = reinterpret_cast<const std::uint8_t*>(acc(channel));
    ahead.lines[1] = acc_stride_ / 64;
  }
  ahead.at[0] = reinterpret_cast<const std::uint8_t*>(view.cell(channel, block, 0));
  ahead.lines[0] = std::min(shape_.chunk_blocks, blocks - block) * view.block_stride_bytes / 64;
  // More would push out what this chunk still needs; large arrays compute long enough per byte.
  if (ahead.lines[0] * 64 > kCachedRowsBytes) return Ahead{};
  const std::int64_t tiles =
      n_pairs(shape_.n_panels) * (shape_.kernel.columns / shape_.kernel.rows_per_tile + 1);
  const std::int64_t runs = tiles * chunk.n_blocks * shape_.cells_per_block;
  ahead.lines_per_run = (ahead.lines[0] + ahead.lines[1] + runs - 1) / runs;
  return ahead;
}

void CpuCorrelator::expand(const Input& input, const Chunk& chunk, std::int64_t first_input,
                           std::int64_t n_inputs) {
  const std::int64_t row_bytes = shape_.kernel.cell_bytes;
  const std::int64_t time_stride = shape_.n_rows * row_bytes;
  auto* to =
      reinterpret_cast<std::uint8_t*>(expanded_.data()) + chunk.slot * shape_.expanded_bytes();
  for (std::int64_t block = 0; block < chunk.n_blocks; ++block) {
    for (std::int64_t p = first_input; p < first_input + n_inputs; ++p) {
      const auto* from = reinterpret_cast<const std::uint8_t*>(
          input.blocks.cell(chunk.channel, chunk.first_block + block, p));
      shape_.kernel.expand(
          shape_.expansion, from,
          to + block * shape_.cells_per_block * time_stride + p * shape_.split * row_bytes,
          time_stride, row_bytes);
    }
  }
}

Cells CpuCorrelator::cells_of(const Input& input, const Chunk& chunk) const {
  if (shape_.expansion == Expansion::none) {
    return {reinterpret_cast<const std::uint8_t*>(
                input.blocks.cell(chunk.channel, chunk.first_block, 0)),
            input.blocks.block_stride_bytes, input.blocks.input_stride_bytes};
  }
  const auto* first = reinterpret_cast<const std::uint8_t*>(expanded_.data()) +
                      chunk.slot * shape_.expanded_bytes();
  return {first, shape_.n_rows * shape_.kernel.cell_bytes, shape_.kernel.cell_bytes};
}

// One panel against rows [row_begin, row_end), pass by pass: packed into the level-1 cache and used
// at once.
void CpuCorrelator::multiply(const Cells& cells, const Chunk& chunk, std::int64_t panel,
                             std::int64_t row_begin, std::int64_t row_end, Ahead& ahead) {
  const CpuKernel& kernel = shape_.kernel;
  const std::int64_t first = panel * kernel.columns;
  const std::int64_t begin = std::max(row_begin, first);
  const std::int64_t n_cells = chunk.n_blocks * shape_.cells_per_block;
  std::byte* to =
      acc(chunk.channel) +
      (shape_.panel_first[panel] + (begin - first) * shape_.row_elements) * shape_.element_bytes;
  std::uint8_t* packed = panel_data(chunk.slot);
  // Row sums belong to the inputs of the panel: counted where the panel meets its own rows, once.
  std::int32_t unused[2][16] = {};
  std::int32_t* sums_re = begin == first ? row_sums(chunk.channel) + first : unused[0];
  std::int32_t* sums_im = begin == first ? sums_re + sums_stride_ : unused[1];
  for (std::int64_t cell = 0; cell < n_cells; cell += kernel.cells_per_pass) {
    const std::int64_t n = std::min(kernel.cells_per_pass, n_cells - cell);
    const std::uint8_t* at = cells.data + cell * cells.cell_stride_bytes;
    const Cells columns{at + first * cells.input_stride_bytes, cells.cell_stride_bytes,
                        cells.input_stride_bytes};
    const Cells rows{at + begin * cells.input_stride_bytes, cells.cell_stride_bytes,
                     cells.input_stride_bytes};
    kernel.pack(columns, std::min(kernel.columns, shape_.n_rows - first), n, packed, sums_re,
                sums_im);
    kernel.multiply(rows, row_end - begin, packed, n, to, ahead);
  }
}

// Correction of row j for the 8-bit stand-ins; modulo 2^32.
ci32 CpuCorrelator::correction(std::int64_t channel, std::int64_t j) const {
  const CpuKernel& kernel = shape_.kernel;
  const std::int32_t* sums = row_sums(channel) + j;
  const auto r = static_cast<std::uint32_t>(sums[0]);
  const auto s = static_cast<std::uint32_t>(sums[sums_stride_]);
  const auto times = [](std::int32_t factor, std::uint32_t x) {
    return static_cast<std::uint32_t>(factor) * x;
  };
  return {static_cast<std::int32_t>(times(kernel.re_from_re, r) + times(kernel.re_from_im, s)),
          static_cast<std::int32_t>(times(kernel.im_from_re, r) + times(kernel.im_from_im, s))};
}

// The int32 sum of rows j and columns i, i <= j (or in j's panel), corrected; modulo 2^32.
ci32 CpuCorrelator::corrected(std::int64_t channel, std::int64_t i, std::int64_t j) const {
  const std::int64_t columns = shape_.kernel.columns;
  const std::int64_t panel = i / columns;
  const auto* words = reinterpret_cast<const std::uint32_t*>(acc(channel)) +
                      shape_.panel_first[panel] + (j - panel * columns) * shape_.row_elements +
                      i % columns;
  const ci32 add = correction(channel, j);
  return {static_cast<std::int32_t>(words[0] + static_cast<std::uint32_t>(add.re)),
          static_cast<std::int32_t>(words[columns] + static_cast<std::uint32_t>(add.im))};
}

void CpuCorrelator::fold_integers(std::int64_t channel, std::int64_t row_begin,
                                  std::int64_t row_end) {
  ci64* to = integer_.data() + channel * pairs_;
  const Accumulators<std::uint32_t> sums{reinterpret_cast<std::uint32_t*>(acc(channel)),
                                         shape_.panel_first.data(), shape_.kernel.columns};
  const bool stream = config_.n_channels * pairs_ * 16 > kStreamedBytes && can_stream(to);
  const Output output = folded_[channel] != 0 ? Output::added
                        : stream              ? Output::streamed
                                              : Output::stored;
  for (std::int64_t j = row_begin; j < row_end; ++j) {
    fold_row(sums, j, correction(channel, j), output, to + n_pairs(j));
  }
  if (stream) fence_streams();
}

// x = y + c with y = 256 H + L, c = 128 (1 + i):
// sum x_i conj(x_j) = sum y_i conj(y_j) + conj(c) sum y_i + c conj(sum y_j) + |c|^2 T; the last
// three when the dump ends.
void CpuCorrelator::fold_split_integers(std::int64_t channel) {
  ci64* to = integer_.data() + channel * pairs_;
  const bool add = folded_[channel] != 0;
  for (std::int64_t j = 0; j < shape_.n_inputs; ++j) {
    for (std::int64_t i = 0; i <= j; ++i, ++to) {
      const ci32 hh = corrected(channel, 2 * i, 2 * j);
      const ci32 hl = corrected(channel, 2 * i, 2 * j + 1);
      const ci32 ll = corrected(channel, 2 * i + 1, 2 * j + 1);
      ci32 lh = i == j ? hl : corrected(channel, 2 * i + 1, 2 * j);
      if (i == j) lh.im = -lh.im;
      const std::int64_t re =
          std::int64_t{65536} * hh.re + 256 * (std::int64_t{hl.re} + lh.re) + ll.re;
      const std::int64_t im =
          std::int64_t{65536} * hh.im + 256 * (std::int64_t{hl.im} + lh.im) + ll.im;
      *to = add ? ci64{to->re + re, to->im + im} : ci64{re, im};
    }
  }
  const std::int32_t* sums = row_sums(channel);
  std::int64_t* longs = long_sums_.data() + channel * 2 * sums_stride_;
  for (std::int64_t k = 0; k < 2 * sums_stride_; ++k) longs[k] += sums[k];
}

void CpuCorrelator::fold_floats(std::int64_t channel, std::int64_t row_begin,
                                std::int64_t row_end) {
  const Accumulators<double> sums{reinterpret_cast<double*>(acc(channel)),
                                  shape_.panel_first.data(), shape_.kernel.columns};
  for (std::int64_t j = row_begin; j < row_end; ++j) {
    fold_row(sums, j, folded_[channel] != 0 ? Output::added : Output::stored,
             real_.data() + channel * pairs_ + n_pairs(j));
  }
}

// Rows are independent, but for pairs of virtual inputs (split), which come with all rows.
void CpuCorrelator::fold_rows(std::int64_t channel, std::int64_t row_begin, std::int64_t row_end) {
  if (shape_.kernel.floating) {
    fold_floats(channel, row_begin, row_end);
  } else if (shape_.split == 2) {
    fold_split_integers(channel);
    std::memset(acc(channel), 0, static_cast<std::size_t>(acc_stride_));
  } else {
    fold_integers(channel, row_begin, row_end);
  }
  for (std::int32_t* sums : {row_sums(channel), row_sums(channel) + sums_stride_}) {
    std::fill(sums + row_begin, sums + row_end, 0);
  }
}

void CpuCorrelator::fold(std::int64_t channel) {
  fold_rows(channel, 0, shape_.n_rows);
  folded_[channel] = 1;
}

// What fold_split_integers() leaves out, from the sums of the whole dump.
void CpuCorrelator::recenter(std::int64_t channel) {
  const std::int64_t* re = long_sums_.data() + channel * 2 * sums_stride_;
  const std::int64_t* im = re + sums_stride_;
  ci64* to = integer_.data() + channel * pairs_;
  for (std::int64_t j = 0; j < shape_.n_inputs; ++j) {
    const ci64 yj{256 * re[2 * j] + re[2 * j + 1], 256 * im[2 * j] + im[2 * j + 1]};
    for (std::int64_t i = 0; i <= j; ++i, ++to) {
      const ci64 yi{256 * re[2 * i] + re[2 * i + 1], 256 * im[2 * i] + im[2 * i + 1]};
      to->re += 128 * (yi.re + yi.im + yj.re + yj.im) + 32768 * padded_spectra_;
      to->im += 128 * (yi.im - yi.re + yj.re - yj.im);
    }
  }
}

// Whole channels, or where they are few, also rows: bands of about the same number of pairs.
void CpuCorrelator::fold_all(Queue& queue) {
  const bool few = config_.n_channels < 4 * queue.n_workers() && shape_.split == 1;
  const std::int64_t bands = few ? std::min<std::int64_t>(8, shape_.n_rows) : 1;
  const auto first_row = [&](std::int64_t band) {
    const double share = static_cast<double>(band) / static_cast<double>(bands);
    return static_cast<std::int64_t>(std::sqrt(share) * static_cast<double>(shape_.n_rows));
  };
  for_each_task(queue, config_.n_channels * bands, [&](std::int64_t, std::int64_t task) {
    const std::int64_t channel = task / bands, band = task % bands;
    fold_rows(channel, first_row(band), first_row(band + 1));
    if (shape_.split == 2) recenter(channel);
  });
}

void CpuCorrelator::finish(Queue& queue, Sums& sums) {
  fold_all(queue);
  // Swapped, not copied: from the second dump on, two sets of sums go back and forth.
  const auto n = static_cast<std::size_t>(config_.n_channels * pairs_);
  if (shape_.kernel.floating) {
    std::swap(sums.real, real_);
    real_.resize(n);
    sums.integer.clear();
  } else {
    std::swap(sums.integer, integer_);
    integer_.resize(n);
    sums.real.clear();
  }
  counter_.finish(queue, sums.counts);
  sums.n_spectra = n_spectra_;
  std::fill(folded_.begin(), folded_.end(), std::uint8_t{0});
  if (long_sums_.size() > 0)
    std::memset(long_sums_.data(), 0, static_cast<std::size_t>(long_sums_.bytes()));
  in_int32_ = padded_spectra_ = n_spectra_ = 0;
}

void CpuCorrelator::reset(Queue&) {
  std::memset(acc_.data(), 0, static_cast<std::size_t>(acc_.bytes()));
  std::memset(row_sums_.data(), 0, static_cast<std::size_t>(row_sums_.bytes()));
  if (long_sums_.size() > 0)
    std::memset(long_sums_.data(), 0, static_cast<std::size_t>(long_sums_.bytes()));
  std::fill(folded_.begin(), folded_.end(), std::uint8_t{0});
  counter_.reset();
  in_int32_ = padded_spectra_ = n_spectra_ = 0;
}

}  // namespace

std::unique_ptr<Correlator> make_cpu(Queue& queue, const Config& config, const CpuKernel& kernel) {
  return std::make_unique<CpuCorrelator>(queue, config, kernel);
}

CpuMemory cpu_memory(const Config& config, const CpuKernel& kernel) {
  const Shape shape(config, kernel);
  const std::int64_t per_channel =
      (shape.acc_bytes() + 127) / 128 * 128 + n_pairs(config.n_inputs) * 16;
  return {config.n_channels * per_channel + PairCounter::bytes(config),
          shape.panel_bytes() + shape.expanded_bytes()};
}

}  // namespace ryle::correlate::detail
