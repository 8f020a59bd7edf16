// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/beamform/beamform.hpp"

#include <algorithm>
#include <mutex>

#include "python/src/bindings.hpp"
#include "ryle/core/bits.hpp"

namespace ryle::python {
namespace {

namespace bf = beamform;

class Beamformer {
 public:
  Beamformer(std::int64_t n_antennas, std::int64_t n_pols, std::int64_t n_beams,
             std::int64_t n_channels, std::int64_t max_spectra, const std::string& format,
             const std::string& weight_format, const std::string& output,
             const std::string& output_format, std::int64_t integration, const std::string& loss,
             const std::vector<std::vector<std::uint8_t>>& incoherent, bool dither,
             std::uint64_t seed, const std::string& implementation)
      : queue_(shared_queue()) {
    bf::Config c;
    c.n_antennas = n_antennas;
    c.n_pols = n_pols;
    c.n_beams = n_beams;
    c.n_channels = n_channels;
    c.max_spectra = max_spectra;
    c.format = sample_format(format);
    c.weights =
        named<bf::WeightFormat>(weight_format, "weight_format",
                                {{"i8", bf::WeightFormat::i8}, {"f32", bf::WeightFormat::f32}});
    c.output = named<bf::OutputKind>(output, "output",
                                     {{"voltage", bf::OutputKind::voltage},
                                      {"power", bf::OutputKind::power},
                                      {"stokes_i", bf::OutputKind::stokes_i},
                                      {"stokes_iquv", bf::OutputKind::stokes_iquv}});
    c.output_format = named<bf::OutputFormat>(output_format, "output_format",
                                              {{"cf32", bf::OutputFormat::cf32},
                                               {"cf16", bf::OutputFormat::cf16},
                                               {"ci8", bf::OutputFormat::ci8},
                                               {"ci4", bf::OutputFormat::ci4},
                                               {"f32", bf::OutputFormat::f32},
                                               {"u16", bf::OutputFormat::u16},
                                               {"u8", bf::OutputFormat::u8},
                                               {"f16", bf::OutputFormat::f16}});
    c.integration = integration;
    c.loss = named<bf::LossMode>(
        loss, "loss", {{"renormalize", bf::LossMode::renormalize}, {"raw", bf::LossMode::raw}});
    c.incoherent = incoherent;
    c.dither = dither;
    c.seed = seed;
    c.implementation = implementation;
    const nb::gil_scoped_release released;
    plan_ = bf::make_beamformer(queue_, c);
  }

  /// @shape weights [beam][channel][input]
  void set_weights(const DenseArray<cf32, 3>& weights) {
    const auto& c = config();
    const nb::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    plan_->set_weights(queue_, {weights.data(), {c.n_beams, c.n_channels, c.n_inputs()}});
  }

  /// @shape scale, offset [row][product][channel]
  void set_requantization(const DenseArray<float, 3>& scale, const DenseArray<float, 3>& offset) {
    const auto extent = [](const DenseArray<float, 3>& a) {
      return std::array<std::int64_t, 3>{static_cast<std::int64_t>(a.shape(0)),
                                         static_cast<std::int64_t>(a.shape(1)),
                                         static_cast<std::int64_t>(a.shape(2))};
    };
    const nb::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    plan_->set_requantization(queue_, {scale.data(), extent(scale)},
                              {offset.data(), extent(offset)});
  }

  /// Samples [channel][spectrum][input], parts of complex integers on a last axis; present
  /// [channel or 1][spectrum][input]. Bytes of [row][product][channel][window], or voltages.
  /// Without a first_tick they follow those of the last call.
  nb::tuple execute(const AnyArray& samples, std::optional<std::int64_t> begin,
                    const std::optional<DenseArray<bool, 3>>& present) {
    const PlanLock lock(mutex_);
    const std::int64_t first_tick = begin.value_or(next_tick_);
    const auto& c = config();
    const auto n_spectra = static_cast<std::int64_t>(samples.shape(1));
    const auto item = static_cast<std::int64_t>(samples.itemsize());
    const std::int64_t n_windows = c.n_windows(first_tick, n_spectra);
    std::vector<std::uint8_t> bytes(count_of(bf::dense_output_bytes(c, n_windows)));
    bf::Output output = bf::dense_output(c, bytes.data(), n_windows);
    std::vector<std::uint64_t> bits;
    const std::int64_t n_masks = present ? static_cast<std::int64_t>(present->shape(0)) : 0;
    if (present) bits = pack_bits(present->data(), n_masks * n_spectra, c.n_inputs());
    const std::int64_t words = words_for_bits(c.n_inputs());
    Counts total(c), gulp(c);
    std::vector<std::uint64_t> gulp_bits;
    std::int64_t done = 0;
    for (std::int64_t first = 0; first < n_spectra; first += c.max_spectra) {
      const std::int64_t n = std::min(c.max_spectra, n_spectra - first);
      bf::Input input{.samples = static_cast<const std::byte*>(samples.data()) +
                                 first * samples.stride(1) * item,
                      .n_spectra = n,
                      .first_tick = first_tick + first,
                      .channel_stride_bytes = samples.stride(0) * item,
                      .step_stride_bytes = samples.stride(1) * item};
      if (!bits.empty()) {
        gulp_bits.resize(count_of(n_masks * n * words));
        for (std::int64_t k = 0; k < n_masks; ++k)
          std::copy_n(bits.data() + (k * n_spectra + first) * words, n * words,
                      gulp_bits.data() + k * n * words);
        input.present = gulp_bits.data();
        input.slot_spectra = 1;
        input.present_per_channel = n_masks > 1;
      }
      bf::Output part = output;
      part.values = bytes.data() + done * c.bytes_per_value();
      gulp.lend(part);
      {
        const nb::gil_scoped_release released;
        done += plan_->execute(queue_, input, part);
      }
      next_tick_ = first_tick + first + n;
      total.add(gulp, static_cast<double>(n) / static_cast<double>(n_spectra));
      check_signals();
    }
    const std::initializer_list<std::size_t> rows = {count_of(c.n_rows()), count_of(c.n_products()),
                                                     count_of(c.n_channels)};
    const std::initializer_list<std::size_t> beams = {count_of(c.n_beams), count_of(c.n_channels)};
    // Bytes, which Python views as what they are.
    return nb::make_tuple(to_array(std::move(bytes)), done, to_array(std::move(total.low), rows),
                          to_array(std::move(total.high), rows),
                          to_array(std::move(total.used), beams),
                          to_array(std::move(total.power), beams));
  }

