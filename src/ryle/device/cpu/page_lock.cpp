// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/device/page_lock.hpp"

namespace ryle {

#ifndef RYLE_HAVE_CUDA
PageLock::PageLock(void*, std::int64_t) {}
void PageLock::release() noexcept {}
#endif

}  // namespace ryle
