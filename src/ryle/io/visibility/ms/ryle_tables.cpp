// SPDX-License-Identifier: BSD-3-Clause
// What no standard column has a place for: RYLE_APPLIED (per input: delay, gains, levels) and
// RYLE_DUMP (exact times).
#include <casacore/tables/Tables/ArrColDesc.h>
#include <casacore/tables/Tables/ArrayColumn.h>
#include <casacore/tables/Tables/ScaColDesc.h>
#include <casacore/tables/Tables/ScalarColumn.h>
#include <casacore/tables/Tables/SetupNewTab.h>
#include <casacore/tables/Tables/TableRecord.h>

#include "ryle/io/visibility/ms/sub_tables.hpp"

namespace ryle::ms {
namespace {

namespace cc = casacore;

cc::Table new_table(cc::MeasurementSet& ms, const char* name, const cc::TableDesc& description,
                    std::size_t n_rows) {
  cc::SetupNewTable setup(std::string(ms.tableName()) + "/" + name, description, cc::Table::New);
  cc::Table table(setup, n_rows);
  ms.rwKeywordSet().defineTable(name, table);
  return table;
}

struct DumpColumns {
  cc::ScalarColumn<cc::Int64> start, centroid, n_spectra;
  cc::ScalarColumn<double> interval;
  explicit DumpColumns(const cc::Table& table)
      : start(table, "START_TAI_NS"),
        centroid(table, "CENTROID_TAI_NS"),
        n_spectra(table, "N_SPECTRA"),
        interval(table, "INTERVAL") {}
};

void write_dumps(cc::MeasurementSet& ms, const std::vector<DumpRow>& dumps) {
  cc::TableDesc description;
  description.addColumn(
      cc::ScalarColumnDesc<cc::Int64>("START_TAI_NS", "first sample, ns since 1970-01-01 TAI"));
  description.addColumn(
      cc::ScalarColumnDesc<cc::Int64>("CENTROID_TAI_NS", "centroid of the complete dump"));
  description.addColumn(cc::ScalarColumnDesc<double>("INTERVAL", "nominal length, s"));
  description.addColumn(cc::ScalarColumnDesc<cc::Int64>("N_SPECTRA", "nominal number of spectra"));
  const cc::Table table = new_table(ms, "RYLE_DUMP", description, dumps.size());
  DumpColumns columns(table);
  for (std::size_t row = 0; row < dumps.size(); ++row) {
    columns.start.put(row, dumps[row].start_tai_ns);
    columns.centroid.put(row, dumps[row].centroid_tai_ns);
    columns.interval.put(row, dumps[row].interval_s);
    columns.n_spectra.put(row, dumps[row].n_spectra);
  }
}

struct InputColumns {
  cc::ScalarColumn<int> antenna, receptor;
  cc::ScalarColumn<bool> bad;
  cc::ScalarColumn<double> delay, rms, saturated;
  cc::ArrayColumn<cc::DComplex> gain;
  explicit InputColumns(const cc::Table& table)
      : antenna(table, "ANTENNA_ID"),
        receptor(table, "RECEPTOR_ID"),
        bad(table, "BAD"),
        delay(table, "DELAY"),
        rms(table, "INPUT_RMS_LSB"),
        saturated(table, "SATURATED_FRACTION"),
        gain(table, "GAIN") {}
};

cc::TableDesc input_description(ssize_t n_channels) {
  cc::TableDesc description;
  description.addColumn(cc::ScalarColumnDesc<int>("ANTENNA_ID", "row of ANTENNA"));
  description.addColumn(cc::ScalarColumnDesc<int>("RECEPTOR_ID", "0 X, 1 Y"));
  description.addColumn(cc::ScalarColumnDesc<bool>("BAD", "flagged in the layout"));
  description.addColumn(
      cc::ScalarColumnDesc<double>("DELAY", "delay applied, s, at the middle of the observation"));
  description.addColumn(
      cc::ScalarColumnDesc<double>("INPUT_RMS_LSB", "level of the raw samples, LSB"));
  description.addColumn(
      cc::ScalarColumnDesc<double>("SATURATED_FRACTION", "requantised parts that were clipped"));
  description.addColumn(
      cc::ArrayColumnDesc<cc::DComplex>("GAIN", "complex gain applied per channel",
                                        cc::IPosition(1, n_channels), cc::ColumnDesc::FixedShape));
  return description;
}

void write_applied(cc::MeasurementSet& ms, const Impl& content) {
  const auto n_channels = static_cast<ssize_t>(content.channel_centers_hz.size());
  cc::Table table =
      new_table(ms, "RYLE_APPLIED", input_description(n_channels), content.inputs.size());
  InputColumns columns(table);
  for (std::size_t row = 0; row < content.inputs.size(); ++row) {
    const InputRow& input = content.inputs[row];
    columns.antenna.put(row, input.antenna);
    columns.receptor.put(row, input.receptor);
    columns.bad.put(row, input.bad);
    columns.delay.put(row, input.delay_s);
    columns.rms.put(row, input.rms_lsb);
    columns.saturated.put(row, input.saturated_fraction);
    columns.gain.put(row, input.gains.empty()
                              ? cc::Vector<cc::DComplex>(n_channels, cc::DComplex(1))
                              : cc::Vector<cc::DComplex>(input.gains));
  }
  cc::TableRecord& keywords = table.rwKeywordSet();
  keywords.define("FILTER_RESPONSE", cc::Vector<double>(content.filter_response));
  keywords.define("N_TAPS", static_cast<int>(content.n_taps));
  keywords.define("WINDOW", cc::String(content.window));
  keywords.define("VAN_VLECK", content.van_vleck);
  // Which columns were measured or applied, and not merely filled with the neutral value.
  keywords.define("HAS_DELAY", content.has_delays);
  keywords.define("HAS_GAIN", content.has_gains);
  keywords.define("HAS_LEVELS", content.has_levels);
  keywords.define("HAS_SATURATION", content.has_saturation);
  keywords.define("CONFIGURATION", cc::String(content.configuration));
  keywords.define("OBSERVATION", cc::String(content.observation_json));
}

}  // namespace

void write_ryle_tables(cc::MeasurementSet& ms, const Impl& content) {
  write_dumps(ms, content.dumps);
  write_applied(ms, content);
}

bool read_ryle_tables(const cc::Table& ms, Impl& content) {
  const cc::TableRecord& keywords = ms.keywordSet();
  if (!keywords.isDefined("RYLE_DUMP") || !keywords.isDefined("RYLE_APPLIED")) return false;
  const cc::Table dump_table = keywords.asTable("RYLE_DUMP");
  const DumpColumns dumps(dump_table);
  for (cc::rownr_t row = 0; row < dump_table.nrow(); ++row) {
    content.dumps.push_back(
        {dumps.start(row), dumps.centroid(row), dumps.interval(row), dumps.n_spectra(row)});
  }
  const cc::Table table = keywords.asTable("RYLE_APPLIED");
  const InputColumns columns(table);
  for (cc::rownr_t row = 0; row < table.nrow(); ++row) {
    InputRow& input = content.inputs.emplace_back();
    input.antenna = columns.antenna(row);
    input.receptor = columns.receptor(row);
    input.bad = columns.bad(row);
    input.delay_s = columns.delay(row);
    input.rms_lsb = columns.rms(row);
    input.saturated_fraction = columns.saturated(row);
    const cc::Vector<cc::DComplex> gains(columns.gain(row));
    input.gains.assign(gains.begin(), gains.end());
  }
  const cc::TableRecord& metadata = table.keywordSet();
  const cc::Vector<double> response(metadata.asArrayDouble("FILTER_RESPONSE"));
  content.filter_response.assign(response.begin(), response.end());
  content.n_taps = metadata.asInt("N_TAPS");
  content.window = metadata.asString("WINDOW");
  content.van_vleck = metadata.asBool("VAN_VLECK");
  content.has_delays = metadata.asBool("HAS_DELAY");
  content.has_gains = metadata.asBool("HAS_GAIN");
  content.has_levels = metadata.asBool("HAS_LEVELS");
  content.has_saturation = metadata.asBool("HAS_SATURATION");
  content.observation_json = metadata.asString("OBSERVATION");
  return true;
}

}  // namespace ryle::ms
