// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/image/fits_cube.hpp"

#include "ryle/core/error.hpp"
#include "ryle/io/base/fits_file.hpp"

namespace ryle {

void FitsCubeWriter::adopt(CubeWriter& other, const std::string& name) {
  auto* const from = dynamic_cast<FitsCubeWriter*>(&other);
  RYLE_ASSERT(from != nullptr && from != this);
  io::FitsFile& to = complete_file();
  const io::FitsFile& source = from->complete_file();
  to.checksum();  // of what is there: publish() sees to the last extension alone
  int status = 0;
  fits_copy_hdu(source.get(), to.get(), 0, &status);
  to.check(status, "append " + name + " to");
  to.key("EXTNAME", name);
}

}  // namespace ryle
