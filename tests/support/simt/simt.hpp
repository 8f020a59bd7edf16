// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <typeindex>
#include <vector>

#include "ryle/core/random.hpp"
#include "tests/support/simt/async.hpp"

#ifndef __x86_64__
#include <ucontext.h>
#endif

/// Runs CUDA kernels on the host, for tests: the source of a kernel, unchanged, compiled as C++
/// with the definitions of cuda_names.hpp. No speed, only rules.
///
///   #include "tests/support/simt/cuda_names.hpp"     // before the kernel's own file
///   simt::launch({.blocks = {4}, .threads = {256}}, seed, [&] { my_kernel(arguments); });
///
/// The thread blocks of a launch run one after another. A thread is a fibre that runs alone until
/// it meets a barrier or a warp operation; which one runs next is drawn from the seed. What a
/// kernel may not rely on goes wrong here, or is reported as a KernelError:
///   - a barrier left out: readers run before writers, or writers run on while readers wait; the
///     result is wrong under nearly every seed
///   - a barrier not met by every thread, or two barriers at once: KernelError
///   - a warp operation that a lane of its mask does not reach: KernelError
///   - shared memory read before it is written: every block finds other random bytes there
///   - arrays left: AddressSanitizer, for global memory and for shared<T>() and dynamic_shared()
///   - a barrier in shared memory waited for by a thread that has not seen the phase before, or
///   whose
///     phase nobody completes: wrong results, KernelError
///   - asynchronous copies and products not waited for, or their memory used again too soon
///     (async.hpp): wrong under some seeds
/// Not modelled: races between blocks, memory order, fences, bytes that mbarriers expect,
/// __activemask, textures.
/// `__shared__` variables of kernel templates keep their bytes with g++, which puts them into no
/// section; shared<T>() (device/cuda/kernel.cuh) has no such gap.
namespace ryle::simt {

struct KernelError : std::runtime_error {
  using runtime_error::runtime_error;
};

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
  unsigned count() const { return x * y * z; }
};

struct Grid {
  Dim3 blocks;
  Dim3 threads;
  std::size_t dynamic_shared_bytes = 0;
};

#ifdef __x86_64__
/// Where a fibre goes on: its stack, which holds the registers that calls keep. swapcontext would
/// ask the kernel for the signal mask each time, a hundred times the cost.
struct Context {
  void* stack = nullptr;
};
// Not a naked function: g++ would look into it and conclude that it changes no register.
asm(R"(
  .pushsection .text
  .weak ryle_simt_switch_context
  .hidden ryle_simt_switch_context
  .type ryle_simt_switch_context, @function
ryle_simt_switch_context:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq (%rsi), %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .popsection
)");
extern "C" void ryle_simt_switch_context(Context* from, Context* to);
inline void switch_context(Context& from, Context& to) { ryle_simt_switch_context(&from, &to); }
/// The first switch to it calls entry() on an aligned stack.
inline void prepare(Context& context, std::byte* stack, std::size_t bytes, void (*entry)()) {
  void* frame[8] = {};  // six registers, the address to return to, and none after it
  frame[6] = reinterpret_cast<void*>(entry);
  const auto end = (reinterpret_cast<std::uintptr_t>(stack) + bytes) / 16 * 16;
  context.stack = reinterpret_cast<void*>(end - sizeof frame);
  std::memcpy(context.stack, frame, sizeof frame);
}
#else
using Context = ucontext_t;
inline void switch_context(Context& from, Context& to) { swapcontext(&from, &to); }
inline void prepare(Context& context, std::byte* stack, std::size_t bytes, void (*entry)()) {
  getcontext(&context);
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = bytes;
  context.uc_link = nullptr;
  makecontext(&context, entry, 0);
}
#endif

using Words = std::array<std::uint32_t, 6>;  // what one lane brings to a warp operation

/// A barrier in shared memory, in its eight bytes there.
struct Phases {
  std::uint16_t arrivals;  // that complete a phase
  std::uint16_t missing;   // in this one
  std::uint32_t passed;

  void arrive() {
    if (--missing != 0) return;
    missing = arrivals;
    ++passed;
  }
  /// The phase under way has the other parity.
  bool has_passed(unsigned parity) const { return (passed & 1u) != parity; }
};
static_assert(sizeof(Phases) == 8);

