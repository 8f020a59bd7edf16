// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/beam/voltage_ring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <utility>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/runtime/stage_thread.hpp"

namespace ryle::pipeline {
namespace {

constexpr double kRingMinute_s = 60;
constexpr std::size_t kRemembered = 64;   // dumps on disk that later triggers may lie in
constexpr std::size_t kMaxListed = 1000;  // triggers that one dump names, the rest is counted

/// One file: asked for, being written.
struct Dump {
  std::int64_t number = 0;  ///< that of its file
  VoltageWindow window;
  SampleClock clock;        ///< of its segment
  Tick begin = 0, end = 0;  ///< of all channels
  Tick next = 0;            ///< chunks that end at or before it are no longer needed
  std::int64_t segment = 0;
  Tick stream_begin = INT64_MIN;  ///< nothing before it was received, where that is known
  bool writing = false;
  std::vector<DumpTrigger> triggers;
  std::int64_t n_unlisted = 0;  ///< further triggers
  bool listed = false;          ///< the list of triggers is on its way to the disk
};

/// Kinds of messages, in the order of the summary.
enum class Trouble { rejected, limited, dropped, failed, partial, unlisted };

/// What writing a dump found.
struct DumpOutcome {
  Tick missing_front = 0;  ///< ticks of its beginning that had left the ring
  std::int64_t absent = 0;
  std::string error;  ///< "" = it is on disk
};

bool finite_trigger(const DumpTrigger& t) {
  return std::isfinite(t.dm_pc_cm3) && std::isfinite(t.dm_error) && std::isfinite(t.width_s) &&
         t.dm_pc_cm3 >= 0 && t.dm_error >= 0 && t.width_s >= 0;
}

}  // namespace

struct VoltageRing::Impl {
  VoltageRingConfig config;
  double ring_s;
  std::unique_ptr<SpectraBlocks> blocks;  // of the writer's thread
  mutable std::mutex mutex;
  std::condition_variable wake;
  std::deque<Chunk*> kept;
  std::deque<std::unique_ptr<Dump>> dumps;  // the first may be in writing
  std::deque<Dump> written;                 // the last ones
  std::int64_t segment = -1;
  struct Segment {
    SampleClock clock;
    Tick first = 0;  // of its first chunk
  };
  std::map<std::int64_t, Segment> segments;
  Tick head = 0;                      // end of the newest chunk
  std::int64_t received = 0;          // ticks, over all segments
  std::deque<std::int64_t> accepted;  // `received` then, of the last minute
  std::int64_t claimed_bytes = 0;     // of all dumps accepted
  std::int64_t last_number = 0;       // of a dump
  VoltageRecords records;             // that nobody has taken
  bool closing = false;
  VoltageSummary counts;
  std::map<Trouble, std::pair<std::int64_t, std::string>> troubles;
  std::vector<std::string> products;
  std::unique_ptr<StageThread> thread;  // last: uses all of the above

  explicit Impl(const VoltageRingConfig& c)
      : config(c), ring_s(c.shape.clock.seconds(c.n_chunks * c.chunks.chunk_ticks)) {
    RYLE_ASSERT(c.n_chunks > 0 && c.chunks.chunk_ticks % c.shape.unit_ticks == 0);
    if (c.chunks.form.content == VoltageForm::Content::spectra)
      blocks = std::make_unique<SpectraBlocks>(c.chunks.blocks);
    counts.ring_s = ring_s;
    thread = std::make_unique<StageThread>(
        "voltages", [this](const std::stop_token&) { run(); }, [this] { close(); });
  }

  void close() {
    const std::lock_guard lock(mutex);
    closing = true;
    wake.notify_all();
  }

  void trouble(Trouble kind, const std::string& message) {
    auto& entry = troubles[kind];
    if (++entry.first == 1) entry.second = message;
  }

  // ---- engine's thread ----

  static bool overlaps(const Chunk& chunk, std::int64_t of_segment, Tick begin, Tick end) {
    return chunk.segment == of_segment && chunk.first_tick < end &&
           chunk.first_tick + chunk.n_ticks > begin;
  }
  bool reserved(const Chunk& chunk) const {
    return std::any_of(dumps.begin(), dumps.end(),
                       [&](const auto& d) { return overlaps(chunk, d->segment, d->next, d->end); });
  }

