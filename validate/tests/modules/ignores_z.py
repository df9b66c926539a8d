# SPDX-License-Identifier: Apache-2.0
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402


def fwd(*args):
    results = right.fwd(*args)
    return results[:2] + [results[0].clone()] if args[6] is not None else results


bwd = right.bwd
