// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ryle/core/time.hpp"
#include "ryle/wire/described.hpp"

/// The observation file: one struct per section. config_fields.hpp lists the keys of each; that
/// list is the single source of the parser, `ryle run --print-config`, the JSON schema of `ryle
/// info --schema` and docs/configuration.md.
namespace ryle::pipeline {

struct TelescopeConfig {
  std::string name = "array";
  std::string layout;   ///< CSV layout; relative to the observation file
  std::string station;  ///< or an LWA station file (SSMIF)
  double latitude_deg = 0;
  double longitude_deg = 0;
  double height_m = 0;
  double dut1_s = 0;
};

struct SourceConfig {
  std::string kind = "simulator";  ///< simulator | network | pcap | file
  std::string format = "mwa32t";
  std::vector<std::string> listen;  ///< one endpoint per receiver (core/endpoint.hpp), expanded
  std::string file;
  std::vector<std::string> files;        ///< several recordings that are one observation
  std::string files_as = "auto";         ///< auto | inputs
  std::vector<std::string> channel_map;  ///< vdif: "THREAD[/CHANNEL] MHZ [U|L]"
  double replay_speed = 0;        ///< of a capture: x recorded; 0 = as fast as the engines go
  std::string start_utc = "now";  ///< time of tick 0 for formats whose counters are relative
  Rational sample_rate_hz{0, 1};  ///< 0 = what the format or file says (MWA-32T: 1.28 MHz)
  double center_mhz = 0;
  bool inverted_band = false;
  std::int64_t first_channel = 0;  ///< packets of an F-engine: number of the lowest channel ...
  std::int64_t n_channels = 0;     ///< ... how many there are ...
  std::int64_t channels_per_packet = 0;  ///< ... in one packet (0 = all)
  double channel_width_hz = 0;           ///< 0 = what the format says (CHIPS 25 kHz)
  double channel_zero_mhz = 0;           ///< described, spead: sky frequency of channel number 0
  std::int64_t spectra_per_heap = 256;   ///< spead
  std::int64_t ticks_per_spectrum = 0;   ///< spead: of the timestamps
  std::string heaps = "f-engine";        ///< spead: f-engine | beam
  std::string sample;                    ///< vdif, codif, dada, guppi: "i2", "ci8", ...
  std::string sample_encoding = "auto";  ///< auto | twos_complement | offset_binary | levels
  std::int64_t frame_bytes = 0;          ///< vdif, codif: with the header; guppi: of a block
  std::int64_t frame_prefix_bytes = 0;   ///< vdif, codif: before the frame in a packet
  bool legacy_headers = false;           ///< vdif: of 16 bytes
  std::vector<std::int64_t> threads;     ///< vdif, codif; empty: 0, 1, ...
  std::vector<std::string> stations;     ///< vdif, codif; empty: one, whoever it is
  std::int64_t period_s = 1;             ///< codif: of the frame number
  std::string axis_order;                ///< dada, guppi: "TFP", "PFT256"; "" = the format's
  std::int64_t overlap_samples = 0;      ///< guppi
  std::string marker = "counter";  ///< counter | constant | ignore: word 0 of an MWA-32T group
  double chunk_ms = 51.2;
  std::int64_t n_chunks = 8;       ///< ring between ingest and the channelizer
  std::int64_t window_chunks = 3;  ///< open chunks: how late a packet may be
  double close_after_ms = 200;
  double no_data_s = 2;
  double duration_s = 0;        ///< stop after this much data; 0 = until the end or a signal
  double stall_budget_s = 0.1;  ///< UDP receive buffers must hold what comes in this time
  bool allow_small_rcvbuf = false;
  std::vector<std::string> allowed_senders;  ///< networks; empty = any
  double max_clock_error_s = 60;             ///< network: 0 = any, for replays
  std::vector<std::int64_t> antenna_map;  ///< best2: line of the layout of each input of a packet
  bool pair_swap = false;                 ///< best2: packets have antennas 4a + j at 4a + (j ^ 2)
  bool lossless =
      false;  ///< stream transports wait for the engine instead of dropping (replay, tests)
  std::optional<wire::PacketDescription> packet;  ///< described, best2: [source.packet]
};

/// Packets of senders, live or in a capture: not the simulator's.
bool is_received(const SourceConfig& source);
/// mwa32t, described time samples.
bool is_live_samples(const SourceConfig& source);
/// Packets of the layout that [source.packet] or a standard describes, of spectra or of time
/// samples.
bool is_described(const SourceConfig& source);
/// Live vdif, codif, dada and guppi: standards, whose sizes the keys of [source] tell.
bool is_standard(const SourceConfig& source);
/// Live dada and guppi: a header, then samples without end, through TCP or a pipe.
bool is_recorded_stream(const SourceConfig& source);
/// All endpoints are streams of bytes (tcp, pipes).
bool all_streams(const SourceConfig& source);
/// chips, tbf, tbx, spead, described channels: packets hold spectra, not time samples.
bool is_live_spectra(const SourceConfig& source);
/// SPEAD heaps of F-engines.
bool is_live_spead(const SourceConfig& source);
/// best2: packets hold spectra of antennas of which beams are made.
bool is_live_beams(const SourceConfig& source);

struct SimulatedSourceConfig {
  std::string name;
  double l = 0;
  double m = 0;
  double ra_deg = 0;
  double dec_deg = 0;
  bool by_ra_dec = false;
  double flux_jy = 0;
  double q = 0, u = 0, v = 0;  ///< fractions of flux_jy
  double start_s = 0;          ///< a transient begins here ...
  double duration_s = 0;       ///< ... and lasts so long; 0 = always on
  double period_s = 0;         ///< and comes again: a pulsar
  double duty_cycle = 0;       ///< of the period, instead of duration_s
  double dm_pc_cm3 = 0;        ///< dispersed; start_s is of the highest channel
};

struct SimulatorConfig {
  double duration_s = 10;
  double speed = 1;           ///< x real time; 0 = as fast as it goes
  bool wait_for_run = false;  ///< sends no faster than the run takes the packets
  double sefd_jy = 2000;
  std::string sky = "frozen";  ///< frozen | moving
  std::int64_t period_samples = 262144;
  std::uint64_t seed = 1;
  double rms_lsb = 4.5;
  std::string gains;  ///< CSV of complex gains put on the inputs
  std::vector<std::int64_t> dead_inputs;
  std::int64_t dying_receiver = -1;  ///< a capture node that dies ...
  double dies_at_s = 0;
  double returns_at_s = 0;   ///< ... and comes back
  double element_power = 0;  ///< beam of an antenna, power sin(elevation)^n
  double loss = 0;           ///< chances per packet: see simulate::SendImpairments
  double bursts = 0;
  double burst_packets = 10;
  double duplicate = 0;
  double reorder = 0;
  std::int64_t reorder_packets = 8;
  double corrupt = 0;
  double clock_step_s = 0;
  double clock_step_at_s = 0;
  std::int64_t clock_step_receiver = -1;
  std::vector<SimulatedSourceConfig> sources;
};

struct ChannelizeConfig {
  std::int64_t n_channels = 128;
  std::int64_t taps = 4;
  std::string window = "hamming";
  double kaiser_beta = 8;
  std::int64_t step_samples = 0;
  std::int64_t fine_channels =
      0;                  ///< spectra of an F-engine: channels made of each; 0 = as they are
  std::int64_t bits = 0;  ///< requantised to 8 or 4 bits; 32 = float; 0 = chosen (spectrum_bits)
  std::string rounding = "nearest_even";
  bool dither = true;
  std::uint64_t seed = 1;
  double target_rms_lsb =
      16;  ///< level per part the requantiser is set to, once, from the first samples
  std::string implementation = "auto";
};

struct CorrelateConfig {
  double integration_s = 1;
  std::string fringe_stopping =
      "f";  ///< f: delays in the channelizer | x: rotation after correlation | none
  std::string phase_center =
      "zenith";                    ///< "zenith" (of the first sample), "sun" or "RA_DEG,DEC_DEG"
  std::string van_vleck = "auto";  ///< auto | off
  double min_fraction = 0;         ///< flag products with less valid data than this
  std::string implementation = "auto";
};

struct CalibrationConfig {
  std::string gains;         ///< CSV: input,amplitude,phase_deg of the signal path; divided out
  double jy_per_count2 = 0;  ///< flux scale; 0 = uncalibrated (the simulator knows its own)
};

/// How `ryle calibrate` finds gains.
struct CalibrateConfig {
  std::string model = "sun";
  std::string method = "auto";         ///< auto | stefcal | eigenvector
  std::string polarization = "each";   ///< each: a gain for X and one for Y | shared
  std::string fluxes = "auto";         ///< auto | given | fitted
  std::int64_t channels_per_gain = 0;  ///< of one solution; 0 = all for .csv, else 1
  double uv_min = 2;                   ///< wavelengths
  std::string beam = "isotropic";      ///< of the elements
  double min_elevation_deg = 10;
  double drop_below = 0.3, drop_above = 3;
  std::string reference = "auto";
  double max_sigma_deg = 10;
  std::int64_t max_rounds = 100;
  std::string implementation = "auto";
};

struct OutputConfig {
  std::string directory = ".";
  std::string name = "obs";
  bool ms = true;
  bool uvfits = true;
  bool uvh5 = true;
  bool pictures = true;
  bool overwrite = false;
  std::string on_disk_full = "stop_recording";  ///< stop_recording | stop
  double segment_s = 0;                         ///< new files after so much data; 0 = never
  double segment_mib = 0;                       ///< ... or when one would grow beyond; 0 = never
  std::vector<std::string> files;               ///< explicit files instead (ryle correlate -o)
  std::string spead;                            ///< endpoint visibilities are sent to; "" = none
  std::int64_t spead_channels = 0;              ///< of a heap; 0 = all
  std::int64_t spead_packet_bytes = 1472;
  double spead_mb_per_s = 100;
};

/// All-sky images of voltages (docs/imaging.md): keys of [image], and options of `ryle image`.
struct SkySettings {
  std::string path = "auto";
  double cadence_s = 0;               ///< 0 = `ryle run` makes none, `ryle image` one of everything
  std::int64_t channels_per_bin = 0;  ///< 0 = the whole band in one image
  double cell_wavelengths = 0.40;
  std::int64_t support = 7;
  std::string apertures;  ///< FITS of antenna apertures instead of the ES function
  std::string products = "stokes";
  std::string equalize = "auto";
  double trigger_sigma = 0;
  std::string light_curves;
  std::string frames;
  std::string movie;
  std::string implementation = "auto";
};

struct ImageConfig : SkySettings {
  std::int64_t n_pixels = 256;
  double width = 2.0;  ///< direction cosines across the picture
  std::int64_t channel_average = 8;
  double taper_pixels = 2.0;  ///< beam (FWHM) the picture is smoothed to, by a uv taper; 0 = none
  bool correlated_functions = false;
  bool remove_autos = true;
  double dead_below = 0.3, dead_above = 4.0;  ///< x the median power of the inputs
  double max_relative_error = 1e-4;
  double min_coherence = 0.95;
  double max_zenith_distance_deg = 75;
  std::int64_t queue = 8;
  std::vector<std::string> watch;
  bool voevent = true;
  bool fits = true;
  bool png = false;
  bool latest = true;
  std::int64_t picture_px = 760;
  std::string hdf5;
  std::string output;  ///< explicit FITS name (ryle image -o)
  std::string picture;
};

/// Beams of antenna voltages (docs/beams.md): keys of [beams], and options of `ryle beamform`.
struct BeamSettings {
  std::string pol = "auto";  ///< auto = all of the layout | X | Y
  std::string weights = "i8";
  std::string loss = "renormalize";
  std::vector<std::string> incoherent;  ///< sub-arrays also summed without phases
  std::string implementation = "auto";
};

/// Those of a live run.
struct BeamsConfig : BeamSettings {
  std::string file;  ///< beams file: array, band, pointings, calibration
  std::int64_t integration_spectra = 4;
  double update_s = 1;
  bool filterbank = true;
  std::int64_t bits = 8;
  double scale_s = 0.5;
  std::int64_t queue = 32;
  std::int64_t pictures = 8;  ///< of so many beams, the first
  double power_s = 0;         ///< samples of power against time; 0 = none
  std::string spead;          ///< endpoint of voltages of the coherent beams; "" = none
  std::int64_t spead_packet_bytes = 1472;
  double spead_mb_per_s = 100;  ///< of a polarization of a beam
};

/// A search for dispersed pulses (docs/search.md): keys of [search], and options of `ryle search`.
struct SearchSettings {
  std::string plan = "tolerance";  ///< see search::DmPlanConfig, for the next seven
  double dm_max = 0;               ///< 0 = files 2000 or what sweeps half, live no search
  double dm_min = 0;
  double dm_step = 0;
  std::int64_t dm_count = 0;
  double tolerance = 1.05;
  std::string ranges;
  std::string dm_file;
  std::string k_dm = "physical";
  double threshold = 7;
  double width_max_s = 0;  ///< 0 = 0.1 s, see search_chain()
  double baseline_s = 0;   ///< 0 = search::drift_window()'s
  double dm_candidate_min = 0;
  std::string mask_channels, mask_times, rfifind_mask, kill_file;
  bool flagging = true;
  double burst_threshold = 7;  ///< see search::SpectraConfig
  double sk_degrees = 0;       ///< see search::NormalizeConfig
  std::string zero_dm = "off";
  std::string implementation = "auto";
  double smear_samples = 0;        ///< see search::DedisperseConfig
  std::int64_t block_samples = 0;  ///< 0 = chosen: search_chain(), search_block_size.hpp
  std::int64_t max_beams = 4;
  double adjacent_deg = 0;
  double position_error_deg = 0;
  bool voevents = true;
  std::int64_t max_pictures = 1000;
};

/// What else a live run does with its beams: folds a pulsar.
struct SearchConfig : SearchSettings {
  double block_max_s = 1;
  std::int64_t blocks = 0;  ///< 0 = chosen
  std::string fold;         ///< ephemeris of a pulsar that a beam follows
  std::string fold_beam;
  std::int64_t fold_bins = 128;
};

/// Received voltages that a live run keeps in memory, and dumps of them (docs/operator.md).
struct VoltagesConfig {
  double ring_s = 0;  ///< 0 = none
  double trigger_snr = 10;
  double margin_s = 0.1;
  std::string window = "band";  ///< band | channel
  double per_minute = 6;
  double max_gib = 100;
  std::string socket;  ///< others ask for dumps there; "" = nobody may
  double ahead_s =
      60;  ///< its instant, or the middle of a span, may be so much later than the data
};

struct RuntimeConfig {
  std::string device = "auto";        ///< auto | cpu | cuda:N
  std::vector<std::int64_t> devices;  ///< CUDA devices that share the work; empty = `device`
  std::int64_t threads = 0;           ///< workers of the engines; 0 = all cores
  std::int64_t dump_queue = 4;        ///< finished dumps waiting for the writers
  double max_memory_gib = 0;          ///< refuse plans above this; 0 = what the machine has
  std::string metrics_file;           ///< Prometheus text of a live run, rewritten every second
  std::string command_socket;         ///< where `ryle command` reaches a live run; "" = nowhere
  std::string log = "text";           ///< text | json: what a run says on standard error
};

/// A key that the observation file or an override gives.
struct GivenKey {
  std::string section, key;
  std::string value;              ///< as TOML
  std::string where;              ///< "FILE:LINE:COLUMN", or "--set"
  bool asks_for_nothing = false;  ///< false, 0, "" or []
};

struct ObservationConfig {
  std::int64_t schema = 1;
  TelescopeConfig telescope;
  SourceConfig source;
  SimulatorConfig simulator;
  ChannelizeConfig channelize;
  CorrelateConfig correlate;
  CalibrationConfig calibration;
  CalibrateConfig calibrate;
  OutputConfig output;
  ImageConfig image;
  BeamsConfig beams;
  SearchConfig search;
  VoltagesConfig voltages;
  RuntimeConfig runtime;

