// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/beam/beam_heaps.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ryle/core/endpoint.hpp"
#include "ryle/core/error.hpp"
#include "ryle/ingest/socket.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/visibility/simulation.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::uint32_t kBeamAnts = 0x5004, kFirstCenter = 0x1803, kChannelWidth = 0x1804,
                        kEpoch = 0x1806, kSpectraPerS = 0x1807, kScale = 0x1808;
constexpr std::chrono::seconds kDescribeAgain(10);

std::size_t n_voltage_streams(const BeamSetup& setup) {
  return setup.file.beams.size() * static_cast<std::size_t>(setup.n_pols);
}

BeamHeapStreams::Info stream_info(const ObservationConfig& config, const BeamSetup& setup) {
  BeamHeapStreams::Info info;
  info.frequency = setup.frequency;
  info.n_antennas = setup.file.array.n_inputs() / setup.n_pols;
  info.n_pols = setup.n_pols;
  info.packet_bytes = config.beams.spead_packet_bytes;
  info.mb_per_s = config.beams.spead_mb_per_s;
  return info;
}

/// Where datagrams for an endpoint go, by number: a host has several names.
struct Destination {
  std::string host;
  std::uint16_t port = 0;
  bool own = false;  ///< an address of this machine

  explicit Destination(const Endpoint& endpoint) : port(endpoint.port) {
    const Socket socket = udp_connect(endpoint);
    sockaddr_storage to{}, from{};
    socklen_t to_bytes = sizeof to, from_bytes = sizeof from;
    ::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&to), &to_bytes);
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&from), &from_bytes);
    host = numeric_host(to, to_bytes);
    own = host == numeric_host(from, from_bytes) || host.rfind("127.", 0) == 0;
  }

  /// A socket that is bound to `listening` takes what is sent there.
  bool reaches(const Endpoint& listening) const {
    if (port != listening.port) return false;
    if (listening.host == "0.0.0.0" || listening.host == "::") return own;
    Endpoint there = listening;
    there.sources.clear();
    return host == Destination(there).host;
  }

 private:
  static std::string numeric_host(const sockaddr_storage& address, socklen_t n_bytes) {
    char text[NI_MAXHOST] = "";
    ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), n_bytes, text, sizeof text, nullptr,
                  0, NI_NUMERICHOST);
    return text;
  }
};

/// The UDP endpoints that the run receives from, empty where it reads a file.
std::vector<Endpoint> listening_endpoints(const SourceConfig& source) {
  std::vector<Endpoint> endpoints;
  if (source.kind != "network" && source.kind != "simulator") return endpoints;
  for (const auto& text : expand_endpoints(source.listen)) {
    const Endpoint endpoint = parse_endpoint(text);
    if (endpoint.is_udp() && endpoint.port != 0) endpoints.push_back(endpoint);
  }
  return endpoints;
}

}  // namespace

std::vector<std::string> beam_endpoints(const std::string& key, const std::string& text,
                                        std::size_t n_streams) {
  std::vector<std::string> endpoints = expand_endpoints({text});
  const Endpoint first = parse_endpoint(endpoints.front());
  if (!first.is_udp() || first.port == 0)
    throw ConfigError(key + " \"" + text +
                      "\": heaps are sent to udp://host:port with a port above 0");
  if (endpoints.size() == 1 && first.port + n_streams <= 65536) {  // ports one after the other
    for (std::size_t k = 1; k < n_streams; ++k) {
      Endpoint next = first;
      next.port = static_cast<std::uint16_t>(first.port + k);
      endpoints.push_back(to_string(next));
    }
  }
  if (endpoints.size() != n_streams)
    throw ConfigError(fmt::format(
        "{} \"{}\": {} polarizations of beams need as many groups (+{}), or one host with as many "
        "ports",
        key, text, n_streams, n_streams - 1));
  return endpoints;
}

BeamHeapCutter::BeamHeapCutter(std::int64_t n_streams, std::int64_t n_pols, std::int64_t n_channels)
    : n_streams_(n_streams), n_pols_(n_pols), n_channels_(n_channels) {}

