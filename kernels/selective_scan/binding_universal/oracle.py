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


def scan(u, delta, A, B, C, D=None, z=None, delta_bias=None, softplus=False, dtype=torch.float64):
    """(y, gated, last state) of tensors of `dtype`. The recurrence is a list of steps: indexing a tensor of all steps
    makes autograd quadratic in the length."""
    dt = delta if delta_bias is None else delta + delta_bias[:, None]
    if softplus:
        dt = torch.where(dt <= 20, torch.log1p(torch.exp(dt.clamp(max=20))), dt)
    batch, dim, length = u.shape
    steps_B, steps_C = (_steps(p, dim, length, A.is_complex()) for p in (B, C))
    steps_dt, steps_u = dt.unbind(-1), u.unbind(-1)
    h = torch.zeros(batch, dim, A.shape[1], dtype=dtype).to(A.dtype)
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


def _exact(tensor):
    return tensor.detach().cpu().to(torch.complex128 if tensor.is_complex() else torch.float64)


class Case:
    """Tensors of one call and the oracle's answers."""

    def __init__(self, tensors, softplus, dout):
        self.tensors, self.softplus = tensors, softplus
        exact = {k: _exact(v).requires_grad_() for k, v in tensors.items() if v is not None}
        full = [exact.get(k) for k in ("u", "delta", "A", "B", "C", "D", "z", "delta_bias")]
        y, gated, last = scan(*full, softplus=softplus)
        names = list(exact)
        # A scalar, not grad_outputs=: torch imports sympy for the latter, which a small environment lacks.
        grads = torch.autograd.grad((gated * dout.cpu().double()).sum(), [exact[k] for k in names], allow_unused=True)
        self.y, self.gated, self.last = y.detach(), gated.detach(), last.detach()
        self.gradients = {k: torch.zeros_like(exact[k]) if g is None else g for k, g in zip(names, grads)}


def excess(got, exact, factor=2.0, floor=2e-5):
    """Error over what is allowed: `factor` times the rounding of the exact answer to the tensor's dtype (at least its
    usual size: a few numbers may round luckily), plus `floor`, as ratios of norms. Above 1 is wrong; NaN or an infinity that the answer does not have is infinitely wrong."""
    if exact.is_complex():
        got, exact = torch.view_as_real(got), torch.view_as_real(exact)
    got, exact = got.cpu(), exact.double()
    norm = exact.norm().item()
    error = (got.double() - exact).norm().item()
    if not error < float("inf"):
        return float("inf")
    rounding = max((exact.to(got.dtype).double() - exact).norm().item(), 0.2 * torch.finfo(got.dtype).eps * norm)
    return error / (factor * rounding + floor * norm + 1e-30) if error else 0.0