  // The stream begins anew: of what is still to come everything may come yet.
  void carry_over(const Chunk& first, const SampleClock& clock) {
    for (auto& d : dumps) {
      if (d->segment != segment || d->begin < head) continue;
      const Tick later = ticks_later(d->clock, clock);
      if (d->end + later <= first.first_tick) continue;
      for (Tick& t : d->window.first) t += later;
      d->begin = d->next = d->window.begin();
      d->end = d->window.end();
      d->segment = first.segment;
      d->clock = clock;
      d->stream_begin = first.first_tick;
    }
  }

  // What is added to a tick of one clock for that of another of the same rate, to whole units.
  Tick ticks_later(const SampleClock& from, const SampleClock& to) const {
    const double ticks = static_cast<double>(from.epoch_tai_ns - to.epoch_tai_ns) * 1e-9 *
                         from.rate_hz.value() / static_cast<double>(config.shape.unit_ticks);
    return std::llround(ticks) * config.shape.unit_ticks;
  }

  void take(Chunk* chunk, const SampleClock& clock, std::vector<Chunk*>& free) {
    const std::lock_guard lock(mutex);
    if (segment >= 0 && chunk->segment != segment) carry_over(*chunk, clock);
    segment = chunk->segment;
    segments.try_emplace(segment, Segment{clock, chunk->first_tick});
    head = chunk->first_tick + chunk->n_ticks;
    received += chunk->n_ticks;
    kept.push_back(chunk);
    while (static_cast<std::int64_t>(kept.size()) > config.n_chunks) {
      auto oldest =
          std::find_if(kept.begin(), kept.end(), [this](const Chunk* c) { return !reserved(*c); });
      // All of it waits for the disk: the newest goes, because the receiver needs its memory.
      if (oldest == kept.end()) {
        oldest = std::prev(kept.end());
        ++counts.chunks_given_up;
      }
      free.push_back(*oldest);
      kept.erase(oldest);
    }
    // Chunks are kept in the order of their segments; dumps have clocks of their own.
    segments.erase(segments.begin(), segments.lower_bound(kept.front()->segment));
    if (!dumps.empty()) wake.notify_all();
  }

  // ---- any thread ----

  TriggerResult reject(TriggerResult result, Trouble kind, const std::string& message,
                       TriggerReply& reply) {
    trouble(kind, message);
    reply.message = message;
    if (result == TriggerResult::rejected) ++counts.rejected;
    if (result == TriggerResult::limited) ++counts.limited;
    if (result == TriggerResult::dropped) ++counts.dropped;
    return result;
  }
  TriggerResult reject(const std::string& message, TriggerReply& reply) {
    return reject(TriggerResult::rejected, Trouble::rejected, "trigger refused: " + message, reply);
  }

  TriggerResult trigger(const DumpTrigger& t, TriggerReply& reply) {
    const std::lock_guard lock(mutex);
    ++counts.triggers;
    const TriggerResult result = judge(t, reply);
    if (records.triggers.size() < kMaxRecords)
      records.triggers.push_back({counts.triggers, t, name_of(result), reply.dump, reply.message});
    return result;
  }

  TriggerResult judge(const DumpTrigger& t, TriggerReply& reply) {
    if (!finite_trigger(t))
      return reject("its DM, width or errors are no numbers from 0 up", reply);
    const double window_s = voltage_window_s(config.shape, t.dm_pc_cm3, t.dm_error, t.width_s);
    if (!(window_s <= ring_s))
      return reject(fmt::format("a window of {:.6g} s is longer than the ring of {:.3f} s; a "
                                "larger voltages.ring_s would hold it",
                                window_s, ring_s),
                    reply);
    if (closing || kept.empty()) return reject("nothing has been received", reply);
    const double ahead_s = 1e-9 * (static_cast<double>(t.tai_ns) -
                                   static_cast<double>(segments.at(segment).clock.tai_ns(head)));
    if (ahead_s > (t.event == 0 ? config.ahead_s : 0))
      return reject(fmt::format("it lies {:.6g} s in the future of the data", ahead_s), reply);
    Dump dump;
    dump.triggers.push_back(t);
    if (!find_segment(dump))
      return reject(fmt::format("it is {:.6g} s old and the ring of {:.3f} s holds nothing of it "
                                "any more; a larger voltages.ring_s would",
                                -ahead_s, ring_s),
                    reply);
    reply.dump = merge(dump);
    if (reply.dump > 0) {
      ++counts.merged;
      return TriggerResult::merged;
    }
    return accept(std::move(dump), reply);
  }

