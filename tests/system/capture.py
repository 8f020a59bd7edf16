# SPDX-License-Identifier: BSD-3-Clause
"""Captures of packets, written by the definition of PCAP and PCAPNG."""

import select
import socket
import struct
import threading
import time


def ethernet(payload, source, target):
    """A frame of one UDP datagram between two (address, port)."""
    udp = struct.pack(">HHHH", source[1], target[1], 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0x4000, 64, 17, 0, socket.inet_aton(source[0]),
                     socket.inet_aton(target[0]))
    return bytes(12) + b"\x08\x00" + ip + udp


def write_pcap(path, packets):
    """packets: (unix_ns, frame)."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1))
        for at, frame in packets:
            file.write(struct.pack("<IIII", at // 10**9, at % 10**9, len(frame), len(frame)) + frame)


def write_pcapng(path, packets):
    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))

    with open(path, "wb") as file:
        file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
        file.write(block(1, struct.pack("<HHI", 1, 0, 1 << 18) + struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)))
        for at, frame in packets:
            file.write(block(6, struct.pack("<IIIII", 0, at >> 32, at & 0xFFFFFFFF, len(frame), len(frame)) + frame))


class Recorder:
    """Receives datagrams on ports of `host`, passes each on to the same port of `target` and keeps it as a frame."""

    def __init__(self, host, target, ports):
        self.packets, self._target, self._ending = [], target, False
        self._out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._out.bind((host, 0))
        self._sockets = {}
        for port in ports:
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 26)
            receiver.bind((host, port))
            self._sockets[receiver] = port
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while True:
            ready, _, _ = select.select(list(self._sockets), [], [], 0.3)
            if not ready and self._ending:
                return
            for receiver in ready:
                payload, source = receiver.recvfrom(65535)
                to = (self._target, self._sockets[receiver])
                self._out.sendto(payload, to)
                # One sender for all, as the run that they are passed on to sees them.
                self.packets.append((time.time_ns(), ethernet(payload, self._out.getsockname(), to)))

    def stop(self):
        """When nothing has come for a while."""
        self._ending = True
        self._thread.join()
        for receiver in [*self._sockets, self._out]:
            receiver.close()
        return self.packets
