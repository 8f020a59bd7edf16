// SPDX-License-Identifier: BSD-3-Clause
// Which tiles are near a sample: eight tiles of its cube at a time. Included once per
// instruction-set file, inside an unnamed namespace, after the file of lanes.

// Numbers of the tiles of each sample, one sample after the other, and how many each has. Returns
// their sum. Of samples in no order every branch would be a surprise: there are none on the way.
std::int64_t search(const double* px, const double* py, const double* pz, std::int64_t n,
                    const SearchGroup* const* groups, const std::int32_t* n_groups,
                    std::uint32_t* tiles, std::uint32_t* counts) {
  constexpr int kLanes = kLanesOf<double>;
  std::int64_t found = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const VecD x = broadcast(px[k]), y = broadcast(py[k]), z = broadcast(pz[k]);
    const std::int64_t before = found;
    for (std::int32_t g = 0; g < n_groups[k]; ++g) {
      const SearchGroup& group = groups[k][g];
      for (int l = 0; l < SearchGroup::kTiles; l += kLanes) {
        const auto of = [&](int row) { return load(group.bounds[row] + l); };
        const VecD dx = x - of(0), dy = y - of(1), dz = z - of(2);
        const VecD e = dx * of(3) + dy * of(4) + dz * of(5);
        const VecD m = dx * of(6) + dy * of(7) + dz * of(8);
        const unsigned in = at_most(dx * dx + dy * dy + dz * dz, of(9)) & at_most(of(10), e) &
                            at_most(e, of(11)) & at_most(of(12), m) & at_most(m, of(13));
        compress_rows<double>(tiles + found, in, group.tile + l);
        found += __builtin_popcount(in);
      }
    }
    counts[k] = static_cast<std::uint32_t>(found - before);
  }
  return found;
}
