// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/pipeline/base/run_summary.hpp"

namespace ryle::pipeline {

/// A device that fails in flight takes the open integration (image, chunk of beams) with it and no
/// more: those before are whole, are published, and then the run ends with the error.
class DeviceLoss {
 public:
  /// Work that may lose the device; none once it is lost.
  template <class Work>
  void guard(const Work& work) {
    if (lost()) return;
    try {
      work();
    } catch (const DeviceError& error) {
      what_ = error.what();
    }
  }
  /// The same for what must be done all the same: giving out what is whole.
  template <class Work>
  void guard_end(const Work& work) {
    try {
      work();
    } catch (const DeviceError& error) {
      if (!lost()) what_ = error.what();
    }
  }
  bool lost() const { return !what_.empty(); }
  /// Throws DeviceError (in flight) if the device was lost: after everything whole was published.
  void report(const RunSummary& summary) const {
    if (!lost()) return;
    std::string published = "; " + std::to_string(summary.integrations) + " integrations";
    if (summary.beams)
      published = "; " + std::to_string(summary.beams->samples) + " samples of beams";
    if (summary.image) published += ", " + std::to_string(summary.image->images) + " images";
    published += " were whole before it failed";
    for (std::size_t k = 0; k < summary.products.size(); ++k)
      published += (k == 0 ? " and are in " : ", ") + summary.products[k];
    throw DeviceError(what_ + published, true);
  }

 private:
  std::string what_;
};

}  // namespace ryle::pipeline
