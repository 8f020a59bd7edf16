// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/spead_output.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <thread>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::uint32_t kCounts = 0x1801, kIntegration = 0x1802, kFirstCenter = 0x1803,
                        kChannelWidth = 0x1804, kOrdering = 0x1805;

static_assert(std::endian::native == std::endian::little, "descriptors say so");

template <class T>
std::span<const std::byte> raw_bytes(const T* data, std::size_t n) {
  return std::as_bytes(std::span(data, n));
}

// [product][antenna i, polarization i, antenna j, polarization j]
std::vector<std::int32_t> product_order(const VisibilityDump& dump, std::int64_t n_antennas) {
  const std::int64_t n_pols = dump.n_pol_products == 4 ? 2 : 1;
  std::vector<std::int32_t> order(4 *
                                  static_cast<std::size_t>(dump.n_baselines * dump.n_pol_products));
  for (std::int64_t i = 0; i < n_antennas; ++i) {
    for (std::int64_t j = i; j < n_antennas; ++j) {
      for (std::int64_t p = 0; p < dump.n_pol_products; ++p) {
        std::int32_t* row = order.data() + 4 * (pair_index(i, j) * dump.n_pol_products + p);
        row[0] = static_cast<std::int32_t>(i);
        row[1] = static_cast<std::int32_t>(p / n_pols);
        row[2] = static_cast<std::int32_t>(j);
        row[3] = static_cast<std::int32_t>(p % n_pols);
      }
    }
  }
  return order;
}

}  // namespace

std::string spead_numpy_header(const char* type, const std::string& shape) {
  return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({})}}", type, shape);
}

SpeadHeaps::SpeadHeaps(const std::string& key, const std::string& endpoint,
                       std::int64_t packet_bytes, double mb_per_s)
    : endpoint_(endpoint), packet_bytes_(packet_bytes), mb_per_s_(mb_per_s) {
  const Endpoint to = parse_endpoint(endpoint);
  if (!to.is_udp() || to.port == 0)
    throw ConfigError(key + " \"" + endpoint +
                      "\": heaps are sent to udp://host:port with a port above 0");
  socket_ = udp_connect(to);
}

SpeadHeaps::~SpeadHeaps() {
  if (datagrams_ == 0) return;
  const Item stop[]{{wire::kSpeadControl, true, wire::kSpeadStop, {}}};
  send(stop);
}

std::string SpeadHeaps::trouble() const {
  if (rejected_ == 0) return "";
  return fmt::format("{} of {} datagrams could not be sent to {}: {}", rejected_, datagrams_,
                     endpoint_, std::strerror(last_error_));
}

void SpeadHeaps::pace(std::size_t n_bytes) {
  if (mb_per_s_ <= 0) return;
  constexpr std::chrono::milliseconds kShort(1);  // not worth a sleep
  const auto now = Clock::now();
  if (next_ > now + kShort) std::this_thread::sleep_until(next_);
  next_ = std::max(next_, now - kShort) + std::chrono::nanoseconds(static_cast<std::int64_t>(
                                              static_cast<double>(n_bytes) * 1e3 / mb_per_s_));
}

// The socket waits while its buffer is full; what a dead receiver or a network rejects is gone.
void SpeadHeaps::send_datagram(std::size_t n_bytes) {
  pace(n_bytes);
  ++datagrams_;
  constexpr int kTries = 3;  // one may report an earlier datagram that nobody took
  for (int k = 0; k < kTries; ++k) {
    if (::send(socket_.get(), datagram_.data(), n_bytes, MSG_NOSIGNAL) >= 0) return;
    if (errno != EINTR && errno != ECONNREFUSED) break;
  }
  last_error_ = errno;
  ++rejected_;
}

void SpeadHeaps::start(std::span<const Item> items) {
  packet_ = {};
  packet_.heap_counter = ++counter_;
  heap_.clear();
  for (const Item& item : items) {
    packet_.items[packet_.n_items++] = {item.id, item.immediate,
                                        item.immediate ? item.value : heap_.size()};
    heap_.insert(heap_.end(), item.bytes.begin(), item.bytes.end());
  }
  packet_.heap_bytes = heap_.size();
  more_ = true;
}

void SpeadHeaps::send_next() {
  const std::size_t header = wire::spead_header_bytes(packet_.n_items);
  // Payloads are whole numbers of eight bytes, so that samples are not cut.
  const std::size_t room = (static_cast<std::size_t>(packet_bytes_) - header) / 8 * 8;
  datagram_.resize(header + room);
  packet_.payload_bytes = std::min<std::size_t>(room, heap_.size() - packet_.offset);
  wire::write_spead_header(packet_, datagram_);
  if (packet_.payload_bytes > 0)
    std::memcpy(datagram_.data() + header, heap_.data() + packet_.offset, packet_.payload_bytes);
  send_datagram(header + packet_.payload_bytes);
  packet_.offset += packet_.payload_bytes;
  more_ = packet_.offset < heap_.size();
}

