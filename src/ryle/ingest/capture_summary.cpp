// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/capture_summary.hpp"

#include <algorithm>

#include "ryle/ingest/sender_list.hpp"
#include "ryle/wire/best2.hpp"
#include "ryle/wire/bytes.hpp"
#include "ryle/wire/chips.hpp"
#include "ryle/wire/lwa.hpp"
#include "ryle/wire/mwa32t.hpp"
#include "ryle/wire/vdif.hpp"

namespace ryle {

std::string packet_format(std::span<const std::byte> datagram) {
  using wire::Reject;
  wire::Packet ignored;
  wire::Mwa32tGeometry mwa32t;
  mwa32t.n_receivers = 255;
  mwa32t.n_instants = 0;  // any
  if (wire::decode(mwa32t, datagram, ignored) == Reject::none) return "mwa32t";
  if (datagram.size() >= 8 && wire::load_be<std::uint16_t>(datagram.data()) == 0x5304)
    return "spead";
  switch (wire::identify_lwa_frame(datagram).kind) {
    case wire::LwaKind::tbf:
      return "tbf";
    case wire::LwaKind::tbx:
      return "tbx";
    case wire::LwaKind::tbn:
      return "tbn";
    case wire::LwaKind::tbw:
      return "tbw";
    case wire::LwaKind::cor:
      return "cor";
    case wire::LwaKind::drx:
      return "drx";
    case wire::LwaKind::none:
      break;
  }
  static const wire::DescribedCodec best2(wire::best2_packet(), {});
  if (best2.decode(datagram, ignored) == Reject::none) return "best2";
  wire::VdifHeader vdif;
  if (wire::parse_vdif_header(datagram, vdif) == Reject::none &&
      vdif.frame_bytes == datagram.size() && vdif.samples_per_frame > 0)
    return "vdif";
  if (wire::decode(wire::ChipsGeometry{255, 0}, datagram, ignored) == Reject::none) return "chips";
  return "";
}

CaptureSummary summarize_capture(const std::string& path) {
  CaptureReader reader(path);
  std::map<std::string, CaptureStream> streams;
  CapturedDatagram datagram;
  while (reader.next(datagram)) {
    const std::string to = to_string(sender_address(&datagram.to));
    CaptureStream& stream = streams[to];
    if (stream.datagrams == 0) stream.first_ns = datagram.unix_ns;
    stream.to = to;
    stream.last_ns = datagram.unix_ns;
    ++stream.senders[to_string(sender_address(&datagram.from))];
    ++stream.lengths[datagram.payload.size()];
    ++stream.datagrams;
    stream.bytes += datagram.payload.size();
    if (stream.format.empty()) stream.format = packet_format(datagram.payload);
  }
  CaptureSummary summary;
  summary.link = reader.link();
  summary.first_ns = reader.first_ns();
  summary.last_ns = reader.last_ns();
  summary.counts = reader.counts();
  summary.ends_within_record = reader.ends_within_record();
  for (auto& [to, stream] : streams) summary.streams.push_back(std::move(stream));
  std::ranges::stable_sort(summary.streams, [](const CaptureStream& a, const CaptureStream& b) {
    return a.bytes > b.bytes;
  });
  return summary;
}

}  // namespace ryle
