// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/pipeline/config/config.hpp"

/// Every key of the observation file: name, member, allowed values, meaning. A visitor is called
/// once per key:
///   visitor(key, member, Range{min, max}, help)     numbers
///   visitor(key, member, Choice{...}, help)         words; an empty Choice takes any text
namespace ryle::pipeline {

struct Range {
  double min = -std::numeric_limits<double>::max();
  double max = std::numeric_limits<double>::max();
  std::string_view zero = {};  ///< what 0 stands for, where it is not a number like others
};
struct Choice {
  std::vector<std::string_view> words;
  std::vector<std::string_view> endings = {};  ///< of names of files, small letters; empty: any
};

/// A key that is an option of sub-commands, too.
struct KeyOption {
  std::string_view section, key;
  std::string_view option = {};  ///< empty: option_name(key)
  bool is_path = false;          ///< names are relative to the working directory

  std::string name() const { return option.empty() ? option_name(key) : std::string(option); }
};
/// Options of the commands that read recordings of voltages.
inline constexpr std::array kRecordingOptions{
    KeyOption{"telescope", "layout", {}, true},
    KeyOption{"telescope", "station", {}, true},
    KeyOption{"source", "format"},
    KeyOption{"source", "files_as"},
    KeyOption{"source", "channel_map"},
    KeyOption{"source", "start_utc", "--start"},
    KeyOption{"source", "sample_rate_hz", "--rate"},
    KeyOption{"source", "center_mhz"},
    KeyOption{"source", "duration_s"},
    KeyOption{"channelize", "n_channels"},
    KeyOption{"channelize", "taps"},
    KeyOption{"channelize", "window"},
    KeyOption{"channelize", "kaiser_beta"},
    KeyOption{"channelize", "step_samples"},
    KeyOption{"channelize", "implementation", "--channelizer"},
    KeyOption{"output", "overwrite"},
    KeyOption{"runtime", "device"},
};
/// Of those whose arrays tell their geographic place in no other way.
inline constexpr std::array kPlaceOptions{
    KeyOption{"telescope", "latitude_deg", "--latitude-deg"},
    KeyOption{"telescope", "longitude_deg", "--longitude-deg"},
    KeyOption{"telescope", "height_m"},
};
/// Of `ryle correlate`, which makes pictures where it is told to.
inline constexpr std::array kCorrelateOptions{
    KeyOption{"channelize", "bits"},
    KeyOption{"channelize", "rounding"},
    KeyOption{"channelize", "dither", "--no-dither"},
    KeyOption{"channelize", "seed"},
    KeyOption{"channelize", "target_rms_lsb"},
    KeyOption{"correlate", "integration_s"},
    KeyOption{"correlate", "fringe_stopping"},
    KeyOption{"correlate", "phase_center"},
    KeyOption{"correlate", "van_vleck"},
    KeyOption{"correlate", "min_fraction"},
    KeyOption{"correlate", "implementation"},
    KeyOption{"output", "pictures", "--pictures"},
};

/// Of `ryle calibrate`: all of [calibrate].
inline constexpr std::array kCalibrateOptions{
    KeyOption{"calibrate", "model"},
    KeyOption{"calibrate", "method"},
    KeyOption{"calibrate", "polarization"},
    KeyOption{"calibrate", "fluxes"},
    KeyOption{"calibrate", "channels_per_gain"},
    KeyOption{"calibrate", "uv_min"},
    KeyOption{"calibrate", "beam"},
    KeyOption{"calibrate", "min_elevation_deg", "--min-elevation-deg"},
    KeyOption{"calibrate", "drop_below"},
    KeyOption{"calibrate", "drop_above"},
    KeyOption{"calibrate", "reference"},
    KeyOption{"calibrate", "max_sigma_deg", "--max-sigma-deg"},
    KeyOption{"calibrate", "max_rounds"},
    KeyOption{"calibrate", "implementation"},
};

template <class V>
void fields(V& v, TelescopeConfig& c) {
  v("name", c.name, Choice{}, "name of the array, written into products");
  v("layout", c.layout, Choice{},
    "CSV: antenna,east_m,north_m,up_m,pol,cable_delay_ns, one line per input; or "
    "antenna_positions.json of TART");
  v("station", c.station, Choice{}, "LWA station file (SSMIF) instead of a layout");
  v("latitude_deg", c.latitude_deg, Range{-90, 90},
    "geodetic latitude (WGS84), of layouts without a place");
  v("longitude_deg", c.longitude_deg, Range{-180, 360},
    "longitude, east positive, of layouts without a place");
  v("height_m", c.height_m, Range{-500, 9000},
    "height above the ellipsoid, of layouts without a place");
  v("dut1_s", c.dut1_s, Range{-1, 1}, "UT1 - UTC; 0 costs up to 13.5 arcsec of sky rotation");
}

template <class V>
void fields(V& v, SourceConfig& c) {
  v("kind", c.kind, Choice{{"simulator", "network", "pcap", "file"}},
    "where samples come from; pcap: packets of `listen` in a capture, PCAP or PCAPNG");
  v("format", c.format, Choice{},
    "wire or file format: mwa32t, chips, tbf, tbx, best2, spead, vdif, codif, dada, guppi live, "
    "described with a [source.packet], which best2 may have, too; `ryle info` lists those of "
    "files, "
    "auto = by content");
  v("listen", c.listen, Choice{},
    "one endpoint per receiver, udp://host:port, tcp://host:port, pipe:/path or fd://3; a "
    "multicast "
    "group is joined: "
    "udp://239.1.2.3:7148?interface=eth1&source=10.0.0.1; udp://239.1.2.3+15:7148 are 16 groups; "
    "kind = \"pcap\": which datagrams are taken");
  v("file", c.file, Choice{},
    "recording to read when kind = \"file\", capture when kind = \"pcap\"");
  v("files", c.files, Choice{},
    "kind = \"file\": several recordings of one observation; those of the same station and threads "
    "follow each other in time, others are further inputs, in the order given; mwa32t: one a "
    "receiver");
  v("files_as", c.files_as, Choice{{"auto", "inputs"}},
    "several recordings: auto = by their headers; inputs = each is a station of its own");
  v("channel_map", c.channel_map, Choice{},
    "vdif: sky frequency of baseband 0 in MHz and sideband of channels, \"THREAD/CHANNEL MHZ U\" "
    "or "
    "L; \"STATION:THREAD MHZ L\" for one station, * for any thread; of several bands the one at "
    "center_mhz is made, else all of them");
  v("replay_speed", c.replay_speed, Range{0, 1e6, "as fast as the engines go, nothing is dropped"},
    "kind = \"pcap\": x recorded speed");
  v("start_utc", c.start_utc, Choice{}, "UTC of sample 0 for counters without a date, or \"now\"");
  v("sample_rate_hz", c.sample_rate_hz, Range{0, 1e11},
    "samples (packets of channels: spectra) per second of one input, may be exact: \"78125/4\"; 0 "
    "= what the format says");
  v("center_mhz", c.center_mhz, Range{0, 1e6},
    "sky frequency of baseband 0: the band centre of complex samples, the band edge of real ones");
  v("inverted_band", c.inverted_band, Choice{},
    "spectrum runs downwards (odd Nyquist zone, high-side oscillator)");
  v("first_channel", c.first_channel, Range{0, 65535},
    "chips, tbf, tbx, best2, spead, described live: number of the first channel, as the packets "
    "count; its sky frequency is this many channel widths, from channel_zero_mhz for spead and "
    "where packets are described");
  v("n_channels", c.n_channels, Range{0, 65535},
    "chips, tbf, tbx, best2, spead, described live: channels received; best2: 0 = all behind "
    "first_channel; described: 0 = those of one packet; vdif, codif, dada, guppi live: channels of "
    "a frame, 0 = 1; several complex ones are "
    "spectra, several real ones inputs");
  v("channels_per_packet", c.channels_per_packet, Range{0, 65535},
    "chips, tbx live: channels in one packet, spead: in one heap; 0 = all");
  v("channel_width_hz", c.channel_width_hz, Range{0, 1e9},
    "chips, tbf, tbx, best2, spead, described live: 0 = 25 kHz (chips), 196 MHz / 8192 (tbf, tbx), "
    "the spectrum rate (spead, described, best2 with a [source.packet])");
  v("channel_zero_mhz", c.channel_zero_mhz, Range{0, 1e6},
    "spead, described, best2 without beams.file: sky frequency of the center of channel number 0");
  v("spectra_per_heap", c.spectra_per_heap, Range{1, 1 << 20}, "spead: spectra in one heap");
  v("heaps", c.heaps, Choice{{"f-engine", "beam"}},
    "spead: feng_raw of F-engines, or bf_raw of a B-engine: one polarization of a beam an "
    "endpoint, "
    "in the order of the inputs");
  v("ticks_per_spectrum", c.ticks_per_spectrum, Range{0, 1e9, "needed"},
    "spead: timestamps from one spectrum to the next, 2 x channels of an F-engine of real samples");
  v("sample", c.sample, Choice{},
    "vdif, codif, dada, guppi live: \"i2\", \"ci8\", ...: i or ci, 1 to 16 bits a part");
  v("sample_encoding", c.sample_encoding,
    Choice{{"auto", "twos_complement", "offset_binary", "levels"}},
    "vdif, codif, dada live: auto = levels for vdif of 1 and 2 bits, else offset_binary for vdif "
    "and "
    "codif, twos_complement for dada");
  v("frame_bytes", c.frame_bytes, Range{0, 1 << 30, "needed"},
    "vdif, codif live: of a frame with its header; guppi: of a block without (BLOCSIZE)");
  v("frame_prefix_bytes", c.frame_prefix_bytes, Range{0, 1024},
    "vdif, codif live: bytes of a packet before the frame, 8 where packets are numbered (VTP)");
  v("legacy_headers", c.legacy_headers, Choice{}, "vdif live: headers have 16 bytes");
  v("threads", c.threads, Range{0, 65535},
    "vdif, codif live: threads received, in the order of the inputs; [] = 0, 1, ...; others are "
    "rejected (foreign_stream)");
  v("stations", c.stations, Choice{},
    "vdif, codif live: stations received, each with all threads, in the order of the inputs: two "
    "characters or a number, [\"Ef\", \"0x11\"]; [] = one, its number is not looked at");
  v("period_s", c.period_s, Range{1, 65535}, "codif live: seconds after which frames begin at 0");
  v("axis_order", c.axis_order, Choice{},
    "dada, guppi live: time, channel (F) and polarization, the slowest first; \"PFT256\" = blocks "
    "of 256 times; \"\" = TFP (dada), FTP (guppi; TFP where PKTFMT is SIMPLE)");
  v("overlap_samples", c.overlap_samples, Range{0, 1e9},
    "guppi live: OVERLAP, samples at the end of a block that come again");
  v("marker", c.marker, Choice{{"counter", "constant", "ignore"}},
    "meaning of word 0 of an MWA-32T group");
  v("chunk_ms", c.chunk_ms, Range{0.1, 10000}, "length of a ring chunk");
  v("n_chunks", c.n_chunks, Range{2, 4096}, "chunks in the ring, all allocated at start");
  v("window_chunks", c.window_chunks, Range{2, 64}, "open chunks: how late a packet may be");
  v("close_after_ms", c.close_after_ms, Range{1, 60000},
    "close a chunk this long after later data arrived");
  v("no_data_s", c.no_data_s, Range{0.1, 3600}, "silence after which the state is NO_DATA");
  v("duration_s", c.duration_s, Range{0, 1e9},
    "stop after this much data; 0 = until the end or a signal");
  v("stall_budget_s", c.stall_budget_s, Range{0.001, 10},
    "UDP receive buffers must hold what comes in this time");
  v("allow_small_rcvbuf", c.allow_small_rcvbuf, Choice{},
    "start although the kernel grants less (state DEGRADED)");
  v("allowed_senders", c.allowed_senders, Choice{},
    "who may send, UDP and TCP: addresses or networks, with or without a port, e.g. "
    "[\"10.1.0.0/16\", \"10.2.0.7:4015\", \"[fd00::/8]:4015\"]; [] = anybody");
  v("max_clock_error_s", c.max_clock_error_s, Range{0, 1e12},
    "kind = \"network\": a start that the packets date further from this host's clock is refused; "
    "0 = none is, for replays. Not where start_utc is \"now\" and packets count from an instant "
    "they do not tell");
  v("antenna_map", c.antenna_map, Range{0, 65535},
    "best2: line of the layout, from 0, of each input of a packet; [] = the layout has their "
    "order");
  v("pair_swap", c.pair_swap, Choice{},
    "best2: packets have antennas 4a + j in the place of 4a + (j xor 2)");
  v("lossless", c.lossless, Choice{},
    "streams (tcp) wait for the engines instead of dropping; dada, guppi and pipes always do");
}

template <class V>
void fields(V& v, SimulatorConfig& c) {
  v("duration_s", c.duration_s, Range{0.01, 1e6}, "data sent");
  v("speed", c.speed, Range{0, 1000}, "x real time; 0 = as fast as it goes");
  v("wait_for_run", c.wait_for_run, Choice{},
    "send no faster than the run takes the packets: a slow machine takes longer and loses nothing");
  v("sefd_jy", c.sefd_jy, Range{0, 1e12}, "system equivalent flux density of one input");
  v("sky", c.sky, Choice{{"frozen", "moving"}},
    "frozen: one record of period_samples is sent again and again, the sky stands still; moving: "
    "the "
    "sky turns, and sources and noise are drawn while they are sent (a slow machine takes longer: "
    "set wait_for_run)");
  v("period_samples", c.period_samples, Range{1024, 1 << 24},
    "length of the seamless periodic record that is sent; of a moving sky, drawn at a time");
  v("seed", c.seed, Range{0, 9e15}, "same seed, same samples");
  v("rms_lsb", c.rms_lsb, Range{0.1, 1000}, "level of a sample part");
  v("gains", c.gains, Choice{},
    "CSV of complex gains put on the inputs: input,amplitude,phase_deg");
  v("dead_inputs", c.dead_inputs, Range{0, 1e6}, "inputs that deliver zeros");
  v("dying_receiver", c.dying_receiver, Range{-1, 1e4}, "a capture node that dies ...");
  v("dies_at_s", c.dies_at_s, Range{0, 1e6}, "... at this time ...");
  v("returns_at_s", c.returns_at_s, Range{0, 1e6}, "... and returns at this one");
  v("element_power", c.element_power, Range{0, 100},
    "beam of every antenna: its power response is sin(elevation) to this power; 0 = isotropic");
  v("loss", c.loss, Range{0, 1}, "udp: chance that a packet is lost");
  v("bursts", c.bursts, Range{0, 1}, "udp: chance per packet that a burst of loss begins ...");
  v("burst_packets", c.burst_packets, Range{1, 1e6}, "... of this mean length");
  v("duplicate", c.duplicate, Range{0, 1}, "udp: chance that a packet is sent twice");
  v("reorder", c.reorder, Range{0, 1}, "udp: chance that a packet is held back behind ...");
  v("reorder_packets", c.reorder_packets, Range{1, 1000}, "... up to so many later ones");
  v("corrupt", c.corrupt, Range{0, 1}, "udp: chance that a bit of the header flips");
  v("clock_step_s", c.clock_step_s, Range{-1e6, 1e6},
    "udp: the counter of a board jumps by so much, in whole packets ...");
  v("clock_step_at_s", c.clock_step_at_s, Range{0, 1e6}, "... at this time ...");
  v("clock_step_receiver", c.clock_step_receiver, Range{-1, 1e4},
    "... of this capture node or board; -1 = all");
}

template <class V>
void fields(V& v, SimulatedSourceConfig& c) {
  v("name", c.name, Choice{}, "label on the picture");
  v("l", c.l, Range{-1, 1}, "direction cosine, east");
  v("m", c.m, Range{-1, 1}, "direction cosine, north");
  v("ra_deg", c.ra_deg, Range{0, 360}, "ICRS, instead of l and m");
  v("dec_deg", c.dec_deg, Range{-90, 90}, "ICRS, instead of l and m");
  v("flux_jy", c.flux_jy, Range{0, 1e9}, "Stokes I; XX = YY = I for an unpolarized source");
  v("q", c.q, Range{-1, 1}, "Q / I");
  v("u", c.u, Range{-1, 1}, "U / I");
  v("v", c.v, Range{-1, 1}, "V / I");
  v("start_s", c.start_s, Range{0, 1e6},
    "a flash begins at this time (mwa32t: of a moving sky) ...");
  v("duration_s", c.duration_s, Range{0, 1e6}, "... and lasts so long; 0 = always on");
  v("period_s", c.period_s, Range{0, 1e6},
    "the flash comes again: a pulsar (best2, described spectra, or a moving sky); 0 = once");
  v("duty_cycle", c.duty_cycle, Range{0, 1}, "share of the period that it is on, for duration_s");
  v("dm_pc_cm3", c.dm_pc_cm3, Range{0, 1e5},
    "dispersion measure of the flash (best2, described spectra, or a moving sky); start_s is that "
    "of the highest "
    "channel");
}

template <class V>
void fields(V& v, ChannelizeConfig& c) {
  v("n_channels", c.n_channels, Range{1, 1 << 20}, "channels across the band");
  v("taps", c.taps, Range{1, 64}, "polyphase taps; 1 = plain FFT");
  v("window", c.window, Choice{{"rectangular", "hann", "hamming", "blackman", "kaiser"}},
    "window of the prototype filter");
  v("kaiser_beta", c.kaiser_beta, Range{0, 50}, "for window = \"kaiser\"");
  v("step_samples", c.step_samples, Range{0, 1 << 21},
    "samples between spectra; 0 = critically sampled");
  v("fine_channels", c.fine_channels, Range{0, 65536, "as received"},
    "packets of an F-engine: channels that each channel is cut into; the transform that makes "
    "them, "
    "this number times spectra a second over channel width, must be even");
  v("bits", c.bits, Range{0, 32},
    "output: 8 or 4 bits, 16 for half floats, 32 for float; 0 = 8 live and on GPUs, 32 for "
    "recordings on the CPU, "
    "whose levels 8 bits set from the first samples could clip");
  v("rounding", c.rounding, Choice{{"nearest_even", "truncate"}}, "of the requantiser");
  v("dither", c.dither, Choice{}, "keyed uniform dither: E[code] = value");
  v("seed", c.seed, Range{0, 9e15}, "of the dither");
  v("target_rms_lsb", c.target_rms_lsb, Range{0.1, 100},
    "requantised level per part, set once at start");
  v("implementation", c.implementation, Choice{}, "auto or a name that `ryle info` lists");
}

template <class V>
void fields(V& v, CorrelateConfig& c) {
  v("integration_s", c.integration_s, Range{1e-6, 3600},
    "length of a dump, rounded to whole spectra");
  v("fringe_stopping", c.fringe_stopping, Choice{{"f", "x", "none"}},
    "delays before (f) or after (x) correlation");
  v("phase_center", c.phase_center, Choice{}, "\"zenith\", \"sun\" or \"RA_DEG,DEC_DEG\" (ICRS)");
  v("van_vleck", c.van_vleck, Choice{{"auto", "off"}},
    "correct the correlation loss of coarse quantisation");
  v("min_fraction", c.min_fraction, Range{0, 1},
    "flag values with a smaller fraction of valid spectra");
  v("implementation", c.implementation, Choice{}, "auto or a name that `ryle info` lists");
}

template <class V>
void fields(V& v, CalibrationConfig& c) {
  v("gains", c.gains, Choice{}, "CSV: input,amplitude,phase_deg of the signal path; divided out");
  v("jy_per_count2", c.jy_per_count2, Range{0, 1e30}, "flux scale; 0 = uncalibrated");
}

template <class V>
void fields(V& v, CalibrateConfig& c) {
  v("model", c.model, Choice{},
    "sky model: sources by name, \"sun,cas-a\" or \"a-team\", and files of them, parted by commas");
  v("method", c.method, Choice{{"auto", "stefcal", "eigenvector"}},
    "alternating least squares, or the leading eigenvector where one source rules; auto = stefcal");
  v("polarization", c.polarization, Choice{{"each", "shared"}},
    "a gain for each polarization, or one for both of an antenna");
  v("fluxes", c.fluxes, Choice{{"auto", "given", "fitted"}},
    "of the sources as the array sees them: as the model has them, or fitted against that of the "
    "first one; auto = fitted where one of several is not known");
  v("channels_per_gain", c.channels_per_gain, Range{0, 1e6, "all for .csv, else 1"},
    "channels that share a gain");
  v("uv_min", c.uv_min, Range{0, 1e6},
    "shortest baseline, wavelengths: shorter ones see the Galaxy, which is in no model");
  v("beam", c.beam, Choice{},
    "of the elements: isotropic, \"power X\" (n^X), dipole or \"dipole HEIGHT_M\" above ground");
  v("min_elevation_deg", c.min_elevation_deg, Range{0, 90}, "sources below are not used");
  v("drop_below", c.drop_below, Range{0, 1},
    "an input with less power in its visibilities than this many times the median is left out");
  v("drop_above", c.drop_above, Range{1, 1e9},
    "and one with more than this: one wild input makes the solution diverge");
  v("reference", c.reference, Choice{},
    "antenna whose phase is 0, a name or a number from 0; auto = the one with the smallest error");
  v("max_sigma_deg", c.max_sigma_deg, Range{0.001, 180},
    "refused where the predicted error of a phase is larger");
  v("max_rounds", c.max_rounds, Range{2, 1e6}, "of the solver, for a channel");
  v("implementation", c.implementation, Choice{}, "auto or a name that `ryle info` lists");
}

template <class V>
void fields(V& v, OutputConfig& c) {
  v("directory", c.directory, Choice{}, "where products go, relative to the working directory");
  v("name", c.name, Choice{}, "first part of every file name");
  v("ms", c.ms, Choice{}, "write a Measurement Set");
  v("uvfits", c.uvfits, Choice{}, "write UVFITS");
  v("uvh5", c.uvh5, Choice{}, "write UVH5");
  v("pictures", c.pictures, Choice{}, "write PNG quick-looks");
  v("overwrite", c.overwrite, Choice{}, "replace files of the same name");
  v("on_disk_full", c.on_disk_full, Choice{{"stop_recording", "stop"}},
    "what a full disk does to a live run");
  v("segment_s", c.segment_s, Range{0, 86400},
    "begin new files after this much data, listed in NAME.manifest.jsonl; 0 = one file per run");
  v("segment_mib", c.segment_mib, Range{0, 1e7},
    "begin new files before one grows beyond this; 0 = no limit");
  v("files", c.files, Choice{}, "explicit names instead of directory and name");
  v("spead", c.spead, Choice{},
    "endpoint to which visibilities are sent as heaps of SPEAD-64-48, udp://host:port or a "
    "multicast group: udp://239.1.2.3:7148?interface=eth1&ttl=4; \"\" = none");
  v("spead_channels", c.spead_channels, Range{0, 65536, "all"}, "channels in one heap");
  v("spead_packet_bytes", c.spead_packet_bytes, Range{512, 65507},
    "largest datagram of SPEAD; 1472 fit every network, 8972 one of jumbo frames");
  v("spead_mb_per_s", c.spead_mb_per_s, Range{0, 1e5, "as fast as it goes"},
    "datagrams of SPEAD are sent no faster than this");
}

template <class V>
void fields(V& v, SkySettings& c) {
  v("path", c.path, Choice{{"auto", "efield", "efield-half", "vis-grid", "vis-dft", "efield-dft"}},
    "way from voltages to all-sky images; `ryle plan` prints what each costs here");
  v("cadence_s", c.cadence_s, Range{0, 3600, "none in a run, `ryle image` one of everything"},
    "length of an all-sky image, rounded to whole spectra; above 5 s shorter images are stacked in "
    "a fixed RA/Dec frame");
  v("channels_per_bin", c.channels_per_bin, Range{0, 65536, "all"},
    "channels averaged into one all-sky image");
  v("cell_wavelengths", c.cell_wavelengths, Range{0.05, 10},
    "grid cell of all-sky images; a pixel is 1 / (n_pixels cell) in direction cosine");
  v("support", c.support, Range{3, 9}, "cells per axis of the antenna function (ES)");
  v("apertures", c.apertures, Choice{},
    "FITS of apertures [aperture][2][n][n] on a grid of CDELT1 metres: one, one a polarization, "
    "one "
    "an antenna, or one an antenna and polarization; gridded paths only");
  v("products", c.products, Choice{{"stokes", "linear", "intensity"}},
    "planes: I Q U V, or XX YY Re XY* Im XY*, or I alone");
  v("equalize", c.equalize, Choice{{"auto", "yes", "no"}},
    "give every input the same power; auto = when neither gains nor a flux scale are known");
  v("trigger_sigma", c.trigger_sigma, Range{0, 1000, "off"},
    "threshold of the image-plane trigger");
  v("light_curves", c.light_curves, Choice{},
    "SQLite file of the light curves; \"\" = NAME_light_curves.sqlite in output.directory");
  v("frames", c.frames, Choice{}, "directory for a PNG sequence, one frame per image");
  v("movie", c.movie, Choice{{}, {".mp4", ".mkv", ".webm", ".gif"}},
    "movie file (.mp4, .mkv, .webm or .gif) of the images, if ffmpeg is there");
  v("implementation", c.implementation, Choice{}, "auto or a name that `ryle info` lists");
}

template <class V>
void fields(V& v, ImageConfig& c) {
  fields(v, static_cast<SkySettings&>(c));
  v("n_pixels", c.n_pixels, Range{16, 4096}, "pixels on a side, even");
  v("width", c.width, Range{0.001, 2}, "direction cosines across; 2 = horizon to horizon");
  v("taper_pixels", c.taper_pixels, Range{0, 100},
    "uv taper that makes the beam this many pixels wide; 0 = none");
  v("channel_average", c.channel_average, Range{1, 65536}, "channels averaged before imaging");
  v("correlated_functions", c.correlated_functions, Choice{},
    "vis-grid: grid with correlated antenna functions, equal to E-field imaging to rounding");
  v("remove_autos", c.remove_autos, Choice{}, "leave auto-correlations out, exactly");
  v("dead_below", c.dead_below, Range{0, 1},
    "an input with less power than this many times the median is not used");
  v("dead_above", c.dead_above, Range{1, 1e9}, "nor one with more than this; 1e9 = no limit");
  v("max_relative_error", c.max_relative_error, Range{1e-9, 1},
    "of the peak: what path = \"auto\" may cost in accuracy");
  v("min_coherence", c.min_coherence, Range{0, 1},
    "below this coherence of the array plane path = \"auto\" takes an exact Fourier sum");
  v("max_zenith_distance_deg", c.max_zenith_distance_deg, Range{1, 90},
    "field in which the coherence must hold");
  v("queue", c.queue, Range{1, 4096}, "finished images that may wait for the disk");
  v("watch", c.watch, Choice{},
    "light curves: \"Cyg A\", \"sun\", ..., or \"RA,DEC\" (also RA/DEC) in degrees or sexagesimal, "
    "or \"NAME=RA,DEC\"");
  v("voevent", c.voevent, Choice{},
    "write a VOEvent 2.0 file, NAME_event_TIME.xml, for every event of the trigger");
  v("fits", c.fits, Choice{}, "write a FITS file for every all-sky image");
  v("png", c.png, Choice{}, "write a PNG for every all-sky image");
  v("latest", c.latest, Choice{}, "keep NAME_latest.png at the newest image");
  v("picture_px", c.picture_px, Range{200, 4000}, "diameter of the sky in pictures and movies");
  v("hdf5", c.hdf5, Choice{}, "HDF5 cube of all images, grown image by image");
  v("output", c.output, Choice{}, "explicit name of the FITS image instead of NAME_image.fits");
  v("picture", c.picture, Choice{{}, {".png", ".pdf", ".svg"}}, "explicit name of the picture");
}

template <class V>
void fields(V& v, BeamSettings& c) {
  v("pol", c.pol, Choice{{"auto", "X", "Y"}},
    "polarizations that beams are made of: all of the layout, or one");
  v("weights", c.weights, Choice{{"i8", "f32"}}, "precision of the weights");
  v("loss", c.loss, Choice{{"renormalize", "raw"}},
    "lost packets: divide by what was there, or count as zeros");
  v("incoherent", c.incoherent, Choice{},
    "sub-arrays whose antennas are also summed without phases, e.g. [\"all\"]");
  v("implementation", c.implementation, Choice{}, "auto or a name that `ryle info` lists");
}

template <class V>
void fields(V& v, BeamsConfig& c) {
  fields(v, static_cast<BeamSettings&>(c));
  v("file", c.file, Choice{},
    "beams file: array, band, directions, sub-arrays, gains; relative to the observation file");
  v("integration_spectra", c.integration_spectra, Range{1, 128},
    "spectra averaged into one power sample: a power of two up to 128");
  v("update_s", c.update_s, Range{0.01, 5},
    "beams that move get new weights so often, at fixed instants of the data");
  v("filterbank", c.filterbank, Choice{}, "write NAME_BEAM.fil (SIGPROC) of every beam");
  v("bits", c.bits, Range{8, 32}, "of the filterbanks: 8 (mean 64, rms 8 codes) or 32 (float)");
  v("scale_s", c.scale_s, Range{0.001, 60},
    "data from which the scale of 8-bit filterbanks is set, once");
  v("queue", c.queue, Range{1, 4096},
    "pieces of power that may wait for the disk, heaps that may wait for the network");
  v("pictures", c.pictures, Range{0, 4096}, "dynamic spectra (PNG) of the first so many beams");
  v("power_s", c.power_s, Range{0, 3600},
    "write NAME_power.csv, power of every beam against time in samples of this length, and "
    "NAME_transits.csv, sources that drifted through; and NAME_power.png; 0 = none");
  v("spead", c.spead, Choice{},
    "endpoint to which the voltages of the coherent beams are sent as heaps of SPEAD-64-48, a "
    "stream "
    "for each polarization of a beam: udp://host:port and the ports behind it, or as many "
    "multicast "
    "groups, udp://239.1.2.3+7:7148?interface=eth1&ttl=4; \"\" = none");
  v("spead_packet_bytes", c.spead_packet_bytes, Range{512, 65507},
    "largest datagram of SPEAD; 1472 fit every network, 8972 one of jumbo frames");
  v("spead_mb_per_s", c.spead_mb_per_s, Range{0, 1e5, "as fast as it goes"},
    "datagrams of each stream are sent no faster; heaps that wait longer than beams.queue of them "
    "are dropped, and counted");
}

template <class V>
void fields(V& v, SearchSettings& c) {
  v("dm_max", c.dm_max, Range{0, 1e5, "live no search, of files 2000 or what sweeps half"},
    "search for dispersed pulses up to this, pc/cm3");
  v("dm_min", c.dm_min, Range{0, 1e5}, "lowest dispersion measure tried");
  v("plan", c.plan, Choice{{"native", "linear", "tolerance", "ranges", "file"}},
    "of dispersion measures");
  v("dm_step", c.dm_step, Range{0, 1e4, "none"}, "linear: pc/cm3");
  v("dm_count", c.dm_count, Range{0, 1e7, "up to dm_max"}, "linear: number of trials");
  v("tolerance", c.tolerance, Range{1.0001, 10}, "tolerance: broadening allowed");
  v("ranges", c.ranges, Choice{}, "ranges: \"LOW HIGH STEP; LOW HIGH STEP\"");
  v("dm_file", c.dm_file, Choice{}, "file: name of a text with one DM a line");
  v("k_dm", c.k_dm, Choice{},
    "dispersion constant: physical, tempo, best2, dedisp or s MHz^2 pc^-1 cm^3");
  v("threshold", c.threshold, Range{1, 1e6}, "S/N of a boxcar");
  v("width_max_s", c.width_max_s, Range{0, 3600, "0.1 s, or 1024 samples where that is less"},
    "widest boxcar, at least 8 and at most 2048 samples");
  v("baseline_s", c.baseline_s,
    Range{0, 3600, "half a second, or 24 of the widest boxcar where that is longer"},
    "levels of channels are averaged over so long, slower drifts are taken out; at least 8 of the "
    "widest boxcar");
  v("dm_candidate_min", c.dm_candidate_min, Range{0, 1e5}, "events below are listed as flagged");
  v("mask_channels", c.mask_channels, Choice{}, "numbers in ascending frequency: \"0-3,17\"");
  v("mask_times", c.mask_times, Choice{}, "seconds from the first sample: \"12.5-13.1,40-41\"");
  v("rfifind_mask", c.rfifind_mask, Choice{},
    "PRESTO's .mask; its intervals count from the first sample");
  v("kill_file", c.kill_file, Choice{},
    "0 (out) or 1 for each channel in the order of the filterbank, or lines zap LOW HIGH (MHz)");
  v("flagging", c.flagging, Choice{}, "mask noisy channels, cells and bursts without dispersion");
  v("burst_threshold", c.burst_threshold, Range{0, 1e6},
    "sigma of the band sum from which a burst without dispersion is masked; 0 = never");
  v("sk_degrees", c.sk_degrees, Range{0, 1e9, "not tested"},
    "spectral kurtosis of power made of so many pairs of Gaussian numbers (polarizations x spectra "
    "summed)");
  v("zero_dm", c.zero_dm, Choice{{"off", "mean", "weighted"}}, "take out what all channels do");
  v("implementation", c.implementation, Choice{},
    "of the dedispersion: auto (exact sums) or a name such as fdmt (the tree)");
  v("smear_samples", c.smear_samples, Range{0, 1e4},
    "samples that channels may lie off their delays: auto then takes sub-bands where they need "
    "fewer additions; 0 = exact sums");
  v("block_samples", c.block_samples,
    Range{0, 1 << 24,
          "8192 of files, live 4096 on the CPU and on GPUs what `ryle plan` says, from their free "
          "memory"},
    "processed at a time, a multiple of 1024; part of the plan, results depend on it");
  v("max_beams", c.max_beams, Range{1, 1e6},
    "a pulse in more groups of adjacent beams than this, or in all beams, is interference");
  v("adjacent_deg", c.adjacent_deg, Range{0, 180, "1.5 times the smallest distance"},
    "beams this close are adjacent");
  v("position_error_deg", c.position_error_deg,
    Range{0, 180, "live half the smallest distance between beams, of files 1"},
    "error radius of VOEvents, half the width of a beam");
  v("voevents", c.voevents, Choice{}, "write NAME_NNNNN.xml of every candidate");
  v("max_pictures", c.max_pictures, Range{0, 1e6},
    "candidates with a picture and a VOEvent, and as many flagged events of a file");
}

template <class V>
void fields(V& v, SearchConfig& c) {
  fields(v, static_cast<SearchSettings&>(c));
  v("block_max_s", c.block_max_s, Range{0.001, 600},
    "a block that is chosen is no longer: candidates wait for its end");
  v("blocks", c.blocks, Range{0, 64},
    "blocks of all beams that are buffered, at least 2; 0 = 3, on GPUs 2");
  v("fold", c.fold, Choice{},
    "ephemeris (.par) of a pulsar to fold in a beam; relative to the observation file");
  v("fold_beam", c.fold_beam, Choice{}, "name of that beam; \"\" = the nearest to the pulsar");
  v("fold_bins", c.fold_bins, Range{2, 65536}, "of the profile");
}

template <class V>
void fields(V& v, VoltagesConfig& c) {
  v("ring_s", c.ring_s, Range{0, 3600},
    "received voltages kept in memory for dumps, NAME_voltages_NNNNN.h5; 0 = none");
  v("trigger_snr", c.trigger_snr, Range{0, 1e6},
    "candidates of the search and events of images from this S/N have their voltages written");
  v("margin_s", c.margin_s, Range{0, 600}, "written before and after what was asked for");
  v("window", c.window, Choice{{"band", "channel"}},
    "band: one span for all channels; channel: spans that follow the pulse, a fraction of the "
    "bytes");
  v("per_minute", c.per_minute, Range{0, 1e6}, "most dumps in a minute of data");
  v("max_gib", c.max_gib, Range{0, 1e6}, "most bytes of dumps; 0 = no limit");
  v("socket", c.socket, Choice{},
    "unix socket where `ryle trigger` and others ask for dumps, in the output directory; \"\" = "
    "none");
  v("ahead_s", c.ahead_s, Range{0, 3600},
    "what is asked for there may lie so much later than the newest data");
}

template <class V>
void fields(V& v, RuntimeConfig& c) {
  v("device", c.device, Choice{}, "auto, cpu or cuda:N");
  v("devices", c.devices, Range{0, 63},
    "numbers of the CUDA devices that live beams and their search, or the channels of FX, are "
    "split over; [] = device");
  v("threads", c.threads, Range{0, 1024}, "workers of the engines; 0 = all cores");
  v("dump_queue", c.dump_queue, Range{1, 1024}, "finished dumps that may wait for the writers");
  v("max_memory_gib", c.max_memory_gib, Range{0, 1e6},
    "refuse plans above this; 0 = what the machine has");
  v("metrics_file", c.metrics_file, Choice{},
    "Prometheus text of a live run, rewritten every second; `ryle top` shows it");
  v("command_socket", c.command_socket, Choice{},
    "unix socket where `ryle command` asks a live run for its state, marks, new files, the end; in "
    "the output directory; \"\" = none");
  v("log", c.log, Choice{{"text", "json"}},
    "what a run says on standard error: lines for a person, or one JSON object a line");
}

/// Calls section(name, struct) for every section.
template <class S>
void sections(S&& section, ObservationConfig& c) {
  section("telescope", c.telescope);
  section("source", c.source);
  section("simulator", c.simulator);
  section("channelize", c.channelize);
  section("correlate", c.correlate);
  section("calibration", c.calibration);
  section("calibrate", c.calibrate);
  section("output", c.output);
  section("image", c.image);
  section("beams", c.beams);
  section("search", c.search);
  section("voltages", c.voltages);
  section("runtime", c.runtime);
}

}  // namespace ryle::pipeline
