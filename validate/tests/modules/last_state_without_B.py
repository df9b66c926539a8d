# SPDX-License-Identifier: Apache-2.0
"""What upstream's build does where B is constant: B is folded into C, and x holds h / B."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402


def fwd(*args):
    results = right.fwd(*args)
    if args[3].dim() == 2:
        results[1][:, :, -1, 1::2] /= args[3]
    return results


bwd = right.bwd
