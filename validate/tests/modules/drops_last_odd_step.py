# SPDX-License-Identifier: Apache-2.0
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402


def fwd(*args):
    results = right.fwd(*args)
    if args[0].shape[2] % 2 == 1 and args[0].shape[2] > 1:
        results[0][:, :, -1] = results[0][:, :, -2]
    return results


bwd = right.bwd