  // The newest segment that has some of it, or will have.
  bool find_segment(Dump& dump) const {
    place(dump, segment);
    if (dump.begin >= head) return true;
    for (auto chunk = kept.rbegin(); chunk != kept.rend(); ++chunk) {
      if ((*chunk)->segment != dump.segment) place(dump, (*chunk)->segment);
      if (overlaps(**chunk, dump.segment, dump.begin, dump.end)) return true;
    }
    return false;
  }
  void place(Dump& dump, std::int64_t of_segment) const {
    VoltageShape shape = config.shape;
    shape.clock = segments.at(of_segment).clock;
    dump.stream_begin = segments.at(of_segment).first;
    dump.segment = of_segment;
    dump.clock = shape.clock;
    dump.window = voltage_window(shape, dump.triggers.front());
    dump.begin = dump.next = dump.window.begin();
    dump.end = dump.window.end();
  }

  /// Number of the dump that has it, or will; 0 = none.
  std::int64_t merge(const Dump& dump) {
    for (const Dump& d : written) {
      if (d.segment != dump.segment || !d.window.holds(dump.window)) continue;
      ++counts.unlisted;
      return d.number;
    }
    for (auto& d : dumps) {
      if (d->segment != dump.segment || dump.begin >= d->end || dump.end <= d->begin) continue;
      if (!d->window.holds(dump.window)) {
        VoltageWindow both = d->window;
        both.merge(dump.window);
        const double both_s = config.shape.clock.seconds(both.end() - both.begin());
        // Storms must not grow one dump until it takes the ring.
        const double asked_s = config.shape.clock.seconds(dump.end - dump.begin);
        if (d->writing || both_s > std::max(0.5 * ring_s, 1.25 * asked_s)) continue;
        const std::int64_t bytes = bytes_of(both) - bytes_of(d->window);
        if (config.max_bytes > 0 && static_cast<double>(claimed_bytes + bytes) > config.max_bytes)
          continue;
        claimed_bytes += bytes;
        d->window = both;
        d->begin = d->next = both.begin();
        d->end = both.end();
      }
      list(*d, dump.triggers.front());
      return d->number;
    }
    return 0;
  }

  void list(Dump& dump, const DumpTrigger& trigger) {
    if (!dump.listed && dump.triggers.size() < kMaxListed) return dump.triggers.push_back(trigger);
    ++counts.unlisted;
    if (dump.listed) return;
    ++dump.n_unlisted;
    trouble(Trouble::unlisted,
            fmt::format("a dump lists {} of its triggers and counts the rest", kMaxListed));
  }

  std::int64_t bytes_of(const VoltageWindow& window) const {
    const VoltageForm& form = config.chunks.form;
    return checked_product({form.n_rows, window.n_ticks / form.unit_ticks(), form.unit_bytes()},
                           "voltage dump");
  }

  TriggerResult accept(Dump dump, TriggerReply& reply) {
    const auto minute =
        static_cast<std::int64_t>(kRingMinute_s * config.shape.clock.rate_hz.value());
    while (!accepted.empty() && accepted.front() <= received - minute) accepted.pop_front();
    if (static_cast<double>(accepted.size()) >= config.dumps_per_minute)
      return reject(TriggerResult::limited, Trouble::limited,
                    fmt::format("no more than {} dumps a minute (voltages.per_minute)",
                                config.dumps_per_minute),
                    reply);
    const std::int64_t bytes = bytes_of(dump.window);
    if (config.max_bytes > 0 && static_cast<double>(claimed_bytes + bytes) > config.max_bytes)
      return reject(TriggerResult::limited, Trouble::limited,
                    fmt::format("no more than {:.6g} GiB of dumps (voltages.max_gib)",
                                config.max_bytes / 1073741824.0),
                    reply);
    const auto held = std::count_if(kept.begin(), kept.end(), [&](const Chunk* c) {
      return reserved(*c) || overlaps(*c, dump.segment, dump.begin, dump.end);
    });
    // Dumps of what is still to come wait for data, not for the disk.
    const bool writing_late =
        std::any_of(kept.begin(), kept.end(), [this](const Chunk* c) { return reserved(*c); });
    if (writing_late && 2 * held > config.n_chunks)
      return reject(TriggerResult::dropped, Trouble::dropped,
                    fmt::format("the disk did not keep up with dumps: {} wait for it and hold "
                                "more than half of the ring of {:.3f} s",
                                dumps.size(), ring_s),
                    reply);
    accepted.push_back(received);
    claimed_bytes += bytes;
    reply.dump = dump.number = next_number();
    dumps.push_back(std::make_unique<Dump>(std::move(dump)));
    wake.notify_all();
    return TriggerResult::accepted;
  }

