# SPDX-License-Identifier: Apache-2.0
"""A right module with upstream's contract, made from the harness's own fp64 oracle. The wrong ones import it."""
import torch

from scankit_harness import oracle

NAMES = ("u", "delta", "A", "B", "C", "D", "z", "delta_bias")


def exact(args, dout, softplus):
    given = {n: a.detach().cpu().to(torch.complex128 if a.is_complex() else torch.float64)
             for n, a in zip(NAMES, args) if a is not None}
    return {n: pair[0] for n, pair in oracle.run(dout=dout.cpu().double(), softplus=softplus, **given).items()}


def like(value, template):
    """Rounded once, with the dtype, device and layout that upstream gives it."""
    return torch.empty_like(template).copy_(value)


def saved_states(last_state, length):
    """Upstream's x: one entry for 2048 steps, the state at the odd places."""
    batch, dim, states = last_state.shape
    wide = torch.complex64 if last_state.is_complex() else torch.float32
    x = torch.ones(batch, dim, (length + 2047) // 2048, 2 * states, dtype=wide)
    x[:, :, -1, 1::2] = last_state
    return x


def finish_forward(results, args):
    u, delta, z = args[0], args[1], args[6]
    out = [like(results["out"], delta), saved_states(results["last_state"], u.shape[2]).to(u.device)]
    return out + ([like(results["out_z"], z)] if z is not None else [])


def finish_backward(results, args, dz, recompute):
    u, delta, A, B, C, D, z, bias = args
    grads = [like(results["du"], u), like(results["ddelta"], delta), like(results["dA"], A), like(results["dB"], B),
             like(results["dC"], C), None if D is None else like(results["dD"], D),
             None if bias is None else like(results["ddelta_bias"], bias)]
    if z is not None:
        grads.append(like(results["dz"], z) if dz is None else dz.copy_(results["dz"]))
    return grads + ([like(results["out_z"], z)] if recompute else [])


def fwd(u, delta, A, B, C, D, z, delta_bias, delta_softplus):
    args = (u, delta, A, B, C, D, z, delta_bias)
    return finish_forward(exact(args, torch.zeros_like(u), delta_softplus), args)


def bwd(u, delta, A, B, C, D, z, delta_bias, dout, x, out, dz, delta_softplus, recompute_out_z):
    args = (u, delta, A, B, C, D, z, delta_bias)
    if x is None and u.shape[2] > 2048:
        raise RuntimeError("x is needed beyond 2048 steps")
    return finish_backward(exact(args, dout, delta_softplus), args, dz, recompute_out_z)