void BeamHeapCutter::copy(const BeamVoltages& voltages, std::int64_t first, std::int64_t n) {
  const std::int64_t stream_bytes = n_channels_ * BeamHeap::kSpectra * 2;
  if (!any_) heap_.values.assign(static_cast<std::size_t>(n_streams_ * stream_bytes), std::byte{0});
  any_ = true;
  const std::int64_t place = (voltages.first + first) % BeamHeap::kSpectra;
  for (std::int64_t s = 0; s < n_streams_; ++s) {
    const std::byte* from = voltages.values + s / n_pols_ * voltages.beam_stride_bytes +
                            (first * n_pols_ + s % n_pols_) * 2;
    std::byte* to = heap_.values.data() + s * stream_bytes + place * 2;
    for (std::int64_t c = 0; c < n_channels_; ++c) {
      if (n_pols_ == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(2 * n));
      } else {
        for (std::int64_t t = 0; t < n; ++t) std::memcpy(to + 2 * t, from + 2 * n_pols_ * t, 2);
      }
      from += voltages.channel_stride_bytes;
      to += BeamHeap::kSpectra * 2;
    }
  }
}

BeamHeapStreams::BeamHeapStreams(const std::string& key, std::vector<std::string> endpoints,
                                 const Info& info)
    : info_(info), endpoints_(std::move(endpoints)) {
  for (const auto& endpoint : endpoints_)
    streams_.push_back(
        std::make_unique<SpeadHeaps>(key, endpoint, info.packet_bytes, info.mb_per_s));
}

void BeamHeapStreams::describe(const BeamHeap& heap) {
  const auto f8 = spead_numpy_header("<f8", "");
  const std::string shape =
      fmt::format("{}, {}, 2", info_.frequency.n_channels, BeamHeap::kSpectra);
  const std::vector<std::vector<std::byte>> descriptors{
      wire::spead_descriptor(wire::kSpeadTimestamp, "timestamp", "spectra since the epoch", ""),
      wire::spead_descriptor(wire::kSpeadFrequency, "frequency", "first channel", ""),
      wire::spead_descriptor(kBeamAnts, "beam_ants", "antennas of the beam", ""),
      wire::spead_descriptor(wire::kSpeadBfRaw, "bf_raw", "voltages of a beam, one polarization",
                             spead_numpy_header("|i1", shape)),
      wire::spead_descriptor(kEpoch, "epoch_tai_ns", "of timestamp 0, since 1970-01-01 TAI",
                             spead_numpy_header("<i8", "")),
      wire::spead_descriptor(kSpectraPerS, "spectra_per_s", "rate of timestamps", f8),
      wire::spead_descriptor(kFirstCenter, "first_center_hz", "sky frequency of channel 0", f8),
      wire::spead_descriptor(kChannelWidth, "channel_width_hz", "from channel to channel", f8),
      wire::spead_descriptor(
          kScale, "scale", "code of a voltage of 1 in each channel",
          spead_numpy_header("<f4", fmt::format("{},", info_.frequency.n_channels)))};
  const std::int64_t epoch_tai_ns = heap.clock.epoch_tai_ns;
  const double numbers[]{heap.clock.rate_hz.value(), info_.frequency.first_center_hz,
                         info_.frequency.channel_width_hz};
  const auto bytes = [](const auto& value) { return std::as_bytes(std::span(&value, 1)); };
  std::vector<SpeadHeaps::Item> items;
  for (const auto& d : descriptors) items.push_back({wire::kSpeadDescriptor, false, 0, d});
  items.push_back({kEpoch, false, 0, bytes(epoch_tai_ns)});
  items.push_back({kSpectraPerS, false, 0, bytes(numbers[0])});
  items.push_back({kFirstCenter, false, 0, bytes(numbers[1])});
  items.push_back({kChannelWidth, false, 0, bytes(numbers[2])});
  const auto n_channels = static_cast<std::size_t>(info_.frequency.n_channels);
  const std::vector<float> ones(n_channels, 1.0f);
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    const std::span row =
        heap.scale
            ? std::span(*heap.scale)
                  .subspan(s / static_cast<std::size_t>(info_.n_pols) * n_channels, n_channels)
            : std::span(ones);
    items.push_back({kScale, false, 0, std::as_bytes(row)});
    streams_[s]->start(items);
    items.pop_back();
  }
  send_started();
  clock_ = heap.clock;
  scale_ = heap.scale;
  described_ = true;
  described_at_ = Clock::now();
}

