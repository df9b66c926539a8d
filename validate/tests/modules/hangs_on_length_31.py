# SPDX-License-Identifier: Apache-2.0
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402

import time  # noqa: E402

bwd = right.bwd


def fwd(*args):
    if args[0].shape[2] == 31:
        time.sleep(1000)
    return right.fwd(*args)
