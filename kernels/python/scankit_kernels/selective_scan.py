# SPDX-License-Identifier: Apache-2.0
"""Mamba's selective scan as operators, and upstream's selective_scan_fn on them.

scankit::selective_scan_fwd returns (out, states, out_z): `states` is what the backward reads, a dense (batch, dim, (chunks
+ 1) * dstate), which torch can save, clone and export; the module's own x is a view of it with overlapping rows. out_z is
empty without z. float64 goes to the module's functions for gradcheck, CPU only, which keep no states.

The stateful pair is beside it because upstream's two functions are the shorter way where nobody asks for more.
"""
import torch

from ._operators import absent, autocast_dtype, define, differentiate, module, unit_stride

_INTERVAL = 32  # steps between two saved states
_ARGUMENTS = ("Tensor u, Tensor delta, Tensor A, Tensor B, Tensor C, Tensor? D, Tensor? z, Tensor? delta_bias, ")


def _chunks(u):
    # Not max(1, ...): of a symbolic length that is a guard which ties an exported program to more than 32 steps.
    return 1 if u.shape[2] == 0 else (u.shape[2] + _INTERVAL - 1) // _INTERVAL


def _dense(u, delta, A, B, C, D, z, delta_bias):
    return [unit_stride(u), unit_stride(delta), A, *(t if t.dim() == 2 else unit_stride(t) for t in (B, C)),
            unit_stride(D), unit_stride(z), unit_stride(delta_bias)]


def _as_x(states, u, A):
    """The module's x: chunk rows overlap by half, the last one holds the last state at its odd places."""
    chunks, dstate = _chunks(u), A.shape[1]
    channel = (chunks + 1) * dstate
    return states.as_strided((u.shape[0], u.shape[1], chunks, 2 * dstate), (u.shape[1] * channel, channel, dstate, 1))


def _as_states(x, dstate):
    channel = (x.shape[2] + 1) * dstate
    return x.as_strided((x.shape[0], x.shape[1], channel), (x.shape[1] * channel, channel, 1))


