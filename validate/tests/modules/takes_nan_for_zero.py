# SPDX-License-Identifier: Apache-2.0
"""Reads a NaN as 0."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402


def cleaned(args):
    return tuple(a.nan_to_num(0.0) if hasattr(a, "nan_to_num") else a for a in args)


def fwd(*args):
    return right.fwd(*cleaned(args))


def bwd(*args):
    return right.bwd(*(cleaned(args[:9]) + args[9:]))
