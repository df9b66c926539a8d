# SPDX-License-Identifier: Apache-2.0
"""Reads a NaN as 0."""
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import inner  # noqa: E402

bwd = inner.bwd


def fwd(*args):
    return inner.fwd(*[a.nan_to_num(0.0) if torch.is_tensor(a) else a for a in args])
