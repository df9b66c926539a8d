# SPDX-License-Identifier: Apache-2.0
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402

import ctypes  # noqa: E402

fwd = right.fwd


def bwd(*args):
    if args[3].shape[1] > 1:
        ctypes.string_at(0)
    return right.bwd(*args)
