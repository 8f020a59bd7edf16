# SPDX-License-Identifier: BSD-3-Clause
"""Arrays on their way into the library: looked at, never copied or converted in silence."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._errors import DeviceError

Array = npt.NDArray[Any]

#: Complex integers as structured elements: fields ``re`` and ``im``.
complex_int8 = np.dtype([("re", np.int8), ("im", np.int8)])
complex_int16 = np.dtype([("re", np.int16), ("im", np.int16)])

_HOST = {1, 3, 11}  # kDLCPU, kDLCUDAHost, kDLROCMHost
_DEVICES = {2: "CUDA", 13: "CUDA (managed)", 10: "ROCm", 8: "Metal", 14: "oneAPI"}


def as_numpy(x: Any, name: str) -> Array:
    """The array itself, or a view of another library's array that lies in host memory."""
    if isinstance(x, np.ndarray):
        if isinstance(x, np.ma.MaskedArray):
            raise TypeError(f"{name} is a masked array, whose mask nothing here reads; give {name}.data with valid=~mask (of grid "
                            f"flags=mask), or {name}.filled(numpy.nan) where NaN is absent")
        return x
    if hasattr(x, "__dlpack_device__"):
        kind, number = (int(part) for part in x.__dlpack_device__())
        if kind not in _HOST:
            raise _elsewhere(name, f"{_DEVICES.get(kind, 'a')} device {number}")
        if not hasattr(x, "__dlpack__"):
            raise TypeError(f"{name} is a {type(x).__name__} without __dlpack__; call numpy.asarray({name})")
        return np.from_dlpack(x)
    if hasattr(x, "__cuda_array_interface__"):
        raise _elsewhere(name, "a CUDA device")
    raise TypeError(f"{name} is a {type(x).__name__}, not an array; call numpy.asarray({name})")


def _elsewhere(name: str, device: str) -> DeviceError:
    return DeviceError(f"{name} lies on {device}, and functions on arrays work on the CPU; call {name}.cpu() (Torch), {name}.get() (CuPy) or "
                       f"numpy.asarray({name}) (JAX). Whole observations use GPUs: ryle.Observation with runtime.device = \"cuda:0\"")


def dense(x: Any, name: str, dtype: npt.DTypeLike, ndim: int, axes: str) -> Array:
    """A C-contiguous array of one type, or an error that names the call which makes one."""
    array = typed(x, name, dtype, ndim, axes)
    if not array.flags.c_contiguous:
        raise TypeError(f"{name} is not C-contiguous; call numpy.ascontiguousarray({name})")
    return array


def typed(x: Any, name: str, dtype: npt.DTypeLike, ndim: int, axes: str) -> Array:
    """The same, of any strides."""
    array, wanted = as_numpy(x, name), np.dtype(dtype)
    if array.dtype != wanted:
        raise TypeError(f"{name} is {array.dtype}, {wanted} is needed; {_conversion(array, name, wanted)}")
    require_axes(array, name, ndim, axes)
    return array


def _conversion(array: Array, name: str, wanted: np.dtype[Any]) -> str:
    """The call that converts, and the range that it would wrap at."""
    call = f"call {name}.astype(numpy.{'bool_' if wanted.kind == 'b' else wanted.name})"
    if wanted.kind not in "iu" or np.can_cast(array.dtype, wanted):
        return call
    limits = np.iinfo(wanted)
    return f"bring it into {limits.min} .. {limits.max} (other values wrap), then {call}"


def require_axes(array: Array, name: str, ndim: int, axes: str) -> None:
    if array.ndim != ndim:
        raise ValueError(f"{name} has {array.ndim} axes {array.shape}; {ndim} are needed: {axes}")


def require_length(array: Array, axis: int, n: int, name: str, what: str) -> None:
    if array.shape[axis] != n:
        raise ValueError(f"{name} has {array.shape[axis]} {what} on axis {axis}, {n} are needed")


