// SPDX-License-Identifier: BSD-3-Clause
// Reads a Measurement Set of any origin with one spectral window.
#include <casacore/casa/Arrays/ArrayLogical.h>
#include <casacore/casa/Arrays/ArrayMath.h>
#include <casacore/measures/Measures/MDirection.h>
#include <casacore/measures/Measures/MEpoch.h>
#include <casacore/measures/TableMeasures/ArrayMeasColumn.h>
#include <casacore/ms/MeasurementSets/MSColumns.h>
#include <casacore/tables/Tables/ArrayColumn.h>
#include <casacore/tables/Tables/ScalarColumn.h>
#include <casacore/tables/Tables/TableRecord.h>

#include <algorithm>

#include "ryle/io/visibility/ms/sub_tables.hpp"

namespace ryle::ms {
namespace {

namespace cc = casacore;

template <class T, class Source>
std::vector<T> to_std(const cc::Array<Source>& in) {
  return std::vector<T>(in.begin(), in.end());
}

[[noreturn]] void reject(const std::string& what) { throw std::runtime_error(what); }

std::array<double, 3> position(const cc::ArrayColumn<double>& column, cc::rownr_t row) {
  const cc::Vector<double> xyz(column(row));
  if (xyz.size() != 3) reject("a position has not 3 numbers");
  return {xyz(0), xyz(1), xyz(2)};
}

void require_row(int id, cc::rownr_t n_rows, const char* name) {
  if (id < 0 || static_cast<cc::rownr_t>(id) >= n_rows)
    reject(std::string(name) + " " + std::to_string(id) + " has no row in its table");
}

void read_antennas(const cc::MeasurementSet& ms, ReadResult& out) {
  const cc::MSAntennaColumns columns(ms.antenna());
  for (cc::rownr_t row = 0; row < ms.antenna().nrow(); ++row) {
    AntennaRow& antenna = out.content.antennas.emplace_back();
    antenna.name = columns.name()(row);
    antenna.itrf_m = position(columns.position(), row);
  }
  const cc::MSFeedColumns feeds(ms.feed());
  for (cc::rownr_t row = 0; row < ms.feed().nrow(); ++row) {
    const int antenna = feeds.antennaId()(row);
    const cc::Vector<double> angles(feeds.receptorAngle()(row));
    if (antenna < 0 || antenna >= static_cast<int>(out.content.antennas.size()) || angles.empty())
      continue;
    auto& target = out.content.antennas[antenna].feed_angles_rad;
    target[0] = angles(0);
    target[1] = angles.size() > 1 ? angles(1) : angles(0) + 1.5707963267948966;
    out.has_feed_angles = true;
  }
}

void read_observation(const cc::MeasurementSet& ms, Impl& content) {
  if (ms.observation().nrow() > 0) {
    const cc::MSObservationColumns columns(ms.observation());
    content.telescope_name = columns.telescopeName()(0);
    content.observer = columns.observer()(0);
    content.project = columns.project()(0);
    if (ms.observation().tableDesc().isColumn("TELESCOPE_LOCATION")) {
      content.telescope_itrf_m =
          position(cc::ArrayColumn<double>(ms.observation(), "TELESCOPE_LOCATION"), 0);
    }
  }
}

/// The direction of the first field in use, whatever frame it is stored in, as ICRS.
void read_field(const cc::MeasurementSet& ms, int field_id, Impl& content) {
  require_row(field_id, ms.field().nrow(), "FIELD_ID");
  const cc::MSFieldColumns columns(ms.field());
  const auto row = static_cast<cc::rownr_t>(field_id);
  const cc::MDirection direction = columns.phaseDirMeas(row);
  const cc::MDirection icrs = cc::MDirection::Convert(direction, cc::MDirection::ICRS)();
  const cc::Vector<double> angles = icrs.getAngle().getValue("rad");
  content.phase_center_rad = {angles(0), angles(1)};
  content.field_name = columns.name()(row);
}

void read_spectral_window(const cc::MeasurementSet& ms, int data_description, ReadResult& out) {
  const cc::MSDataDescColumns description(ms.dataDescription());
  require_row(data_description, ms.dataDescription().nrow(), "DATA_DESC_ID");
  const auto window = static_cast<cc::rownr_t>(description.spectralWindowId()(data_description));
  const auto polarization =
      static_cast<cc::rownr_t>(description.polarizationId()(data_description));
  require_row(description.spectralWindowId()(data_description), ms.spectralWindow().nrow(),
              "SPECTRAL_WINDOW_ID");
  require_row(description.polarizationId()(data_description), ms.polarization().nrow(),
              "POLARIZATION_ID");
  const cc::MSSpWindowColumns columns(ms.spectralWindow());
  out.content.channel_centers_hz = to_std<double>(columns.chanFreq()(window));
  const cc::Vector<double> widths(columns.chanWidth()(window));
  const cc::Vector<double> bandwidths(columns.effectiveBW()(window));
  if (widths.empty() || bandwidths.empty()) reject("SPECTRAL_WINDOW has no channel widths");
  out.content.channel_width_hz = widths(0);
  out.content.noise_bandwidth_hz = bandwidths(0);
  out.corr_types =
      to_std<int>(cc::MSPolarizationColumns(ms.polarization()).corrType()(polarization));
}

/// `column`, FLAG (FLAG_ROW flags all of a row) and WEIGHT_SPECTRUM (or WEIGHT spread over the
/// channels).
void read_values(const cc::MeasurementSet& ms, const std::string& column, ReadResult& out) {
  if (!ms.tableDesc().isColumn(column)) {
    std::string there;
    for (const char* name : {"DATA", "CORRECTED_DATA", "MODEL_DATA"})
      if (ms.tableDesc().isColumn(name)) there += (there.empty() ? "" : ", ") + std::string(name);
    reject("it has no column " + column + "; " +
           (there.empty() ? "and none of DATA, CORRECTED_DATA, MODEL_DATA" : "--column " + there));
  }
  out.data = to_std<std::complex<float>>(cc::ArrayColumn<cc::Complex>(ms, column).getColumn());
  out.flag = to_std<std::uint8_t>(cc::ArrayColumn<bool>(ms, "FLAG").getColumn());
  const std::size_t n_products = out.corr_types.size();
  const std::size_t n_channels = out.content.channel_centers_hz.size();
  const std::size_t size = static_cast<std::size_t>(out.n_rows) * n_products * n_channels;
  const cc::Vector<bool> flag_row = cc::ScalarColumn<bool>(ms, "FLAG_ROW").getColumn();
  if (out.data.size() != size || out.flag.size() != size)
    reject(column + " and FLAG do not have the shape of the window");
  for (std::size_t row = 0; row < flag_row.size(); ++row) {
    if (flag_row(row))
      std::fill_n(out.flag.begin() + static_cast<std::ptrdiff_t>(row * n_products * n_channels),
                  n_products * n_channels, std::uint8_t{1});
  }
  const cc::TableRecord& keywords = ms.tableDesc().columnDesc(column).keywordSet();
  const cc::TableRecord& of_data = cc::ArrayColumn<cc::Complex>(ms, column).keywordSet();
  const cc::TableRecord& unit = of_data.isDefined("QuantumUnits") ? of_data : keywords;
  if (unit.isDefined("QuantumUnits")) {
    out.content.data_unit =
        unit.dataType("QuantumUnits") == cc::TpString
            ? std::string(unit.asString("QuantumUnits"))
            : std::string(unit.asArrayString("QuantumUnits")(cc::IPosition(1, 0)));
  }
  if (ms.keywordSet().isDefined("pyuvdata_polconv"))
    out.pol_convention = ms.keywordSet().asString("pyuvdata_polconv");
  out.has_corrected_data = ms.tableDesc().isColumn("CORRECTED_DATA");
  if (ms.tableDesc().isColumn("WEIGHT_SPECTRUM")) {
    const cc::ArrayColumn<float> column(ms, "WEIGHT_SPECTRUM");
    if (column.isDefined(0)) out.weight_spectrum = to_std<float>(column.getColumn());
  }
  if (out.weight_spectrum.size() == size) return;
  const std::vector<float> weight = to_std<float>(cc::ArrayColumn<float>(ms, "WEIGHT").getColumn());
  if (weight.size() != static_cast<std::size_t>(out.n_rows) * n_products)
    reject("WEIGHT does not have a number a row and correlation");
  out.weight_spectrum.resize(size);
  for (std::size_t k = 0; k < size; ++k) {
    out.weight_spectrum[k] = weight[k / (n_channels * n_products) * n_products + k % n_products];
  }
}

void read_rows(const cc::MeasurementSet& ms, const std::string& column, ReadResult& out) {
  const cc::MSMainColumns columns(ms);
  out.n_rows = static_cast<std::int64_t>(ms.nrow());
  if (out.n_rows == 0) {
    if (ms.dataDescription().nrow() > 0) read_spectral_window(ms, 0, out);
    if (ms.field().nrow() > 0) read_field(ms, 0, out.content);
    return;
  }
  const cc::Vector<int> descriptions = columns.dataDescId().getColumn();
  const cc::Vector<int> fields = columns.fieldId().getColumn();
  if (cc::anyNE(descriptions, descriptions(0)))
    reject("it has several spectral windows; split them first (mstransform, DP3)");
  if (cc::anyNE(fields, fields(0)))
    reject("it has several fields; split them first (mstransform, DP3)");
  read_spectral_window(ms, descriptions(0), out);
  read_field(ms, fields(0), out.content);
  const cc::MEpoch::Types scale = cc::MEpoch::castType(columns.timeMeas()(0).getRef().getType());
  out.tai = scale == cc::MEpoch::TAI;
  if (!out.tai && scale != cc::MEpoch::UTC)
    reject("its times are " + std::string(cc::MEpoch::showType(scale)) +
           "; ryle reads UTC and TAI");
  out.time_s = to_std<double>(columns.time().getColumn());
  out.interval_s = to_std<double>(columns.interval().getColumn());
  out.uvw_m = to_std<double>(columns.uvw().getColumn());
  out.antenna1 = to_std<int>(columns.antenna1().getColumn());
  out.antenna2 = to_std<int>(columns.antenna2().getColumn());
  if (out.uvw_m.size() != 3 * static_cast<std::size_t>(out.n_rows))
    reject("UVW does not have three numbers a row");
  read_values(ms, column, out);
}

}  // namespace

ReadResult read(const std::string& path, const std::string& column) {
  ReadResult out;
  one_line_errors([&] {
    const cc::MeasurementSet ms(table_name(path), cc::Table::Old);
    read_antennas(ms, out);
    read_observation(ms, out.content);
    out.is_ryle = read_ryle_tables(ms, out.content);
    read_rows(ms, column.empty() ? "DATA" : column, out);
  });
  return out;
}

UnfinishedRows read_unfinished(const std::string& path, std::int64_t max_rows) {
  UnfinishedRows out;
  one_line_errors([&] {
    const cc::Table table(table_name(path), cc::Table::Old);
    const auto n = std::min(static_cast<std::int64_t>(table.nrow()), max_rows);
    if (n < 1) return;
    const cc::Slicer rows(cc::IPosition(1, 0), cc::IPosition(1, static_cast<ssize_t>(n)));
    out.data = to_std<std::complex<float>>(
        cc::ArrayColumn<cc::Complex>(table, "DATA").getColumnRange(rows));
    out.weight_spectrum =
        to_std<float>(cc::ArrayColumn<float>(table, "WEIGHT_SPECTRUM").getColumnRange(rows));
  });
  return out;
}

}  // namespace ryle::ms
