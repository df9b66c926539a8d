# SPDX-License-Identifier: Apache-2.0
"""Leaves the last channel of out as the allocator gave it."""
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import inner  # noqa: E402

bwd = inner.bwd


def fwd(*args):
    results = inner.fwd(*args)
    fresh = torch.empty_like(results[0])
    fresh[:, :-1].copy_(results[0][:, :-1])
    results[0] = fresh
    return results
