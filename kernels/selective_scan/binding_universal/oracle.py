# SPDX-License-Identifier: Apache-2.0
"""Selective scan in float64, straight from its definition, with torch's autograd for the gradients.

It shares nothing with the kernels: no chunks, no exp2, no softplus of its own.
"""
import torch


def _steps(projection, dim, length, complex_scan):
    """B or C at each step, (batch or 1, dim, states)."""
    if projection.dim() == 2:
        return [projection[None]] * length
    if complex_scan:  # pairs (real, imaginary) of steps
        projection = torch.complex(projection[..., 0::2], projection[..., 1::2])
    return projection.repeat_interleave(dim // projection.shape[1], dim=1).unbind(-1)


def scan(u, delta, A, B, C, D=None, z=None, delta_bias=None, softplus=False, dtype=torch.float64, initial_state=None):
    """(y, gated, last state) of tensors of `dtype`. The recurrence is a list of steps: indexing a tensor of all steps
    makes autograd quadratic in the length."""
    dt = delta if delta_bias is None else delta + delta_bias[:, None]
    if softplus:
        dt = torch.where(dt <= 20, torch.log1p(torch.exp(dt.clamp(max=20))), dt)
    batch, dim, length = u.shape
    steps_B, steps_C = (_steps(p, dim, length, A.is_complex()) for p in (B, C))
    steps_dt, steps_u = dt.unbind(-1), u.unbind(-1)
    h = torch.zeros(batch, dim, A.shape[1], dtype=dtype).to(A.dtype) if initial_state is None else initial_state
    ys = []
    for t in range(length):
        step = steps_dt[t][..., None]
        h = torch.exp(step * A) * h + step * steps_B[t] * steps_u[t][..., None]
        y = (h * steps_C[t]).sum(-1)
        ys.append(2 * y.real if y.is_complex() else y)
    y = torch.stack(ys, -1) if ys else u
    if D is not None:
        y = y + D[:, None] * u
    return y, (y if z is None else y * z * torch.sigmoid(z)), h


def packed_scan(bounds, u, delta, A, B, C, D=None, z=None, delta_bias=None, softplus=False, initial_state=None):
    """The same of several sequences in one row, each by itself: the states are (sequences, dim, states)."""
    parts = 2 if A.is_complex() else 1
    row = lambda tensor, first, end: None if tensor is None else tensor[..., first:end]
    number = lambda tensor, first, end: tensor if tensor.dim() == 2 else row(tensor, parts * first, parts * end)
    results = []
    for s, (first, end) in enumerate(zip(bounds, bounds[1:])):
        results.append(scan(row(u, first, end), row(delta, first, end), A, number(B, first, end), number(C, first, end),
                            D, row(z, first, end), delta_bias, softplus,
                            initial_state=None if initial_state is None else initial_state[s:s + 1]))
    if not results:
        return u, u, u.new_zeros(0, u.shape[1], A.shape[1]).to(A.dtype)
    ys, gated, last = zip(*results)
    return torch.cat(ys, -1), torch.cat(gated, -1), torch.cat(last)


def update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, softplus=False):
    """(out, new state) of one step."""
    y, gated, last = scan(*(t[..., None] for t in (x, dt)), A, *(p[..., None] for p in (B, C)), D,
                          None if z is None else z[..., None], dt_bias, softplus, initial_state=state)
    return gated[..., 0], last


def _exact(tensor):
    return tensor.detach().cpu().to(torch.complex128 if tensor.is_complex() else torch.float64)


class Case:
    """Tensors of one call and the oracle's answers. bounds: a list, of packed sequences; dlast: last's gradient."""

    def __init__(self, tensors, softplus, dout, initial_state=None, bounds=None, dlast=None):
        self.tensors, self.softplus, self.dout = tensors, softplus, dout
        self.initial_state, self.bounds, self.dlast = initial_state, bounds, dlast
        given = dict(tensors, initial_state=initial_state)
        exact = {k: _exact(v).requires_grad_() for k, v in given.items() if v is not None}
        full = [exact.get(k) for k in ("u", "delta", "A", "B", "C", "D", "z", "delta_bias")]
        function = scan if bounds is None else lambda *rest, **more: packed_scan(bounds, *rest, **more)
        y, gated, last = function(*full, softplus=softplus, initial_state=exact.get("initial_state"))
        names = list(exact)
        # A scalar, not grad_outputs=: torch imports sympy for the latter, which a small environment lacks.
        loss = (gated * dout.cpu().double()).sum()
        if dlast is not None:
            loss = loss + (last * _exact(dlast).conj()).real.sum()
        grads = torch.autograd.grad(loss, [exact[k] for k in names], allow_unused=True)
        self.gradients = {k: torch.zeros_like(exact[k]) if g is None else g for k, g in zip(names, grads)}
        self.answers = {"out": y.detach(), "out_z": gated.detach(), "last_state": last.detach(),
                        **{"d" + k: g for k, g in self.gradients.items()}}

    def excess(self, name, got, **bounds):
        """excess() of a result. Above 1, what the inputs' own last bits do to it counts too: one number that a sum
        of hundreds nearly cancels in is right to a few units of those, not of its own."""
        ratio = excess(got, self.answers[name], **bounds)
        return ratio if ratio <= 1.0 else excess(got, self.answers[name], **bounds, unsure=8.0 * self.unsure(name))

    def unsure(self, name):
        generator = torch.Generator().manual_seed(0)
        def shaken(tensor):
            if tensor is None:
                return None
            noise = torch.randn(tensor.shape, dtype=torch.float64, generator=generator)
            return _exact(tensor) * (1 + 2.0 ** -24 * noise)
        moved = 0.0
        for _ in range(3):
            tensors = {k: shaken(t) for k, t in self.tensors.items()}
            other = Case(tensors, self.softplus, shaken(self.dout), shaken(self.initial_state), self.bounds, shaken(self.dlast))
            moved += (other.answers[name] - self.answers[name]).norm().item() / 3
        return moved


def excess(got, exact, factor=2.0, floor=2e-5, unsure=0.0):
    """Error over what is allowed: `factor` times the rounding of the exact answer to the tensor's dtype (at least its
    usual size: a few numbers may round luckily), plus `floor`, as ratios of norms, plus `unsure`. Above 1 is wrong; NaN
    or an infinity that the answer does not have is infinitely wrong."""
    if exact.is_complex():
        got, exact = torch.view_as_real(got), torch.view_as_real(exact)
    got, exact = got.cpu(), exact.double()
    norm = exact.norm().item()
    error = (got.double() - exact).norm().item()
    if not error < float("inf"):
        return float("inf")
    rounding = max((exact.to(got.dtype).double() - exact).norm().item(), 0.2 * torch.finfo(got.dtype).eps * norm)
    return error / (factor * rounding + floor * norm + unsure + 1e-30) if error else 0.0
