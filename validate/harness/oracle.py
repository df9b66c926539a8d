# SPDX-License-Identifier: Apache-2.0
"""The selective scan in fp64 on the CPU: the plain recurrence and its written-out gradient, linear in length. And the
causal convolution (convolve), whose gradients autograd finds.

Independent of validate/judge/oracle.cc (a test compares the two) and of autograd. The tests of the kernels' modules load this
file by its path, so that it imports nothing of the harness. Everything runs twice side by side,
along a leading axis of two: once as it is, and once with every factor replaced by its absolute value. The second gives
for each result the sum of the absolute values of all terms that were added up for it: its magnitude, against which
a rounding error of the computation must be judged, since terms that cancel leave their errors behind. Of a complex
number the absolute value is that of its length, for both of its parts.

Complex A: a variable B or C holds pairs (real, imaginary) of steps, a constant one and the states are complex, y is
twice the real part of the sum, and a gradient is d/d real part + i d/d imaginary part, as torch has it.
"""
import torch


def _pair(value):
    return torch.stack([value, value.abs().to(value.dtype)])


def _softplus(x):
    return torch.where(x <= 20, torch.log1p(torch.exp(torch.clamp(x, max=20.0))), x)


def _softplus_slope(x):
    return torch.where(x <= 20, torch.sigmoid(x), torch.ones_like(x))


def is_constant(projection):
    return projection.dim() == 2


