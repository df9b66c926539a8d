# SPDX-License-Identifier: Apache-2.0
"""Random calls with an initial state, packed sequences and a gradient of the last state, and the oracle's answers."""
import torch

import module_test
from module_test import make_call
from oracle_case import Case

LENGTHS = [0, 0, 1, 2, 31, 32, 33, 64, 65, 100]


def make_stateful(seed, packed, **fixed):
    """A random case with an initial state and a gradient of the last one, each perhaps None."""
    sequences = None
    if packed:
        rng = module_test.random.Random(seed)
        sequences = fixed.pop("lengths", None) or [rng.choice(LENGTHS) for _ in range(rng.choice([1, 2, 3, 6]))]
        fixed.update(batch=1, length=sum(sequences))
    tensors, softplus, dout, rng = make_call(seed, **fixed)
    A = tensors["A"]
    shape = (len(sequences) if packed else tensors["u"].shape[0], *A.shape)
    bounds = [sum(sequences[:s]) for s in range(len(sequences) + 1)] if packed else None

    def state(name):
        if not fixed.get(name, rng.random() < 0.7):
            return None
        wide = torch.randn(shape[0], 2 * shape[1], shape[2]).to(module_test.DEVICE)
        wide = torch.complex(wide, wide.flip(0)) if A.is_complex() else wide
        return wide[:, ::2] if rng.random() < 0.5 else wide.chunk(2, 1)[1].contiguous()

    return Case(tensors, softplus, dout, state("initial_state"), bounds, state("dlast")), dout, rng


def cu_seqlens(case):
    return None if case.bounds is None else torch.tensor(case.bounds, dtype=torch.int32, device=module_test.DEVICE)
