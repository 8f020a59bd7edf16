// SPDX-License-Identifier: BSD-3-Clause
// Measurement Set v2: DATA complex64, one DATA_DESCRIPTION row, every array column of one shape in
// every row.
#include <casacore/casa/Arrays/Matrix.h>
#include <casacore/casa/Arrays/Vector.h>
#include <casacore/ms/MeasurementSets/MeasurementSet.h>
#include <casacore/tables/DataMan/IncrementalStMan.h>
#include <casacore/tables/DataMan/StandardStMan.h>
#include <casacore/tables/DataMan/TiledColumnStMan.h>
#include <casacore/tables/Tables/ArrayColumn.h>
#include <casacore/tables/Tables/ScalarColumn.h>
#include <casacore/tables/Tables/SetupNewTab.h>
#include <casacore/tables/Tables/TableRecord.h>

#include <algorithm>
#include <cmath>

#include "ryle/io/visibility/ms/sub_tables.hpp"

namespace ryle::ms {
namespace {

namespace cc = casacore;

/// Rows of one tile: about 1 MiB of DATA, so that a dump is a few large writes and one row is not a
/// huge read.
cc::IPosition data_tile(std::int64_t n_pol, std::int64_t n_channels) {
  const std::int64_t channels = std::min<std::int64_t>(n_channels, 1024);
  const std::int64_t rows = std::clamp<std::int64_t>((1 << 17) / (n_pol * channels), 1, 4096);
  return {3, static_cast<ssize_t>(n_pol), static_cast<ssize_t>(channels),
          static_cast<ssize_t>(rows)};
}

cc::SetupNewTable setup_main_table(const std::string& path, std::int64_t n_pol,
                                   std::int64_t n_channels) {
  cc::TableDesc description = cc::MS::requiredTableDesc();
  cc::MS::addColumnToDesc(description, cc::MS::DATA, 2);
  cc::MS::addColumnToDesc(description, cc::MS::WEIGHT_SPECTRUM, 2);
  const cc::IPosition matrix(2, n_pol, n_channels);
  const auto fix_shape = [&](const char* column, const cc::IPosition& shape, int options) {
    description.rwColumnDesc(column).setOptions(0);  // a shape cannot be set on a direct column
    description.rwColumnDesc(column).setShape(shape);
    description.rwColumnDesc(column).setOptions(options);
  };
  for (const char* column : {"DATA", "FLAG", "WEIGHT_SPECTRUM"})
    fix_shape(column, matrix, cc::ColumnDesc::FixedShape);
  for (const char* column : {"WEIGHT", "SIGMA"}) {
    fix_shape(column, cc::IPosition(1, n_pol), cc::ColumnDesc::Direct | cc::ColumnDesc::FixedShape);
  }
  cc::SetupNewTable setup(path, description, cc::Table::NewNoReplace);
  // Constant or slowly changing columns cost nothing in the incremental manager, FLAG_CATEGORY (all
  // false, required by the format, used by nobody) among them.
  const cc::IncrementalStMan incremental("RyleIncremental");
  setup.bindAll(incremental);
  const cc::StandardStMan standard("RyleStandard", 1 << 16);
  for (const char* column : {"ANTENNA1", "ANTENNA2", "FLAG_ROW", "WEIGHT", "SIGMA"})
    setup.bindColumn(column, standard);
  const cc::IPosition tile = data_tile(n_pol, n_channels);
  setup.bindColumn("DATA", cc::TiledColumnStMan("RyleData", tile));
  setup.bindColumn("WEIGHT_SPECTRUM", cc::TiledColumnStMan("RyleWeight", tile));
  setup.bindColumn("FLAG", cc::TiledColumnStMan("RyleFlag", tile));
  setup.bindColumn("UVW", cc::TiledColumnStMan("RyleUvw", cc::IPosition(2, 3, 4096)));
  return setup;
}

struct Columns {
  cc::ArrayColumn<cc::Complex> data;
  cc::ArrayColumn<float> weight_spectrum, weight, sigma;
  cc::ArrayColumn<bool> flag, flag_category;
  cc::ArrayColumn<double> uvw;
  cc::ScalarColumn<int> antenna1, antenna2;
  cc::ScalarColumn<bool> flag_row;
  cc::ScalarColumn<double> time, time_centroid, interval, exposure;
  cc::ScalarColumn<int> scan, array_id, data_desc, feed1, feed2, field, observation_id, processor,
      state;
};

/// Borrows memory as a casacore array; casacore copies while writing and does not change it.
template <class T>
cc::Array<T> borrow(const cc::IPosition& shape, const T* data) {
  return cc::Array<T>(shape, const_cast<T*>(data), cc::SHARE);
}

}  // namespace

struct Writer::State {
  std::string path;
  ssize_t n_products = 0, n_channels = 0, n_baselines = 0;
  std::unique_ptr<cc::MeasurementSet> ms;
  Columns columns;
  bool failed = false;

