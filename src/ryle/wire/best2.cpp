// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/wire/best2.hpp"

namespace ryle::wire {

PacketDescription best2_packet() {
  PacketDescription packet;
  packet.length = 4104;
  HeaderField counter;
  counter.meaning = FieldMeaning::sequence;
  counter.low_bit = 26;
  counter.n_bits = 38;
  HeaderField channel;
  channel.meaning = FieldMeaning::first_channel;
  channel.low_bit = 16;
  channel.n_bits = 10;
  channel.count = 1024;
  channel.interleave = 2;
  packet.header = {counter, channel};
  packet.ticks_per_count = 128;
  packet.payload_offset = 8;
  packet.order = {{Axis::input, 16}, {Axis::time, 128}, {Axis::input, 2}};
  packet.sample.bits = 4;
  return packet;
}

}  // namespace ryle::wire
