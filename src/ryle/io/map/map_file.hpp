// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ryle/io/image/fits_cube.hpp"
#include "ryle/io/map/map_projection.hpp"

namespace ryle {

/// A cube of maps in one FITS file: never more than some thousand numbers in memory.
class MapFileWriter : public FitsCubeWriter {
 public:
  using Values = CubeValues;
  /// One plane stands for all channels and polarizations that the metadata speak of.
  MapFileWriter(const std::string& path, const MapProjection& projection, std::int64_t n_planes,
                Values values, const MapMetadata& metadata, bool overwrite);
  ~MapFileWriter() override;
  void append(const float* plane) override;
  void append(const double* plane) override;
  void append(const std::int32_t* plane) override;
  void append_all(const std::vector<const float*>& planes, const ForEach& for_each) override;
  void append_all(const std::vector<const double*>& planes, const ForEach& for_each) override;
  void add_history(const std::vector<std::string>& lines) override;
  void publish() override;

 protected:
  io::FitsFile& complete_file() override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle
