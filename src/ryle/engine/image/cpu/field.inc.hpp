// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// E-field imaging of one channel on a CPU (path efield), a spectrum a lane:
//   g_p(cell) = sum_a w_a(cell) c_ap v_ap,  B_p = FFT[g_p],  planes += |B_x|^2, |B_y|^2, B_x conj(B_y)
//
//   array    axes                                   type       content
//   samples  [block][input][128 bytes]              ci4, ci8   LSB
//   inputs   [input][re, im][lane]                  float      calibrated
//   grid     [y][x][re, im][lane]                   float      the box of the aperture
//   planes   [plane][column][padded row]            float      sums over spectra
//
// Steps: unpack, calibrate, grid, transform the box, multiply, sum. Gridding has no conflicts: a cell holds the same
// cell of kLanes spectra. Included after cpu/transform.inc.hpp.
// clang-format on

/// kLanes spectra of one input, as integers in floats. @pre spectrum is a multiple of kLanes
RYLE_INLINE C read_spectra(const FieldSamples& samples, std::int64_t input, std::int64_t spectrum) {
  const std::int64_t per_block = samples.four_bits ? 128 : 64;
  const std::byte* cell = samples.data + spectrum / per_block * samples.block_stride_bytes +
                          input * samples.input_stride_bytes;
  const std::int64_t t = spectrum % per_block;
  Byte re, im;
  if (samples.four_bits) {
    __builtin_memcpy(&re, cell + t, sizeof re);
    const I wide = __builtin_convertvector(re, I);
    return {__builtin_convertvector(wide >> 4, V), __builtin_convertvector((wide << 28) >> 28, V)};
  }
  const std::byte* run = cell + t / 32 * 64 + t % 32;
  __builtin_memcpy(&re, run, sizeof re);
  __builtin_memcpy(&im, run + 32, sizeof im);
  return {__builtin_convertvector(__builtin_convertvector(re, I), V),
          __builtin_convertvector(__builtin_convertvector(im, I), V)};
}

inline void read_inputs(const FieldChannel& channel, const FieldSamples& samples,
                        std::int64_t spectrum, float* inputs) {
  for (std::int64_t slot = 0; slot < channel.n_inputs; ++slot) {
    store_point(inputs + slot * kPoint, times(read_spectra(samples, channel.inputs[slot], spectrum),
                                              channel.gains + 2 * slot));
  }
}

/// Powers of every antenna: XX, YY, Re XY*, Im XY*, lane by lane.
inline void add_autos(const FieldChannel& channel, const float* inputs, float* autos) {
  for (std::int64_t n = 0; n < channel.n_pairs; ++n, autos += 4 * kLanes) {
    const std::int32_t sx = channel.pairs[2 * n], sy = channel.pairs[2 * n + 1];
    const C x = sx < 0 ? C{} : load_point(inputs + sx * kPoint);
    const C y = sy < 0 ? C{} : load_point(inputs + sy * kPoint);
    store(autos, load(autos) + (x.re * x.re + x.im * x.im));
    store(autos + kLanes, load(autos + kLanes) + (y.re * y.re + y.im * y.im));
    store(autos + 2 * kLanes, load(autos + 2 * kLanes) + (x.re * y.re + x.im * y.im));
    store(autos + 3 * kLanes, load(autos + 3 * kLanes) + (x.im * y.re - x.re * y.im));
  }
}

template <int K>
__attribute__((noinline)) void grid_separable(const FieldTerms& terms, std::int64_t grid_x,
                                              const float* inputs, float* grid) {
  for (std::int64_t n = 0; n < terms.n; ++n) {
    const C e = load_point(inputs + terms.slot[n] * kPoint);
    const float* wx = terms.weight_x + n * kWeightStride;
    const float* wy = terms.weight_y + n * kWeightStride;
    float* row = grid + terms.cell[n] * kPoint;
    for (int j = 0; j < K; ++j, row += grid_x * kPoint) {
      const C scaled = {e.re * wy[j], e.im * wy[j]};
      static_for<0, K>([&](auto i) RYLE_ALWAYS {
        const C sum = load_point(row + i * kPoint);
        store_point(row + i * kPoint, {sum.re + scaled.re * wx[i], sum.im + scaled.im * wx[i]});
      });
    }
  }
}

inline void grid_apertures(const FieldTerms& terms, std::int64_t k, std::int64_t grid_x,
                           const float* inputs, float* grid) {
  for (std::int64_t n = 0; n < terms.n; ++n) {
    const C e = load_point(inputs + terms.slot[n] * kPoint);
    const float* w = terms.aperture + n * k * k * 2;
    for (std::int64_t j = 0; j < k; ++j) {
      float* row = grid + (terms.cell[n] + j * grid_x) * kPoint;
      for (std::int64_t i = 0; i < k; ++i, w += 2) {
        store_point(row + i * kPoint, load_point(row + i * kPoint) + times(e, w));
      }
    }
  }
}

inline void add_row(float* to, const float* from, std::int64_t n_cells) {
  for (std::int64_t i = 0; i < n_cells * kPoint; i += kLanes) {
    store(to + i, load(to + i) + load(from + i));
  }
}

