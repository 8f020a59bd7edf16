// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/core/sha256.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace ryle {
namespace {

// First 32 bits of the fractional parts of the square and cube roots of the first primes (FIPS
// 180-4, 4.2.2, 5.3.3). long double holds 64 bits of mantissa: enough for 3 integer and 32
// fractional ones.
std::vector<std::uint32_t> root_fractions(int count, bool cube) {
  std::vector<std::uint32_t> words;
  for (int n = 2; static_cast<int>(words.size()) < count; ++n) {
    bool prime = true;
    for (int d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
    if (!prime) continue;
    const long double root =
        cube ? std::cbrt(static_cast<long double>(n)) : std::sqrt(static_cast<long double>(n));
    words.push_back(static_cast<std::uint32_t>((root - std::floor(root)) * 4294967296.0L));
  }
  return words;
}

void compress(std::array<std::uint32_t, 8>& state, const unsigned char* block) {
  static const std::vector<std::uint32_t> k = root_fractions(64, true);
  std::array<std::uint32_t, 64> w{};
  for (std::size_t t = 0; t < 16; ++t) {
    w[t] = static_cast<std::uint32_t>(block[4 * t] << 24 | block[4 * t + 1] << 16 |
                                      block[4 * t + 2] << 8 | block[4 * t + 3]);
  }
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const std::uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + k[t] + w[t];
    const std::uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> add{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state[i] += add[i];
}

}  // namespace

Sha256::Sha256() {
  static const auto initial = root_fractions(8, false);
  for (std::size_t i = 0; i < 8; ++i) state_[i] = initial[i];
}

void Sha256::update(std::string_view bytes) {
  n_bytes_ += bytes.size();
  if (!rest_.empty()) {
    const std::size_t n = std::min(64 - rest_.size(), bytes.size());
    rest_ += bytes.substr(0, n);
    bytes.remove_prefix(n);
    if (rest_.size() < 64) return;
    compress(state_, reinterpret_cast<const unsigned char*>(rest_.data()));
    rest_.clear();
  }
  for (; bytes.size() >= 64; bytes.remove_prefix(64))
    compress(state_, reinterpret_cast<const unsigned char*>(bytes.data()));
  rest_ = bytes;
}

std::string Sha256::hex() {
  const std::uint64_t bits = 8 * n_bytes_;
  std::string end(1, static_cast<char>(0x80));
  while ((rest_.size() + end.size()) % 64 != 56) end.push_back('\0');
  for (int shift = 56; shift >= 0; shift -= 8)
    end.push_back(static_cast<char>(bits >> shift & 255u));
  update(end);
  std::string hex;
  for (const auto word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4)
      hex.push_back("0123456789abcdef"[word >> shift & 15u]);
  }
  return hex;
}

std::string sha256_hex(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hash.hex();
}

}  // namespace ryle
