// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/channelize/channelize.hpp"

#include <algorithm>
#include <mutex>

#include "python/src/blocks.hpp"
#include "ryle/core/bits.hpp"

namespace ryle::python {
void bind_blocks(nb::module_& m);

namespace {

namespace ch = channelize;

/// A plan for arrays of any strides: made again where they change, which they do not in a stream.
class Channelizer {
 public:
  Channelizer(std::int64_t n_inputs, std::int64_t n_channels, const std::string& format,
              std::int64_t n_taps, const std::string& window, double kaiser_beta,
              std::int64_t step_samples, double sample_rate_hz, double reference_hz,
              bool inverted_band, const std::string& output, const std::string& rounding,
              bool dither, std::uint64_t seed, std::int64_t max_spectra,
              const std::string& implementation)
      : queue_(shared_queue()) {
    config_.n_inputs = n_inputs;
    config_.n_channels = n_channels;
    config_.n_taps = n_taps;
    config_.window = named<ch::Window>(window, "window",
                                       {{"rectangular", ch::Window::rectangular},
                                        {"hann", ch::Window::hann},
                                        {"hamming", ch::Window::hamming},
                                        {"blackman", ch::Window::blackman},
                                        {"kaiser", ch::Window::kaiser}});
    config_.kaiser_beta = kaiser_beta;
    config_.step_samples = step_samples;
    config_.sample_rate_hz = sample_rate_hz;
    config_.reference_hz = reference_hz;
    config_.inverted_band = inverted_band;
    config_.output = sample_format(output);
    config_.rounding = named<ch::Rounding>(
        rounding, "rounding",
        {{"nearest_even", ch::Rounding::nearest_even}, {"truncate", ch::Rounding::truncate}});
    config_.dither = dither;
    config_.seed = seed;
    config_.max_spectra = whole_gulp(max_spectra);
    config_.implementation = implementation;
    config_.layout.format = sample_format(format);
    const std::int64_t bits = bits_per_sample(config_.layout.format);
    config_.layout.input_stride_bits = bits;
    config_.layout.sample_stride_bits = bits * n_inputs;
    const nb::gil_scoped_release released;
    plan_ = ch::make_channelizer(queue_, config_);
  }

  /// Spectra [first_spectrum, + n_spectra) from samples [input][time] that begin at first_tick.
  nb::tuple execute(
      const AnyArray& samples, std::int64_t first_tick, std::int64_t first_spectrum,
      std::int64_t n_spectra,
      const std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>& absent) {
    const PlanLock lock(mutex_);
    std::vector<AbsentSpan> spans;
    for (const auto& [input, begin, end] : absent) spans.push_back({input, begin, end});
    auto blocks =
        std::make_unique<Blocks>(config_.output, config_.n_channels, n_spectra, config_.n_inputs);
    blocks->valid.resize(count_of(config_.n_inputs * blocks->words()));
    std::vector<ch::ChannelStatistics> statistics(count_of(config_.n_channels * config_.n_inputs));
    const std::int64_t step = config_.max_spectra;
    std::vector<std::uint64_t> plane;  // the engine fills whole rows: those of one gulp
    for (std::int64_t first = 0; first < n_spectra; first += step) {
      {
        const nb::gil_scoped_release released;
        if (first == 0) take_layout(samples);
        const ch::Input input{samples.data(), first_tick,
                              static_cast<std::int64_t>(samples.shape(1)), spans};
        const std::int64_t n = std::min(step, n_spectra - first), words = words_for_bits(n);
        plane.resize(count_of(config_.n_inputs * words));
        plan_->execute(queue_, input, first_spectrum + first, n,
                       {.blocks = blocks->from(first),
                        .valid = plane.data(),
                        .valid_words = words,
                        .statistics = statistics.data()});
        for (std::int64_t p = 0; p < config_.n_inputs; ++p)
          std::copy_n(plane.data() + p * words, words,
                      blocks->valid.data() + p * blocks->words() + first / 64);
      }
      check_signals();
    }
    const std::size_t n = statistics.size();
    std::vector<std::int64_t> low(n), high(n);
    for (std::size_t k = 0; k < n; ++k) {
      low[k] = statistics[k].saturated_low;
      high[k] = statistics[k].saturated_high;
    }
    const std::initializer_list<std::size_t> shape = {count_of(config_.n_channels),
                                                      count_of(config_.n_inputs)};
    return nb::make_tuple(nb::cast(std::move(blocks)), to_array(std::move(low), shape),
                          to_array(std::move(high), shape));
  }

