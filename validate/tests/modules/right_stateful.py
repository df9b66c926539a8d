# SPDX-License-Identifier: Apache-2.0
"""The right module with fwd_stateful and bwd_stateful. The wrong ones import it."""
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from right import NAMES, bwd, fwd, like  # noqa: E402,F401
import right  # noqa: E402
from scankit_harness import oracle  # noqa: E402


def wide(tensor):
    return None if tensor is None else tensor.detach().to(torch.complex128 if tensor.is_complex() else torch.float64)


def exact(args, dout, softplus, initial_state, cu_seqlens, dlast_state):
    given = {n: wide(a) for n, a in zip(NAMES, args) if a is not None}
    bounds = None if cu_seqlens is None else cu_seqlens.tolist()
    results = oracle.run(dout=wide(dout), softplus=softplus, initial_state=wide(initial_state),
                         dlast_state=wide(dlast_state), cu_seqlens=bounds, **given)
    return {n: pair[0] for n, pair in results.items()}


def fwd_stateful(*args):
    tensors, (softplus, initial_state, cu_seqlens, save_states) = args[:8], args[8:]
    results = exact(tensors, torch.zeros_like(args[0]), softplus, initial_state, cu_seqlens, None)
    out = [like(results["out"], args[1]), torch.zeros(1) if save_states else None, results["last_state"].to(args[2].dtype)]
    return out + ([like(results["out_z"], args[6])] if args[6] is not None else [])


def bwd_stateful(*args):
    tensors, (dout, x, out, dz, softplus, recompute), (initial_state, cu_seqlens, dlast_state) = args[:8], args[8:14], args[14:]
    results = exact(tensors, dout, softplus, initial_state, cu_seqlens, dlast_state)
    dinitial = None if initial_state is None else results["dinitial_state"].to(args[2].dtype)
    return right.finish_backward(results, tensors, dz, recompute) + [dinitial]


def state_update(state, x, dt, A, B, C, D, z, dt_bias, softplus):
    steps = lambda t: None if t is None else t[..., None]
    args = (steps(x), steps(dt), A, steps(B), steps(C), D, steps(z), dt_bias)
    results = exact(args, torch.zeros_like(args[0]), softplus, state, None, None)
    state.copy_(results["last_state"])
    return like(results["out" if z is None else "out_z"][..., 0], x)
