// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/core/descriptor.hpp"

#include <unistd.h>

#include <cerrno>

namespace ryle {

int Descriptor::close() {
  const int closed = std::exchange(descriptor_, -1);
  return closed >= 0 ? ::close(closed) : 0;
}

std::int64_t read_at(const Descriptor& file, void* to, std::int64_t n_bytes, std::int64_t offset) {
  std::int64_t done = 0;
  while (done < n_bytes) {
    const ssize_t got = ::pread(file.get(), static_cast<char*>(to) + done,
                                static_cast<std::size_t>(n_bytes - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += got;
  }
  return done;
}

std::int64_t write_bytes(const Descriptor& file, const void* from, std::int64_t n_bytes) {
  std::int64_t done = 0;
  while (done < n_bytes) {
    const ssize_t put = ::write(file.get(), static_cast<const char*>(from) + done,
                                static_cast<std::size_t>(n_bytes - done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) break;
    done += put;
  }
  return done;
}

}  // namespace ryle
