# SPDX-License-Identifier: Apache-2.0
"""What NVML says of the GPU right after something was timed: clocks, why they are held back, who else computes there."""
import ctypes
import os


class Process(ctypes.Structure):  # nvmlProcessInfo_t of the functions with _v3
    _fields_ = [("pid", ctypes.c_uint), ("memory", ctypes.c_ulonglong), ("gpu", ctypes.c_uint), ("compute", ctypes.c_uint)]


class Gpu:
    """Raises OSError where there is no NVML, and RuntimeError where it does not know the GPU."""

    def __init__(self, bus_id):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.check(self.library.nvmlInit_v2(), "nvmlInit")
        self.device = ctypes.c_void_p()
        self.check(self.library.nvmlDeviceGetHandleByPciBusId_v2(bus_id, ctypes.byref(self.device)), "nvmlDevice")

    def check(self, status, what):
        if status != 0:
            raise RuntimeError("%s: NVML error %d" % (what, status))

    def number(self, function, *arguments, **kind):
        """None where this GPU or this driver does not tell."""
        value = kind.get("kind", ctypes.c_uint)(0)
        try:
            status = getattr(self.library, function)(self.device, *(arguments + (ctypes.byref(value),)))
        except AttributeError:
            return None
        return value.value if status == 0 else None

    def others(self):
        """Processes that compute on it and are not this one. In a container a process may see itself under another number,
        or not at all: then one of those seen is taken to be this one."""
        count, seen = ctypes.c_uint(64), (Process * 64)()
        try:
            status = self.library.nvmlDeviceGetComputeRunningProcesses_v3(self.device, ctypes.byref(count), seen)
        except AttributeError:
            return None
        if status != 0:
            return None
        pids = [seen[i].pid for i in range(count.value)]
        return max(0, len(pids) - 1) if os.getpid() not in pids else len([p for p in pids if p != os.getpid()])

    def read(self):
        sm = ctypes.c_uint(1)
        found = {"clock": self.number("nvmlDeviceGetClockInfo", sm),
                 "highest": self.number("nvmlDeviceGetMaxClockInfo", sm),
                 "memory_clock": self.number("nvmlDeviceGetClockInfo", ctypes.c_uint(2)),
                 "reasons": self.number("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong),
                 "temperature": self.number("nvmlDeviceGetTemperature", ctypes.c_uint(0)),
                 "power": self.number("nvmlDeviceGetPowerUsage"),
                 "mode": self.number("nvmlDeviceGetComputeMode"), "others": self.others()}
        return {name: value for name, value in found.items() if value is not None}


def open_gpu(number=0, driver="libcuda.so.1"):
    """The GPU that torch calls cuda:NUMBER, or None with why not."""
    try:
        text, device = ctypes.create_string_buffer(64), ctypes.c_int()
        cuda = ctypes.CDLL(driver)
        if cuda.cuInit(0) != 0 or cuda.cuDeviceGet(ctypes.byref(device), number) != 0 or \
                cuda.cuDeviceGetPCIBusId(text, 64, device) != 0:
            return None, "the driver does not tell which GPU this is"
        return Gpu(text.value), ""
    except (OSError, RuntimeError, AttributeError) as error:
        return None, str(error)
