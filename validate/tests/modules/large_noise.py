# SPDX-License-Identifier: Apache-2.0
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import right  # noqa: E402

import torch  # noqa: E402


def fwd(*args):
    results = right.fwd(*args)
    results[0] += 0.02 * torch.randn_like(results[0]) * results[0].float().std(unbiased=False).to(results[0].dtype)
    return results


bwd = right.bwd