/// Cells beyond the box belong to its other side (only when the aperture fills the grid).
inline void wrap_grid(const FieldChannel& channel, float* grid) {
  for (std::int64_t y = channel.box_y; y < channel.grid_y; ++y) {
    add_row(grid + (y - channel.box_y) * channel.grid_x * kPoint,
            grid + y * channel.grid_x * kPoint, channel.grid_x);
  }
  for (std::int64_t y = 0; y < channel.box_y; ++y) {
    float* row = grid + y * channel.grid_x * kPoint;
    add_row(row, row + channel.box_x * kPoint, channel.grid_x - channel.box_x);
  }
}

inline void make_grid(const FieldShape& shape, const FieldChannel& channel, const FieldTerms& terms,
                      const float* inputs, float* grid) {
  __builtin_memset(
      grid, 0, static_cast<std::size_t>(channel.grid_x * channel.grid_y * kPoint) * sizeof(float));
  if (terms.aperture != nullptr) {
    grid_apertures(terms, shape.support, channel.grid_x, inputs, grid);
  } else {
    switch (shape.support) {
      case 3:
        grid_separable<3>(terms, channel.grid_x, inputs, grid);
        break;
      case 4:
        grid_separable<4>(terms, channel.grid_x, inputs, grid);
        break;
      case 5:
        grid_separable<5>(terms, channel.grid_x, inputs, grid);
        break;
      case 6:
        grid_separable<6>(terms, channel.grid_x, inputs, grid);
        break;
      case 7:
        grid_separable<7>(terms, channel.grid_x, inputs, grid);
        break;
      case 8:
        grid_separable<8>(terms, channel.grid_x, inputs, grid);
        break;
      default:
        grid_separable<9>(terms, channel.grid_x, inputs, grid);
        break;
    }
  }
  wrap_grid(channel, grid);
}

/// Products of one column, rows in blocks of kLanes, summed over the lanes.
inline void detect_two(const float* x, const float* y, std::int64_t block, bool cross,
                       float* const (&plane)[4]) {
  const float* px = x + block * kLanes * kPoint;
  const float* py = y + block * kLanes * kPoint;
  const std::int64_t at = block * kLanes;
  const Two powers = sum_lanes<1, 0>([&](auto i) RYLE_ALWAYS {
    const C a = load_point(px + i * kPoint), b = load_point(py + i * kPoint);
    return Two{a.re * a.re + a.im * a.im, b.re * b.re + b.im * b.im};
  });
  store(plane[0] + at, load(plane[0] + at) + powers.a);
  store(plane[1] + at, load(plane[1] + at) + powers.b);
  if (!cross) return;
  const Two both = sum_lanes<1, 0>([&](auto i) RYLE_ALWAYS {
    const C a = load_point(px + i * kPoint), b = load_point(py + i * kPoint);
    return Two{a.re * b.re + a.im * b.im, a.im * b.re - a.re * b.im};
  });
  store(plane[2] + at, load(plane[2] + at) + both.a);
  store(plane[3] + at, load(plane[3] + at) + both.b);
}

inline void detect_one(const float* x, std::int64_t block, float* plane) {
  const float* px = x + block * kLanes * kPoint;
  const std::int64_t at = block * kLanes;
  const Two power = sum_lanes<1, 0>([&](auto i) RYLE_ALWAYS {
    const C a = load_point(px + i * kPoint);
    return Two{a.re * a.re + a.im * a.im, V{}};
  });
  store(plane + at, load(plane + at) + power.a);
}

inline void transform_and_detect(const FieldShape& shape, const FieldChannel& channel,
                                 const FieldScratch& scratch, float* planes) {
  const std::int64_t column_floats = channel.box_y * kPoint;
  const std::int64_t pol_floats = shape.n_columns * column_floats;
  float* x = scratch.points;
  float* y = x + shape.padded_rows * kPoint;
  float* work = y + shape.padded_rows * kPoint;
  for (std::int64_t c = 0; c < shape.n_columns; ++c) {
    const float* from = scratch.middle + c * column_floats;
    transform(shape.transform, from, channel.box_y, x, kPoint, nullptr, work);
    if (shape.n_pols == 2) {
      transform(shape.transform, from + pol_floats, channel.box_y, y, kPoint, nullptr, work);
    }
    float* plane[4];
    for (int p = 0; p < 4; ++p) plane[p] = planes + (p * shape.n_columns + c) * shape.padded_rows;
    for (std::int32_t b = shape.block_begin[c]; b < shape.block_begin[c + 1]; ++b) {
      if (shape.n_pols == 2) {
        detect_two(x, y, shape.blocks[b], shape.cross, plane);
      } else {
        detect_one(x, shape.blocks[b], plane[0]);
      }
    }
  }
}

inline void field_run(const FieldShape& shape, const FieldChannel& channel,
                      const FieldSamples& samples, std::int64_t first, std::int64_t last,
                      const FieldScratch& scratch, float* planes, float* autos) {
  for (std::int64_t t = first; t < last; t += kLanes) {
    read_inputs(channel, samples, t, scratch.inputs);
    if (autos != nullptr) add_autos(channel, scratch.inputs, autos);
    for (int pol = 0; pol < shape.n_pols; ++pol) {
      make_grid(shape, channel, channel.terms[pol], scratch.inputs, scratch.grid);
      float* middle = scratch.middle + pol * shape.n_columns * channel.box_y * kPoint;
      for (std::int64_t row = 0; row < channel.box_y; ++row) {
        transform(shape.transform, scratch.grid + row * channel.grid_x * kPoint, channel.box_x,
                  middle + row * kPoint, channel.box_y * kPoint, shape.column_of, scratch.points);
      }
    }
    transform_and_detect(shape, channel, scratch, planes);
  }
}
