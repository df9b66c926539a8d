# SPDX-License-Identifier: Apache-2.0
"""Adds noise of the size of a rounding: what atomics do."""
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import inner  # noqa: E402

bwd = inner.bwd


def fwd(*args):
    results = inner.fwd(*args)
    results[0] *= 1.0 + 0.02 * torch.rand_like(results[0].float()).to(results[0].dtype)
    return results
