// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <future>
#include <thread>

#include "python/src/bindings.hpp"
#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/interrupt.hpp"
#include "ryle/core/version.hpp"
#include "ryle/device/queue.hpp"

namespace ryle::python {

void check_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

Queue shared_queue() {
  static auto* const queue = new Queue(Queue::cpu());  // not destroyed: threads may outlive main
  return *queue;
}

void run_interruptibly(std::atomic<int>& stop, const std::function<void()>& work) {
  std::exception_ptr failed, interrupted;
  {
    const nb::gil_scoped_release released;
    std::promise<void> done;
    auto finished = done.get_future();
    std::thread worker([&] {
      try {
        work();
      } catch (...) {
        failed = std::current_exception();
      }
      done.set_value();
    });
    while (finished.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
      const nb::gil_scoped_acquire held;
      try {
        check_signals();
      } catch (nb::python_error&) {
        if (!interrupted) interrupted = std::current_exception();
        ++stop;
      }
    }
    worker.join();
  }
  if (interrupted) std::rethrow_exception(interrupted);
  if (failed) std::rethrow_exception(failed);
}

Callback::Callback(nb::object function, std::atomic<int>& stop)
    : function_(std::move(function)), stop_(stop) {}

Callback::~Callback() = default;

void Callback::call(const std::function<nb::tuple()>& arguments) {
  if (!*this) return;
  const nb::gil_scoped_acquire held;
  if (error_) return;
  try {
    function_(*arguments());
  } catch (nb::python_error&) {
    error_ = std::current_exception();
    ++stop_;
  }
}

void Callback::rethrow() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

std::vector<std::uint64_t> pack_bits(const bool* mask, std::int64_t n_rows, std::int64_t n_bits) {
  const std::int64_t words = words_for_bits(n_bits);
  std::vector<std::uint64_t> planes(count_of(n_rows * words));
  for (std::int64_t row = 0; row < n_rows; ++row)
    for (std::int64_t bit = 0; bit < n_bits; ++bit)
      if (mask[row * n_bits + bit])
        planes[count_of(row * words + bit / 64)] |= std::uint64_t{1} << (bit % 64);
  return planes;
}

namespace {

// Each exception of the library is the one of ryle._errors of its name, with its exit code.
void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  const auto raise = [](const char* name, const Error& error) {
    const nb::object type = nb::module_::import_("ryle._errors").attr(name);
    const nb::object value = type(error.what());
    value.attr("exit_code") = static_cast<int>(error.exit_code());
    PyErr_SetObject(type.ptr(), value.ptr());
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const ConfigError& e) {
    raise("ConfigError", e);
  } catch (const UnsupportedError& e) {
    raise("UnsupportedError", e);
  } catch (const DeviceError& e) {
    raise("DeviceError", e);
  } catch (const FormatError& e) {
    raise("DataError", e);
  } catch (const IoError& e) {
    raise("DataError", e);
  } catch (const Error& e) {
    raise("Error", e);
  }
}

}  // namespace
}  // namespace ryle::python

NB_MODULE(_ryle, m) {
  using namespace ryle;
  using namespace ryle::python;
  m.doc() = "The C++ library behind the package ryle; use that.";
  nb::register_exception_translator(translate);
  m.def(
      "version", [] { return std::string(version()); }, "Version and commit of the library.");
  m.def("instruction_sets", &cpu_instruction_sets,
        "Instruction sets of this processor that the engines have code for, the best first.");
  bind_channelize(m);
  bind_correlate(m);
  bind_beamform(m);
  bind_search(m);
  bind_fold(m);
  bind_image(m);
  bind_grid(m);
  bind_layout(m);
  bind_files(m);
  bind_calibrate(m);
  bind_contents(m);
  bind_observation(m);
}
