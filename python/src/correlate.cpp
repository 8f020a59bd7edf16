// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/correlate/correlate.hpp"

#include <algorithm>
#include <mutex>

#include "python/src/blocks.hpp"

namespace ryle::python {
namespace {

namespace co = correlate;

class Correlator {
 public:
  Correlator(std::int64_t n_inputs, std::int64_t n_channels, const std::string& format,
             std::int64_t max_spectra, const std::string& implementation)
      : queue_(shared_queue()) {
    const nb::gil_scoped_release released;
    plan_ = co::make_correlator(queue_, {.n_inputs = n_inputs,
                                         .n_channels = n_channels,
                                         .format = sample_format(format),
                                         .max_spectra = whole_gulp(max_spectra),
                                         .implementation = implementation});
  }

  /// Adds all spectra, in gulps of max_spectra.
  void execute(const Blocks& blocks) {
    const PlanLock lock(mutex_);
    const auto& config = plan_->config();
    if (blocks.n_inputs() != config.n_inputs || blocks.n_channels() != config.n_channels ||
        blocks.format() != config.format)
      throw ConfigError("correlator: the spectra have " +
                        shape(blocks.n_channels(), blocks.n_inputs(), blocks.format()) +
                        ", the plan " + shape(config.n_channels, config.n_inputs, config.format) +
                        "; make a Correlator of their shape");
    const std::int64_t step = config.max_spectra;
    for (std::int64_t first = 0; first < blocks.n_spectra(); first += step) {
      {
        const nb::gil_scoped_release released;
        plan_->execute(queue_,
                       blocks.gulp<co::Input>(first, std::min(step, blocks.n_spectra() - first)));
      }
      check_signals();
    }
  }

  nb::tuple finish() {
    co::Sums sums;
    {
      const nb::gil_scoped_release released;
      const std::lock_guard lock(mutex_);
      plan_->finish(queue_, sums);
    }
    const std::initializer_list<std::size_t> shape = {count_of(plan_->config().n_channels),
                                                      count_of(n_pairs(plan_->config().n_inputs))};
    nb::object values = sums.integer.empty()
                            ? nb::cast(to_array(std::move(sums.real), shape))
                            : nb::cast(parts_to_array(std::move(sums.integer), shape));
    return nb::make_tuple(values, to_array(std::move(sums.counts), shape), sums.n_spectra);
  }

  void reset() {
    const nb::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    plan_->reset(queue_);
  }

  std::string implementation() const { return std::string(plan_->implementation()); }
  nb::dict cost() const {
    const auto c = co::cost(plan_->config());
    nb::dict d;
    d["useful_ops_per_spectrum"] = c.useful_ops_per_spectrum;
    d["bytes_in_per_spectrum"] = c.bytes_in_per_spectrum;
    d["accumulator_bytes"] = c.accumulator_bytes;
    d["scratch_bytes"] = c.scratch_bytes;
    return d;
  }

 private:
  static std::string shape(std::int64_t n_channels, std::int64_t n_inputs, SampleFormat format) {
    return std::to_string(n_channels) + " channels of " + std::to_string(n_inputs) + " inputs of " +
           std::string(name(format));
  }

  Queue queue_;
  mutable std::recursive_mutex mutex_;
  std::unique_ptr<co::Correlator> plan_;
};

}  // namespace

void bind_correlate(nb::module_& m) {
  nb::class_<Correlator>(m, "Correlator")
      .def(nb::init<std::int64_t, std::int64_t, const std::string&, std::int64_t,
                    const std::string&>(),
           nb::arg("n_inputs"), nb::arg("n_channels"), nb::arg("format"), nb::arg("max_spectra"),
           nb::arg("implementation"))
      .def("execute", &Correlator::execute, nb::arg("blocks"))
      .def("finish", &Correlator::finish)
      .def("reset", &Correlator::reset)
      .def("cost", &Correlator::cost)
      .def_prop_ro("implementation", &Correlator::implementation);
  m.def("correlate_implementations", &co::available_implementations);
}

}  // namespace ryle::python
