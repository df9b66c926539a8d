# SPDX-License-Identifier: Apache-2.0
"""Random calls of causal_conv1d_cuda over its whole contract, and the answers of the harness's fp64 oracle
(validate/harness/oracle.py)."""
import os
import random
import sys

import torch

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "selective_scan", "binding_universal"))
from oracle_case import excess, oracle  # noqa: E402, F401

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
LENGTHS = [0, 1, 2, 3, 4, 7, 31, 32, 33, 35, 63, 64, 65, 100, 255, 256, 257, 259]
LONG = [1023, 1024, 1025, 1027, 1056, 2047, 2050]
DIMS = [1, 2, 3, 4, 8, 15, 16, 17, 33, 64, 129]
LAYOUTS = ["channel_first", "channel_last", "chunk", "chunk_last", "every_other", "dim_major"]


class Guarded:
    """A tensor of a layout inside memory of NaN that must stay as it is."""

    def __init__(self, shape, dtype, device, layout):
        batch, dim, length = shape
        nan = lambda *sizes: torch.full(sizes, float("nan"), dtype=dtype, device=device)
        if layout == "channel_last":
            self.memory = nan(batch, length, dim)
            self.view = self.memory.transpose(1, 2)
        elif layout == "chunk":
            self.memory = nan(batch, dim + 5, length)
            self.view = self.memory[:, 3 : 3 + dim]
        elif layout == "chunk_last":
            self.memory = nan(batch, length, dim + 5)
            self.view = self.memory[..., 2 : 2 + dim].transpose(1, 2)
        elif layout == "every_other":
            self.memory = nan(batch, dim, 2 * length + 1)
            self.view = self.memory[..., 1::2]
        elif layout == "dim_major":
            self.memory = nan(dim, batch, length)
            self.view = self.memory.transpose(0, 1)
        else:
            self.memory = nan(batch, dim, length)
            self.view = self.memory

    def filled(self, values):
        self.view.copy_(values)
        return self.view

    def outside_is_untouched(self):
        inside = self.view.clone()
        self.view.fill_(float("nan"))
        clean = bool(torch.isnan(self.memory).all())
        self.view.copy_(inside)
        return clean


class Case:
    def __init__(self, seed, device="cpu", **fixed):
        rng = random.Random(seed)
        generator = torch.Generator().manual_seed(seed)
        pick = lambda name, choices: fixed.get(name, rng.choice(choices))
        self.device = device
        self.dtype, self.weight_dtype = pick("dtype", DTYPES), pick("weight_dtype", DTYPES)
        self.width = pick("width", [2, 3, 4])
        self.length = pick("length", LENGTHS)
        self.batch, self.dim = pick("batch", [1, 2, 3]), pick("dim", DIMS)
        self.silu = pick("silu", [True, False])
        random_of = lambda *shape: torch.randn(*shape, generator=generator)
        self.layout = lambda: pick("layout", LAYOUTS)
        self.shape, self.states = (self.batch, self.dim, self.length), (self.batch, self.dim, self.width - 1)
        self.inputs = []  # (name, Guarded, copy)
        signal = lambda name, shape: self.place(name, random_of(*shape), shape)
        self.x, self.dout = signal("x", self.shape), signal("dout", self.shape)
        self.initial = signal("initial", self.states) if pick("initial", [True, False]) else None
        self.dfinal = signal("dfinal", self.states) if pick("dfinal", [True, False]) else None
        self.weight = random_of(self.dim, self.width).to(self.weight_dtype).to(device)
        if rng.random() < 0.3:
            self.weight = self.weight.t().contiguous().t()
        self.bias = random_of(self.dim).to(self.weight_dtype).to(device) if pick("bias", [True, False]) else None
        self.sequence = self.numbers(rng, pick("sequence", ["none", "none", "packed", "padded"]))

    def numbers(self, rng, kind):
        """Runs of equal numbers, some of length 1; "padded": with negative ones, and numbers that come again."""
        if kind == "none":
            return None
        rows = []
        for _ in range(self.batch):
            row, number = [], 0
            while len(row) < self.length:
                value = number if kind == "packed" else rng.choice([-1, -3, 0, 1, number])
                row += [value] * rng.choice([1, 1, 2, 3, 5, 40])
                number += 1
            rows.append(row[: self.length])
        return torch.tensor(rows, dtype=torch.int32).reshape(self.batch, self.length).to(self.device)

    def place(self, name, values, shape):
        guarded = Guarded(shape, self.dtype, self.device, self.layout())
        view = guarded.filled(values)
        self.inputs.append((name, guarded, view.clone()))
        return view

    def output(self, shape):
        return Guarded(shape, self.dtype, self.device, self.layout())

    def changed_inputs(self):
        return [name for name, guarded, copy in self.inputs
                if not torch.equal(guarded.view, copy) or not guarded.outside_is_untouched()]

    def answers(self):
        """{name: float64 tensor} of out, final and every gradient."""
        exact = lambda t: None if t is None else t.detach().cpu().double().requires_grad_()
        leaves = {"x": exact(self.x), "weight": exact(self.weight), "bias": exact(self.bias), "initial": exact(self.initial)}
        sequence = None if self.sequence is None else self.sequence.cpu()
        out, final = oracle.convolve(leaves["x"], leaves["weight"], leaves["bias"], sequence, leaves["initial"], self.silu)
        loss = (out * self.dout.cpu().double()).sum()
        if self.dfinal is not None:
            loss = loss + (final * self.dfinal.cpu().double()).sum()
        wanted = {name: leaf for name, leaf in leaves.items() if leaf is not None}
        gradients = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
        result = {"out": out.detach(), "final": final.detach()}
        for (name, leaf), gradient in zip(wanted.items(), gradients):
            result["d" + name] = torch.zeros_like(leaf) if gradient is None else gradient
        return result


def update(x, state, weight, bias=None, silu=False, positions=None, entries=None):
    """(out, state afterwards) of decoding, in fp64: each batch entry's steps behind the inputs that its state holds."""
    out, state = torch.zeros_like(x), state.clone()
    width, slots, steps = weight.shape[1], state.shape[2], x.shape[2]
    for b in range(x.shape[0]):
        entry = b if entries is None else int(entries[b])
        if entry < 0:
            continue
        ring = slots if positions is None else int(positions[b])
        before = torch.stack([state[entry, :, (ring - back) % slots] for back in range(width - 1, 0, -1)], 1)
        out[b] = oracle.convolve(x[b:b + 1], weight, bias, initial=before[None], silu=silu)[0][0]
        if positions is None:
            state[entry] = torch.cat([state[entry], x[b]], 1)[:, steps:]
        else:
            for t in range(steps):
                state[entry, :, (ring + t) % slots] = x[b, :, t]
    return out, state
