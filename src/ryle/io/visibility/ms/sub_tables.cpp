// SPDX-License-Identifier: BSD-3-Clause
// The standard sub-tables of our Measurement Sets.
#include "ryle/io/visibility/ms/sub_tables.hpp"

#include <casacore/measures/Measures/MDirection.h>
#include <casacore/measures/Measures/MFrequency.h>
#include <casacore/measures/Measures/MPosition.h>
#include <casacore/ms/MeasurementSets/MSColumns.h>
#include <casacore/tables/Tables/ArrColDesc.h>
#include <casacore/tables/Tables/ArrayColumn.h>

#include <cmath>

namespace ryle::ms {
namespace {

namespace cc = casacore;

constexpr double kTwoPi = 6.283185307179586476925;

double middle_s(const Impl& content) { return 0.5 * (content.begin_s + content.end_s); }

cc::Vector<double> vector3(const std::array<double, 3>& v) {
  cc::Vector<double> out(3);
  for (int k = 0; k < 3; ++k) out(k) = v[k];
  return out;
}

cc::Matrix<double> direction_polynomial(const std::array<double, 2>& direction_rad) {
  cc::Matrix<double> out(2, 1);
  out(0, 0) = std::fmod(direction_rad[0], kTwoPi);
  if (out(0, 0) < 0) out(0, 0) += kTwoPi;
  out(1, 0) = direction_rad[1];
  return out;
}

/// One element whatever the number of lines: readers of whole columns want one shape in every row.
cc::Vector<cc::String> one_cell(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
  return cc::Vector<cc::String>(1, text);
}

void fill_antenna(cc::MeasurementSet& ms, const Impl& content) {
  cc::MSAntennaColumns columns(ms.antenna());
  columns.setPositionRef(cc::MPosition::ITRF);  // frames can be set on an empty table only
  ms.antenna().addRow(content.antennas.size());
  for (std::size_t row = 0; row < content.antennas.size(); ++row) {
    const AntennaRow& antenna = content.antennas[row];
    columns.name().put(row, antenna.name);
    columns.station().put(row, antenna.name);
    columns.type().put(row, "GROUND-BASED");
    columns.mount().put(
        row, "FIXED");  // dipoles on the ground: their pattern does not turn with the sky
    columns.position().put(row, vector3(antenna.itrf_m));
    columns.offset().put(row, cc::Vector<double>(3, 0.0));
    columns.dishDiameter().put(row, 1.0);
    columns.flagRow().put(row, false);
  }
}

void fill_feed(cc::MeasurementSet& ms, const Impl& content) {
  const int n = content.n_receptors;
  ms.feed().addRow(content.antennas.size());
  cc::MSFeedColumns columns(ms.feed());
  cc::Matrix<cc::Complex> response(n, n, cc::Complex(0));
  cc::Vector<cc::String> types(n);
  for (int r = 0; r < n; ++r) {
    response(r, r) = 1;
    types(r) = r == 0 ? "X" : "Y";
  }
  for (std::size_t row = 0; row < content.antennas.size(); ++row) {
    cc::Vector<double> receptor_angle(n);
    for (int r = 0; r < n; ++r) receptor_angle(r) = content.antennas[row].feed_angles_rad[r];
    columns.antennaId().put(row, static_cast<int>(row));
    columns.feedId().put(row, 0);
    columns.spectralWindowId().put(row, -1);
    columns.time().put(row, middle_s(content));
    columns.interval().put(row, 0.0);  // valid always
    columns.numReceptors().put(row, n);
    columns.beamId().put(row, -1);
    columns.beamOffset().put(row, cc::Matrix<double>(2, n, 0.0));
    columns.polarizationType().put(row, types);
    columns.polResponse().put(row, response);
    columns.position().put(row, cc::Vector<double>(3, 0.0));
    columns.receptorAngle().put(row, receptor_angle);
  }
}

void fill_field(cc::MeasurementSet& ms, const Impl& content) {
  cc::MSFieldColumns columns(ms.field());
  columns.setDirectionRef(cc::MDirection::ICRS);
  ms.field().addRow();
  const cc::Matrix<double> direction = direction_polynomial(content.phase_center_rad);
  columns.name().put(0, content.field_name);
  columns.code().put(0, "");
  columns.time().put(0, middle_s(content));
  columns.numPoly().put(0, 0);
  columns.delayDir().put(0, direction);
  columns.phaseDir().put(0, direction);
  columns.referenceDir().put(0, direction);
  columns.sourceId().put(0, -1);
  columns.flagRow().put(0, false);
}

void fill_spectral_window(cc::MeasurementSet& ms, const Impl& content) {
  ms.spectralWindow().addRow();
  cc::MSSpWindowColumns columns(ms.spectralWindow());
  const auto n = static_cast<ssize_t>(content.channel_centers_hz.size());
  columns.numChan().put(0, static_cast<int>(n));
  columns.name().put(0, "ryle");
  columns.refFrequency().put(
      0, 0.5 * (content.channel_centers_hz.front() + content.channel_centers_hz.back()));
  columns.chanFreq().put(0, cc::Vector<double>(content.channel_centers_hz));
  columns.chanWidth().put(0, cc::Vector<double>(n, content.channel_width_hz));
  columns.effectiveBW().put(0, cc::Vector<double>(n, content.noise_bandwidth_hz));
  columns.resolution().put(0, cc::Vector<double>(n, content.noise_bandwidth_hz));
  columns.measFreqRef().put(0, cc::MFrequency::TOPO);
  columns.totalBandwidth().put(0, std::abs(content.channel_width_hz) * static_cast<double>(n));
  columns.netSideband().put(0, 1);
  columns.ifConvChain().put(0, 0);
  columns.freqGroup().put(0, 0);
  columns.freqGroupName().put(0, "ryle");
  columns.flagRow().put(0, false);
}

void fill_polarization(cc::MeasurementSet& ms, int n_receptors) {
  const int n = n_receptors * n_receptors;
  ms.polarization().addRow();
  cc::MSPolarizationColumns columns(ms.polarization());
  cc::Vector<int> types(n);
  cc::Matrix<int> products(2, n);
  for (int q = 0; q < n; ++q) {
    types(q) = 9 + q;  // XX XY YX YY
    products(0, q) = q / n_receptors;
    products(1, q) = q % n_receptors;
  }
  columns.numCorr().put(0, n);
  columns.corrType().put(0, types);
  columns.corrProduct().put(0, products);
  columns.flagRow().put(0, false);
  ms.dataDescription().addRow();
  cc::MSDataDescColumns description(ms.dataDescription());
  description.spectralWindowId().put(0, 0);
  description.polarizationId().put(0, 0);
  description.flagRow().put(0, false);
}

void fill_observation(cc::MeasurementSet& ms, const Impl& content) {
  // pyuvdata's column: without it an array with a famous name gets that observatory's place instead
  // of its own.
  ms.observation().addColumn(
      cc::ArrayColumnDesc<double>("TELESCOPE_LOCATION", "ITRF of the array reference, m",
                                  cc::IPosition(1, 3), cc::ColumnDesc::Direct));
  ms.observation().addRow();
  cc::MSObservationColumns columns(ms.observation());
  cc::Vector<double> range(2);
  range(0) = content.begin_s;
  range(1) = content.end_s;
  const cc::Vector<cc::String> none(1, "");
  columns.telescopeName().put(0, content.telescope_name);
  columns.timeRange().put(0, range);
  columns.observer().put(0, content.observer);
  columns.log().put(0, none);
  columns.scheduleType().put(0, "");
  columns.schedule().put(0, none);
  columns.project().put(0, content.project);
  columns.releaseDate().put(0, 0.0);
  columns.flagRow().put(0, false);
  cc::ArrayColumn<double>(ms.observation(), "TELESCOPE_LOCATION")
      .put(0, vector3(content.telescope_itrf_m));
}

void fill_pointing(cc::MeasurementSet& ms, const Impl& content) {
  cc::MSPointingColumns columns(ms.pointing());
  columns.setDirectionRef(cc::MDirection::ICRS);
  ms.pointing().addRow(content.antennas.size());
  for (std::size_t row = 0; row < content.antennas.size(); ++row) {
    columns.antennaId().put(row, static_cast<int>(row));
    columns.time().put(row, middle_s(content));
    columns.interval().put(row, content.end_s - content.begin_s);
    columns.name().put(row, "zenith");
    columns.numPoly().put(row, 0);
    columns.timeOrigin().put(row, middle_s(content));
    columns.direction().put(row, direction_polynomial(content.pointing_rad));
    columns.target().put(row, direction_polynomial(content.phase_center_rad));
    columns.tracking().put(row, true);
  }
}

void fill_processor_and_state(cc::MeasurementSet& ms) {
  ms.processor().addRow();
  cc::MSProcessorColumns processor(ms.processor());
  processor.type().put(0, "CORRELATOR");
  processor.subType().put(0, "RYLE");
  processor.typeId().put(0, -1);
  processor.modeId().put(0, -1);
  processor.flagRow().put(0, false);
  ms.state().addRow();
  cc::MSStateColumns state(ms.state());
  state.sig().put(0, true);
  state.ref().put(0, false);
  state.cal().put(0, 0.0);
  state.load().put(0, 0.0);
  state.subScan().put(0, 0);
  state.obsMode().put(0, "OBSERVE_TARGET.ON_SOURCE");
  state.flagRow().put(0, false);
}

void fill_history(cc::MeasurementSet& ms, const Impl& content) {
  cc::MSHistoryColumns columns(ms.history());
  const cc::Vector<cc::String> none(1, "");
  ms.history().addRow(content.history.size());
  for (std::size_t row = 0; row < content.history.size(); ++row) {
    columns.time().put(row, content.end_s);
    columns.observationId().put(row, 0);
    columns.message().put(row, content.history[row]);
    columns.priority().put(row, "NORMAL");
    columns.origin().put(row, "ryle");
    columns.objectId().put(row, 0);
    columns.application().put(row, "ryle");
    columns.cliCommand().put(row, row == 0 ? one_cell(content.command_lines) : none);
    columns.appParams().put(row, row == 0 ? one_cell(content.configuration_lines) : none);
  }
}

}  // namespace

void fill_sub_tables(cc::MeasurementSet& ms, const Impl& content) {
  fill_antenna(ms, content);
  fill_feed(ms, content);
  fill_field(ms, content);
  fill_spectral_window(ms, content);
  fill_polarization(ms, content.n_receptors);
  fill_observation(ms, content);
  fill_pointing(ms, content);
  fill_processor_and_state(ms);
  fill_history(ms, content);
}

}  // namespace ryle::ms
