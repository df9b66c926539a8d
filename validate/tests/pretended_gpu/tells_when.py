# SPDX-License-Identifier: Apache-2.0
"""A right module that writes into $SCANKIT_TOLD, in order, who called it: a child with bands, or one that times."""
import os
import sys
import time

from scankit_harness import gpu_guard

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "modules"))
import right  # noqa: E402

bwd = right.bwd
TIMED_LENGTH = 77  # as in pretended_gpu_test.cc


def tell(what):
    with open(os.environ["SCANKIT_TOLD"], "a", encoding="utf-8") as file:
        file.write(what + "\n")


def fwd(*args):
    got = right.fwd(*args)
    if gpu_guard.active():
        time.sleep(0.1)
        tell("bands")
    elif args[0].shape[2] == TIMED_LENGTH:
        tell("timed")
    return got
