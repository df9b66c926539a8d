# SPDX-License-Identifier: Apache-2.0
"""The module's CPU kernels against the plain PyTorch recurrence, forward and backward, in one run.

PYTHONPATH=<build>/modules python bench_cpu.py [--rounds N] [--shape B,D,L,N ...]

Each round times the recurrence and then every instruction set, alternating, so that what else the machine does meets all
of them; the figures are medians. Both sides use the same number of threads. The recurrence's backward is the one that is
linear in the length: its steps are unbound, not indexed.
"""
import argparse
import os
import statistics
import time

import torch

import selective_scan_cuda as module

SETS = ["portable", "avx2", "avx512"]


def make(shape, dtype):
    batch, dim, length, states = shape
    torch.manual_seed(0)
    sequence = lambda: torch.randn(batch, dim, length).to(dtype)
    projection = lambda: torch.randn(batch, 1, states, length).to(dtype)
    return [sequence(), sequence() * 0.5, -torch.rand(dim, states), projection(), projection(), torch.randn(dim),
            sequence(), torch.randn(dim) - 1.0]


def plain(u, delta, A, B, C, D, z, delta_bias):
    """The recurrence as users write it in PyTorch, one group."""
    dt = torch.nn.functional.softplus(delta + delta_bias[:, None])
    decay = torch.exp(torch.einsum("bdl,dn->lbdn", dt, A)).unbind(0)
    drive = torch.einsum("bdl,bnl,bdl->lbdn", dt, B[:, 0], u).unbind(0)
    read = C[:, 0].permute(2, 0, 1).unbind(0)
    h, ys = torch.zeros_like(decay[0]), []
    for a, b, c in zip(decay, drive, read):
        h = a * h + b
        ys.append(torch.einsum("bdn,bn->bd", h, c))
    return (torch.stack(ys, -1) + D[:, None] * u) * torch.nn.functional.silu(z)


def timed(function):
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def measure(shape, rounds, sets):
    tensors = make(shape, torch.float32)
    dout = torch.randn_like(tensors[0])
    times = {}
    note = lambda *key, value: times.setdefault(key, []).append(value)
    for _ in range(rounds):
        with torch.no_grad():
            note("plain", "forward", value=timed(lambda: plain(*tensors))[0])
        leaves = [t.clone().requires_grad_() for t in tensors]
        loss = (plain(*leaves) * dout).sum()
        note("plain", "backward", value=timed(lambda: torch.autograd.grad(loss, leaves))[0])
        del loss, leaves
        for name in sets:
            os.environ["SCANKIT_CPU_ISA"] = name
            for _ in range(3):
                seconds, (out, x, _) = timed(lambda: module.fwd(*tensors, True))
                note(name, "forward", value=seconds)
                note(name, "backward",
                     value=timed(lambda: module.bwd(*tensors, dout, x, out, None, True, False))[0])
    os.environ.pop("SCANKIT_CPU_ISA", None)
    return {key: statistics.median(values) for key, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shape", action="append", type=lambda text: tuple(map(int, text.split(","))))
    arguments = parser.parse_args()
    os.environ.pop("SCANKIT_CPU_ISA", None)
    info = module.scankit_info()
    torch.set_num_threads(info["threads"])
    best = info["instruction_set"]
    sets = SETS[: SETS.index(best) + 1] if best in SETS else [best]
    print(f"torch {torch.__version__}, {info['threads']} threads, float32, D, z, delta_bias and softplus; load before: "
          f"{os.getloadavg()[0]:.1f}")
    print(f"{'B,D,L,N':>18} {'kernel':>9} {'forward ms':>11} {'ratio':>7} {'backward ms':>12} {'ratio':>7}")
    for shape in arguments.shape or [(1, 1536, 2048, 16), (2, 768, 1024, 16)]:
        median = measure(shape, arguments.rounds, sets)
        for name in ["plain", *sets]:
            forward, backward = median[name, "forward"], median[name, "backward"]
            print(f"{','.join(map(str, shape)):>18} {name:>9} {forward * 1e3:>11.2f} "
                  f"{median['plain', 'forward'] / forward:>7.1f} {backward * 1e3:>12.2f} "
                  f"{median['plain', 'backward'] / backward:>7.1f}")


if __name__ == "__main__":
    main()
