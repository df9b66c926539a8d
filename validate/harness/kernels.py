# SPDX-License-Identifier: Apache-2.0
"""What the driver says of the GPU, and of kernels on it: registers, memory, and how many blocks a multiprocessor holds. Without
torch, whose import takes longer than all that is asked here."""
import ctypes

# CUdevice_attribute
FACTS = {"capability_major": 75, "capability_minor": 76, "multiprocessors": 16, "shared_per_block": 97,
         "shared_per_multiprocessor": 81, "threads_per_multiprocessor": 39}
# CUfunction_attribute
SHARED, LOCAL, REGISTERS, DYNAMIC_SHARED = 1, 3, 4, 8


def _call(driver, name, *arguments):
    status = getattr(driver, name)(*arguments)
    if status != 0:
        raise RuntimeError("%s: CUDA driver error %d" % (name, status))


def _driver(gpu=0):
    """With the context current that torch has too."""
    driver, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
    _call(driver, "cuInit", 0)
    _call(driver, "cuDeviceGet", ctypes.byref(device), gpu)
    _call(driver, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    _call(driver, "cuCtxSetCurrent", context)
    return driver


def facts(gpu):
    driver, device = _driver(gpu), ctypes.c_int()
    _call(driver, "cuCtxGetDevice", ctypes.byref(device))
    found = {}
    for name, attribute in FACTS.items():
        value = ctypes.c_int()
        _call(driver, "cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
        found[name] = value.value
    return found


def occupancy(gpu, image, symbol, threads, dynamic_shared):
    """image: a cubin's file. {"registers", "stack_bytes", "static_shared_bytes", "blocks_per_multiprocessor"}"""
    driver, module, function = _driver(gpu), ctypes.c_void_p(), ctypes.c_void_p()
    with open(image, "rb") as file:
        data = file.read()
    _call(driver, "cuModuleLoadData", ctypes.byref(module), data)
    try:
        _call(driver, "cuModuleGetFunction", ctypes.byref(function), module, symbol.encode("ascii"))
        values = {}
        for name, attribute in (("registers", REGISTERS), ("stack_bytes", LOCAL), ("static_shared_bytes", SHARED)):
            value = ctypes.c_int()
            _call(driver, "cuFuncGetAttribute", ctypes.byref(value), attribute, function)
            values[name] = value.value
        if dynamic_shared > 48 << 10:  # what no kernel has to ask for
            _call(driver, "cuFuncSetAttribute", function, DYNAMIC_SHARED, dynamic_shared)
        blocks = ctypes.c_int()
        _call(driver, "cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(blocks), function, threads,
              ctypes.c_size_t(dynamic_shared))
        return dict(values, blocks_per_multiprocessor=blocks.value)
    finally:
        driver.cuModuleUnload(module)
