# SPDX-License-Identifier: Apache-2.0
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402

fwd = right.fwd


def bwd(*args):
    return right.bwd(*(args[:11] + (None,) + args[12:]))
