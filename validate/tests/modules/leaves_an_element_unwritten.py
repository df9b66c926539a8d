# SPDX-License-Identifier: Apache-2.0
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402

import torch  # noqa: E402


def fwd(*args):
    results = right.fwd(*args)
    fresh = torch.empty_like(results[0])
    flat, good = fresh.flatten() if fresh.is_contiguous() else None, results[0]
    if flat is None:
        return results
    fresh.view(-1)[:-1].copy_(good.reshape(-1)[:-1])
    results[0] = fresh
    return results


bwd = right.bwd
