# SPDX-License-Identifier: Apache-2.0
"""Writes an element in front of dA, on the GPU, as an index of -1 would."""
import ctypes
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import inner  # noqa: E402

fwd = inner.fwd
driver = ctypes.CDLL("libcuda.so.1")


def bwd(*args):
    results = inner.bwd(*args)
    begin = results[2].data_ptr()  # dA
    assert driver.cuMemsetD8_v2(ctypes.c_uint64(begin - 4), ctypes.c_ubyte(0), ctypes.c_size_t(4)) == 0
    return results
