# SPDX-License-Identifier: Apache-2.0
"""The harness's written-out gradient against torch's autograd of the plain recurrence, in every kind of the contract."""
import itertools
import os
import sys
import types

import torch

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
package = types.ModuleType("scankit_harness")
package.__path__ = [os.path.join(ROOT, "validate", "harness")]
sys.modules["scankit_harness"] = package
from scankit_harness import oracle as written_out  # noqa: E402


def case(complex_A, constant_B, constant_C, options, packed):
    torch.manual_seed(complex_A * 8 + constant_B * 4 + constant_C * 2 + options)
    batch, dim, length, states, groups = 1 if packed else 2, 6, 7, 5, 1 if constant_B else 3
    normal = lambda *shape: torch.randn(*shape, dtype=torch.float64)
    number = lambda *shape: torch.complex(normal(*shape), normal(*shape)) if complex_A else normal(*shape)
    parts = 2 if complex_A else 1
    projection = lambda constant: number(dim, states) if constant else normal(batch, groups, states, length * parts)
    A = number(dim, states)
    A = torch.complex(-A.real.abs(), 3 * A.imag) if complex_A else -A.abs()
    tensors = {"u": normal(batch, dim, length), "delta": normal(batch, dim, length).abs(), "A": A,
               "B": projection(constant_B), "C": projection(constant_C),
               "D": normal(dim) if options else None, "z": normal(batch, dim, length) if options else None,
               "delta_bias": normal(dim).abs() if options else None}
    given = [None if packed is None else number(3 if packed else batch, dim, states) for _ in range(2)]
    return (tensors, normal(batch, dim, length), *given)


def distance(a, b):
    return ((a - b).norm() / b.norm().clamp(min=1e-300)).item()


def slices(bounds, tensors):
    """The tensors of each sequence in a row of several."""
    parts = 2 if tensors["A"].is_complex() else 1
    for s, (first, end) in enumerate(zip(bounds, bounds[1:])):
        own = dict(tensors, initial_state=tensors["initial_state"][s:s + 1])
        for name, scale in (("u", 1), ("delta", 1), ("z", 1), ("B", parts), ("C", parts)):
            if own[name] is not None and own[name].dim() > 2:
                own[name] = own[name][..., scale * first:scale * end]
        yield own


def autograd(tensors, softplus, dout, initial_state, bounds, dlast):
    """The results of plain_scan, and torch's gradients of it."""
    leaves = {n: None if t is None else t.clone().requires_grad_() for n, t in dict(tensors, initial_state=initial_state).items()}
    scans = [written_out.plain_scan(**own, softplus=softplus, wide=torch.float64)
             for own in ([leaves] if bounds is None else slices(bounds, leaves))]
    ys, gated, last = zip(*scans)
    y, gated, last = torch.cat(ys, -1), torch.cat(gated, -1), torch.cat(last)
    loss = (gated * dout).sum() + (0.0 if dlast is None else (last * dlast.conj()).real.sum())
    names = [n for n, t in leaves.items() if t is not None]
    gradients = torch.autograd.grad(loss, [leaves[n] for n in names])
    return {"out": y.detach(), "out_z": gated.detach(), "last_state": last.detach(),
            **{"d" + n: g for n, g in zip(names, gradients)}}


def compare(kind, packed):
    tensors, dout, initial_state, dlast = case(*kind, packed)
    bounds = [0, 3, 3, 7] if packed else None
    exact = autograd(tensors, kind[3], dout, initial_state, bounds, dlast)
    given = {n: t for n, t in tensors.items() if t is not None}
    got = written_out.run(dout=dout, softplus=kind[3], initial_state=initial_state, dlast_state=dlast, cu_seqlens=bounds,
                          **given)
    names = ["out", "last_state"] + ["d" + n for n in given] + (["out_z"] if kind[3] else [])
    names += [] if initial_state is None else ["dinitial_state"]
    worst = 0.0
    for name in names:
        wanted, what = exact[name], (kind, packed, name)
        assert got[name][0].shape == wanted.shape and got[name][0].dtype == wanted.dtype, what
        worst = max(worst, distance(got[name][0], wanted))
        assert distance(got[name][0], wanted) < 1e-13, (*what, distance(got[name][0], wanted))
        value, magnitude = torch.broadcast_tensors(got[name][0].abs(), got[name][1].abs())
        assert bool((value <= magnitude * (1 + 1e-12)).all()), (*what, "exceeds its magnitude")
    return worst


# None: without states, as fwd and bwd.
kinds = list(itertools.product(itertools.product((False, True), repeat=4), (None, False, True)))
print(len(kinds), "kinds, largest distance", max(compare(*kind) for kind in kinds))


def growth(length):
    """By how much states that nothing damps are judged wider after `length` steps than their terms add up to."""
    u, ones = torch.ones(1, 1, length, dtype=torch.float64), torch.ones(1, 1, 1, length, dtype=torch.float64)
    got = written_out.run(u, u, torch.zeros(1, 1, dtype=torch.float64), ones, ones, u)
    return [(got[name][1].flatten()[0] / got[name][0].flatten()[0]).item() - 1 for name in ("last_state", "du")]


# In proportion to the steps, half of their number on average: what grew by a share of itself passed anything in the end.
for steps in (512, 8192):
    for grown in growth(steps):
        assert 0.45 * steps * written_out.PER_STEP < grown < 0.55 * steps * written_out.PER_STEP, (steps, grown)
