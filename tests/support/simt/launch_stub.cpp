// SPDX-License-Identifier: BSD-3-Clause
// What the compiler of CUDA makes of a kernel for the host: a function of the same name.
namespace ryle::simt {

void linked_twice(int* to);
void linked_twice(int* to) { *to = 2; }

}  // namespace ryle::simt
