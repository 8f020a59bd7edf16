// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/grid/grid_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/io/base/sha256.hpp"

namespace ryle::pipeline {
namespace {

using StateJson = nlohmann::ordered_json;
constexpr const char* kFormat = "ryle sums of a gridder, 1";

StateJson to_state_json(const FrequencyAxis& f) {
  return {{"first_center_hz", f.first_center_hz},
          {"channel_width_hz", f.channel_width_hz},
          {"n_channels", f.n_channels}};
}
FrequencyAxis axis_from(const StateJson& j) {
  return {j.at("first_center_hz").get<double>(), j.at("channel_width_hz").get<double>(),
          j.at("n_channels").get<std::int64_t>()};
}

StateJson to_state_json(const GridIdentity& i) {
  return {{"cells", i.cells},
          {"function", i.function},
          {"precision", i.precision},
          {"weights", i.weights},
          {"unit", i.unit},
          {"n_cells", i.n_cells},
          {"n_channels", i.n_channels},
          {"lobes", i.lobes},
          {"polarizations", i.polarizations},
          {"frequency", to_state_json(i.frequency)}};
}
GridIdentity identity_from(const StateJson& j) {
  GridIdentity i;
  i.cells = j.at("cells").get<std::string>();
  i.function = j.at("function").get<std::string>();
  i.precision = j.at("precision").get<std::string>();
  i.weights = j.at("weights").get<std::string>();
  i.unit = j.at("unit").get<std::string>();
  i.n_cells = j.at("n_cells").get<std::int64_t>();
  i.n_channels = j.at("n_channels").get<std::int64_t>();
  i.lobes = j.at("lobes").get<bool>();
  i.polarizations = j.value("polarizations", std::string());
  i.frequency = axis_from(j.at("frequency"));
  return i;
}

StateJson to_state_json(const ConsumedBlock& b) {
  return {{"source", b.source}, {"name", b.name},       {"first", b.first},
          {"n", b.n},           {"content", b.content}, {"polarization", b.polarization},
          {"rows", b.rows}};
}
ConsumedBlock block_from(const StateJson& b) {
  return {b.at("source").get<std::string>(), b.at("name").get<std::string>(),
          b.at("first").get<std::int64_t>(), b.at("n").get<std::int64_t>(),
          b.value("content", std::string()), b.value("polarization", std::string()),
          b.value("rows", std::string())};
}
StateJson blocks_json(const std::vector<ConsumedBlock>& blocks) {
  StateJson list = StateJson::array();
  for (const ConsumedBlock& b : blocks) list.push_back(to_state_json(b));
  return list;
}

StateJson to_state_json(const GridRunPlan& r) {
  return {
      {"set", r.set},
      {"shard", r.shard},
      {"n_shards", r.n_shards},
      {"channels", {r.channels.first, r.channels.last, r.all_channels.first, r.all_channels.last}},
      {"blocks", blocks_json(r.blocks)}};
}
GridRunPlan run_from(const StateJson& j) {
  const auto c = j.at("channels").get<std::vector<std::int64_t>>();
  GridRunPlan r{j.at("set").get<std::string>(),
                j.at("shard").get<std::int64_t>(),
                j.at("n_shards").get<std::int64_t>(),
                {c.at(0), c.at(1)},
                {c.at(2), c.at(3)},
                {}};
  for (const StateJson& b : j.at("blocks")) r.blocks.push_back(block_from(b));
  return r;
}

StateJson to_state_json(const GridNotes& n) {
  const MapMetadata& m = n.map;
  StateJson runs = StateJson::array();
  for (const GridRunPlan& r : n.runs) runs.push_back(to_state_json(r));
  return {{"kernel", n.kernel},
          {"implementation", n.implementation},
          {"beam", n.beam},
          {"runs", runs},
          {"object", m.object},
          {"telescope", m.telescope},
          {"spectral_frame", m.spectral_frame},
          {"observer_frame", m.observer_frame},
          {"observed_utc", m.observed_utc},
          {"rest_frequency_hz", m.rest_frequency_hz},
          {"beam_fwhm_deg", m.beam_fwhm_deg},
          {"beam_minor_deg", m.beam_minor_deg},
          {"beam_position_angle_deg", m.beam_position_angle_deg},
          {"area_factor", m.area_factor},
          {"stokes", m.stokes}};
}
GridNotes notes_from(const StateJson& j, const GridIdentity& identity) {
  GridNotes n;
  n.kernel = j.at("kernel").get<std::string>();
  n.implementation = j.at("implementation").get<std::string>();
  n.beam = j.value("beam", std::string());
  if (j.contains("runs"))  // not in files of before
    for (const StateJson& r : j.at("runs")) n.runs.push_back(run_from(r));
  MapMetadata& m = n.map;
  m.unit = identity.unit;
  m.frequency = identity.frequency;
  m.object = j.at("object").get<std::string>();
  m.telescope = j.at("telescope").get<std::string>();
  m.spectral_frame = j.at("spectral_frame").get<std::string>();
  m.observer_frame = j.at("observer_frame").get<std::string>();
  m.observed_utc = j.at("observed_utc").get<std::string>();
  m.rest_frequency_hz = j.at("rest_frequency_hz").get<double>();
  m.beam_fwhm_deg = j.at("beam_fwhm_deg").get<double>();
  m.beam_minor_deg = j.at("beam_minor_deg").get<double>();
  m.beam_position_angle_deg = j.at("beam_position_angle_deg").get<double>();
  m.area_factor = j.at("area_factor").get<double>();
  m.stokes = j.value("stokes", std::vector<int>());  // files of before there were several
  return n;
}

StateJson to_state_json(const GridPart& p) {
  const GridTally& t = p.tally;
  return {{"first", p.channels.first},
          {"last", p.channels.last},
          {"blocks", blocks_json(p.blocks)},
          {"tally",
           {t.n_samples, t.bad_positions, t.out_of_reach, t.n_candidates, t.absent.nan_value,
            t.absent.inf_value, t.absent.bad_weight, t.absent.flagged}}};
}
GridPart part_from(const StateJson& j) {
  GridPart p;
  p.channels = {j.at("first").get<std::int64_t>(), j.at("last").get<std::int64_t>()};
  for (const StateJson& b : j.at("blocks")) p.blocks.push_back(block_from(b));
  const auto t = j.at("tally").get<std::vector<std::int64_t>>();
  p.tally = {t.at(0), t.at(1), t.at(2), t.at(3), {t.at(4), t.at(5), t.at(6), t.at(7)}};
  return p;
}

std::string group_of(std::size_t part) { return "part_" + std::to_string(part); }

// One function for both directions: `rows(name, array, first row, rows, row length)`.
template <class Plane, class Rows>
void plane_rows(const std::string& name, Plane& plane, std::int64_t first, std::int64_t n,
                std::int64_t length, const Rows& rows) {
  if (plane.size() == 0) return;
  rows(name, plane.digits(0), first, n, ExactPlane::kDigits * length);
  rows(name + "_level", plane.levels(0), first, n, length);
}
template <class Moments, class Rows>
void moment_rows(const std::string& name, Moments& m, std::int64_t first, std::int64_t n,
                 std::int64_t length, const Rows& rows) {
  if (m.size() == 0) return;
  plane_rows(name + "_weight", m.weight, first, n, length, rows);
  plane_rows(name + "_square", m.square, first, n, length, rows);
  plane_rows(name + "_magnitude", m.magnitude, first, n, length, rows);
  rows(name + "_count", m.count.data(), first, n, length);
}
template <class Sums, class Rows>
void sums_rows(const std::string& group, Sums& s, std::int64_t first, const Rows& rows) {
  const std::int64_t n = s.n_channels(), length = s.n_cells();
  plane_rows(group + "/weighted", s.weighted(), first, n, length, rows);
  moment_rows(group + "/shared", s.shared(), 0, 1, length, rows);
  if (s.own().size() == 0) return;
  moment_rows(group + "/own", s.own(), first, n, length, rows);
  using Byte = std::conditional_t<std::is_const_v<Sums>, const std::int8_t, std::int8_t>;
  rows(group + "/apart", reinterpret_cast<Byte*>(s.apart().data()), 0, 1, length);
}

}  // namespace

void GridTally::add(const GridTally& t) {
  n_samples += t.n_samples;
  bad_positions += t.bad_positions;
  out_of_reach += t.out_of_reach;
  n_candidates += t.n_candidates;
  absent.nan_value += t.absent.nan_value;
  absent.inf_value += t.absent.inf_value;
  absent.bad_weight += t.absent.bad_weight;
  absent.flagged += t.absent.flagged;
}

std::string difference(const GridIdentity& a, const GridIdentity& b) {
  const auto text = [](const std::string& what, const std::string& x, const std::string& y) {
    const auto said = [](const std::string& s) { return s.empty() ? "none" : s; };
    return x == y ? "" : "the " + what + " differ (" + said(x) + " and " + said(y) + ")";
  };
  if (a.cells != b.cells) return "the targets differ";
  if (auto t = text("convolution functions", a.function, b.function); !t.empty()) return t;
  if (auto t = text("precisions", a.precision, b.precision); !t.empty()) return t;
  if (auto t = text("kinds of weights", a.weights, b.weights); !t.empty()) return t;
  if (auto t = text("units", a.unit, b.unit); !t.empty()) return t;
  if (auto t = text("polarizations", a.polarizations, b.polarizations); !t.empty()) return t;
  if (a.n_channels != b.n_channels)
    return fmt::format("the scans have {} and {} channels", a.n_channels, b.n_channels);
  const double off_hz = std::abs(a.frequency.first_center_hz - b.frequency.first_center_hz);
  if (off_hz > GridInput::kMaxChannelOffset * a.frequency.channel_width_hz ||
      (a.frequency.channel_width_hz > 0) != (b.frequency.channel_width_hz > 0))
    return fmt::format("the channels are {:.0f} Hz apart", off_hz);
  return "";
}

void describe(const grid::Config& config, GridIdentity& identity) {
  const grid::Convolution& f = config.convolution;
  identity.function = fmt::format("{} of {} radii {} {} {} {} {} {} {}", grid::to_string(f),
                                  static_cast<int>(f.function), f.support_rad, f.sigma_rad,
                                  f.minor_rad, f.major_rad, f.position_angle_rad, f.a_rad, f.b_rad);
  if (!f.table_value.empty()) {
    std::string rows;
    for (std::size_t k = 0; k < f.table_value.size(); ++k)
      rows += fmt::format("{} {}\n", f.table_theta_rad[k], f.table_value[k]);
    identity.function += " rows " + io::sha256_hex(rows);
  }
  identity.precision = config.precision == grid::Precision::f64 ? "f64" : "f32";
  identity.lobes = grid::has_negative_lobes(f);
}

const ConsumedBlock* GridPart::overlap(const std::vector<ConsumedBlock>& others) const {
  for (const ConsumedBlock& mine : blocks)
    for (const ConsumedBlock& other : others)
      if (mine.overlaps(other)) return &mine;
  return nullptr;
}

std::vector<GridRunPlan> joined(std::vector<GridRunPlan> a, const std::vector<GridRunPlan>& b) {
  for (const GridRunPlan& r : b)
    if (std::none_of(a.begin(), a.end(), [&](const GridRunPlan& k) { return k.same_as(r); }))
      a.push_back(r);
  return a;
}

std::vector<std::string> unfinished(const std::vector<GridRunPlan>& runs,
                                    const std::vector<GridPart>& parts) {
  std::map<std::pair<std::string, std::int64_t>, std::vector<ChannelRange>> summed;
  for (const GridPart& p : parts)
    for (const ConsumedBlock& b : p.blocks) summed[{b.source, b.first}].push_back(p.channels);
  for (auto& [block, ranges] : summed)
    std::sort(ranges.begin(), ranges.end(),
              [](ChannelRange a, ChannelRange b) { return a.first < b.first; });
  std::vector<std::string> missing;
  for (const GridRunPlan& r : runs)
    for (const ConsumedBlock& b : r.blocks) {
      std::int64_t next = r.channels.first;
      for (const ChannelRange& c : summed[{b.source, b.first}])
        if (c.first <= next) next = std::max(next, c.last);
      if (next < r.channels.last)
        missing.push_back(
            fmt::format("samples {}:{} of {} in channels {}:{} (their run ended early)", b.first,
                        b.first + b.n, b.name, next, r.channels.last));
    }
  return missing;
}

namespace {

/// Lines "COLUMN=value".
std::map<std::string, std::string> columns_of(const std::string& rows) {
  std::map<std::string, std::string> columns;
  for (std::size_t at = 0; at < rows.size();) {
    const auto end = std::min(rows.find('\n', at), rows.size());
    const auto equals = rows.find('=', at);
    if (equals < end)
      columns[rows.substr(at, equals - at)] = rows.substr(equals + 1, end - equals - 1);
    at = end + 1;
  }
  return columns;
}

bool is_one_polarization(const std::string& name) {
  return !name.empty() && name != "I" && name.find(',') == std::string::npos;
}

/// Samples of one file that cannot be the same.
bool are_apart(const ConsumedBlock& a, const ConsumedBlock& b) {
  if (a.first >= b.first + b.n || b.first >= a.first + a.n) return true;
  if (is_one_polarization(a.polarization) && is_one_polarization(b.polarization) &&
      a.polarization != b.polarization)
    return true;
  const auto others = columns_of(b.rows);
  for (const auto& [column, value] : columns_of(a.rows)) {
    const auto other = others.find(column);
    if (other != others.end() && other->second != value) return true;
  }
  return false;
}

}  // namespace

void require_chosen_once(const std::vector<GridRunPlan>& runs) {
  struct Chosen {
    const ConsumedBlock* block;
    ChannelRange channels;
  };
  std::map<std::string, std::vector<Chosen>> by_content;
  for (const GridRunPlan& r : runs)
    for (const ConsumedBlock& b : r.blocks) {
      if (b.content.empty()) continue;
      auto& others = by_content[b.content];
      for (const Chosen& o : others) {
        if (o.block->source == b.source || are_apart(*o.block, b) ||
            o.channels.last <= r.channels.first || r.channels.last <= o.channels.first)
          continue;
        throw ConfigError(
            "samples of " + b.name +
            " are in these sums already, chosen in another way (--pol, --select, --hdf5, --flags, "
            "--gains): they would count twice; sums of their own are needed, two polarizations "
            "(--pol XX, then --pol YY) or other rows (--select) can be added");
      }
      others.push_back({&b, r.channels});
    }
}

std::vector<std::string> absent_shards(const std::vector<GridRunPlan>& runs) {
  std::map<std::string, std::vector<const GridRunPlan*>> sets;
  for (const GridRunPlan& r : runs) sets[r.set].push_back(&r);
  std::vector<std::string> missing;
  for (const auto& [set, own] : sets) {
    const GridRunPlan& some = *own[0];
    for (std::int64_t k = 1; k <= some.n_shards; ++k) {
      if (std::any_of(own.begin(), own.end(), [k](const auto* r) { return r->shard == k; }))
        continue;
      const ChannelRange all = some.all_channels, c = shard_channels(all, k, some.n_shards);
      const std::string of = some.blocks.empty() ? "" : " of the run of " + some.blocks[0].name;
      missing.push_back(fmt::format("shard {}/{}{} ({})", k, some.n_shards, of,
                                    c.first < c.last && c.last - c.first < all.last - all.first
                                        ? fmt::format("channels {}:{}", c.first, c.last)
                                        : "a part of the samples"));
    }
  }
  return missing;
}

ChannelRange shard_channels(ChannelRange all, std::int64_t shard, std::int64_t n_shards) {
  const std::int64_t n = all.last - all.first;
  if (n < n_shards) return all;
  return {all.first + n * (shard - 1) / n_shards, all.first + n * shard / n_shards};
}

bool is_grid_state(const std::string& path) {
  try {
    const RowFileReader file(path);
    return file.has("format") && file.text("format") == kFormat;
  } catch (const Error&) {
    return false;
  }
}

GridStateFile::GridStateFile(const std::string& path) : file_(path) {
  if (!file_.has("format") || file_.text("format") != kFormat)
    throw FormatError(path + ": no sums of `ryle grid` (" + kFormat +
                      "), which --accumulate makes of scans; `ryle grid " +
                      std::filesystem::path(path).filename().string() + "` makes a map of scans");
  try {
    identity_ = identity_from(StateJson::parse(file_.text("identity")));
    notes_ = notes_from(StateJson::parse(file_.text("notes")), identity_);
    for (const StateJson& p : StateJson::parse(file_.text("parts"))) parts_.push_back(part_from(p));
  } catch (const std::exception& e) {
    throw FormatError(path + ": the description of the sums cannot be read (" + e.what() + ")");
  }
  const auto reject = [&](const std::string& what) {
    throw FormatError(path + ": the description of the sums is damaged: " + what);
  };
  const GridIdentity& i = identity_;
  // Sums take 8 bytes and more of a cell and channel, in memory and in the file.
  const double n_values = static_cast<double>(i.n_cells) * static_cast<double>(i.n_channels);
  if (i.n_cells < 1 || i.n_channels < 1 ||
      n_values > static_cast<double>((std::int64_t{8} << 20) + 8 * require_regular_file(path)))
    reject(fmt::format("{} cells of {} channels", i.n_cells, i.n_channels));
  for (const GridPart& p : parts_) {
    if (p.channels.first < 0 || p.channels.first >= p.channels.last ||
        p.channels.last > i.n_channels)
      reject(fmt::format("channels {} .. {}", p.channels.first, p.channels.last));
  }
}

GridSums GridStateFile::load(std::size_t part, ChannelRange channels) const {
  const GridPart& p = parts_.at(part);
  RYLE_ASSERT(channels.first >= p.channels.first && channels.last <= p.channels.last);
  GridSums sums(identity_.n_cells, channels.last - channels.first, identity_.lobes);
  if (file_.has(group_of(part) + "/apart")) sums.allow_parting();
  sums_rows(group_of(part), sums, channels.first - p.channels.first,
            [&](const std::string& name, auto* to, std::int64_t first, std::int64_t n,
                std::int64_t length) { file_.rows(name, first, n, length, to); });
  return sums;
}

GridStateWriter::GridStateWriter(const std::string& path, GridIdentity identity, GridNotes notes)
    : file_(path, true), identity_(std::move(identity)), notes_(std::move(notes)) {}

void GridStateWriter::add(const GridPart& part, const GridSums& sums) {
  sums_rows(group_of(parts_.size()), sums, 0,
            [&](const std::string& name, const auto* from, std::int64_t, std::int64_t n,
                std::int64_t length) { file_.rows(name, n, length, from); });
  parts_.push_back(part);
}
void GridStateWriter::add(const GridStateFile& from, std::size_t part) {
  file_.copy(from.file_, group_of(part), group_of(parts_.size()));
  parts_.push_back(from.parts_.at(part));
}
void GridStateWriter::publish() {
  StateJson parts = StateJson::array();
  for (const GridPart& p : parts_) parts.push_back(to_state_json(p));
  file_.text("format", kFormat);
  file_.text("identity", to_state_json(identity_).dump());
  file_.text("notes", to_state_json(notes_).dump());
  file_.text("parts", parts.dump());
  file_.publish();
}

}  // namespace ryle::pipeline