  void reset() {
    const PlanLock lock(mutex_);
    plan_->reset();
    next_tick_ = 0;
  }
  std::string implementation() const {
    const PlanLock lock(mutex_);
    return std::string(plan_->implementation());
  }
  nb::dict cost() const {
    const auto k = bf::cost(config());
    nb::dict d;
    d["useful_ops_per_spectrum"] = k.useful_ops_per_spectrum;
    d["bytes_in_per_spectrum"] = k.bytes_in_per_spectrum;
    d["bytes_out_per_spectrum"] = k.bytes_out_per_spectrum;
    d["state_bytes"] = k.state_bytes;
    return d;
  }
  const bf::Config& config() const { return plan_->config(); }

 private:
  /// What a gulp counts, and the sum of all.
  struct Counts {
    explicit Counts(const bf::Config& c)
        : low(count_of(c.n_rows() * c.n_products() * c.n_channels)),
          high(low.size()),
          used(count_of(c.n_beams * c.n_channels)),
          power(used.size()) {}
    void lend(bf::Output& output) {
      output.saturated_low = low.data();
      output.saturated_high = high.data();
      output.n_used = used.data();
      output.weight_power = power.data();
    }
    void add(const Counts& gulp, double share) {
      for (std::size_t k = 0; k < low.size(); ++k) {
        low[k] += gulp.low[k];
        high[k] += gulp.high[k];
      }
      for (std::size_t k = 0; k < used.size(); ++k) {
        used[k] += gulp.used[k];
        power[k] += static_cast<float>(share * static_cast<double>(gulp.power[k]));
      }
    }
    std::vector<std::uint32_t> low, high, used;
    std::vector<float> power;
  };

  Queue queue_;
  mutable std::recursive_mutex mutex_;
  std::unique_ptr<bf::Beamformer> plan_;
  std::int64_t next_tick_ = 0;
};

}  // namespace

void bind_beamform(nb::module_& m) {
  nb::class_<Beamformer>(m, "Beamformer")
      .def(nb::init<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                    const std::string&, const std::string&, const std::string&, const std::string&,
                    std::int64_t, const std::string&, const std::vector<std::vector<std::uint8_t>>&,
                    bool, std::uint64_t, const std::string&>(),
           nb::arg("n_antennas"), nb::arg("n_pols"), nb::arg("n_beams"), nb::arg("n_channels"),
           nb::arg("max_spectra"), nb::arg("format"), nb::arg("weight_format"), nb::arg("output"),
           nb::arg("output_format"), nb::arg("integration"), nb::arg("loss"), nb::arg("incoherent"),
           nb::arg("dither"), nb::arg("seed"), nb::arg("implementation"))
      .def("set_weights", &Beamformer::set_weights, nb::arg("weights").noconvert())
      .def("set_requantization", &Beamformer::set_requantization, nb::arg("scale").noconvert(),
           nb::arg("offset").noconvert())
      .def("execute", &Beamformer::execute, nb::arg("samples").noconvert(),
           nb::arg("first_tick").none(), nb::arg("present").noconvert() = nb::none())
      .def("reset", &Beamformer::reset)
      .def("cost", &Beamformer::cost)
      .def_prop_ro("implementation", &Beamformer::implementation)
      .def_prop_ro("n_rows", [](const Beamformer& b) { return b.config().n_rows(); })
      .def_prop_ro("n_products", [](const Beamformer& b) { return b.config().n_products(); });
  m.def("beamform_implementations", &bf::available_implementations);
}

}  // namespace ryle::python
