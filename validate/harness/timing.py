# SPDX-License-Identifier: Apache-2.0
"""How fast the module is beside the plain PyTorch recurrence: same tensors, same device, turns taken, medians."""
import time

import torch

from scankit_harness import oracle
from scankit_harness.channel import send

ROUNDS = 5


def _tensors(shape, device):
    batch, dim, length, states = (shape[n] for n in ("batch", "dim", "length", "states"))
    generator = torch.Generator().manual_seed(shape["seed"] % (1 << 62))

    def normal(*size):
        return torch.randn(*size, generator=generator).to(device)

    return {"u": normal(batch, dim, length), "delta": 0.1 * normal(batch, dim, length),
            "A": -1.0 - 15.0 * torch.rand(dim, states, generator=generator).to(device),
            "B": normal(batch, 1, states, length), "C": normal(batch, 1, states, length), "D": normal(dim),
            "z": normal(batch, dim, length), "delta_bias": -4.0 + normal(dim)}, normal(batch, dim, length)


def _seconds(call, device):
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - start


def _in_turns(a, b, device, deadline):
    """A B A B ...; the first of each is thrown away."""
    times = ([], [])
    for turn in range(ROUNDS + 1):
        for side, call in enumerate((a, b)):
            seconds = _seconds(call, device)
            if turn > 0:
                times[side].append(seconds)
        if turn > 0 and time.perf_counter() > deadline:
            break
    return [sorted(t)[len(t) // 2] for t in times] + [len(times[0])]


def run(module, shape, device):
    given, dout = _tensors(shape, device)
    order = [given[n] for n in ("u", "delta", "A", "B", "C", "D", "z", "delta_bias")]
    leaves = {n: t.clone().requires_grad_() for n, t in given.items()}
    # Built once; its backward is what is timed. A scalar, since torch needs sympy to be given another gradient.
    graph = (oracle.plain_forward(softplus=True, **leaves) * dout).sum()
    out, x = module.fwd(*order, True)[:2]
    deadline = time.perf_counter() + shape["seconds"] / 2.0

    def plain():
        with torch.no_grad():
            oracle.plain_forward(softplus=True, **given)

    def plain_back():
        torch.autograd.grad(graph, list(leaves.values()), retain_graph=True)

    passes = {"fwd": (lambda: module.fwd(*order, True), plain),
              "bwd": (lambda: module.bwd(*order, dout, x, out, None, True, False), plain_back)}
    for name, (ours, theirs) in passes.items():
        module_s, plain_s, rounds = _in_turns(ours, theirs, device, deadline)
        deadline += shape["seconds"] / 2.0
        send("timing", device=device, shape={n: shape[n] for n in ("batch", "dim", "length", "states")},
             dtype="fp32", **{"pass": name, "module_ms": 1e3 * module_s, "plain_ms": 1e3 * plain_s, "rounds": rounds})
