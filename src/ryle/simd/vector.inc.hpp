// SPDX-License-Identifier: BSD-3-Clause
// Vectors of kVectorBytes bytes, a constant that the including file defines first. Included once
// per instruction-set file, inside an unnamed namespace, after ryle/simd/unroll.hpp.

using simd::static_for;

using V = float __attribute__((vector_size(kVectorBytes)));
using VD = double __attribute__((vector_size(kVectorBytes)));
using I = std::int32_t __attribute__((vector_size(kVectorBytes)));

template <class T, class From>
RYLE_INLINE T load_as(const From* p) {
  T v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class To, class T>
RYLE_INLINE void store_as(To* p, T v) {
  __builtin_memcpy(p, &v, sizeof v);
}
RYLE_INLINE V load(const float* p) { return load_as<V>(p); }
RYLE_INLINE VD load(const double* p) { return load_as<VD>(p); }
RYLE_INLINE void store(float* p, V v) { store_as(p, v); }
RYLE_INLINE void store(double* p, VD v) { store_as(p, v); }
RYLE_INLINE V broadcast(float x) { return x - V{}; }
RYLE_INLINE VD broadcast(double x) { return x - VD{}; }
