// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/fold.hpp"

#include "python/src/bindings.hpp"
#include "ryle/pipeline/search/search_fold.hpp"

namespace ryle::python {
namespace {

namespace se = search;

nb::dict fold_dict(se::Fold&& f) {
  const auto n_bins = count_of(f.config.n_bins);
  const std::size_t n_subs = f.middle_s.size();
  auto profile = f.profile();
  nb::dict d;
  d["reduced_chi2"] = f.reduced_chi2();
  d["f0_hz"] = f.config.f0_hz;
  d["f1_hz_per_s"] = f.config.f1_hz_per_s;
  d["duration_s"] = f.duration_s;
  d["mean"] = f.mean;
  d["variance"] = f.variance;
  d["at_edge"] = f.at_edge;
  d["profile"] = to_array(std::move(profile), {n_bins});
  d["sums"] = to_array(std::move(f.sums), {n_subs, n_bins});
  d["counts"] = to_array(std::move(f.counts), {n_subs, n_bins});
  d["middle_s"] = to_array(std::move(f.middle_s), {n_subs});
  return d;
}

nb::dict fold_array(const DenseArray<float, 1>& series, double interval_s, double f0_hz,
                    double f1_hz_per_s, std::int64_t n_bins, std::int64_t n_sub_integrations,
                    double half_range_hz) {
  se::FoldConfig config;
  config.f0_hz = f0_hz;
  config.f1_hz_per_s = f1_hz_per_s;
  config.n_bins = n_bins;
  config.n_sub_integrations = n_sub_integrations;
  const std::span<const float> samples(series.data(), series.size());
  se::Fold folded;
  read_interruptibly([&] {
    folded = half_range_hz > 0 ? se::fold_search(samples, interval_s, config, half_range_hz)
                               : se::fold(samples, interval_s, config);
  });
  return fold_dict(std::move(folded));
}

nb::dict fold_file(const std::string& file, const std::string& par, double period_s,
                   double period_derivative, double dm_pc_cm3, const std::string& k_dm,
                   std::int64_t n_bins, bool search, double drift_turns, const std::string& text,
                   const std::string& fits, const std::string& picture, bool overwrite,
                   const std::string& polarization) {
  pipeline::FoldOptions o;
  o.file = file;
  o.par = par;
  o.period_s = period_s;
  o.period_derivative = period_derivative;
  o.dm_pc_cm3 = dm_pc_cm3;
  o.k_dm = k_dm;
  o.n_bins = n_bins;
  o.search = search;
  o.drift_turns = drift_turns;
  o.outputs.text = text;
  o.outputs.fits = fits;
  o.outputs.picture = picture;
  o.outputs.overwrite = overwrite;
  o.input.polarization = polarization;
  o.command_line = "ryle.fold";
  pipeline::FoldSummary s;
  read_interruptibly([&] { s = pipeline::fold_file(o); });
  nb::dict d = fold_dict(std::move(s.fold));
  d["period_s"] = s.period_s;
  d["predicted_period_s"] = s.predicted_period_s;
  d["reduced_chi2"] = s.reduced_chi2;
  d["source_name"] = s.source_name;
  d["start_mjd_utc"] = s.start_mjd_utc;
  d["at_edge"] = s.at_edge;
  d["products"] = s.products;
  d["warnings"] = s.warnings;
  return d;
}

}  // namespace

void bind_fold(nb::module_& m) {
  m.def("fold_array", &fold_array, nb::arg("series").noconvert(), nb::arg("interval_s"),
        nb::arg("f0_hz"), nb::arg("f1_hz_per_s"), nb::arg("n_bins"), nb::arg("n_sub_integrations"),
        nb::arg("half_range_hz"));
  m.def("fold_file", &fold_file, nb::arg("file"), nb::arg("par"), nb::arg("period_s"),
        nb::arg("period_derivative"), nb::arg("dm_pc_cm3"), nb::arg("k_dm"), nb::arg("n_bins"),
        nb::arg("search"), nb::arg("drift_turns"), nb::arg("text"), nb::arg("fits"),
        nb::arg("picture"), nb::arg("overwrite"), nb::arg("polarization"));
}

}  // namespace ryle::python