def samples(x: Any, name: str, ndim: int, axes: str, real: bool) -> tuple[Array, str]:
    """A view of samples with parts of complex integers on a last axis of 2, and the name of their format.

    Formats: complex64 is cf32; int8 and int16 with a last axis (re, im), or `complex_int8` and `complex_int16`, are ci8 and
    ci16; uint8 is ci4, a byte a sample with the real part in its high half. With `real` also int8, int16 and float32 without
    such an axis.
    """
    array = as_numpy(x, name)
    if array.dtype.kind in "iufc" and not array.dtype.isnative:
        raise TypeError(f"{name} is {array.dtype}, of the other byte order; call {name}.astype(numpy.{array.dtype.name})")
    found: str | None = None
    for dtype, format_name in ((complex_int8, "ci8"), (complex_int16, "ci16")):
        if array.dtype == dtype:
            require_axes(array, name, ndim, axes)
            part = array["re"]
            array = np.lib.stride_tricks.as_strided(part, part.shape + (2,), part.strides + (part.itemsize,), writeable=False)
            found = format_name
    if found is None and array.ndim == ndim + 1 and array.shape[-1] == 2:
        found = {"int8": "ci8", "int16": "ci16"}.get(array.dtype.name)
    if found is None:
        known = {"complex64": "cf32", "uint8": "ci4"}
        if real:
            known |= {"int8": "i8", "int16": "i16", "float32": "f32"}
        type_name = array.dtype.name
        if type_name not in known:
            hint = "complex64" if array.dtype.kind == "c" else "float32" if real and array.dtype.kind in "iuf" else "int8"
            if type_name in ("int8", "int16"):
                require_axes(array, name, ndim + 1, axes + ", (re, im)")
            if hint == "int8" and not real:
                raise TypeError(f"{name} is {array.dtype} {array.shape}; complex samples are needed: complex64, or int8 or int16 "
                                f"with a last axis (re, im); call ryle.complex_codes({name}, numpy.int8)")
            raise TypeError(f"{name} is {array.dtype}; call {name}.astype(numpy.{hint})")
        require_axes(array, name, ndim, axes)
        found = known[type_name]
    if found in ("ci8", "ci16"):
        require_axes(array, name, ndim + 1, axes + ", (re, im)")
        if array.strides[-1] != array.itemsize:
            raise TypeError(f"{name}: real and imaginary parts do not lie side by side; call numpy.ascontiguousarray({name})")
    if array.size == 0:
        raise ValueError(f"{name} is empty: {array.shape}")
    if any(stride <= 0 < extent - 1 for stride, extent in zip(array.strides, array.shape)):
        raise TypeError(f"{name} is reversed or broadcast; call numpy.ascontiguousarray({name})")
    return array, found


def without_nan(array: Array) -> Array | None:
    """Where all parts of samples are finite; None where they all are. @shape as the array"""
    if array.dtype.kind not in "fc":
        return None
    with np.errstate(all="ignore"):
        if np.isfinite(array.sum()):
            return None
    finite = np.isfinite(array)
    return None if finite.all() else finite


def mask(x: Any, name: str, ndim: int, axes: str) -> Array:
    return dense(x, name, np.bool_, ndim, axes)


def absent_spans(valid: Array, first: int) -> list[tuple[int, int, int]]:
    """(input, begin, end) of every run of False. @shape valid [input, time]"""
    spans: list[tuple[int, int, int]] = []
    for row in np.flatnonzero(~valid.all(axis=1)):
        edges = np.diff(np.concatenate(([0], (~valid[row]).astype(np.int8), [0])))
        for begin, end in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)):
            spans.append((int(row), int(begin) + first, int(end) + first))
    return spans


def to_complex(x: Any) -> Array:
    """Complex integers as complex64.

    Parameters
    ----------
    x : array
        `complex_int8` or `complex_int16`, or int8 or int16 with a last axis (re, im), or uint8 (4 + 4 bits).

    Returns
    -------
    array of complex64, without the axis of parts

    Examples
    --------
    >>> import numpy as np, ryle
    >>> ryle.to_complex(np.array([[1, -2], [3, 4]], np.int8))
    array([1.-2.j, 3.+4.j], dtype=complex64)
    """
    array = as_numpy(x, "x")
    if array.dtype.kind == "c":
        return array.astype(np.complex64, copy=False)
    if array.dtype in (complex_int8, complex_int16):
        real, imaginary = array["re"], array["im"]
    elif array.dtype == np.uint8:
        codes = array.view(np.int8)
        real, imaginary = codes >> 4, (codes << 4).astype(np.int8) >> 4
    elif array.dtype in (np.int8, np.int16) and array.ndim > 0 and array.shape[-1] == 2:
        real, imaginary = array[..., 0], array[..., 1]
    else:
        raise TypeError(f"x is {array.dtype} {array.shape}: no complex integers")
    values = np.empty(real.shape, np.complex64)
    values.real, values.imag = real, imaginary
    return values


def complex_codes(x: Any, dtype: npt.DTypeLike) -> Array:
    """Complex values as codes of a type, rounded to the nearest even one; what does not fit is an error.

    Parameters
    ----------
    x : array of complex64 or complex128
    dtype : numpy.int8 or numpy.int16

    Returns
    -------
    array [..., 2] of the type: real and imaginary parts

    Examples
    --------
    >>> import numpy as np, ryle
    >>> ryle.complex_codes(np.array([1.4 - 2j]), np.int8)
    array([[ 1, -2]], dtype=int8)
    """
    array, wanted = as_numpy(x, "x"), np.dtype(dtype)
    if wanted.name not in ("int8", "int16"):
        raise TypeError(f"dtype is {wanted}; int8 or int16 is needed")
    parts = np.rint(np.stack((array.real, array.imag), axis=-1))
    limits = np.iinfo(wanted)
    if not ((parts >= limits.min) & (parts <= limits.max)).all():
        raise ValueError(f"x has parts beyond {limits.min} .. {limits.max}, the range of {wanted}; scale it first")
    codes: Array = parts.astype(wanted)
    return codes
