// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/config/config_effect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "ryle/core/error.hpp"

namespace ryle::pipeline {
namespace {

/// What runs of an observation file differ in.
enum RunKind : unsigned {
  live_samples = 1,  // mwa32t: time samples, channelized here
  live_spectra = 2,  // chips, tbf, tbx: spectra of an F-engine
  live_pairs = 4,    // best2: the same, of an array that the beams file may describe
  recorded = 8,      // source.kind = "file"
};
constexpr unsigned kLive = live_samples | live_spectra | live_pairs;
constexpr unsigned kAll = kLive | recorded;

RunKind kind_of(const SourceConfig& source) {
  if (source.kind == "file") return recorded;
  if (is_live_beams(source)) return live_pairs;
  return is_live_spectra(source) ? live_spectra : live_samples;
}

bool makes_no_beams(const ObservationConfig& c) { return c.beams.file.empty(); }
bool makes_no_images(const ObservationConfig& c) { return !wants_images(c); }
// Pictures alone are made of visibilities, too.
bool makes_no_visibilities(const ObservationConfig& c) {
  const bool others = wants_images(c) || !c.beams.file.empty();
  return !wants_visibilities(c) && (others || !c.output.pictures);
}

using Keys = std::vector<std::string_view>;

/// Keys that the runs of `kinds` do not use, and what a user can do instead.
struct Unused {
  unsigned kinds;
  std::string_view section;
  Keys keys;    // empty: all of the section
  Keys except;  // of all
  std::string_view instead;
  bool (*applies)(const ObservationConfig&) = nullptr;  // further condition
};

// cadence_s asks for images; the others are those of the pictures of visibilities, too.
const Keys kCadence{"cadence_s",    "n_pixels",        "width",
                    "taper_pixels", "channel_average", "implementation"};

const std::vector<Unused>& unused_keys() {
  static const std::vector<Unused> list{
      {kAll,
       "beams",
       {},
       {"file"},
       "no beams are made; name their directions in beams.file",
       makes_no_beams},
      {recorded,
       "runtime",
       {"command_socket", "metrics_file"},
       {},
       "a recording is read as fast as it goes: live runs can be asked and watched"},
      {kAll,
       "calibrate",
       {},
       {},
       "runs solve no gains: `ryle calibrate` does, of visibilities and recordings, and "
       "calibration.gains divides them out"},
      {kAll,
       "search",
       {},
       {},
       "beams are searched, and none are made; name their directions in beams.file",
       makes_no_beams},
      {kAll,
       "source",
       {"spectra_per_heap", "ticks_per_spectrum", "heaps"},
       {},
       "only heaps of SPEAD have it; set source.format = \"spead\"",
       [](const ObservationConfig& c) { return !is_live_spead(c.source); }},
      {kAll,
       "output",
       {"spead_channels", "spead_packet_bytes", "spead_mb_per_s"},
       {},
       "nothing is sent; set output.spead, an endpoint",
       [](const ObservationConfig& c) { return c.output.spead.empty(); }},
      {kAll,
       "beams",
       {"spead_packet_bytes", "spead_mb_per_s"},
       {},
       "no voltages of beams are sent; set beams.spead, an endpoint",
       [](const ObservationConfig& c) { return c.beams.spead.empty(); }},
      {kLive,
       "image",
       {},
       kCadence,
       "no images are asked for; set image.cadence_s, the length of an image in seconds",
       makes_no_images},
      {kLive,
       "correlate",
       {},
       {"phase_center", "implementation", "van_vleck"},
       "nothing is correlated; set one of output.ms, output.uvfits and output.uvh5",
       makes_no_visibilities},
      {live_pairs,
       "calibration",
       {"jy_per_count2"},
       {},
       "beams have no flux scale; visibilities (output.uvh5) and images (image.cadence_s) do",
       [](const ObservationConfig& c) { return !wants_visibilities(c) && !wants_images(c); }},
      {kLive,
       "output",
       {"files", "segment_s", "segment_mib"},
       {},
       "no visibilities are made; set one of output.ms, output.uvfits and output.uvh5",
       makes_no_visibilities},
      {live_pairs,
       "telescope",
       {},
       {"layout", "station"},
       "the array is that of the [telescope] of beams.file",
       [](const ObservationConfig& c) { return !c.beams.file.empty(); }},
      {live_spectra | live_pairs,
       "channelize",
       {},
       {"fine_channels"},
       "these packets carry the channels of an F-engine; channelize.fine_channels cuts them "
       "further",
       [](const ObservationConfig& c) { return c.channelize.fine_channels == 0; }},
      {live_spectra | live_pairs,
       "channelize",
       {"n_channels", "step_samples"},
       {},
       "these packets carry the channels of an F-engine, of which channelize.fine_channels are "
       "made"},
      {live_samples,
       "channelize",
       {"fine_channels"},
       {},
       "time samples have no channels yet; channelize.n_channels makes as many as are wanted"},
      {recorded,
       "channelize",
       {"fine_channels"},
       {},
       "only received packets of an F-engine are cut into finer channels"},
      {live_samples,
       "source",
       {"first_channel", "channels_per_packet", "channel_width_hz", "channel_zero_mhz",
        "antenna_map", "pair_swap"},
       {},
       "time samples have no channels yet; [channelize] makes them"},
      {kLive,
       "source",
       {"files", "files_as", "channel_map"},
       {},
       "it is of recordings; set source.kind = \"file\""},
      {recorded,
       "source",
       {"files_as"},
       {},
       "it is of several recordings; name them in source.files",
       [](const ObservationConfig& c) {
         return c.source.files.size() < 2 && c.source.files_as != "auto";
       }},
      {live_samples,
       "source",
       {"n_channels"},
       {},
       "time samples have no channels yet; [channelize] makes them",
       [](const ObservationConfig& c) { return !is_standard(c.source); }},
      {kAll,
       "source",
       {"sample", "sample_encoding"},
       {},
       "it belongs to live source.format = \"vdif\", \"codif\", \"dada\" and \"guppi\"",
       [](const ObservationConfig& c) { return !is_standard(c.source); }},
      {kAll,
       "source",
       {"frame_bytes"},
       {},
       "it belongs to live source.format = \"vdif\", \"codif\" and \"guppi\"",
       [](const ObservationConfig& c) {
         return !is_standard(c.source) || c.source.format == "dada";
       }},
      {kAll,
       "source",
       {"frame_prefix_bytes", "threads", "stations"},
       {},
       "it belongs to live source.format = \"vdif\" and \"codif\"",
       [](const ObservationConfig& c) {
         return !is_standard(c.source) || is_recorded_stream(c.source);
       }},
      {kAll,
       "source",
       {"legacy_headers"},
       {},
       "it belongs to live source.format = \"vdif\"",
       [](const ObservationConfig& c) {
         return !is_standard(c.source) || c.source.format != "vdif";
       }},
      {kAll,
       "source",
       {"period_s"},
       {},
       "it belongs to live source.format = \"codif\"",
       [](const ObservationConfig& c) {
         return !is_standard(c.source) || c.source.format != "codif";
       }},
      {kAll,
       "source",
       {"axis_order"},
       {},
       "it belongs to live source.format = \"dada\" and \"guppi\"",
       [](const ObservationConfig& c) { return !is_recorded_stream(c.source); }},
      {kAll,
       "source",
       {"overlap_samples"},
       {},
       "it belongs to live source.format = \"guppi\"",
       [](const ObservationConfig& c) {
         return !is_recorded_stream(c.source) || c.source.format != "guppi";
       }},
      {kLive,
       "source",
       {"lossless"},
       {},
       "datagrams do not wait; it belongs to runs all of whose endpoints are tcp://",
       [](const ObservationConfig& c) {
         return c.source.format != "mwa32t" && !all_streams(c.source);
       }},
      {live_samples | live_spectra,
       "source",
       {"start_utc"},
       {},
       "frames and headers tell the time; it belongs to source.kind = \"simulator\"",
       [](const ObservationConfig& c) { return is_standard(c.source) && is_received(c.source); }},
      {live_samples | live_spectra | live_pairs | recorded,
       "source",
       {"replay_speed"},
       {},
       "only captured packets are replayed; set source.kind = \"pcap\"",
       [](const ObservationConfig& c) { return c.source.kind != "pcap"; }},
      {live_spectra,
       "source",
       {"antenna_map", "pair_swap", "marker", "center_mhz"},
       {},
       "it belongs to another source.format"},
      {live_spectra,
       "source",
       {"inverted_band"},
       {},
       "the channels of these packets ascend; it belongs to source.format = \"described\"",
       [](const ObservationConfig& c) { return !is_described(c.source); }},
      {live_spectra,
       "source",
       {"channel_zero_mhz"},
       {},
       "these packets number their channels upwards from 0 Hz; it belongs to source.format = "
       "\"described\" and \"spead\"",
       [](const ObservationConfig& c) {
         return !is_described(c.source) && !is_live_spead(c.source);
       }},
      {live_samples | live_spectra,
       "source",
       {"marker", "channels_per_packet"},
       {},
       "the layout of the packets tells what they hold",
       [](const ObservationConfig& c) { return is_described(c.source); }},
      {live_pairs,
       "source",
       {"channels_per_packet", "marker", "center_mhz"},
       {},
       "it belongs to another source.format"},
      {live_pairs,
       "source",
       {"channel_width_hz", "channel_zero_mhz", "inverted_band"},
       {},
       "the band is that of beams.file",
       [](const ObservationConfig& c) { return !makes_no_beams(c); }},
      {recorded,
       "voltages",
       {},
       {},
       "a recording has its voltages on disk: they are kept and dumped live"},
      {kLive,
       "voltages",
       {},
       {"ring_s"},
       "no voltages are kept; set voltages.ring_s",
       [](const ObservationConfig& c) { return !(c.voltages.ring_s > 0); }},
      {kLive,
       "voltages",
       {"ahead_s"},
       {},
       "nobody else can ask for dumps; set voltages.socket",
       [](const ObservationConfig& c) { return c.voltages.socket.empty(); }},
      {kLive,
       "voltages",
       {"trigger_snr"},
       {},
       "neither a search nor the trigger of images asks for dumps; set search.dm_max or "
       "image.trigger_sigma",
       [](const ObservationConfig& c) {
         const bool searched = wants_search(c.search) && !makes_no_beams(c);
         return !searched && !(wants_images(c) && c.image.trigger_sigma > 0);
       }},
      {live_samples,
       "voltages",
       {"window"},
       {},
       "time samples have no channels whose windows could follow a pulse"},
      {kAll,
       "search",
       {},
       {"dm_max", "k_dm", "fold", "fold_beam", "fold_bins"},
       "no search is asked for; set search.dm_max",
       [](const ObservationConfig& c) { return !wants_search(c.search); }},
      {kAll,
       "search",
       {"fold_beam", "fold_bins"},
       {},
       "nothing is folded; set search.fold, the ephemeris of a pulsar",
       [](const ObservationConfig& c) { return c.search.fold.empty(); }},
  };
  return list;
}

bool has(const Keys& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

std::string reason_without_effect(const ObservationConfig& config, std::string_view section,
                                  std::string_view key) {
  const RunKind kind = kind_of(config.source);
  for (const Unused& unused : unused_keys()) {
    if ((unused.kinds & kind) == 0 || unused.section != section) continue;
    if (unused.applies != nullptr && !unused.applies(config)) continue;
    if (unused.keys.empty() ? !has(unused.except, key) : has(unused.keys, key))
      return std::string(unused.instead);
  }
  return "";
}

void reject_keys_without_effect(const ObservationConfig& config) {
  const SourceConfig& source = config.source;
  const bool file = source.kind == "file";
  for (const GivenKey& given : config.given) {
    if (given.asks_for_nothing) continue;
    const std::string reason = reason_without_effect(config, given.section, given.key);
    if (reason.empty()) continue;
    throw ConfigError(fmt::format("{}: {}.{} = {} has no effect on a run of source.{} = \"{}\": {}",
                                  given.where, given.section, given.key, given.value,
                                  file ? "kind" : "format", file ? source.kind : source.format,
                                  reason));
  }
}

}  // namespace ryle::pipeline
