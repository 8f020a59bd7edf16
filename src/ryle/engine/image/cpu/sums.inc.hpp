// SPDX-License-Identifier: BSD-3-Clause
// Direct Fourier sums on a CPU (paths vis-dft and efield-dft), a direction a lane:
//   I(s) = 2 Re sum_b conj(s_b) sum_{a<b} V_ab s_a,   B_p(s) = sum_a s_a E_ap,
//   s_a = exp(-2 pi i (nu/c) r_a . (l, m, n - 1))
// Phasors lie as [direction / group][antenna][re, im][group], so that a step loads one vector of
// them and broadcasts one number of the data. Sums of a group stay in registers. Included after
// cpu/field.inc.hpp and cpu/uv.inc.hpp.
//
// Phases are formed in double and reduced to half a turn there, then fp32: sin and cos of pi r by
// polynomials (errors 3.3e-9 and 2.2e-10), doubled. Products are summed in fp32 over one antenna's
// partners or 3 x 64 spectra at most, then in double.

#if defined(__AVX512F__)
inline constexpr int kVisVectors = 3;    // 24 sums and 6 phasors in 32 registers
inline constexpr int kFieldVectors = 2;  // 24 sums and 4 phasors
#else
inline constexpr int kVisVectors = 1;
inline constexpr int kFieldVectors = 1;
#endif
inline constexpr std::int64_t kVisGroup = kVisVectors * kLanes;
inline constexpr std::int64_t kFieldGroup = kFieldVectors * kLanes;
static_assert(kDirectionsPerBlock % kVisGroup == 0 && kDirectionsPerBlock % kFieldGroup == 0);

/// exp(-2 pi i r), |r| <= 1/2 turn
RYLE_INLINE C phasor(V r) {
  const V x = r * r;
  const V s = r * (3.14159258004f +
                   x * (-5.16770687891f +
                        x * (2.55003137697f + x * (-0.598045172212f + x * 0.0772201251213f))));
  const V c = 0.99999999978f +
              x * (-4.93480213723f +
                   x * (4.05870916435f +
                        x * (-1.33521205672f + x * (0.234937559037f + x * -0.0243967165508f))));
  return {1.0f - 2.0f * (s * s), -2.0f * (s * c)};
}

/// [direction / group][antenna][re, im][group]
inline void phasors(const double* xyz_waves, std::int64_t n_antennas, const double* l,
                    const double* m, const double* t, std::int64_t group, float* out) {
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves the nearest integer
  for (std::int64_t a = 0; a < n_antennas; ++a) {
    const double x = xyz_waves[3 * a], y = xyz_waves[3 * a + 1], z = xyz_waves[3 * a + 2];
    alignas(64) float turns[kDirectionsPerBlock];
    for (std::int64_t p = 0; p < kDirectionsPerBlock; ++p) {
      const double phase = x * l[p] + y * m[p] + z * t[p];
      turns[p] = static_cast<float>(phase - ((phase + kRound) - kRound));
    }
    for (std::int64_t p = 0; p < kDirectionsPerBlock; p += kLanes) {
      const C e = phasor(load(turns + p));
      float* to = out + (p / group * n_antennas + a) * 2 * group + p % group;
      store(to, e.re);
      store(to + group, e.im);
    }
  }
}

RYLE_INLINE void add_to_double(const float* from, std::int64_t n, double factor, double* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += factor * static_cast<double>(from[i]);
}

template <int Planes>
__attribute__((noinline)) void vis_sum_planes(const float* products, std::int64_t n_antennas,
                                              const float* e, double* sums) {
  alignas(64) float total[Planes][kVisGroup] = {};
  const float* h = products;
  for (std::int64_t b = 1; b < n_antennas; ++b) {
    V re[Planes][kVisVectors] = {}, im[Planes][kVisVectors] = {};
    const float* ea = e;
    for (std::int64_t a = 0; a < b; ++a, h += kCellFloats, ea += 2 * kVisGroup) {
      V er[kVisVectors], ei[kVisVectors];
      static_for<0, kVisVectors>([&](auto v) RYLE_ALWAYS {
        er[v] = load(ea + v * kLanes);
        ei[v] = load(ea + kVisGroup + v * kLanes);
      });
      static_for<0, Planes>([&](auto p) RYLE_ALWAYS {
        static_for<0, kVisVectors>([&](auto v) RYLE_ALWAYS {
          re[p][v] = re[p][v] + h[p] * er[v];
          im[p][v] = im[p][v] + h[p] * ei[v];
        });
        static_for<0, kVisVectors>([&](auto v) RYLE_ALWAYS {
          re[p][v] = re[p][v] - h[p + 4] * ei[v];
          im[p][v] = im[p][v] + h[p + 4] * er[v];
        });
      });
    }
    // times conj(e_b), real part
    static_for<0, Planes>([&](auto p) RYLE_ALWAYS {
      static_for<0, kVisVectors>([&](auto v) RYLE_ALWAYS {
        const V er = load(ea + v * kLanes), ei = load(ea + kVisGroup + v * kLanes);
        float* to = total[p] + v * kLanes;
        store(to, load(to) + (re[p][v] * er + im[p][v] * ei));
      });
    });
  }
  for (int p = 0; p < Planes; ++p) {
    add_to_double(total[p], kVisGroup, 2.0, sums + p * kDirectionsPerBlock);
  }
}