def _states_fake(u, A, sequences=None):
    if u.dtype == torch.float64:
        return absent(u)
    if sequences is not None:  # packed: a row a chunk of each sequence
        return A.new_empty((1, u.shape[1], u.shape[2] // _INTERVAL + sequences, A.shape[1]))
    return A.new_empty((u.shape[0], u.shape[1], (_chunks(u) + 1) * A.shape[1]))


def _present(u, results, count):
    """`count` outputs of an operator: absent ones for None and for what is not in the list."""
    return tuple(absent(u) if t is None else t for t in (*results, *[None] * (count - len(results))))


def _forward(u, delta, A, B, C, D, z, delta_bias, delta_softplus):
    tensors = _dense(u, delta, A, B, C, D, z, delta_bias)
    if u.dtype == torch.float64:
        out, _, *gated = module("selective_scan_cuda", "fwd_fp64").fwd_fp64(*tensors, delta_softplus, None, None)
        return _present(u, (out, None, *gated), 3)
    out, x, *gated = module("selective_scan_cuda").fwd(*tensors, delta_softplus)
    return _present(u, (out, _as_states(x, A.shape[1]), *gated), 3)


def _forward_fake(u, delta, A, B, C, D, z, delta_bias, delta_softplus):
    out_z = absent(u) if z is None else torch.empty_like(unit_stride(z))
    return torch.empty_like(unit_stride(delta)), _states_fake(u, A), out_z


def _backward(u, delta, A, B, C, D, z, delta_bias, dout, states, out, delta_softplus):
    tensors, dout = _dense(u, delta, A, B, C, D, z, delta_bias), unit_stride(dout)
    if u.dtype == torch.float64:
        results = module("selective_scan_cuda", "bwd_fp64").bwd_fp64(*tensors, dout, delta_softplus, None, None, None)[:8]
    else:
        results = module("selective_scan_cuda").bwd(*tensors, dout, _as_x(states.contiguous(), u, A),
                                                    None if z is None else unit_stride(out), None, delta_softplus, False)
    return _present(u, results, 8)


def _backward_fake(u, delta, A, B, C, D, z, delta_bias, dout, states, out, delta_softplus):
    tensors = _dense(u, delta, A, B, C, D, z, delta_bias)
    like = [absent(u) if t is None else torch.empty_like(t) for t in tensors]
    for i in (2, 3, 4):  # dA, dB and dC are contiguous whatever the inputs are
        like[i] = tensors[i].new_empty(tensors[i].shape)
    u, delta, A, B, C, D, z, delta_bias = like
    return u, delta, A, B, C, D, delta_bias, z


def _stateful_forward(u, delta, A, B, C, D, z, delta_bias, delta_softplus, initial_state, cu_seqlens, save_states):
    tensors = _dense(u, delta, A, B, C, D, z, delta_bias)
    sequences = unit_stride(initial_state), unit_stride(cu_seqlens)
    if u.dtype == torch.float64:
        out, last, *gated = module("selective_scan_cuda", "fwd_fp64").fwd_fp64(*tensors, delta_softplus, *sequences)
        return _present(u, (out, None, last, *gated), 4)
    function = module("selective_scan_cuda", "fwd_stateful").fwd_stateful
    out, x, last, *gated = function(*tensors, delta_softplus, *sequences, save_states)
    states = _as_states(x, A.shape[1]) if save_states and cu_seqlens is None else x
    return _present(u, (out, states, last, *gated), 4)


def _stateful_forward_fake(u, delta, A, B, C, D, z, delta_bias, delta_softplus, initial_state, cu_seqlens, save_states):
    packed = None if cu_seqlens is None else cu_seqlens.shape[0] - 1
    last = A.new_empty((u.shape[0] if packed is None else packed, *A.shape))
    out, _, out_z = _forward_fake(u, delta, A, B, C, D, z, delta_bias, delta_softplus)
    return out, _states_fake(u, A, packed) if save_states else absent(u), last, out_z


def _stateful_backward(u, delta, A, B, C, D, z, delta_bias, dout, states, out, delta_softplus, initial_state, cu_seqlens,
                       dlast_state):
    tensors, dout = _dense(u, delta, A, B, C, D, z, delta_bias), unit_stride(dout)
    sequences = [unit_stride(t) for t in (initial_state, cu_seqlens, dlast_state)]
    if u.dtype == torch.float64:
        results = module("selective_scan_cuda", "bwd_fp64").bwd_fp64(*tensors, dout, delta_softplus, *sequences)
    else:
        function = module("selective_scan_cuda", "bwd_stateful").bwd_stateful
        x = None
        if states.dim() > 1:
            x = _as_x(states.contiguous(), u, A) if cu_seqlens is None else states
        results = function(*tensors, dout, x, None if z is None else unit_stride(out), None, delta_softplus, False, *sequences)
        results = [*results[:-1], *([None] if z is None else []), results[-1]]
    return _present(u, results, 9)


def _stateful_backward_fake(u, delta, A, B, C, D, z, delta_bias, dout, states, out, delta_softplus, initial_state, cu_seqlens,
                            dlast_state):
    dinitial = absent(u) if initial_state is None else initial_state.new_empty(initial_state.shape)
    return (*_backward_fake(u, delta, A, B, C, D, z, delta_bias, dout, states, out, delta_softplus), dinitial)


def _update(state, x, dt, A, B, C, D, z, dt_bias, dt_softplus):
    return module("selective_scan_cuda", "state_update").state_update(state, x, dt, A, B, C, D, z, dt_bias, dt_softplus)


def _update_fake(state, x, dt, A, B, C, D, z, dt_bias, dt_softplus):
    return torch.empty_like(x)


_GRADIENTS = "Tensor du, Tensor ddelta, Tensor dA, Tensor dB, Tensor dC, Tensor dD, Tensor ddelta_bias, Tensor dz"
_SEQUENCES = "Tensor? initial_state, Tensor? cu_seqlens, "
_fwd = define(f"selective_scan_fwd({_ARGUMENTS}bool delta_softplus) -> (Tensor out, Tensor states, Tensor out_z)",
              _forward, _forward_fake)
define(f"selective_scan_bwd({_ARGUMENTS}Tensor dout, Tensor states, Tensor out, bool delta_softplus) -> ({_GRADIENTS})",
       _backward, _backward_fake)
_stateful_fwd = define(f"selective_scan_stateful_fwd({_ARGUMENTS}bool delta_softplus, {_SEQUENCES}bool save_states) -> "
                       "(Tensor out, Tensor states, Tensor last_state, Tensor out_z)",
                       _stateful_forward, _stateful_forward_fake)
define(f"selective_scan_stateful_bwd({_ARGUMENTS}Tensor dout, Tensor states, Tensor out, bool delta_softplus, {_SEQUENCES}"
       f"Tensor? dlast_state) -> ({_GRADIENTS}, Tensor dinitial_state)", _stateful_backward, _stateful_backward_fake)
define("selective_state_update(Tensor(a!) state, Tensor x, Tensor dt, Tensor A, Tensor B, Tensor C, Tensor? D, Tensor? z, "
       "Tensor? dt_bias, bool dt_softplus) -> Tensor", _update, _update_fake)


def _setup(ctx, inputs, output):
    *tensors, ctx.delta_softplus = inputs
    out, states, out_z = output
    ctx.has_z = tensors[6] is not None
    ctx.mark_non_differentiable(states, out if ctx.has_z else out_z)
    ctx.save_for_backward(*tensors, out, states)


def _to_inputs(tensors, gradients):
    """The gradients of u, ..., delta_bias in the order of the arguments."""
    u, delta, A, B, C, D, delta_bias, z = gradients
    return tuple(g if t is not None else None for t, g in zip(tensors, (u, delta, A, B, C, D, z, delta_bias)))


def _differentiate(ctx, dout, _, dout_z):
    *tensors, out, states = ctx.saved_tensors
    gradients = torch.ops.scankit.selective_scan_bwd(*tensors, dout_z if ctx.has_z else dout, states, out, ctx.delta_softplus)
    return (*_to_inputs(tensors, gradients), None)


def _stateful_setup(ctx, inputs, output):
    *tensors, ctx.delta_softplus, initial_state, cu_seqlens, _ = inputs
    out, states, _, out_z = output
    ctx.has_z = tensors[6] is not None
    ctx.mark_non_differentiable(states, out if ctx.has_z else out_z)
    ctx.save_for_backward(*tensors, initial_state, cu_seqlens, out, states)


def _stateful_differentiate(ctx, dout, _, dlast_state, dout_z):
    *tensors, initial_state, cu_seqlens, out, states = ctx.saved_tensors
    *gradients, dinitial = torch.ops.scankit.selective_scan_stateful_bwd(
        *tensors, dout_z if ctx.has_z else dout, states, out, ctx.delta_softplus, initial_state, cu_seqlens, dlast_state)
    return (*_to_inputs(tensors, gradients), None, None if initial_state is None else dinitial, None, None)


differentiate(_fwd, _setup, _differentiate)
differentiate(_stateful_fwd, _stateful_setup, _stateful_differentiate)


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


def selective_scan_fn(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False, *,
                      initial_state=None, cu_seqlens=None, recompute=False):
    """As mamba-ssm's function of this name: out, or (out, last_state).

    u, delta, z, out: (batch, dim, length). A: (dim, dstate), float32 or complex64. B, C: (dim, dstate), or (batch, dstate,
    length), or (batch, groups, dstate, length), twice the length with a complex A. On the CPU all may be float64 instead.

    Beyond upstream's: last_state, (batch, dim, dstate), has a gradient. initial_state, of its shape and A's dtype, is where
    the recurrence begins. cu_seqlens, int32 (sequences + 1), says where each of several sequences in one row (batch 1)
    begins; states are then (sequences, dim, dstate). recompute: the backward computes the states again, none are kept.
    """
    u, delta, A, B, C, D, z, delta_bias = _cast(u, delta, A, B, C, D, z, delta_bias)
    B, C = (t.unsqueeze(1) if t.dim() == 3 else t for t in (B, C))
    tensors = (u, delta, A, B, C, D, z, delta_bias, delta_softplus)
    if not (return_last_state or recompute) and initial_state is None and cu_seqlens is None:
        out, _, out_z = torch.ops.scankit.selective_scan_fwd(*tensors)
        return out if z is None else out_z
    if initial_state is not None and autocast_dtype(u.device.type) is not None:
        initial_state = initial_state.to(A.dtype)
    save_states = torch.is_grad_enabled() and not recompute
    out, _, last, out_z = torch.ops.scankit.selective_scan_stateful_fwd(*tensors, initial_state, cu_seqlens, save_states)
    result = out if z is None else out_z
    return (result, last) if return_last_state else result


def selective_state_update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False):
    """As mamba-ssm's function of this name, without heads: one step of decoding. Changes state, (batch, dim, dstate), in
    place; x, dt, z, out: (batch, dim); B, C: (batch, dstate) or (batch, groups, dstate). No gradient."""
    return torch.ops.scankit.selective_state_update(state, x, dt, A, B, C, D, z, dt_bias, dt_softplus)