  void set_delays(const DenseArray<double, 3>& polynomials, std::int64_t reference_tick) {
    const nb::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    delays_.assign(polynomials.shape(0), {});
    for (std::size_t k = 0; k < delays_.size(); ++k) {
      delays_[k].reference_tick = reference_tick;
      std::copy_n(polynomials.data() + 8 * k, 4, delays_[k].delay_s);
      std::copy_n(polynomials.data() + 8 * k + 4, 4, delays_[k].phase_turns);
    }
    plan_->set_delays(delays_);
  }

  void set_gains(const DenseArray<cf32, 2>& gains) {
    const nb::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    gains_.assign(gains.data(), gains.data() + gains.size());
    apply_gains();
  }

  std::string implementation() const {
    const PlanLock lock(mutex_);
    return std::string(plan_->implementation());
  }
  Result<double> filter() const {
    const PlanLock lock(mutex_);
    const auto h = plan_->filter();
    return to_array(std::vector<double>(h.begin(), h.end()));
  }
  nb::dict cost() const {
    const PlanLock lock(mutex_);
    const auto c = ch::cost(config_);
    nb::dict d;
    d["useful_ops_per_sample"] = c.useful_ops_per_sample;
    d["bytes_in_per_sample"] = static_cast<double>(c.bytes_in_per_sample_x8) / 8;
    d["bytes_out_per_sample"] = c.bytes_out_per_sample;
    d["scratch_bytes"] = c.scratch_bytes;
    return d;
  }
  Result<double> centers_hz() const {
    std::vector<double> hz;
    for (std::int64_t c = 0; c < config_.n_channels; ++c)
      hz.push_back(ch::channel_center_hz(config_, c));
    return to_array(std::move(hz));
  }
  const ch::Config& config() const { return config_; }

 private:
  void apply_gains() { plan_->set_gains({gains_.data(), {config_.n_inputs, config_.n_channels}}); }

  void take_layout(const AnyArray& samples) {
    const std::int64_t bits = static_cast<std::int64_t>(samples.itemsize()) * 8;
    const std::int64_t input_bits = samples.stride(0) * bits,
                       sample_bits = samples.stride(1) * bits;
    auto& layout = config_.layout;
    if (layout.input_stride_bits == input_bits && layout.sample_stride_bits == sample_bits) return;
    layout.input_stride_bits = input_bits;
    layout.sample_stride_bits = sample_bits;
    plan_ = ch::make_channelizer(queue_, config_);
    if (!delays_.empty()) plan_->set_delays(delays_);
    if (!gains_.empty()) apply_gains();
  }

  Queue queue_;
  ch::Config config_;
  mutable std::recursive_mutex mutex_;
  std::unique_ptr<ch::Channelizer> plan_;
  std::vector<ch::DelayPolynomial> delays_;
  std::vector<cf32> gains_;
};

}  // namespace

void bind_channelize(nb::module_& m) {
  bind_blocks(m);
  nb::class_<Channelizer>(m, "Channelizer")
      .def(
          nb::init<std::int64_t, std::int64_t, const std::string&, std::int64_t, const std::string&,
                   double, std::int64_t, double, double, bool, const std::string&,
                   const std::string&, bool, std::uint64_t, std::int64_t, const std::string&>(),
          nb::arg("n_inputs"), nb::arg("n_channels"), nb::arg("format"), nb::arg("n_taps"),
          nb::arg("window"), nb::arg("kaiser_beta"), nb::arg("step_samples"),
          nb::arg("sample_rate_hz"), nb::arg("reference_hz"), nb::arg("inverted_band"),
          nb::arg("output"), nb::arg("rounding"), nb::arg("dither"), nb::arg("seed"),
          nb::arg("max_spectra"), nb::arg("implementation"))
      .def("execute", &Channelizer::execute, nb::arg("samples").noconvert(), nb::arg("first_tick"),
           nb::arg("first_spectrum"), nb::arg("n_spectra"), nb::arg("absent"))
      .def("set_delays", &Channelizer::set_delays, nb::arg("polynomials").noconvert(),
           nb::arg("reference_tick"))
      .def("set_gains", &Channelizer::set_gains, nb::arg("gains").noconvert())
      .def("cost", &Channelizer::cost)
      .def_prop_ro("implementation", &Channelizer::implementation)
      .def_prop_ro("filter", &Channelizer::filter, nb::rv_policy::move)
      .def_prop_ro("centers_hz", &Channelizer::centers_hz, nb::rv_policy::move)
      .def_prop_ro("transform_length",
                   [](const Channelizer& c) { return ch::transform_length(c.config()); })
      .def_prop_ro("step_length", [](const Channelizer& c) { return ch::step_length(c.config()); })
      .def_prop_ro("filter_length",
                   [](const Channelizer& c) { return ch::filter_length(c.config()); });
  m.def("channelize_implementations", &ch::available_implementations);
}

}  // namespace ryle::python