/// What device code sees of its thread.
struct Thread {
  Dim3 index;     // threadIdx
  unsigned lane;  // of its warp
  unsigned warp;
  enum class State : std::uint8_t { ready, at_barrier, at_warp, at_phase, done } state;
  const char* operation;  // where it waits ...
  int line;
  unsigned mask;
  Words given;                       // ... with what of its own
  const std::array<Words, 32>* all;  // and, when it goes on, what the lanes gave
  std::array<Words, 32> own;         // room for it where lanes of a warp go different ways
  const Phases* phases;              // of the barrier it waits for, and until when
  unsigned parity;
  Async copies;
  Async products;
  Context context;
  void* fake_stack;
};

#if defined(__SANITIZE_ADDRESS__)
#define RYLE_SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RYLE_SIMT_ASAN 1
#endif
#endif
// No power of two: stacks would share the sets of the caches.
#ifdef RYLE_SIMT_ASAN
extern "C" void __sanitizer_start_switch_fiber(void**, const void*, std::size_t);
extern "C" void __sanitizer_finish_switch_fiber(void*, const void**, std::size_t*);
inline constexpr std::size_t kStackBytes = 256 * 1024 + 33 * 64;
#else
inline void __sanitizer_start_switch_fiber(void**, const void*, std::size_t) {}
inline void __sanitizer_finish_switch_fiber(void*, const void**, std::size_t*) {}
inline constexpr std::size_t kStackBytes = 64 * 1024 + 33 * 64;
#endif

/// Bounds of the section of `__shared__` variables; empty where no kernel has one.
extern "C" unsigned char __start_ryle_simt_shared[] __attribute__((weak));
extern "C" unsigned char __stop_ryle_simt_shared[] __attribute__((weak));

/// One launch.
class Machine {
 public:
  Machine(const Grid& grid, std::uint64_t seed, const std::function<void()>& kernel)
      : grid_(grid),
        random_(mix64(seed)),
        kernel_(kernel),
        copies_late_(seed % 2 == 0),
        products_late_(seed / 2 % 2 == 0),
        threads_(grid.threads.count()),
        warps_((threads_.size() + 31) / 32),
        stacks_(new std::byte[kStackBytes * threads_.size()]),
        dynamic_(new std::byte[std::max<std::size_t>(1, grid.dynamic_shared_bytes)]) {
    if (threads_.empty() || threads_.size() > 1024)
      throw KernelError("a block has 1 to 1024 threads, not " + std::to_string(threads_.size()));
  }

  void run() {
    const Outer outer(this);
    for (unsigned z = 0; z < grid_.blocks.z; ++z) {
      for (unsigned y = 0; y < grid_.blocks.y; ++y) {
        for (unsigned x = 0; x < grid_.blocks.x; ++x) run_block({x, y, z});
      }
    }
  }

  static Machine& here() { return *current_machine; }
  Thread& thread() { return *current_; }
  const Grid& grid() const { return grid_; }
  const Dim3& block() const { return block_; }
  std::byte* dynamic_shared() { return dynamic_.get(); }

  /// Addresses of dynamic shared memory as the device numbers them, aligned to 128 bytes and no
  /// better.
  static constexpr unsigned kFirstAddress = 128;
  unsigned address_of(const void* p) const {
    return kFirstAddress + static_cast<unsigned>(static_cast<const std::byte*>(p) - dynamic_.get());
  }
  std::byte* at_address(unsigned address, unsigned n_bytes) {
    if (address < kFirstAddress || address + n_bytes > kFirstAddress + grid_.dynamic_shared_bytes)
      throw KernelError("address " + std::to_string(address) + " is not in shared memory");
    return dynamic_.get() + (address - kFirstAddress);
  }

  /// Storage of this block, one for each type and size of it.
  void* shared(std::type_index type, std::size_t bytes) {
    auto& memory = shared_[type];
    if (memory == nullptr) {
      memory.reset(static_cast<std::byte*>(::operator new(bytes, kSharedAlign)));
      scramble(memory.get(), bytes);
    }
    return memory.get();
  }

  void barrier(int line) { wait(Thread::State::at_barrier, "__syncthreads", line, 0); }

  /// Waits for the phase of this parity.
  void await(const Phases& phases, unsigned parity, int line) {
    if (phases.has_passed(parity)) return;
    thread().phases = &phases;
    thread().parity = parity;
    ++phases_awaited_;
    wait(Thread::State::at_phase, "await", line, 0);
  }

