# SPDX-License-Identifier: Apache-2.0
"""The scan inside a Mamba block, as models use it: forward and backward, judged against the same block with the plain
recurrence in fp64. With mamba_ssm installed also its own block, its fast path against its slow one."""
import importlib.util

import torch

from scankit_harness import call, judge, oracle
from scankit_harness.channel import say

BATCH, LENGTH, WIDTH, STATES, TAPS, EXPAND = 2, 64, 16, 16, 4, 2
INNER, RANK = EXPAND * WIDTH, 1


class Scan(torch.autograd.Function):
    """selective_scan_fn of mamba_ssm, around any module."""

    @staticmethod
    def forward(ctx, module, *tensors):
        out, x, out_z = module.fwd(*tensors, True)
        ctx.module = module
        ctx.save_for_backward(*tensors, out, x)
        return out_z

    @staticmethod
    def backward(ctx, dout):
        *tensors, out, x = ctx.saved_tensors
        du, ddelta, dA, dB, dC, dD, dbias, dz = ctx.module.bwd(*tensors, dout.contiguous(), x, out, None, True, False)
        return None, du, ddelta, dA, dB, dC, dD, dz, dbias


def parameters(seed):
    generator = torch.Generator().manual_seed(seed % (1 << 62))

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    return {"hidden": normal(BATCH, LENGTH, WIDTH), "in_proj": normal(2 * INNER, WIDTH) / 4,
            "conv": normal(INNER, 1, TAPS) / 2, "conv_bias": 0.1 * normal(INNER), "x_proj": normal(RANK + 2 * STATES, INNER) / 6,
            "dt_proj": normal(INNER, RANK), "dt_bias": -4.0 + normal(INNER),
            "A_log": torch.arange(1.0, STATES + 1).log().repeat(INNER, 1).double(), "D": torch.ones(INNER).double(),
            "out_proj": normal(WIDTH, INNER) / 6}


def block(p, scan):
    # Halves of one tensor, each step beside the next, as mamba_ssm's block has them.
    x, z = (p["hidden"] @ p["in_proj"].t()).transpose(1, 2).contiguous().chunk(2, dim=1)
    x = torch.nn.functional.conv1d(x, p["conv"], p["conv_bias"], padding=TAPS - 1, groups=INNER)[..., :LENGTH]
    x = torch.nn.functional.silu(x)
    parts = (x.transpose(1, 2) @ p["x_proj"].t()).split([RANK, STATES, STATES], dim=-1)
    delta = (parts[0] @ p["dt_proj"].t()).transpose(1, 2)
    B, C = (part.transpose(1, 2)[:, None].contiguous() for part in parts[1:])
    y = scan(x.contiguous(), delta.contiguous(), -torch.exp(p["A_log"]), B, C, p["D"], z, p["dt_bias"])
    return y.transpose(1, 2) @ p["out_proj"].t()


def results(p, scan):
    """The block's output and the gradient of everything that has one."""
    leaves = {n: t.detach().clone().requires_grad_() for n, t in p.items()}
    out = block(leaves, scan)
    weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype, device=out.device).reshape(out.shape)
    gradients = torch.autograd.grad((out * weights).sum(), list(leaves.values()))
    return dict({"out": out.detach()}, **{"d" + n: g for n, g in zip(leaves, gradients) if g is not None})


def judged(got, exact, tolerance):
    report = {"tensors": [], "contract": [], "modified": [], "nondeterministic": {}}
    for name in sorted(exact):
        wanted = exact[name].detach().cpu().double()
        if tuple(got[name].shape) != tuple(wanted.shape):
            report["contract"].append(say("{} has shape {}, not {}", name, list(got[name].shape), list(wanted.shape)))
            continue
        largest = torch.full_like(wanted, float(wanted.abs().max()))
        entry = judge.compare(name, got[name], wanted, largest, wanted.float().double(), torch.float32, tolerance)
        entry["data"] = 1
        report["tensors"].append(entry)
    return report


def own(module, device, seed, tolerance):
    exact = parameters(seed)
    given = {n: t.float() for n, t in exact.items()}

    def plain(u, delta, A, B, C, D, z, bias):
        return oracle.plain_forward(u, delta, A, B, C, D, z, bias, softplus=True, wide=torch.float64)

    with call.threads_of_the_user():
        got = results({n: t.to(device) for n, t in given.items()}, lambda *t: Scan.apply(module, *t))
    return judged(got, results({n: t.double() for n, t in given.items()}, plain), tolerance)


def has_mamba():
    return importlib.util.find_spec("mamba_ssm") is not None


def upstreams(device, seed, tolerance):
    """mamba_ssm's own block, on a GPU: it has no path for a CPU."""
    from mamba_ssm.modules.mamba_simple import Mamba
    torch.manual_seed(seed % (1 << 62))
    mamba = Mamba(d_model=WIDTH, d_state=STATES, d_conv=TAPS, expand=EXPAND).to(device)
    hidden = torch.randn(BATCH, LENGTH, WIDTH, device=device)

    def paths(fast):
        mamba.use_fast_path = fast
        leaves = {"hidden": hidden.clone().requires_grad_(), **dict(mamba.named_parameters())}
        out = mamba(leaves["hidden"])
        gradients = torch.autograd.grad(out.square().sum(), list(leaves.values()), allow_unused=True)
        return dict({"out": out.detach()}, **{"d" + n: g for n, g in zip(leaves, gradients) if g is not None})

    # Two paths in fp32, each with the errors of its own matrix products, which torch may make with tf32.
    return judged(paths(True), paths(False), dict(tolerance, fp32=1e-3))