void SpeadHeaps::send(std::span<const Item> items) {
  start(items);
  while (more()) send_next();
}

void require_spead_output(const OutputConfig& config) {
  if (!config.spead.empty()) const SpeadOutput opened(config);
}

SpeadOutput::SpeadOutput(const OutputConfig& config)
    : config_(config),
      out_("output.spead =", config.spead, config.spead_packet_bytes, config.spead_mb_per_s) {}

void SpeadOutput::send_descriptors(const VisibilityDump& dump, const Observation& observation,
                                   std::int64_t n_channels) {
  const std::int64_t n_products = dump.n_baselines * dump.n_pol_products;
  const auto f8 = spead_numpy_header("<f8", "");
  const std::vector<std::vector<std::byte>> descriptors{
      wire::spead_descriptor(wire::kSpeadTimestamp, "timestamp",
                             "first sample, TAI nanoseconds since 1970-01-01",
                             spead_numpy_header("<u8", "")),
      wire::spead_descriptor(wire::kSpeadFrequency, "frequency", "first channel of the heap", ""),
      wire::spead_descriptor(
          wire::kSpeadXengRaw, "xeng_raw", "mean visibilities",
          spead_numpy_header("<f4", fmt::format("{}, {}, 2", n_channels, n_products))),
      wire::spead_descriptor(
          kCounts, "xeng_counts", "spectra behind each value, 0 = flagged",
          spead_numpy_header("<u4", fmt::format("{}, {}", n_channels, n_products))),
      wire::spead_descriptor(kIntegration, "integration_s", "nominal length", f8),
      wire::spead_descriptor(kFirstCenter, "first_center_hz", "sky frequency of channel 0", f8),
      wire::spead_descriptor(kChannelWidth, "channel_width_hz", "from channel to channel", f8),
      wire::spead_descriptor(kOrdering, "xeng_bls_ordering",
                             "antenna and polarization, twice, of each product",
                             spead_numpy_header("<i4", fmt::format("{}, 4", n_products)))};
  const auto order = product_order(dump, observation.array.n_antennas());
  std::vector<Item> items;
  for (const auto& descriptor : descriptors)
    items.push_back({wire::kSpeadDescriptor, false, 0, descriptor});
  items.push_back({kOrdering, false, 0, raw_bytes(order.data(), order.size())});
  out_.send(items);
}

void SpeadOutput::send(const VisibilityDump& dump, const Observation& observation) {
  constexpr std::chrono::seconds kAgain(10);
  const std::int64_t asked = config_.spead_channels;
  const std::int64_t n_channels = asked > 0 ? std::min(asked, dump.n_channels) : dump.n_channels;
  if (dump.n_channels % n_channels != 0)
    throw ConfigError(fmt::format("output.spead_channels = {} does not divide the {} channels",
                                  asked, dump.n_channels));
  const auto now = std::chrono::steady_clock::now();
  if (!out_.began() || now - described_ > kAgain) {
    send_descriptors(dump, observation, n_channels);
    described_ = now;
  }
  const auto start_tai_ns = static_cast<std::uint64_t>(dump.start_tai_ns);
  const double numbers[]{dump.interval_s, observation.frequency.first_center_hz,
                         observation.frequency.channel_width_hz};
  const std::int64_t row = dump.n_baselines * dump.n_pol_products;
  for (std::int64_t first = 0; first < dump.n_channels; first += n_channels) {
    const auto n = static_cast<std::size_t>(n_channels * row);
    // Eight bytes each first: what follows keeps its alignment.
    const Item items[]{
        {wire::kSpeadFrequency, true, static_cast<std::uint64_t>(first), {}},
        {wire::kSpeadTimestamp, false, 0, raw_bytes(&start_tai_ns, 1)},
        {kIntegration, false, 0, raw_bytes(&numbers[0], 1)},
        {kFirstCenter, false, 0, raw_bytes(&numbers[1], 1)},
        {kChannelWidth, false, 0, raw_bytes(&numbers[2], 1)},
        {wire::kSpeadXengRaw, false, 0, raw_bytes(dump.data.data() + first * row, n)},
        {kCounts, false, 0, raw_bytes(dump.counts.data() + first * row, n)}};
    out_.send(items);
    ++heaps_;
  }
}

}  // namespace ryle::pipeline