void BeamHeapStreams::send(const BeamHeap& heap) {
  const auto n_channels = static_cast<std::size_t>(info_.frequency.n_channels);
  const std::size_t n_scales =
      streams_.size() / static_cast<std::size_t>(info_.n_pols) * n_channels;
  if (heap.values.size() != streams_.size() * n_channels * BeamHeap::kSpectra * 2 ||
      (heap.scale && heap.scale->size() < n_scales))
    throw ConfigError(fmt::format(
        "a heap of {} bytes with {} scales is not one of {} streams of {} channels",
        heap.values.size(), heap.scale ? heap.scale->size() : 0, streams_.size(), n_channels));
  if (!described_ || !same_clock(heap.clock, clock_) || heap.scale != scale_ ||
      Clock::now() - described_at_ > kDescribeAgain)
    describe(heap);
  const auto timestamp = static_cast<std::uint64_t>(heap.number * BeamHeap::kSpectra);
  const std::size_t stream_bytes = heap.values.size() / streams_.size();
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    const std::span values = std::span(heap.values).subspan(s * stream_bytes, stream_bytes);
    const SpeadHeaps::Item items[]{
        {wire::kSpeadTimestamp, true, timestamp, {}},
        {wire::kSpeadFrequency, true, 0, {}},
        {kBeamAnts, true, static_cast<std::uint64_t>(info_.n_antennas), {}},
        {wire::kSpeadBfRaw, false, 0, values}};
    streams_[s]->start(items);
  }
  send_started();
}

// Each stream has the rate to itself: whichever may send first does.
void BeamHeapStreams::send_started() {
  waiting_.clear();
  for (const auto& stream : streams_) waiting_.push_back(stream.get());
  while (!waiting_.empty()) {
    Clock::time_point due = waiting_.front()->due();
    for (const SpeadHeaps* stream : waiting_) due = std::min(due, stream->due());
    due = std::max(due, Clock::now());  // one pass over many streams sends many datagrams
    std::erase_if(waiting_, [&](SpeadHeaps* stream) {
      if (stream->due() <= due) stream->send_next();
      return !stream->more();
    });
  }
}

std::vector<std::string> BeamHeapStreams::troubles() const {
  std::vector<std::string> texts;
  for (const auto& stream : streams_)
    if (std::string text = stream->trouble(); !text.empty()) texts.push_back(std::move(text));
  return texts;
}

std::int64_t BeamHeapStreams::rejected() const {
  std::int64_t sum = 0;
  for (const auto& stream : streams_) sum += stream->rejected();
  return sum;
}

std::vector<std::string> live_beam_endpoints(const ObservationConfig& config,
                                             const BeamSetup& setup) {
  const std::string& text = config.beams.spead;
  const std::size_t n = n_voltage_streams(setup);
  if (n == 0)
    throw ConfigError("beams.spead \"" + text +
                      "\": incoherent beams have no voltages; give beams.file a [[beam]]");
  auto endpoints = beam_endpoints("beams.spead", text, n);
  std::vector<Destination> others;
  if (!config.output.spead.empty()) others.emplace_back(parse_endpoint(config.output.spead));
  const std::vector<Endpoint> listening = listening_endpoints(config.source);
  for (const auto& each : endpoints) {
    const Destination to(parse_endpoint(each));
    for (const auto& other : others)
      if (to.host == other.host && to.port == other.port)
        throw ConfigError(each +
                          " is asked for twice: as beams.spead and as output.spead; give one of "
                          "them another port");
    for (const auto& endpoint : listening)
      if (to.reaches(endpoint))
        throw ConfigError(each + " of beams.spead is in source.listen, too (" +
                          to_string(endpoint) +
                          "): the run would receive its own heaps; give one of them another port");
  }
  return endpoints;
}

