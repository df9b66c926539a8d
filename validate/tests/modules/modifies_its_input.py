# SPDX-License-Identifier: Apache-2.0
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402


def fwd(*args):
    results = right.fwd(*args)
    args[1][0, 0, 0] += 1.0
    return results


bwd = right.bwd
