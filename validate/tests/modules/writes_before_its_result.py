# SPDX-License-Identifier: Apache-2.0
import ctypes
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402

fwd = right.fwd


def bwd(*args):
    results = right.bwd(*args)
    ctypes.memset(results[2].data_ptr() - 4, 0, 4)  # dA
    return results
