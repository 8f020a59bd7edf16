# SPDX-License-Identifier: BSD-3-Clause
"""Frames of VDIF and CODIF and streams of DADA and GUPPI RAW, written by the definitions of the formats."""

import datetime
import struct

import numpy as np

START = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.timezone.utc)
# 2026-01-01, half-year 52; no leap second since.
EPOCH, SECOND = 52, int((START - datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)).total_seconds())


def words(codes, bits, complex_):
    """Codes of elementary samples in words of 32 bits, the first in the lowest bits, pairs of complex samples whole in a word."""
    of_word = 32 // ((2 if complex_ else 1) * bits) * (2 if complex_ else 1)
    rows = codes.astype(np.uint64).reshape(-1, of_word)
    return (rows << (np.arange(of_word, dtype=np.uint64) * np.uint64(bits))).sum(axis=1).astype("<u4").tobytes()


def vdif_header(frame_bytes, bits, complex_, thread, frame, station=0x4566, epoch=EPOCH, second=SECOND, invalid=False, channels=1):
    return struct.pack("<8I", second | invalid << 31, epoch << 24 | frame, (channels.bit_length() - 1) << 24 | frame_bytes // 8,
                       complex_ << 31 | (bits - 1) << 26 | thread << 16 | station, 0, 0, 0, 0)


def vdif_frames(codes, bits, complex_, per_frame, threads, stations=(0x4566,), **more):
    """Frames in order of time of codes [input][time][channel][part]; inputs are threads of stations (real: x channels)."""
    n_inputs, n_times, n_channels, _ = codes.shape
    boards = [(s, t) for s in stations for t in threads]
    if not complex_:  # channels of a frame are inputs
        n_channels = n_inputs // len(boards)
        codes = codes.reshape(len(boards), n_channels, n_times).transpose(0, 2, 1)[..., None]
    frames = []
    for k in range(n_times // per_frame):
        for board, (station, thread) in enumerate(boards):
            payload = words(codes[board, k * per_frame:(k + 1) * per_frame].ravel(), bits, complex_)
            frames.append(vdif_header(32 + len(payload), bits, complex_, thread, k, station, channels=n_channels, **more) + payload)
    return frames


def codif_frames(samples, per_frame, threads, per_period, period_s, station=0x4566):
    """16-bit two's complement of samples [thread][time][channel][re, im] in order of time."""
    _, n_times, n_channels, _ = samples.shape
    frames = []
    for k in range(n_times // per_frame):
        for i, thread in enumerate(threads):
            payload = samples[i, k * per_frame:(k + 1) * per_frame].astype("<i2").tobytes()
            frames.append(struct.pack("<II BBBBHH HHHH HHI QI20x", k, SECOND // period_s * period_s, EPOCH, 16, 0x14, 0, 0, period_s, thread, 0, 0,
                                      station, n_channels, 0, len(payload) // 8, per_period, 0xFEEDCAFE) + payload)
    return frames


def dada(samples, frequency_mhz, rate_hz, **more):
    """Header and data of int8 samples [time][channel][polarization][part]."""
    _, n_channels, n_pols, n_dims = samples.shape
    fields = {"HDR_SIZE": 4096, "NCHAN": n_channels, "NPOL": n_pols, "NDIM": n_dims, "NBIT": 8, "FREQ": frequency_mhz,
              "BW": rate_hz * n_channels / (2 if n_dims == 1 else 1) * 1e-6, "UTC_START": START.strftime("%Y-%m-%d-%H:%M:%S"),
              "OBS_OFFSET": 0, **more}
    return "".join(f"{key} {value}\n" for key, value in fields.items()).encode().ljust(4096, b"\0") + samples.tobytes()


def guppi(samples, block, overlap, frequency_mhz, width_mhz, lost=()):
    """Blocks of int8 samples [antenna][channel][time][polarization][part]; those in `lost` are left out."""
    antennas, n_channels, n_times, n_pols, _ = samples.shape
    midnight = START.replace(hour=0)
    out, step = b"", block - overlap
    for k in range((n_times - overlap) // step):
        if k in lost:
            continue
        data = np.ascontiguousarray(samples[:, :, k * step:k * step + block]).tobytes()
        time_bytes = antennas * n_channels * n_pols * 2
        cards = {"NANTS": antennas, "OBSNCHAN": antennas * n_channels, "NPOL": 4 if n_pols == 2 else 1, "NBITS": 8, "BLOCSIZE": len(data),
                 "OVERLAP": overlap, "OBSFREQ": frequency_mhz, "OBSBW": width_mhz, "TBIN": n_channels / (abs(width_mhz) * 1e6),
                 "STT_IMJD": 61100, "STT_SMJD": int((START - midnight).total_seconds()), "STT_OFFS": 0, "PKTIDX": k * step,
                 "PKTSIZE": time_bytes, "DIRECTIO": 1}
        text = b"".join(f"{key:8}= {value!r:>20}".ljust(80).encode() for key, value in cards.items()) + b"END".ljust(80)
        out += text.ljust(-(-len(text) // 512) * 512, b" ") + data
    return out
