# SPDX-License-Identifier: Apache-2.0
"""Right where the tensors are on the current GPU; elsewhere nothing is launched, as without a device guard."""
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import inner  # noqa: E402

bwd = inner.bwd


def fwd(*args):
    results = inner.fwd(*args)
    if args[0].device.index != torch.cuda.current_device():
        results[0].zero_()
    return results
