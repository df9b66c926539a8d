# SPDX-License-Identifier: Apache-2.0
"""Writes a byte behind out, on the GPU, as a loop up to `<= length` would."""
import ctypes
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import inner  # noqa: E402

bwd = inner.bwd
driver = ctypes.CDLL("libcuda.so.1")


def fwd(*args):
    results = inner.fwd(*args)
    out = results[0]
    end = out.data_ptr() + out.numel() * out.element_size()
    assert driver.cuMemsetD8_v2(ctypes.c_uint64(end), ctypes.c_ubyte(0), ctypes.c_size_t(1)) == 0
    return results
