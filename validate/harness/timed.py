# SPDX-License-Identifier: Apache-2.0
"""After it was timed a module computes once more, with other data in the same tensors, and is judged: what it may have kept
from a hundred equal calls shows."""
import torch

from scankit_harness import call, judge, timing
from scankit_harness.channel import say

CHANNELS = 2  # whose exact results are computed; dB and dC need all of them and are left out
MOST = 2000000  # states of those channels, over all steps
WHOLE = ("B", "C")


def exact_of(given, dout, chosen):
    part = {n: (t if n in WHOLE else t[chosen] if n in ("A", "D", "delta_bias") else t[:, chosen]).detach().cpu().double()
            for n, t in given.items()}
    part["dout"] = dout[:, chosen].detach().cpu().double()
    exact = call.Exact()
    exact.results, exact.given = call.oracle.run(softplus=True, **part), part
    return exact


def identifier(shape):
    return "timed-{dtype}-b{batch}-d{dim}-l{length}-n{states}".format(**shape)


def is_checked(shape):
    """False where the shape is too large for the exact results."""
    return shape["batch"] * shape["length"] * shape["states"] * CHANNELS <= MOST


def check(module, given, dout, shape, device, tolerance):
    """The report of a case, or None where the shape is not checked."""
    if not is_checked(shape):
        return None
    fresh, other = timing.tensors(dict(shape, seed=shape["seed"] + 1), device)
    for name, tensor in given.items():
        tensor.copy_(fresh[name])
    dout.copy_(other)
    order = [given[n] for n in timing.ORDER]
    fwd = module.fwd(*order, True)
    bwd = module.bwd(*order, dout, fwd[1], fwd[0], None, True, False)
    call.synchronize(device)
    chosen = torch.tensor([0, shape["dim"] - 1][:CHANNELS])
    exact = exact_of(given, dout, chosen)
    got = {"out": fwd[0], "last_state": fwd[1][:, :, -1, 1::2], "out_z": fwd[2]}
    got.update((n, t) for n, t in zip(call.GRADIENTS + ("dz",), bwd) if n not in ("dB", "dC"))
    report = {"tensors": [], "contract": [], "modified": [], "nondeterministic": {}}
    for name in sorted(got):
        value = got[name][:, chosen] if got[name].dim() == 3 else got[name][chosen]
        result, magnitude = exact.results[name]
        entry = judge.compare(name, value, result, magnitude, exact.rounded(name, value.dtype), value.dtype, tolerance)
        entry["data"] = 2
        report["tensors"].append(entry)
    for name, tensor in given.items():
        if not call.same_bits(tensor, fresh[name]):
            report["modified"].append(say("{} changed {}", "fwd", name))
    return report
