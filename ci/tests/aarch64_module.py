# SPDX-License-Identifier: Apache-2.0
"""selective_scan_cuda beside the recurrence step by step, forward and backward; run by aarch64_doctor.sh on that processor."""
import torch

import selective_scan_cuda as module

torch.manual_seed(1)
batch, dim, states, length = 2, 9, 5, 37
u, delta = (torch.randn(batch, dim, length) for _ in range(2))
A = -torch.rand(dim, states)
B, C = (torch.randn(batch, 1, states, length) for _ in range(2))
D = torch.randn(dim)


def recurrence(u, delta, A, B, C, D):
    dt = torch.nn.functional.softplus(delta)
    h = torch.zeros(batch, dim, states, dtype=u.dtype)
    steps = []
    for t in range(length):
        h = torch.exp(dt[:, :, t, None] * A) * h + dt[:, :, t, None] * B[:, :, :, t] * u[:, :, t, None]
        steps.append((h * C[:, :, :, t]).sum(-1) + D * u[:, :, t])
    return torch.stack(steps, -1)


def error(got, exact):
    return ((got.double() - exact).norm() / exact.norm()).item()


exact = [tensor.double().requires_grad_() for tensor in (u, delta, A, B, C, D)]
expected = recurrence(*exact)
dout = torch.randn(batch, dim, length)
gradients = torch.autograd.grad(expected, exact, dout.double())
out, x = module.fwd(u, delta, A, B, C, D, None, None, True)
got = module.bwd(u, delta, A, B, C, D, None, None, dout, x, out, None, True, False)
errors = [error(out, expected.detach())] + [error(mine, theirs) for mine, theirs in zip(got, gradients)]
print(module.scankit_info()["instruction_set"], "relative errors", " ".join("%.1e" % one for one in errors))
assert len(errors) == 7 and max(errors) < 2e-6, errors  # of fp32 against fp64
print("right")