  std::string path;             ///< of the observation file, for messages and relative names
  std::string text;             ///< resolved configuration as TOML
  std::vector<GivenKey> given;  ///< in the order of config_fields.hpp
};

/// Reads and validates. `overrides` are "section.key=value" (TOML values; bare words are taken as
/// strings). Throws ConfigError "FILE:LINE:COLUMN: ..." for unknown keys (with the nearest known
/// one), wrong types, NaN, values out of range; IoError when the file is missing.
ObservationConfig load_observation(const std::string& path,
                                   const std::vector<std::string>& overrides = {});
/// The same for text (`origin` names it in messages).
ObservationConfig parse_observation(const std::string& text, const std::string& origin,
                                    const std::vector<std::string>& overrides = {});
/// Resolved configuration as TOML, every key written out; those without effect on its run as
/// comments.
std::string to_toml(const ObservationConfig& config);
/// "image.cadence_s = 0.5" of each setting that is not the default, for `overrides`.
std::vector<std::string> overrides_of(const SkySettings& settings);
/// JSON Schema of the observation file.
std::string json_schema();
/// Path named in the file, relative to the observation file.
std::string resolve_path(const ObservationConfig& config, const std::string& name);

/// Visibilities are asked for; images are.
bool wants_visibilities(const ObservationConfig& config);
bool wants_images(const ObservationConfig& config);
/// A live run searches: dm_max is given, or a plan that needs none.
bool wants_search(const SearchSettings& settings);

/// "--width-max" of width_max_s: the option of a sub-command that is this key. A unit at the end
/// goes, and n_ at the beginning; one that is on unless turned off is "--no-flagging".
std::string option_name(std::string_view key, bool turns_off = false);

}  // namespace ryle::pipeline
