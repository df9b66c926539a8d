# SPDX-License-Identifier: Apache-2.0
"""Writes beside the memory that torch allocated on the GPU: torch's allocator is exchanged for guard/gpu_guard.cc, before its
first allocation and for the whole process. `start` does it; without it the rest of this file finds nothing."""
import ctypes

from scankit_harness.channel import say

_library = None


class Trouble(ctypes.Structure):
    _fields_ = [("refused", ctypes.c_size_t), ("unknown_frees", ctypes.c_size_t), ("status", ctypes.c_int64)]


def open_library(path, damage):
    """The library and what the driver lacks for it, or None where it lacks nothing."""
    library, missing = ctypes.CDLL(path), ctypes.c_char_p()
    library.scankit_gpu_guard_start.argtypes = [ctypes.POINTER(ctypes.c_char_p)]
    library.scankit_gpu_allocate.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    library.scankit_gpu_allocate.restype = ctypes.c_void_p
    library.scankit_gpu_free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    library.scankit_gpu_free.restype = None
    library.scankit_gpu_guard_damaged.argtypes = [ctypes.POINTER(damage)]
    library.scankit_gpu_guard_trouble.restype = Trouble
    ready = library.scankit_gpu_guard_start(ctypes.byref(missing))
    return library, None if ready else missing.value.decode("ascii")


def start(path, torch, damage):
    """"" or why there can be no bands around what lies on the GPU."""
    global _library
    memory = getattr(torch.cuda, "memory", None)
    if not hasattr(memory, "CUDAPluggableAllocator") or not hasattr(memory, "change_current_allocator"):
        return say("this torch does not support a custom allocator (torch 2.0 or newer does)")
    try:
        library, missing = open_library(path, damage)
        if missing is not None:
            return say("the driver lacks {}", missing)
        memory.change_current_allocator(memory.CUDAPluggableAllocator(path, "scankit_gpu_allocate", "scankit_gpu_free"))
    except Exception as error:  # of the loader, and of a torch that has its allocator already
        return str(error).replace("\n", " ")[:300]
    _library = library
    return ""


def active():
    return _library is not None


def next_damage(damage):
    """True where *damage was filled in."""
    return _library is not None and _library.scankit_gpu_guard_damaged(ctypes.byref(damage)) != 0


def trouble():
    """What the allocator could not do since the last call, in words: [text]."""
    if _library is None:
        return []
    seen, words = _library.scankit_gpu_guard_trouble(), []
    if seen.refused:
        words.append(say("out of GPU memory: an allocation of {} bytes failed", seen.refused))
    if seen.unknown_frees:
        words.append(say("unallocated GPU memory was freed ({} times)", seen.unknown_frees))
    return words
