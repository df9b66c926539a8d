# SPDX-License-Identifier: Apache-2.0
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402

import torch  # noqa: E402

fwd = right.fwd


def bwd(*args):
    results = right.bwd(*args)
    dz = args[11]
    if dz is not None:
        # the element behind the last one
        last = dz.storage_offset() + sum((n - 1) * s for n, s in zip(dz.shape, dz.stride()))
        torch.as_strided(dz, (1,), (1,), last + 1).fill_(0.0)
    return results
