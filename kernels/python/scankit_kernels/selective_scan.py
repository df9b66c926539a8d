# SPDX-License-Identifier: Apache-2.0
"""Mamba's selective scan as an operator, and upstream's selective_scan_fn on it.

scankit::selective_scan_fwd returns (out, states, out_z): `states` is what the backward reads, a dense (batch, dim, (chunks
+ 1) * dstate), which torch can save, clone and export; the module's own x is a view of it with overlapping rows. out_z is
empty without z. float64 goes to the module's functions for gradcheck, CPU only; its `states` holds the last state alone.
"""
import torch

from ._operators import absent, autocast_dtype, define, differentiate, module, unit_stride

_INTERVAL = 32  # steps between two saved states
_ARGUMENTS = ("Tensor u, Tensor delta, Tensor A, Tensor B, Tensor C, Tensor? D, Tensor? z, Tensor? delta_bias, ")


def _chunks(u):
    # Not max(1, ...): of a symbolic length that is a guard which ties an exported program to more than 32 steps.
    empty = u.dtype == torch.float64 or u.shape[2] == 0
    return 1 if empty else (u.shape[2] + _INTERVAL - 1) // _INTERVAL


def _dense(u, delta, A, B, C, D, z, delta_bias):
    return [unit_stride(u), unit_stride(delta), A, *(t if t.dim() == 2 else unit_stride(t) for t in (B, C)),
            unit_stride(D), unit_stride(z), unit_stride(delta_bias)]


def _as_x(states, u, A):
    """The module's x: chunk rows overlap by half, the last one holds the last state at its odd places."""
    chunks, dstate = _chunks(u), A.shape[1]
    channel = (chunks + 1) * dstate
    return states.as_strided((u.shape[0], u.shape[1], chunks, 2 * dstate), (u.shape[1] * channel, channel, dstate, 1))


def _last_state(states, dstate):
    return states[:, :, states.shape[2] - 2 * dstate + 1::2]


def _forward(u, delta, A, B, C, D, z, delta_bias, delta_softplus):
    tensors = _dense(u, delta, A, B, C, D, z, delta_bias)
    if u.dtype == torch.float64:
        out, last, *gated = module("selective_scan_cuda", "fwd_fp64").fwd_fp64(*tensors, delta_softplus, None, None)
        states = torch.stack([torch.zeros_like(last), last], -1).flatten(-2)
    else:
        out, x, *gated = module("selective_scan_cuda").fwd(*tensors, delta_softplus)
        channel = (x.shape[2] + 1) * A.shape[1]
        states = x.as_strided((x.shape[0], x.shape[1], channel), (x.shape[1] * channel, channel, 1))
    return out, states, gated[0] if gated else absent(u)


def _forward_fake(u, delta, A, B, C, D, z, delta_bias, delta_softplus):
    states = A.new_empty((u.shape[0], u.shape[1], (_chunks(u) + 1) * A.shape[1]))
    return torch.empty_like(unit_stride(delta)), states, absent(u) if z is None else torch.empty_like(unit_stride(z))


def _backward(u, delta, A, B, C, D, z, delta_bias, dout, states, out, delta_softplus):
    tensors, dout = _dense(u, delta, A, B, C, D, z, delta_bias), unit_stride(dout)
    if u.dtype == torch.float64:
        results = module("selective_scan_cuda", "bwd_fp64").bwd_fp64(*tensors, dout, delta_softplus, None, None, None)[:8]
    else:
        results = module("selective_scan_cuda").bwd(*tensors, dout, _as_x(states.contiguous(), u, A),
                                                    None if z is None else unit_stride(out), None, delta_softplus, False)
    return tuple(absent(u) if t is None else t for t in (*results, *[None] * (8 - len(results))))


def _backward_fake(u, delta, A, B, C, D, z, delta_bias, dout, states, out, delta_softplus):
    tensors = _dense(u, delta, A, B, C, D, z, delta_bias)
    like = [absent(u) if t is None else torch.empty_like(t) for t in tensors]
    for i in (2, 3, 4):  # dA, dB and dC are contiguous whatever the inputs are
        like[i] = tensors[i].new_empty(tensors[i].shape)
    u, delta, A, B, C, D, z, delta_bias = like
    return u, delta, A, B, C, D, delta_bias, z


_fwd = define(f"selective_scan_fwd({_ARGUMENTS}bool delta_softplus) -> (Tensor out, Tensor states, Tensor out_z)",
              _forward, _forward_fake)
define(f"selective_scan_bwd({_ARGUMENTS}Tensor dout, Tensor states, Tensor out, bool delta_softplus) -> (Tensor du, "
       "Tensor ddelta, Tensor dA, Tensor dB, Tensor dC, Tensor dD, Tensor ddelta_bias, Tensor dz)", _backward, _backward_fake)


def _setup(ctx, inputs, output):
    *tensors, ctx.delta_softplus = inputs
    out, states, out_z = output
    ctx.has_z = tensors[6] is not None
    ctx.mark_non_differentiable(states, out if ctx.has_z else out_z)
    ctx.save_for_backward(*tensors, out, states)


def _differentiate(ctx, dout, _, dout_z):
    *tensors, out, states = ctx.saved_tensors
    u, delta, A, B, C, D, delta_bias, z = torch.ops.scankit.selective_scan_bwd(
        *tensors, dout_z if ctx.has_z else dout, states, out, ctx.delta_softplus)
    given = [t is not None for t in tensors]
    return (u, delta, A, B, C, D if given[5] else None, z if given[6] else None, delta_bias if given[7] else None, None)


differentiate(_fwd, _setup, _differentiate)


def _cast(u, delta, A, B, C, D, z, delta_bias):
    """Under autocast the neighbours of a scan hand it tensors of several dtypes: they meet in autocast's own, the
    parameters in float32. Where they agree nothing changes, and outside autocast nothing ever does."""
    wanted = autocast_dtype(u.device.type)
    if wanted is None or u.dtype == torch.float64:
        return [u, delta, A, B, C, D, z, delta_bias]
    activations = [t for t in (u, delta, z, *(p for p in (B, C) if p.dim() > 2)) if t is not None]
    dtype = u.dtype if len({t.dtype for t in activations}) == 1 else wanted
    sequence = lambda t: t if t is None else t.to(dtype)
    parameter = lambda t: t if t is None or t.is_complex() else t.float()
    projection = lambda t: sequence(t) if t.dim() > 2 else parameter(t)
    return [sequence(u), sequence(delta), parameter(A), projection(B), projection(C), parameter(D), sequence(z),
            parameter(delta_bias)]


def selective_scan_fn(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False):
    """As mamba-ssm's function of this name: out, or (out, last_state).

    u, delta, z, out: (batch, dim, length). A: (dim, dstate), float32 or complex64. B, C: (dim, dstate), or (batch, dstate,
    length), or (batch, groups, dstate, length), twice the length with a complex A. last_state, (batch, dim, dstate), is
    without a gradient, as upstream's.
    """
    u, delta, A, B, C, D, z, delta_bias = _cast(u, delta, A, B, C, D, z, delta_bias)
    B, C = (t.unsqueeze(1) if t.dim() == 3 else t for t in (B, C))
    out, states, out_z = torch.ops.scankit.selective_scan_fwd(u, delta, A, B, C, D, z, delta_bias, delta_softplus)
    result = out if z is None else out_z
    return (result, _last_state(states, A.shape[1])) if return_last_state else result
