// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

/// Foreign container formats are first read by a child process: what a damaged or hostile file does
/// to a library (a crash, an abort, memory or time without end) ends the child, not the run
/// (docs/decisions/0011-foreign-containers-in-a-child.md).
namespace ryle {

struct ChildLimits {
  std::int64_t memory_bytes = std::int64_t{512} << 20;  ///< beyond what the process has mapped
  std::int64_t cpu_s = 60;
};

/// One end of the pipe between a child and its parent.
class ChildPipe {
 public:
  explicit ChildPipe(int descriptor) : descriptor_(descriptor) {}
  /// Both throw IoError when the other end is gone.
  void write(const void* from, std::size_t n) const;
  void read(void* to, std::size_t n) const;

 private:
  int descriptor_;
};

/// Runs `work` in a copy of this process that has `limits`, then `send` there and `receive` here.
/// Throws what `work` threw (a std::exception that is no Error as FormatError), and FormatError
/// that begins with "cannot read WHAT: " when the child died or met a limit.
/// @pre `work` uses no thread, lock or device of this process.
void run_in_child(const std::string& what, const ChildLimits& limits,
                  const std::function<void()>& work,
                  const std::function<void(const ChildPipe&)>& send = {},
                  const std::function<void(const ChildPipe&)>& receive = {});

}  // namespace ryle
