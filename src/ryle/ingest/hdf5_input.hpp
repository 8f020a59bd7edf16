// SPDX-License-Identifier: BSD-3-Clause
// HDF5 for the readers of recordings. Private to ingest/.
#pragma once
#include <hdf5.h>

namespace ryle::detail {

/// libhdf5 prints its error stack unless told not to; libraries of Ryle never print.
class QuietHdf5 {
 public:
  QuietHdf5() {
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~QuietHdf5() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }
  QuietHdf5(const QuietHdf5&) = delete;
  QuietHdf5& operator=(const QuietHdf5&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace ryle::detail