  /// Meets the lanes of `mask` in the same operation, each with its words; returns all of them.
  const std::array<Words, 32>& meet(const char* operation, int line, unsigned mask,
                                    const Words& given) {
    if ((mask >> thread().lane & 1u) == 0)
      throw KernelError(where(operation, line) + ": lane " + std::to_string(thread().lane) +
                        " is not in its own mask");
    thread().given = given;
    wait(Thread::State::at_warp, operation, line, mask);
    return *thread().all;
  }

 private:
  static constexpr std::align_val_t kSharedAlign{128};
  static constexpr std::uint64_t kPhaseRounds = 64;
  struct SharedDelete {
    void operator()(std::byte* memory) const { ::operator delete(memory, kSharedAlign); }
  };

  // current_machine, also when a kernel fails.
  struct Outer {
    explicit Outer(Machine* machine) : before(current_machine) { current_machine = machine; }
    ~Outer() { current_machine = before; }
    Machine* before;
  };
  static inline Machine* current_machine = nullptr;

  static std::string where(const char* operation, int line) {
    return std::string(operation) + " at line " + std::to_string(line);
  }

  std::uint64_t draw() { return mix64(random_++); }

  void scramble(std::byte* bytes, std::size_t n) {
    for (std::size_t k = 0; k < n; k += 8) {
      const std::uint64_t word = draw();
      std::memcpy(bytes + k, &word, std::min<std::size_t>(8, n - k));
    }
  }

  void run_block(const Dim3& block) {
    block_ = block;
    shared_.clear();
    phases_awaited_ = 0;
    scramble(dynamic_.get(), grid_.dynamic_shared_bytes);
    scramble(reinterpret_cast<std::byte*>(__start_ryle_simt_shared),
             static_cast<std::size_t>(__stop_ryle_simt_shared - __start_ryle_simt_shared));
    ready_.clear();
    for (unsigned t = 0; t < threads_.size(); ++t) start(t);
    while (!ready_.empty()) {
      while (!ready_.empty()) {
        if (phases_awaited_ != 0 && draw() % kPhaseRounds == 0) {
          const std::size_t warp = draw() % warps_.size();
          release_phases(32 * warp, 32 * (warp + 1));
        }
        std::swap(ready_[draw() % ready_.size()], ready_.back());
        Thread* next = ready_.back();
        ready_.pop_back();
        resume(*next);
        if (error_ != nullptr) std::rethrow_exception(error_);
        if (next->state == Thread::State::at_warp) release_lanes(*next);
      }
      release_phases(0, threads_.size());
      if (ready_.empty()) release_barrier();
    }
  }

  void start(unsigned t) {
    Thread& thread = threads_[t];
    const Dim3& size = grid_.threads;
    thread.index = {t % size.x, t / size.x % size.y, t / size.x / size.y};
    thread.lane = t % 32;
    thread.warp = t / 32;
    thread.state = Thread::State::ready;
    thread.fake_stack = nullptr;
    thread.copies.begin(copies_late_);
    thread.products.begin(products_late_);
    prepare(thread.context, stack_of(thread), kStackBytes, &Machine::enter);
    ready_.push_back(&thread);
  }

  std::byte* stack_of(const Thread& thread) {
    return stacks_.get() + (&thread - threads_.data()) * static_cast<std::ptrdiff_t>(kStackBytes);
  }

  // The life of a fibre. It never returns: the last switch leaves it for good.
  static void enter() {
    Machine& machine = here();
    __sanitizer_finish_switch_fiber(nullptr, &machine.home_stack_, &machine.home_bytes_);
    try {
      machine.kernel_();
    } catch (...) {
      machine.error_ = std::current_exception();
    }
    machine.current_->state = Thread::State::done;
    machine.leave();
  }

  void resume(Thread& thread) {
    current_ = &thread;
    void* fake_stack = nullptr;
    __sanitizer_start_switch_fiber(&fake_stack, stack_of(thread), kStackBytes);
    switch_context(home_, thread.context);
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
  }

  void leave() {
    Thread& thread = *current_;
    const bool ends = thread.state == Thread::State::done;  // its fake stack goes with it
    __sanitizer_start_switch_fiber(ends ? nullptr : &thread.fake_stack, home_stack_, home_bytes_);
    switch_context(thread.context, home_);
    __sanitizer_finish_switch_fiber(thread.fake_stack, &home_stack_, &home_bytes_);
  }

