# SPDX-License-Identifier: Apache-2.0
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402

fwd = right.fwd


def bwd(*args):
    results = right.bwd(*args)
    results[2] *= 1.001
    return results
