# SPDX-License-Identifier: Apache-2.0
"""Writes beside the memory that torch allocated. On the CPU guard.cc, preloaded, has bands around it; on the GPU gpu_guard.cc."""
import contextlib
import ctypes

from scankit_harness import gpu_guard
from scankit_harness.channel import say


class Damage(ctypes.Structure):
    _fields_ = [("address", ctypes.c_size_t), ("size", ctypes.c_size_t), ("offset", ctypes.c_ssize_t)]


def _find():
    library = ctypes.CDLL(None)
    try:
        damaged, bands = library.scankit_guard_damaged, library.scankit_guard_bands
    except AttributeError:
        return None, None
    damaged.argtypes, damaged.restype = [ctypes.POINTER(Damage)], ctypes.c_int
    bands.argtypes, bands.restype = [ctypes.c_int], None
    return damaged, bands


_damaged, _bands = _find()


@contextlib.contextmanager
def without_bands():
    """While something is timed."""
    if _bands is not None:
        _bands(0)
    try:
        yield
    finally:
        if _bands is not None:
            _bands(1)


def here():
    return _damaged is not None


def damages(limit=8):
    """Each allocation around which somebody wrote since the last call: [Damage]."""
    found = []
    while len(found) < limit:
        damage = Damage()
        on_cpu = _damaged is not None and _damaged(ctypes.byref(damage))
        if not on_cpu and not gpu_guard.next_damage(damage):
            break
        found.append(damage)
    return found


def complain(function, results, complaints):
    """Adds to `complaints` what `function` wrote beside the memory that it had. results: {address: name}."""
    for damage in damages():
        name, behind = results.get(damage.address), damage.offset - damage.size + 1
        if damage.offset >= 0:
            text = say("{} wrote past the end of {} (byte {} past the end)", function, name, behind) if name else \
                say("{} wrote past the end of memory of {} bytes (byte {} past the end)", function, damage.size, behind)
        else:
            text = say("{} wrote before the start of {} (byte {} before it)", function, name, -damage.offset) if name else \
                say("{} wrote before the start of memory of {} bytes (byte {} before it)", function, damage.size, -damage.offset)
        if text not in complaints:
            complaints.append(text)