  void wait(Thread::State state, const char* operation, int line, unsigned mask) {
    Thread& thread = *current_;
    thread.state = state;
    thread.operation = operation;
    thread.line = line;
    thread.mask = mask;
    leave();
  }

  // Lanes of the mask beyond the end of the block count as present, as in hardware.
  void release_lanes(const Thread& last) {
    std::vector<Thread*> lanes;
    const std::size_t first = std::size_t{last.warp} * 32;
    for (std::size_t t = first; t < std::min(first + 32, threads_.size()); ++t) {
      Thread& lane = threads_[t];
      if ((last.mask >> lane.lane & 1u) == 0) continue;
      if (lane.state != Thread::State::at_warp || lane.mask != last.mask ||
          lane.line != last.line || std::strcmp(lane.operation, last.operation) != 0)
        return;
      lanes.push_back(&lane);
    }
    // A whole warp has read what it got last time: it is all here. Parts of one may not have.
    for (Thread* to : lanes) {
      auto& all = last.mask == 0xffffffffu ? warps_[last.warp] : to->own;
      if (to == lanes[0] || &all == &to->own) {
        for (const Thread* from : lanes) all[from->lane] = from->given;
      }
      to->all = &all;
      make_ready(*to);
    }
  }

  // Some threads see soon that a phase has passed, others only when nobody else can run.
  void release_phases(std::size_t first, std::size_t end) {
    for (std::size_t t = first; t < std::min(end, threads_.size()); ++t) {
      Thread& thread = threads_[t];
      if (thread.state != Thread::State::at_phase || !thread.phases->has_passed(thread.parity))
        continue;
      --phases_awaited_;
      make_ready(thread);
    }
  }

  // Nobody can run: all have ended, or all wait at one barrier, or the kernel is wrong.
  void release_barrier() {
    const Thread* waiting = nullptr;
    std::size_t ended = 0;
    for (const Thread& thread : threads_) {
      if (thread.state == Thread::State::done) ++ended;
      if (thread.state == Thread::State::at_phase) {
        throw KernelError(where(thread.operation, thread.line) + ": thread " + name(thread) +
                          " waits for a phase that nobody completes");
      }
      if (thread.state == Thread::State::at_warp) {
        throw KernelError(where(thread.operation, thread.line) + ": thread " + name(thread) +
                          " waits for lanes of its mask that do not come");
      }
      if (thread.state == Thread::State::at_barrier) {
        if (waiting != nullptr && waiting->line != thread.line) {
          throw KernelError(where(waiting->operation, waiting->line) + " and at line " +
                            std::to_string(thread.line) + ": threads " + name(*waiting) + " and " +
                            name(thread) + " wait at different barriers");
        }
        waiting = &thread;
      }
    }
    if (waiting == nullptr) return;
    if (ended != 0) {
      throw KernelError(where(waiting->operation, waiting->line) + ": " + std::to_string(ended) +
                        " threads ended while thread " + name(*waiting) + " waits at a barrier");
    }
    for (Thread& thread : threads_) make_ready(thread);
  }

  void make_ready(Thread& thread) {
    thread.state = Thread::State::ready;
    ready_.push_back(&thread);
  }

  static std::string name(const Thread& thread) {
    return std::to_string(thread.warp * 32 + thread.lane);
  }

  Grid grid_;
  std::uint64_t random_;
  const std::function<void()>& kernel_;
  bool copies_late_;
  bool products_late_;
  std::vector<Thread> threads_;
  std::vector<std::array<Words, 32>> warps_;
  std::unique_ptr<std::byte[]> stacks_;
  std::unique_ptr<std::byte[]> dynamic_;
  std::map<std::type_index, std::unique_ptr<std::byte, SharedDelete>> shared_;
  std::vector<Thread*> ready_;
  Thread* current_ = nullptr;
  int phases_awaited_ = 0;  // threads
  Dim3 block_;
  std::exception_ptr error_;
  Context home_ = {};
  const void* home_stack_ = nullptr;
  std::size_t home_bytes_ = 0;
};

/// Runs `kernel` in every thread of the grid. Equal seeds give equal orders.
inline void launch(const Grid& grid, std::uint64_t seed, const std::function<void()>& kernel) {
  Machine(grid, seed, kernel).run();
}

}  // namespace ryle::simt