inline void vis_sum(const float* products, std::int64_t n_antennas, const float* e, int n_planes,
                    double* sums) {
  for (std::int64_t first = 0; first < kDirectionsPerBlock; first += kVisGroup) {
    const float* group = e + first / kVisGroup * n_antennas * 2 * kVisGroup;
    if (n_planes == 4) {
      vis_sum_planes<4>(products, n_antennas, group, sums + first);
    } else if (n_planes == 2) {
      vis_sum_planes<2>(products, n_antennas, group, sums + first);
    } else {
      vis_sum_planes<1>(products, n_antennas, group, sums + first);
    }
  }
}

/// Spectra that advance together: three of both polarizations.
inline constexpr int kTriple = 3;

inline void field_sum_group(const float* voltages, std::int64_t n_triples, std::int64_t n_antennas,
                            const float* e, double* sums) {
  alignas(64) float total[4][kFieldGroup] = {};
  for (std::int64_t k = 0; k < n_triples; ++k) {
    V re[2 * kTriple][kFieldVectors] = {}, im[2 * kTriple][kFieldVectors] = {};
    const float* ea = e;
    for (std::int64_t a = 0; a < n_antennas; ++a, voltages += 4 * kTriple, ea += 2 * kFieldGroup) {
      V er[kFieldVectors], ei[kFieldVectors];
      static_for<0, kFieldVectors>([&](auto v) RYLE_ALWAYS {
        er[v] = load(ea + v * kLanes);
        ei[v] = load(ea + kFieldGroup + v * kLanes);
      });
      static_for<0, 2 * kTriple>([&](auto q) RYLE_ALWAYS {
        static_for<0, kFieldVectors>([&](auto v) RYLE_ALWAYS {
          re[q][v] = re[q][v] + voltages[2 * q] * er[v];
          im[q][v] = im[q][v] + voltages[2 * q] * ei[v];
        });
        static_for<0, kFieldVectors>([&](auto v) RYLE_ALWAYS {
          re[q][v] = re[q][v] - voltages[2 * q + 1] * ei[v];
          im[q][v] = im[q][v] + voltages[2 * q + 1] * er[v];
        });
      });
    }
    static_for<0, kFieldVectors>([&](auto v) RYLE_ALWAYS {
      V xx = {}, yy = {}, u = {}, w = {};
      static_for<0, kTriple>([&](auto s) RYLE_ALWAYS {
        const V xr = re[2 * s][v], xi = im[2 * s][v];
        const V yr = re[2 * s + 1][v], yi = im[2 * s + 1][v];
        xx += xr * xr + xi * xi;
        yy += yr * yr + yi * yi;
        u += xr * yr + xi * yi;
        w += xi * yr - xr * yi;
      });
      const V all[4] = {xx, yy, u, w};
      for (int p = 0; p < 4; ++p) {
        store(total[p] + v * kLanes, load(total[p] + v * kLanes) + all[p]);
      }
    });
  }
  for (int p = 0; p < 4; ++p) {
    add_to_double(total[p], kFieldGroup, 1.0, sums + p * kDirectionsPerBlock);
  }
}

inline void field_sum(const float* voltages, std::int64_t n_triples, std::int64_t n_antennas,
                      const float* e, double* sums) {
  for (std::int64_t first = 0; first < kDirectionsPerBlock; first += kFieldGroup) {
    field_sum_group(voltages, n_triples, n_antennas,
                    e + first / kFieldGroup * n_antennas * 2 * kFieldGroup, sums + first);
  }
}

inline void field_unpack(const FieldSamples& samples, const std::int32_t* inputs,
                         const float* gains, const std::int32_t* pairs, std::int64_t n_antennas,
                         std::int64_t antenna, std::int64_t first, std::int64_t n_groups,
                         float* voltages, float* autos) {
  for (std::int64_t g = 0; g < n_groups; ++g) {
    const std::int64_t spectrum = first + g * kLanes;
    C e[2] = {};
    for (int pol = 0; pol < 2; ++pol) {
      const std::int32_t slot = pairs[2 * antenna + pol];
      if (slot < 0) continue;
      e[pol] = times(read_spectra(samples, inputs[slot], spectrum), gains + 2 * slot);
    }
    const V powers[4] = {
        e[0].re * e[0].re + e[0].im * e[0].im, e[1].re * e[1].re + e[1].im * e[1].im,
        e[0].re * e[1].re + e[0].im * e[1].im, e[0].im * e[1].re - e[0].re * e[1].im};
    for (int p = 0; p < 4; ++p) {
      float* to = autos + (4 * antenna + p) * kLanes;
      store(to, load(to) + powers[p]);
    }
    for (std::int64_t i = 0; i < kLanes; ++i) {
      const std::int64_t t = g * kLanes + i;
      float* to = voltages + (t / kTriple * n_antennas + antenna) * 4 * kTriple + t % kTriple * 4;
      to[0] = e[0].re[i];
      to[1] = e[0].im[i];
      to[2] = e[1].re[i];
      to[3] = e[1].im[i];
    }
  }
  // The last triple is whole: absent spectra are 0.
  for (std::int64_t t = n_groups * kLanes; t % kTriple != 0; ++t) {
    float* to = voltages + (t / kTriple * n_antennas + antenna) * 4 * kTriple + t % kTriple * 4;
    to[0] = to[1] = to[2] = to[3] = 0;
  }
}
