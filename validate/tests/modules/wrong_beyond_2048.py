# SPDX-License-Identifier: Apache-2.0
"""Begins anew at step 2048."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402


def fwd(*args):
    results = right.fwd(*args)
    if args[0].shape[2] > 2048:
        late = right.fwd(*[a[..., 2048:] if a is not None and a.dim() > 2 else a for a in args[:8]], args[8])
        for mine, other in list(zip(results, late))[::2]:
            mine[..., 2048:] = other
    return results


bwd = right.bwd
