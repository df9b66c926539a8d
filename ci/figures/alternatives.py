# SPDX-License-Identifier: Apache-2.0
"""What a user would try who has no module: the recurrence in PyTorch under torch.compile, Triton, mamba_ssm's own Triton
kernels. {name: {pass: call}}, or the reason why there is none."""
import importlib

import torch
import torch.nn.functional as F

from sides import Tensors, reason_of


def _step(h, u, dt, A, B, C):
    h = torch.exp(dt[..., None] * A) * h + (dt * u)[..., None] * B[:, None]
    return h, (h * C[:, None]).sum(-1)


def _scan_with(step, given, tensors):
    u, delta, B, C, z = (tensors[n].float() for n in ("u", "delta", "B", "C", "z"))
    dt = F.softplus(delta + given.delta_bias[:, None])
    h, ys = u.new_zeros(*u.shape[:2], given.A.shape[1]), []
    for i in range(u.shape[2]):
        h, y = step(h, u[..., i], dt[..., i], tensors["A"], B[:, 0, :, i], C[:, 0, :, i])
        ys.append(y)
    y = torch.stack(ys, -1) + given.D[:, None] * u
    return (y * F.silu(z)).to(given.u.dtype)


def _names(given):
    return {n: getattr(given, n) for n in ("u", "delta", "A", "B", "C", "z")}


def compiled_step(given, backend):
    """Its loop stays in Python: a graph of 2048 steps takes the compiler longer than anybody waits. Without a backend, on a
    CPU, nothing is compiled: that is for the test."""
    step = torch.compile(_step, backend=backend) if backend else _step

    def forward():
        with torch.no_grad():
            return _scan_with(step, given, _names(given))

    leaves = {n: t.detach().requires_grad_() for n, t in _names(given).items()}
    # A scalar: torch needs sympy to be given another gradient.
    loss = (_scan_with(step, given, leaves) * given.dout).sum()
    return {"fwd": forward, "bwd": lambda: torch.autograd.grad(loss, list(leaves.values()), retain_graph=True)}


def associative_scan(given, backend):
    """torch's parallel scan: all decays and states at once in memory."""
    from torch._higher_order_ops.associative_scan import associative_scan as scan

    def combine(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    def whole(u, delta, A, B, C, z):
        dt = F.softplus(delta.float() + given.delta_bias[:, None])
        decay = torch.exp(dt[..., None] * A[:, None])
        drive = (dt * u)[..., None] * B[:, 0].float().transpose(1, 2)[:, None]
        h = scan(combine, (decay, drive), dim=2, combine_mode="pointwise" if u.is_cuda else "generic")[1]
        y = (h * C[:, 0].float().transpose(1, 2)[:, None]).sum(-1) + given.D[:, None] * u
        return (y * F.silu(z.float())).to(u.dtype)

    compiled = torch.compile(whole, backend=backend) if backend else whole
    return {"fwd": lambda: compiled(**_names(given))}


def triton_kernel(given, _backend):
    from triton_scan import forward
    return {"fwd": lambda: forward(given)}


def ssd(given, _backend):
    """Mamba-2's: one decay a head of 64 channels, another recurrence; so many numbers in and out."""
    combined = importlib.import_module("mamba_ssm.ops.triton.ssd_combined").mamba_chunk_scan_combined
    batch, dim, length = given.u.shape
    x = given.u.transpose(1, 2).reshape(batch, length, dim // 64, 64).contiguous()
    dt = given.delta[:, ::64].transpose(1, 2).contiguous()
    B, C = (t.permute(0, 3, 1, 2).contiguous() for t in (given.B, given.C))
    A = given.A[::64, 0].contiguous()
    return {"fwd": lambda: combined(x, dt, A, B, C, 256, dt_softplus=True)}


KINDS = {"torch.compile, a step": compiled_step, "torch.compile, associative_scan": associative_scan,
         "a plain Triton kernel": triton_kernel, "mamba_ssm's SSD (another recurrence)": ssd}
OTHERS = ("mamba_ssm's SSD (another recurrence)",)


def calls(figure, module, device):
    """{pass: {"module": call, name: call or reason}}. Each is compared with the module's result first."""
    given = Tensors(figure, device)
    order = given.order()
    out, x, wanted = module.fwd(*order, True)
    found = {"fwd": {"module": lambda: module.fwd(*order, True)},
             "bwd": {"module": lambda: module.bwd(*order, given.dout, x, out, None, True, False)}}
    for name, make in KINDS.items():
        try:
            made = make(given, "inductor" if given.u.is_cuda else None)
            got = made["fwd"]()
            error = (got.float() - wanted.float()).norm() / wanted.float().norm() if name not in OTHERS else 0.0
            if not error < 2e-2:
                made = "its result is off by {:.1e}".format(float(error))
        except Exception as error:
            made = reason_of(error)
        for each in made if isinstance(made, dict) else ("fwd",):
            found[each][name] = made[each] if isinstance(made, dict) else made
    return found


def upstream_update():
    """mamba_ssm's single step in Triton, or why not."""
    try:
        return importlib.import_module("mamba_ssm.ops.triton.selective_state_update").selective_state_update
    except Exception as error:
        return reason_of(error)