def _numbers(projection, complex_scan):
    """A variable projection's pairs of steps as complex numbers."""
    if not complex_scan or is_constant(projection):
        return projection
    return torch.view_as_complex(projection.reshape(projection.shape[:-1] + (projection.shape[-1] // 2, 2)))


def _states_last(projection, dim):
    """(2, batch, groups, states, length) -> (length, 2, batch, dim, states); (2, dim, states) -> (1, 2, 1, dim, states)."""
    if projection.dim() == 3:
        return projection[None, :, None]
    spread = projection.repeat_interleave(dim // projection.shape[2], dim=2)
    return spread.permute(4, 0, 1, 2, 3).contiguous()


def _time_first(x):
    """(..., batch, dim, length) -> (length, ..., batch, dim)."""
    return x.permute(x.dim() - 1, *range(x.dim() - 1)).contiguous()


def _time_last(x):
    return x.permute(*range(1, x.dim()), 0).contiguous()


def _like_projection(x, projection):
    """(length, 2, batch, dim, states), summed to two of `projection`'s shape: over the channels of a group, or over the
    batch and all steps."""
    if is_constant(projection):
        return x.sum((0, 2))
    length, two, batch, dim, states = x.shape
    groups = projection.shape[1]
    x = x.reshape(length, two, batch, groups, dim // groups, states).sum(4).permute(1, 2, 3, 4, 0)
    if not x.is_complex():
        return x
    x = torch.view_as_real(x.contiguous())
    x[1] = x[1, ..., :1].clone()  # a magnitude is that of both parts
    return x.reshape((two,) + tuple(projection.shape))


def run(u, delta, A, B, C, dout, D=None, z=None, delta_bias=None, softplus=False, initial_state=None, dlast_state=None,
        cu_seqlens=None):
    """fp64 tensors in, {name: tensor of two: value and magnitude} out. cu_seqlens, a list: where the sequences of one row
    begin, and its end; states are then (sequences, dim, states)."""
    if cu_seqlens is not None:
        given = dict(u=u, delta=delta, A=A, B=B, C=C, dout=dout, D=D, z=z, delta_bias=delta_bias)
        return _packed(given, softplus, initial_state, dlast_state, cu_seqlens)
    dim, complex_scan = u.shape[1], A.is_complex()
    raw = delta if delta_bias is None else delta + delta_bias[:, None]
    signed_step = _softplus(raw) if softplus else raw
    rates = torch.stack([A, A.real.to(A.dtype)]) if complex_scan else A[None]
    decay = torch.exp(_time_first(signed_step)[:, None, ..., None] * rates[:, None])  # (length, 1 or 2, batch, ...)
    step, us = _time_first(_pair(signed_step)), _time_first(_pair(u))
    Bs, Cs = (_states_last(_pair(_numbers(p, complex_scan)), dim) for p in (B, C))
    drive = (step * us)[..., None] * Bs
    none = torch.zeros((2, u.shape[0]) + tuple(A.shape), dtype=A.dtype)
    h = _forward_states(decay, drive, none if initial_state is None else _pair(initial_state))
    y = _real_twice((h[1:] * Cs).sum(-1))
    if D is not None:
        y = y + _pair(D)[:, None, :] * us
    results = {"out": _time_last(y), "last_state": h[-1]}
    dy = _time_first(_pair(dout))
    if z is not None:
        gate = torch.sigmoid(z)
        slopes = torch.stack([gate * (1 + z * (1 - gate)), gate * (1 + z.abs() * (1 - gate))])  # 0 near z = -1.278
        silu, slope = _time_first(_pair(z * gate)), _time_first(slopes)
        results["out_z"] = _time_last(y * silu)
        results["dz"] = _time_last(dy * y * slope)
        dy = dy * silu
    last = none if dlast_state is None else _pair(dlast_state)
    results.update(_gradients(decay, drive, h, step, us, Bs, Cs, dy, _pair(A), (B, C), last))
    if D is not None:
        results["du"] += _pair(D)[:, None, :, None] * _time_last(dy)
        results["dD"] = (dy * us).sum((0, 2))
    if softplus:
        results["ddelta"] *= _softplus_slope(raw)
    if delta_bias is not None:
        results["ddelta_bias"] = results["ddelta"].sum((1, 3))
    return results


def _real_twice(x):
    return 2 * x.real if x.is_complex() else x


def _packed(given, softplus, initial_state, dlast_state, bounds):
    """Each sequence by itself. Its steps' results are joined, its states too, and the other gradients added up."""
    parts = {n: 2 if n in "BC" and given["A"].is_complex() else 1 for n in given}
    in_time = [n for n, t in given.items() if t is not None and n not in ("A", "D", "delta_bias") and not
               (n in "BC" and is_constant(t))]
    results = []
    for s, (first, end) in enumerate(zip(bounds, bounds[1:])):
        own = dict(given, **{n: given[n][..., parts[n] * first:parts[n] * end] for n in in_time})
        states = [None if t is None else t[s:s + 1] for t in (initial_state, dlast_state)]
        results.append(run(softplus=softplus, initial_state=states[0], dlast_state=states[1], **own))
    joined = {}
    for name in results[0]:
        each = [r[name] for r in results]
        of = {"out": "u", "out_z": "u"}.get(name, name[1:])
        joined[name] = torch.cat(each, 1) if name in ("last_state", "dinitial_state") else \
            torch.cat(each, -1) if of in in_time else sum(each)
    return joined


# What a state remembers has been through an exponential and a product at every step since, which round in fp32 (6e-8 each at
# best). Each step adds this share of the plain magnitude to the one that is judged by, so that the bound, 1e-4 of it, gains
# 2.4e-8 a step: after 6145 steps with little damping a right state was off by 1.2e-4 of itself on a GPU, by 0.6e-4 on a CPU.
# Of the plain one: a share of the sum would grow with the steps' exponential, and 65536 of them would pass anything.
PER_STEP = 2.0 ** -12


def _carried(states, plain):
    """A step's states as the next one takes them: values as they are, magnitudes with what rounding one step may lose."""
    return torch.stack([states[0], states[1] + PER_STEP * plain])


def _forward_states(decay, drive, first):
    """h[0] = first; h[l + 1] is the state after step l."""
    h = torch.zeros((drive.shape[0] + 1,) + tuple(drive.shape[1:]), dtype=drive.dtype)
    h[0] = first
    plain = h[0, 1]
    for l in range(drive.shape[0]):
        torch.addcmul(drive[l], decay[l], _carried(h[l], plain), out=h[l + 1])
        plain = torch.addcmul(drive[l, 1], decay[l, -1], plain)
    return h


def _gradients(decay, drive, h, step, us, Bs, Cs, dy, As, projections, dlast):
    dy = 2 * dy if h.is_complex() else dy
    dh = Cs.conj() * dy[..., None]
    if len(dh):
        dh[-1] += dlast
    plain = dh[-1, 1].clone() if len(dh) else None
    for l in range(dh.shape[0] - 2, -1, -1):
        here = dh[l, 1].clone()
        dh[l] += decay[l + 1].conj() * _carried(dh[l + 1], plain)
        plain = torch.addcmul(here, decay[l + 1, -1], plain)
    kept = decay * h[:-1]
    kept[:, 1] += drive[:, 1]  # an implementation may take what a step kept as the difference h - drive
    through = dh * kept.conj()
    fed = (dh * Bs.conj()).sum(-1)
    rates = (through * As[:, None].conj()).sum(-1)
    fed, rates = (x.real if x.is_complex() else x for x in (fed, rates))
    B, C = projections
    return {
        "dC": _like_projection(dy[..., None] * h[1:].conj(), C),
        "dB": _like_projection(dh * (step * us)[..., None], B),
        "du": _time_last(fed * step),
        "ddelta": _time_last(rates + fed * us),
        "dA": (through * step[..., None]).sum((0, 2)),
        "dinitial_state": decay[0].conj() * dh[0] if len(dh) else dlast,
    }


def plain_scan(u, delta, A, B, C, D=None, z=None, delta_bias=None, softplus=False, wide=torch.float32, initial_state=None):
    """(y, y gated by z, last state) by the recurrence as one would write it in PyTorch, of any dtype and device, for autograd.

    unbind and stack, not indexing: the gradient of an index is a full-size tensor, which makes autograd quadratic.
    """
    batch, dim, length = u.shape
    step = delta.to(wide) if delta_bias is None else delta.to(wide) + delta_bias[:, None]
    step = torch.nn.functional.softplus(step) if softplus else step

    def of_channels(projection):  # (batch or 1, dim, states, length or 1)
        if is_constant(projection):
            return projection[None, :, :, None]
        wider = projection.to(wide)
        wider = torch.complex(wider[..., 0::2], wider[..., 1::2]) if A.is_complex() else wider
        return wider.repeat_interleave(dim // projection.shape[1], dim=1)

    Bs, Cs = of_channels(B), of_channels(C)
    decay = torch.exp(step[:, :, None, :] * A[:, :, None]).unbind(-1)
    drive = (Bs * (step * u.to(wide))[:, :, None, :]).unbind(-1)
    number = A.dtype if A.is_complex() else wide
    h = torch.zeros((batch, dim, A.shape[1]), dtype=number, device=u.device) if initial_state is None else initial_state
    outs = []
    for a, b, c in zip(decay, drive, Cs.expand(Cs.shape[:3] + (length,)).unbind(-1)):
        h = a * h + b
        outs.append(_real_twice((h * c).sum(-1)))
    y = torch.stack(outs, dim=2) if outs else u.to(wide)
    y = y if D is None else y + u.to(wide) * D[:, None]
    return y, y if z is None else y * torch.nn.functional.silu(z.to(wide)), h


def plain_forward(u, *tensors, **options):
    """What a module's speed is compared with: plain_scan's gated output in the dtype of u."""
    return plain_scan(u, *tensors, **options)[1].to(u.dtype)


def convolve(x, weight, bias=None, numbers=None, initial=None, silu=False):
    """(out, the last width - 1 inputs) of the causal depthwise convolution of fp64 tensors: x (batch, dim, length), weight
    (dim, width), bias (dim). numbers: of each step's sequence, (batch, length); only inputs of the same sequence count, and
    where the number is negative (padding) out is 0. initial: the inputs before the first step, (batch, dim, width - 1),
    oldest first, which belong to the sequence of step 0; zeros without."""
    width, length = weight.shape[1], x.shape[2]
    before = x.new_zeros(x.shape[0], x.shape[1], width - 1) if initial is None else initial
    inputs = torch.cat([before, x], 2)
    if numbers is not None and length:
        first = numbers[:, :1] if initial is not None else torch.full_like(numbers[:, :1], -1)
        numbers_of_inputs = torch.cat([first.expand(-1, width - 1), numbers], 1)
    y = torch.zeros_like(x)
    for tap in range(width):
        term = weight[:, tap, None] * inputs[:, :, tap:tap + length]
        if numbers is not None and length:
            same = numbers_of_inputs[:, tap:tap + length] == numbers
            term = torch.where(same[:, None], term, torch.zeros_like(term))
        y = y + term
    if bias is not None:
        y = y + bias[:, None]
    if silu:
        y = y * torch.sigmoid(y)
    if numbers is not None:
        y = torch.where((numbers < 0)[:, None], torch.zeros_like(y), y)
    return y, inputs[:, :, length:]
