# SPDX-License-Identifier: Apache-2.0
"""Why a GPU that is there cannot be used, by the driver's own word: torch says that there is none, or one sentence for many causes."""
import ctypes
import re

from scankit_harness.channel import say

COMPUTE_MODE = 20  # CUdevice_attribute
PROHIBITED, EXCLUSIVE = 2, 3  # CUcomputemode
NO_DEVICE, BUSY = 100, 46  # CUresult


def _words(code):
    """Of a CUresult (cuda.h) that says something of the GPU's or the driver's state; None of others."""
    return {
        2: say("its memory is in use"),
        46: say("it is busy or unavailable"),
        214: say("its memory has an uncorrectable error (ECC); it must be reset"),
        219: say("its NVLink has an uncorrectable error"),
        304: say("the operating system denied access to the driver, for example to /dev/nvidia*"),
        719: say("a kernel failed on it; it may have to be reset"),
        802: say("the system is not ready; the fabric manager may not have started yet"),
        803: say("the versions of the driver's library and its kernel module differ"),
        804: say("the driver's compatibility library does not support this GPU"),
        999: say("the driver is in an error state; see dmesg for Xid"),
    }.get(code)


def number_of(device):
    """1 of "cuda:1+graph"; None of "cpu"."""
    found = re.match(r"cuda:(\d+)", device)
    return int(found.group(1)) if found else None


def count(library="libcuda.so.1"):
    """The GPUs that the driver shows to this process (CUDA_VISIBLE_DEVICES applies), without torch, whose import takes seconds."""
    number = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL(library)
        failed = driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(number)) != 0
    except (OSError, AttributeError):
        return 0
    return 0 if failed else number.value


def _mode(driver, device):
    value = ctypes.c_int(0)
    try:
        return value.value if driver.cuDeviceGetAttribute(ctypes.byref(value), COMPUTE_MODE, device) == 0 else 0
    except AttributeError:
        return 0


def shared(gpu=0, library="libcuda.so.1"):
    """False where this GPU takes one process at a time."""
    try:
        driver, device = ctypes.CDLL(library), ctypes.c_int(0)
        return driver.cuInit(0) != 0 or driver.cuDeviceGet(ctypes.byref(device), gpu) != 0 or \
            _mode(driver, device) != EXCLUSIVE
    except (OSError, AttributeError):
        return True


def why(gpu=0, library="libcuda.so.1"):
    """"" where there is no driver, no GPU, or nothing is wrong with this one."""
    try:
        driver = ctypes.CDLL(library)
        status = driver.cuInit(0)
    except (OSError, AttributeError):
        return ""
    device, context = ctypes.c_int(0), ctypes.c_void_p()
    if status == 0:
        status = driver.cuDeviceGet(ctypes.byref(device), gpu)
        if status == 0 and _mode(driver, device) == PROHIBITED:
            return say("its compute mode is prohibited (nvidia-smi -c 0 permits it)")
        if status == 0:
            status = driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
            if status == 0:
                driver.cuDevicePrimaryCtxRelease_v2(device)
    if status in (0, NO_DEVICE, 101):
        return ""
    if status == BUSY and _mode(driver, device) == EXCLUSIVE:
        return say("its compute mode is exclusive, and another process uses it")
    words = _words(status)
    return say("{} (CUDA driver error {})", words, status) if words else say("CUDA driver error {}", status)
