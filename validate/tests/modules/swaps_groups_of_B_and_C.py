# SPDX-License-Identifier: Apache-2.0
"""Reads the groups of B and C in another order."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402


def swapped(args):
    return args[:3] + tuple(p.flip(1) if p.dim() == 4 else p for p in args[3:5]) + args[5:]


def fwd(*args):
    return right.fwd(*swapped(args))


def bwd(*args):
    results = right.bwd(*swapped(args))
    results[3:5] = [g.flip(1) if g.dim() == 4 else g for g in results[3:5]]
    return results
