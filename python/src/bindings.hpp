// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/samples.hpp"
#include "ryle/device/queue.hpp"

/// What all parts of the extension share: arrays in and out, signals, callbacks.
namespace ryle::python {

namespace nb = nanobind;

/// Any array of NumPy in host memory, read only; strides are those of the array.
using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;
/// C-contiguous array of one type.
template <class T, int Rank>
using DenseArray = nb::ndarray<const T, nb::ndim<Rank>, nb::device::cpu, nb::c_contig>;
template <class T>
using Result = nb::ndarray<nb::numpy, T>;

/// An array that owns the vector. @shape as given, row-major
template <class T>
Result<T> to_array(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Result<T>(kept->data(), shape, owner);
}
/// The same of one axis.
template <class T>
Result<T> to_array(std::vector<T>&& values) {
  const std::size_t n = values.size();
  return to_array(std::move(values), {n});
}
/// The same of complex integers: a last axis of real and imaginary part.
template <class T>
Result<T> parts_to_array(std::vector<ComplexInt<T>>&& values,
                         std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<ComplexInt<T>>(std::move(values));
  nb::capsule owner(kept,
                    [](void* p) noexcept { delete static_cast<std::vector<ComplexInt<T>>*>(p); });
  std::vector<std::size_t> extents(shape);
  extents.push_back(2);
  return Result<T>(&kept->data()->re, extents.size(), extents.data(), owner);
}

template <class T>
std::size_t count_of(T n) {
  return static_cast<std::size_t>(n);
}

/// The value of a word. Throws ConfigError that lists the words.
template <class Enum>
Enum named(const std::string& word, const char* key,
           std::initializer_list<std::pair<const char*, Enum>> names) {
  std::string known;
  for (const auto& [text, value] : names) {
    if (word == text) return value;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  throw ConfigError(std::string(key) + " \"" + word + "\" is not known; use one of " + known);
}

/// The value that the library found for a word. Throws ConfigError that lists the words.
template <class Value>
Value known(const std::optional<Value>& found, const char* key, const std::string& word,
            const char* words) {
  if (!found) throw ConfigError(std::string(key) + " \"" + word + "\" is not known; use " + words);
  return *found;
}

constexpr const char* kSamplePaths = "auto, direct, gridded or w-stacked";

/// Throws the exception of a signal handler (KeyboardInterrupt). With the GIL.
void check_signals();

/// The CPU queue of the process: an arena of threads is not given back whole, so calls share one.
Queue shared_queue();

/// Lets one call at a time into a plan, from its begin to its end. Waits without the GIL: the call
/// that is in may ask for it. A signal handler may call the plan that it interrupts.
class PlanLock {
 public:
  explicit PlanLock(std::recursive_mutex& mutex) : lock_(mutex, std::defer_lock) {
    const nb::gil_scoped_release released;
    lock_.lock();
  }

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

/// Spectra of a gulp: whole blocks and whole words of bit planes. @pre n > 0
inline std::int64_t whole_gulp(std::int64_t n) { return n <= 0 ? n : (n + 127) / 128 * 128; }

/// Does `work` on a thread of its own, without the GIL, while this one looks for signals: `stop`
/// then counts one, and its exception is thrown once the work has ended. With the GIL.
void run_interruptibly(std::atomic<int>& stop, const std::function<void()>& work);

/// The same of what reads whole files or series (core/interrupt.hpp). The count of signals is the
/// process's: other threads that read then end as well.
void read_interruptibly(const std::function<void()>& work);

/// A function of the user that C++ threads call. What it raises sets `stop`; rethrow() raises it
/// again.
class Callback {
 public:
  Callback(nb::object function, std::atomic<int>& stop);
  ~Callback();
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  explicit operator bool() const { return function_.is_valid() && !function_.is_none(); }
  /// From any thread, without the GIL. @param arguments makes the tuple of arguments
  void call(const std::function<nb::tuple()>& arguments);
  void rethrow();

 private:
  nb::object function_;
  std::atomic<int>& stop_;
  std::exception_ptr error_;
};

/// Bit planes of C++ from booleans. @shape mask [..., bits]; words [..., words_for_bits]
std::vector<std::uint64_t> pack_bits(const bool* mask, std::int64_t n_rows, std::int64_t n_bits);

void bind_channelize(nb::module_& m);
void bind_calibrate(nb::module_& m);
void bind_correlate(nb::module_& m);
void bind_beamform(nb::module_& m);
void bind_search(nb::module_& m);
void bind_fold(nb::module_& m);
void bind_image(nb::module_& m);
void bind_grid(nb::module_& m);
void bind_layout(nb::module_& m);
void bind_files(nb::module_& m);
void bind_contents(nb::module_& m);
void bind_observation(nb::module_& m);

}  // namespace ryle::python
