// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ryle/ingest/source.hpp"
#include "ryle/pipeline/base/beam_summary.hpp"
#include "ryle/pipeline/base/image_summary.hpp"
#include "ryle/pipeline/base/product_hooks.hpp"
#include "ryle/pipeline/base/voltage_summary.hpp"

/// What a run tells while it works and when it has ended.
namespace ryle::pipeline {

/// What an operator said of the data at an instant (`ryle command ... mark`).
struct OperatorMark {
  std::int64_t tai_ns = 0;  ///< of the data
  std::string text;
};

/// One line of progress.
struct Progress {
  double data_s = 0;  ///< data processed
  double elapsed_s = 0;
  double total_s = 0;        ///< 0 = not known
  double input_gbps = 0;     ///< of packets received since the last line
  double lost_fraction = 0;  ///< samples absent so far, of inputs that delivered any
  double margin = 0;         ///< data time / engine time: above 1 keeps up
  std::int64_t integrations = 0;
  std::int64_t images = 0;
  std::int64_t beam_samples = 0;      ///< of power, per beam and channel
  std::int64_t candidates = 0;        ///< of a search
  std::string state;                  ///< run_state()
  std::string warning;                ///< said once
  IngestCounters ingest;              ///< of packets, at this line
  std::vector<double> input_rms_lsb;  ///< level of each input now; empty where it is not known
};

/// One line in words: time, rates, losses, margin, products, state, and what was rejected since
/// `shown` with sender, length and first bytes; all that ever was, where nothing is new and the
/// state is not OK.
std::string to_text(const Progress& progress, const IngestCounters& shown);
/// The same as one JSON object without line breaks; units are in the names, `rejected` has an entry
/// a reason with packets so far, and sender, bytes and header of the last.
std::string to_json(const Progress& progress);

struct RunOptions {
  std::string command_line;
  std::atomic<int>* stop = nullptr;  ///< number of signals seen: 1 = close, drain, publish
  std::function<void(const Progress&)> on_progress;
  double progress_interval_s = 1;
  ProductHooks hooks;
};

/// What a run did; `ryle run --json` ends with it.
struct RunSummary {
  std::uint64_t packets_received = 0;
  std::uint64_t packets_used = 0;
  std::map<std::string, std::uint64_t> packets_rejected;
  std::map<std::string, RejectedPacket> last_rejected;  ///< by reason
  std::uint64_t rejected_connections = 0;
  std::string last_rejected_connection;  ///< who asked for it
  std::uint64_t senders_replaced = 0;    ///< streams that a steady rival won from their sender
  std::uint64_t kernel_drops = 0;
  std::uint64_t lost_samples = 0;
  std::uint64_t undelivered_samples = 0;  ///< of inputs that never delivered: not lost
  /// Share of requantised parts that were cut at the ends of their range. @shape [input] or empty
  std::vector<double> saturated_fraction;
  std::uint64_t dropped_chunks = 0;
  std::int64_t dropped_dumps = 0;  ///< missing in a product: the disk was too slow, or failed
  std::int64_t integrations = 0;
  double data_s = 0;
  double elapsed_s = 0;
  double real_time_factor = 0;  ///< data_s / (wall time from the first chunk to the last dump)
  double engine_margin = 0;     ///< data_s / time inside the engines
  std::int64_t peak_memory_bytes = 0;
  std::int64_t planned_memory_bytes = 0;
  std::vector<std::string> products;
  std::vector<std::string> implementations;
  std::vector<std::string>
      errors;  ///< products that could not be written, and other trouble survived
  std::vector<std::string> not_made;  ///< what was asked for and is not there, and why
  std::vector<std::string> warnings;
  std::string state;
  bool stopped_by_signal = false;
  std::vector<OperatorMark> marks;
  std::optional<ImageSummary> image;  ///< of all-sky images made on the way
  std::optional<BeamSummary> beams;
  std::optional<VoltageSummary> voltages;  ///< of a ring of voltages
};

/// One JSON object without line breaks.
std::string to_json(const RunSummary& summary);

}  // namespace ryle::pipeline