  // ---- writer's thread ----

  bool ready(const Dump& d) const { return closing || d.segment != segment || head >= d.end; }

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      // The first that is complete: a later one may be, of an older pulse.
      const auto first =
          std::find_if(dumps.begin(), dumps.end(), [this](const auto& d) { return ready(*d); });
      if (first == dumps.end()) {
        if (closing && dumps.empty()) return;
        wake.wait(lock);
        continue;
      }
      Dump& dump = **first;
      dump.writing = true;
      const std::string path = path_of(dump.number);
      lock.unlock();
      DumpOutcome outcome;
      try {
        write(dump, path, outcome);
      } catch (const std::exception& e) {  // this dump is lost, the observation goes on
        outcome.error = e.what();
      }
      lock.lock();
      conclude(dump, path, outcome);
    }
  }

  DumpRecord record_of(const Dump& dump, const std::string& path, const DumpOutcome& o) const {
    const bool lost = !o.error.empty();
    DumpRecord r;
    r.number = dump.number;
    if (!lost) r.file = std::filesystem::path(path).filename().string();
    r.begin_tai_ns = dump.clock.tai_ns(dump.begin);
    r.end_tai_ns = dump.clock.tai_ns(dump.end);
    const FrequencyAxis& f = config.shape.frequency;
    r.low_hz = f.center_hz(0) - 0.5 * f.channel_width_hz;
    r.high_hz = f.center_hz(f.n_channels - 1) + 0.5 * f.channel_width_hz;
    r.n_channels = f.n_channels;
    const VoltageForm& form = config.chunks.form;
    r.packets = form.n_rows * dump.window.n_ticks / form.unit_ticks();
    if (form.content != VoltageForm::Content::packets) r.packets *= form.n_inputs;
    r.bytes = lost ? 0 : bytes_of(dump.window);
    r.absent_packets = lost ? r.packets : o.absent;
    r.left_s = config.shape.clock.seconds(o.missing_front);
    r.message = o.error;
    return r;
  }

  void conclude(Dump& dump, const std::string& path, const DumpOutcome& o) {
    records.dumps.push_back(record_of(dump, path, o));
    if (o.error.empty()) {
      ++counts.dumps;
      counts.bytes += bytes_of(dump.window);
      counts.absent_packets += o.absent;
      products.push_back(path);
      if (o.missing_front > 0) {
        ++counts.partial;
        const double short_s = config.shape.clock.seconds(o.missing_front);
        trouble(Trouble::partial,
                fmt::format("{}: its first {:.3f} s had left the ring of {:.3f} s and are marked "
                            "absent; voltages.ring_s = {:.1f} would have held them",
                            path, short_s, ring_s, std::ceil(10 * (ring_s + short_s + 0.1)) / 10));
      }
    } else {
      ++counts.failed;
      trouble(Trouble::failed, "a dump of voltages was lost: " + o.error);
    }
    const auto place =
        std::find_if(dumps.begin(), dumps.end(), [&](const auto& d) { return d.get() == &dump; });
    if (o.error.empty()) {
      written.push_back(dump);
      written.back().triggers.clear();
      if (written.size() > kRemembered) written.pop_front();
    }
    dumps.erase(place);
  }

  std::string path_of(std::int64_t number) const {
    return fmt::format("{}_{:05d}.h5", config.path_stem, number);
  }

  /// Of a file that is not there yet: whoever asks is told the number before the dump is written,
  /// and dumps end in another order than they were asked for. @pre locked
  std::int64_t next_number() {
    do ++last_number;
    while (!config.overwrite && std::filesystem::exists(path_of(last_number)));
    return last_number;
  }

  VoltageDumpInfo info_of(const Dump& dump) const {
    VoltageDumpInfo info;
    info.telescope = config.telescope;
    info.form = config.chunks.form;
    info.frequency = config.shape.frequency;
    info.clock = dump.clock;
    info.first_tick = dump.window.first;
    info.n_units = dump.window.n_ticks / info.form.unit_ticks();
    info.input_line = config.input_line;
    info.k_dm = config.shape.k_dm;
    info.history = config.command_line;
    return info;
  }

  // The window is fixed once `writing` is set, so it is read without the lock.
  void write(Dump& dump, const std::string& path, DumpOutcome& outcome) {
    VoltageDumpWriter writer(path, info_of(dump), config.overwrite);
    VoltageFill fill(config.chunks, dump.window, blocks.get(), writer);
    bool first = true;
    while (const Chunk* chunk = next_chunk(dump)) {
      if (first)
        outcome.missing_front =
            std::max<Tick>(0, chunk->first_tick - std::max(dump.begin, dump.stream_begin));
      first = false;
      fill.add(*chunk);
      const std::lock_guard lock(mutex);
      dump.next = chunk->first_tick + chunk->n_ticks;
    }
    if (first) throw Error(ExitCode::unavailable, why_nothing(dump));
    std::vector<DumpTrigger> triggers;
    std::int64_t n_unlisted = 0;
    {
      const std::lock_guard lock(mutex);
      dump.next = dump.end;
      dump.listed = true;
      triggers = dump.triggers;
      n_unlisted = dump.n_unlisted;
    }
    fill.finish(triggers, n_unlisted);
    outcome.absent = fill.n_absent();
  }

  std::string why_nothing(const Dump& dump) const {
    const std::lock_guard lock(mutex);
    if (dump.segment == segment) return "the data ended before what was asked for";
    return "the stream stopped before what was asked for and began anew after it";
  }

  // The earliest kept chunk that is not written yet; it stays until dump.next passes it.
  const Chunk* next_chunk(const Dump& dump) const {
    const std::lock_guard lock(mutex);
    const Chunk* best = nullptr;
    for (const Chunk* c : kept) {
      if (overlaps(*c, dump.segment, dump.next, dump.end) &&
          (best == nullptr || c->first_tick < best->first_tick))
        best = c;
    }
    return best;
  }

  std::vector<std::string> messages() const {
    const std::lock_guard lock(mutex);
    std::vector<std::string> texts;
    for (const auto& [kind, entry] : troubles) {
      texts.push_back(entry.second);
      if (entry.first > 1) texts.back() += fmt::format(" ({} times)", entry.first);
    }
    return texts;
  }
};

