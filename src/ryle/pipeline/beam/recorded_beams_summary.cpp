// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ryle/pipeline/beam/recorded_beams.hpp"

namespace ryle::pipeline {

std::string to_json(const RecordedBeamsSummary& s) {
  return nlohmann::ordered_json{{"beams", s.n_beams},
                                {"incoherent", s.n_incoherent},
                                {"antennas", s.n_antennas},
                                {"pols", s.n_pols},
                                {"channels", s.n_channels},
                                {"spectra", s.n_spectra},
                                {"values", s.n_values},
                                {"value_interval_s", s.value_interval_s},
                                {"output", s.output},
                                {"format", s.format},
                                {"data_s", s.data_s},
                                {"elapsed_s", s.elapsed_s},
                                {"beam_s", s.beam_s},
                                {"update_s", s.update_s},
                                {"weight_updates", s.n_updates},
                                {"scale_changes", s.n_scale_changes},
                                {"lost_samples", s.lost_samples},
                                {"used_fraction", s.used_fraction},
                                {"masked_inputs", s.n_masked_inputs},
                                {"saturated_low", s.saturated_low},
                                {"saturated_high", s.saturated_high},
                                {"worst_delay_loss", s.worst_delay_loss},
                                {"vdif", s.vdif},
                                {"implementations", s.implementations},
                                {"products", s.products},
                                {"warnings", s.warnings},
                                {"stopped_by_signal", s.stopped}}
      .dump();
}

std::string to_text(const RecordedBeamsSummary& s) {
  std::string text = fmt::format(
      "{} beam{} and {} incoherent of {} antennas x {} pol, {} channels: {} values of {} ({}), one "
      "every {:.6g} ms\n",
      s.n_beams, s.n_beams == 1 ? "" : "s", s.n_incoherent, s.n_antennas, s.n_pols, s.n_channels,
      s.n_values, s.output, s.format, 1e3 * s.value_interval_s);
  text +=
      fmt::format("{:.3f} s of data in {:.2f} s ({:.2f} s in the beamformer); {} sets of weights",
                  s.data_s, s.elapsed_s, s.beam_s, s.n_updates);
  if (s.update_s > 0) text += fmt::format(", a new one every {:.3f} s", s.update_s);
  text += fmt::format("\n{:.3f} % of the samples of weighted antennas were there",
                      100 * s.used_fraction);
  if (s.n_masked_inputs > 0) text += fmt::format("; {} inputs masked", s.n_masked_inputs);
  if (s.n_scale_changes > 0)
    text += fmt::format("; scales set {} times, {} codes cut low, {} high", s.n_scale_changes,
                        s.saturated_low, s.saturated_high);
  text += "\nran:";
  for (const auto& name : s.implementations) text += " " + name;
  text += "\n";
  for (const auto& [what, n] : s.vdif) text += fmt::format("VDIF {}: {}\n", what, n);
  if (s.stopped) text += "stopped by a signal; what was whole is published\n";
  for (const auto& w : s.warnings) text += "warning: " + w + "\n";
  for (const auto& p : s.products) text += "wrote " + p + "\n";
  return text;
}

}  // namespace ryle::pipeline
