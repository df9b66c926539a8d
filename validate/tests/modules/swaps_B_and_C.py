# SPDX-License-Identifier: Apache-2.0
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402


def swapped(args):
    return args[:3] + (args[4], args[3]) + args[5:]


def fwd(*args):
    return right.fwd(*swapped(args))


def bwd(*args):
    results = right.bwd(*swapped(args))
    results[3], results[4] = results[4], results[3]
    return results