std::unique_ptr<BeamHeapStreams> open_live_beam_streams(const ObservationConfig& config,
                                                        const BeamSetup& setup) {
  return std::make_unique<BeamHeapStreams>("beams.spead", live_beam_endpoints(config, setup),
                                           stream_info(config, setup));
}

std::int64_t beam_heaps_bytes(const ObservationConfig& config, const BeamSetup& setup) {
  return (config.beams.queue + 3) * static_cast<std::int64_t>(n_voltage_streams(setup)) *
         setup.frequency.n_channels * BeamHeap::kSpectra * 2;
}

BeamHeaps::BeamHeaps(const ObservationConfig& config, const BeamSetup& setup,
                     std::unique_ptr<BeamHeapStreams> streams)
    : streams_(std::move(streams)),
      cutter_(static_cast<std::int64_t>(n_voltage_streams(setup)), setup.n_pols,
              setup.frequency.n_channels),
      heap_bytes_(beam_heaps_bytes(config, setup) / (config.beams.queue + 3)),
      queue_(static_cast<std::size_t>(config.beams.queue),
             is_real_time(config) ? DropPolicy::drop_newest : DropPolicy::block),
      free_(static_cast<std::size_t>(config.beams.queue) + 2, DropPolicy::drop_newest) {
  thread_ = std::make_unique<StageThread>(
      "ryle-heaps", [this](const std::stop_token&) { run(); }, [this] { queue_.close(); });
}

BeamHeaps::~BeamHeaps() { queue_.close(); }

std::int64_t BeamHeaps::memory_bytes() const {
  return heap_bytes_ * (static_cast<std::int64_t>(queue_.capacity()) + 3);
}

void BeamHeaps::run() {
  try {
    while (auto heap = queue_.pop()) {
      streams_->send(*heap);
      ++sent_;
      free_.offer(std::move(heap->values));
    }
  } catch (...) {
    // The data path must not wait for a sender that is gone.
    failed_ = true;
    queue_.close();
    throw;
  }
}

void BeamHeaps::offer(BeamHeap& heap) {
  BeamHeap next;
  if (auto recycled = free_.try_pop()) next.values = std::move(*recycled);
  std::swap(next.values, heap.values);
  next.number = heap.number;
  next.clock = heap.clock;
  next.scale = heap.scale;
  if (queue_.offer(std::move(next)) != QueueResult::done) ++dropped_;
}

void BeamHeaps::take_voltages(const BeamVoltages& voltages, const SampleClock& clock) {
  cutter_.take(voltages, clock, [this](BeamHeap& heap) { offer(heap); });
}

void BeamHeaps::finish(RunSummary& summary) {
  cutter_.flush([this](BeamHeap& heap) { offer(heap); });
  queue_.close();
  try {
    thread_->join();
  } catch (const std::exception& error) {  // the other products of the beams are whole
    summary.errors.push_back(std::string("beams.spead: ") + error.what());
  }
  if (summary.beams) {
    summary.beams->heaps_sent = sent_;
    summary.beams->heaps_dropped = dropped_;
    summary.beams->datagrams_rejected = streams_->rejected();
  }
  if (dropped_ > 0)
    summary.warnings.push_back(fmt::format(
        "beams.spead: {} of {} heaps were not sent, {} spectra each{}", dropped_, dropped_ + sent_,
        BeamHeap::kSpectra,
        failed_ ? ": their sender had failed"
                : ": they are made faster than the network takes them (beams.spead_mb_per_s, "
                  "beams.queue)"));
  for (const auto& text : streams_->troubles()) summary.warnings.push_back("beams.spead: " + text);
  for (const auto& endpoint : streams_->endpoints()) summary.products.push_back(endpoint);
}

}  // namespace ryle::pipeline
