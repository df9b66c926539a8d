# SPDX-License-Identifier: Apache-2.0
import ctypes
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402

bwd = right.bwd


def fwd(*args):
    results = right.fwd(*args)
    out = results[0]
    ctypes.memset(out.data_ptr() + out.numel() * out.element_size(), 0, 1)  # as a loop up to `<= length` would
    return results
