# SPDX-License-Identifier: Apache-2.0
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402

import torch  # noqa: E402


def fwd(*args):
    results = right.fwd(*args)
    if results[0].dtype == torch.float32:
        results[0] *= 1.0 + 1e-6 * torch.rand_like(results[0])
    return results


bwd = right.bwd