  /// Runs f; after an exception nothing of casacore's may be touched again, not even by a
  /// destructor.
  template <class F>
  void run_or_abandon(F&& f) {
    try {
      one_line_errors(f);
    } catch (...) {
      failed = true;
      throw;
    }
  }

  void open_columns(const std::string& data_unit);
  void put_row_weights(const cc::Slicer& rows, const float* spectrum);
  void put_constants();
};

void Writer::State::open_columns(const std::string& data_unit) {
  Columns& c = columns;
  const cc::Table& t = *ms;
  c.data.attach(t, "DATA");
  c.weight_spectrum.attach(t, "WEIGHT_SPECTRUM");
  c.weight.attach(t, "WEIGHT");
  c.sigma.attach(t, "SIGMA");
  c.flag.attach(t, "FLAG");
  c.flag_category.attach(t, "FLAG_CATEGORY");
  c.uvw.attach(t, "UVW");
  c.antenna1.attach(t, "ANTENNA1");
  c.antenna2.attach(t, "ANTENNA2");
  c.flag_row.attach(t, "FLAG_ROW");
  c.time.attach(t, "TIME");
  c.time_centroid.attach(t, "TIME_CENTROID");
  c.interval.attach(t, "INTERVAL");
  c.exposure.attach(t, "EXPOSURE");
  c.scan.attach(t, "SCAN_NUMBER");
  c.array_id.attach(t, "ARRAY_ID");
  c.data_desc.attach(t, "DATA_DESC_ID");
  c.feed1.attach(t, "FEED1");
  c.feed2.attach(t, "FEED2");
  c.field.attach(t, "FIELD_ID");
  c.observation_id.attach(t, "OBSERVATION_ID");
  c.processor.attach(t, "PROCESSOR_ID");
  c.state.attach(t, "STATE_ID");
  // pyuvdata and CASA read the unit here; values are powers of the digitised signal until
  // calibrated.
  c.data.rwKeywordSet().define("QuantumUnits", cc::Vector<cc::String>(1, data_unit));
  if (data_unit == "Jy") ms->rwKeywordSet().define("pyuvdata_polconv", cc::String("avg"));
  c.flag_category.rwKeywordSet().define("CATEGORY", cc::Vector<cc::String>(1, "NONE"));
}

/// WEIGHT = mean of WEIGHT_SPECTRUM over the channels, SIGMA = 1/sqrt(WEIGHT), -1 where the weight
/// is 0 (CASA's mark: it turns such a sigma back into weight 0), FLAG_ROW where nothing is valid.
void Writer::State::put_row_weights(const cc::Slicer& rows, const float* spectrum) {
  cc::Matrix<float> weight(n_products, n_baselines);
  cc::Matrix<float> sigma(n_products, n_baselines);
  cc::Vector<bool> flag_row(n_baselines);
  std::vector<double> total(n_products);
  for (ssize_t b = 0; b < n_baselines; ++b) {
    std::fill(total.begin(), total.end(), 0.0);
    for (ssize_t c = 0; c < n_channels; ++c) {
      for (double& sum : total) sum += *spectrum++;
    }
    bool any = false;
    for (ssize_t q = 0; q < n_products; ++q) {
      const double mean = total[q] / static_cast<double>(n_channels);
      weight(q, b) = static_cast<float>(mean);
      sigma(q, b) = mean > 0 ? static_cast<float>(1 / std::sqrt(mean)) : -1.0F;
      any = any || mean > 0;
    }
    flag_row(b) = !any;
  }
  columns.weight.putColumnRange(rows, weight);
  columns.sigma.putColumnRange(rows, sigma);
  columns.flag_row.putColumnRange(rows, flag_row);
}

/// The incremental manager repeats row 0 for ever.
void Writer::State::put_constants() {
  columns.scan.put(0, 1);
  for (auto* column :
       {&columns.array_id, &columns.data_desc, &columns.feed1, &columns.feed2, &columns.field,
        &columns.observation_id, &columns.processor, &columns.state}) {
    column->put(0, 0);
  }
  columns.flag_category.put(0, cc::Array<bool>(cc::IPosition(3, n_products, n_channels, 1), false));
}

Writer::Writer(const std::string& path, const std::string& data_unit, std::int64_t n_products,
               std::int64_t n_channels, std::int64_t n_baselines)
    : state_(std::make_unique<State>()) {
  state_->path = path;
  state_->n_products = n_products;
  state_->n_channels = n_channels;
  state_->n_baselines = n_baselines;
  one_line_errors([&] {
    cc::SetupNewTable setup = setup_main_table(table_name(path), n_products, n_channels);
    state_->ms = std::make_unique<cc::MeasurementSet>(setup, 0);
    state_->ms->createDefaultSubtables(cc::Table::New);
    state_->open_columns(data_unit);
  });
}

void Writer::leave() {
  if (state_) state_->failed = true;
}

/// Destroying a table flushes it, and on a full disk that throws out of casacore's destructors: the
/// process would end. A failed state is therefore kept for ever (its files are emptied by whoever
/// owns the .part). A sound one is marked for deletion, which skips the flush.
Writer::~Writer() {
  if (!state_ || !state_->ms) return;
  try {
    if (state_->failed) {
      static auto* graveyard = new std::vector<std::unique_ptr<State>>();
      graveyard->push_back(std::move(state_));
      return;
    }
    state_->ms->markForDelete();
    state_->columns = Columns();
    state_->ms.reset();
  } catch (...) {  // the directory is a .part: whoever owns it removes it
  }
}

void Writer::append(const DumpValues& dump) {
  state_->run_or_abandon([&] {
    State& s = *state_;
    const cc::rownr_t first = s.ms->nrow();
    s.ms->addRow(static_cast<cc::rownr_t>(s.n_baselines));
    const cc::Slicer rows(cc::IPosition(1, static_cast<ssize_t>(first)),
                          cc::IPosition(1, s.n_baselines));
    const cc::IPosition cube(3, s.n_products, s.n_channels, s.n_baselines);
    s.columns.data.putColumnRange(rows, borrow(cube, dump.data));
    s.columns.weight_spectrum.putColumnRange(rows, borrow(cube, dump.weight_spectrum));
    s.columns.flag.putColumnRange(rows, borrow(cube, dump.flag));
    s.columns.uvw.putColumnRange(rows, borrow(cc::IPosition(2, 3, s.n_baselines), dump.uvw_m));
    const cc::IPosition row_shape(1, s.n_baselines);
    s.columns.antenna1.putColumnRange(rows, cc::Vector<int>(borrow(row_shape, dump.antenna1)));
    s.columns.antenna2.putColumnRange(rows, cc::Vector<int>(borrow(row_shape, dump.antenna2)));
    s.put_row_weights(rows, dump.weight_spectrum);
    s.columns.time.put(first, dump.time_s);
    s.columns.time_centroid.put(first, dump.time_s);
    s.columns.interval.put(first, dump.interval_s);
    s.columns.exposure.put(first, dump.interval_s);
    if (first == 0) s.put_constants();
    s.ms->flush();  // the free space of the disk, asked before the next dump, then counts this one
  });
}

void Writer::finish(const Impl& content) {
  state_->run_or_abandon([&] {
    fill_sub_tables(*state_->ms, content);
    write_ryle_tables(*state_->ms, content);
    state_->ms->flush(true);
    state_->columns = Columns();
    state_->ms.reset();
  });
}

}  // namespace ryle::ms
