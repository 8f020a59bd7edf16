// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/io/image/cube_writer.hpp"

namespace ryle {

namespace io {
class FitsFile;
}

/// Cubes in FITS files: how one becomes an extension of another.
class FitsCubeWriter : public CubeWriter {
 public:
  void adopt(CubeWriter& other, const std::string& name) final;

 protected:
  /// The file while it grows; throws ConfigError while planes are missing.
  virtual io::FitsFile& complete_file() = 0;
};

}  // namespace ryle