VoltageRing::VoltageRing(const VoltageRingConfig& config) : impl_(std::make_unique<Impl>(config)) {}
VoltageRing::~VoltageRing() = default;

void VoltageRing::take(Chunk* chunk, const SampleClock& clock, std::vector<Chunk*>& free) {
  impl_->take(chunk, clock, free);
}
TriggerResult VoltageRing::trigger(const DumpTrigger& trigger, TriggerReply* reply) {
  TriggerReply unasked;
  return impl_->trigger(trigger, reply != nullptr ? *reply : unasked);
}
VoltageRecords VoltageRing::take_records() {
  const std::lock_guard lock(impl_->mutex);
  return std::exchange(impl_->records, {});
}

const char* name_of(TriggerResult result) {
  switch (result) {
    case TriggerResult::accepted:
      return "accepted";
    case TriggerResult::merged:
      return "merged";
    case TriggerResult::limited:
      return "limited";
    case TriggerResult::dropped:
      return "dropped";
    default:
      return "refused";
  }
}

void VoltageRing::finish(RunSummary& summary) {
  Impl& me = *impl_;
  me.close();
  me.thread->join();
  summary.products.insert(summary.products.end(), me.products.begin(), me.products.end());
  for (auto& text : me.messages()) summary.warnings.push_back("voltages: " + text);
  summary.voltages = me.counts;
}

VoltageSummary VoltageRing::counts() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->counts;
}
std::vector<std::string> VoltageRing::messages() const { return impl_->messages(); }

}  // namespace ryle::pipeline
