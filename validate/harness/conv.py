# SPDX-License-Identifier: Apache-2.0
"""One case of causal_conv1d_cuda: its fwd, bwd and update as causal_conv1d's own Python calls them, against the definition
in fp64 under autograd. Modules of releases before 1.5.1, which return what newer ones are given to fill, are called so."""
import torch

from scankit_harness import guard, judge
from scankit_harness.call import synchronize, threads_of_the_user
from scankit_harness.channel import say
from scankit_harness.oracle import convolve
from scankit_harness.tensors import Placed, same_bits

DECODED = 4  # steps of a row that update is called for: one, then the others at once

BY_RESULT = {"out": "out", "final_states": "final", "dx": "dx", "dinitial_states": "dinitial"}


def exact_results(given, numbers, silu):
    """{name: (exact, magnitude)}: magnitude is the sum of the absolute values of what was added up."""
    leaves = {n: given[n].clone().requires_grad_() for n in ("x", "weight", "bias", "initial") if n in given}
    parts = [leaves.get(n) for n in ("x", "weight", "bias")] + [numbers, leaves.get("initial")]
    out, final = convolve(*parts, silu)
    loss = (out * given["dout"]).sum()
    if "dfinal" in given:
        loss = loss + (final * given["dfinal"]).sum()
    sizes = {n: given[n].abs().requires_grad_() for n in leaves}
    parts = [sizes.get(n) for n in ("x", "weight", "bias")] + [numbers, sizes.get("initial")]
    size, final_size = convolve(*parts, False)
    # silu and its derivative are below 1.1 and bend by at most 1/2: an error of y shows in dy.
    slope = (1.1 + size.detach()) if silu else torch.ones_like(size)
    size_loss = (size * (given["dout"].abs() * slope)).sum()
    if "dfinal" in given:
        size_loss = size_loss + (final_size * given["dfinal"].abs()).sum()
    names = list(leaves)
    gradients = torch.autograd.grad(loss, [leaves[n] for n in names], allow_unused=True)
    bounds = torch.autograd.grad(size_loss, [sizes[n] for n in names], allow_unused=True)
    result = {"out": (out.detach(), 1.1 * size.detach()), "final_states": (final.detach(), final_size.detach())}
    for name, gradient, bound in zip(names, gradients, bounds):
        zero = torch.zeros_like(given[name])
        result["dinitial_states" if name == "initial" else "d" + name] = (
            zero if gradient is None else gradient, zero if bound is None else bound)
    return result


def exact_steps(given, exact):
    """What update has computed after the first DECODED steps, and the state that it leaves: a row's last inputs, as many
    as the filter is wide."""
    x, width = given["x"], given["weight"].shape[1]
    before = x.new_zeros(x.shape[0], x.shape[1], width)
    if "initial" in given:
        before[:, :, 1:] = given["initial"]
    state = torch.cat([before, x[:, :, :DECODED]], 2)[:, :, -width:]
    out, size = (t[:, :, :DECODED] for t in exact["out"])
    return {"update_out": (out, size), "conv_state": (state, state.abs())}


class Runner:
    def __init__(self, module, case, device, tolerance, _exact):
        self.module, self.case, self.device, self.tolerance = module, case, device, tolerance
        self.placed = {n: Placed(s, device) for n, s in case["tensors"].items()}
        self.report = {"tensors": [], "contract": [], "modified": [], "nondeterministic": {}}
        self.results_at = {}  # address: name of the result that lies there
        guard.damages()       # what was before is nobody's of this case
        self.numbers = None
        if case["sequence"] > 0:
            steps, rows = torch.arange(case["length"]), torch.arange(case["batch"])
            self.numbers = torch.div(steps[None] + 3 * rows[:, None], case["sequence"], rounding_mode="floor").to(torch.int32)
        self.sequence = None if self.numbers is None else self.numbers.to(device)
        self.returns = False

    def arg(self, name):
        return self.placed[name].view if name in self.placed else None

    def complain(self, text):
        if text not in self.report["contract"]:
            self.report["contract"].append(text)

    def forward(self):
        for name in ("out", "final"):
            if name in self.placed:
                self.placed[name].refill(False)
        first = [self.arg("x"), self.arg("weight"), self.arg("bias"), self.sequence, self.arg("initial")]
        with threads_of_the_user():
            out = self.call_forward(first)
            synchronize(self.device)
        result = {"out": out}
        if "final" in self.placed:
            result["final_states"] = self.arg("final")
        return result

    def call_forward(self, first):
        silu = self.case["silu"]
        if not self.returns:
            try:
                self.module.causal_conv1d_fwd(*first, self.arg("out"), self.arg("final"), silu)
                return self.arg("out")
            except TypeError:
                self.returns = True
        return self.module.causal_conv1d_fwd(*first, self.arg("final"), silu)

    def backward(self):
        for name in ("dx", "dinitial"):
            if name in self.placed:
                self.placed[name].refill(False)
        first = [self.arg("x"), self.arg("weight"), self.arg("bias"), self.arg("dout"), self.sequence,
                 self.arg("initial"), self.arg("dfinal"), self.arg("dx")]
        with threads_of_the_user():
            got = self.call_backward(first)
            synchronize(self.device)
        return {n: v for n, v in zip(("dx", "dweight", "dbias", "dinitial_states"), got) if v is not None}

    def call_backward(self, first):
        has_initial, silu = "initial" in self.placed, self.case["silu"]
        if self.returns:
            return self.module.causal_conv1d_bwd(*first, has_initial, silu)
        zeros = {n: torch.zeros(self.arg(n).shape, dtype=torch.float32, device=self.device)
                 for n in ("weight", "bias") if n in self.placed}
        self.module.causal_conv1d_bwd(*first, zeros["weight"], zeros.get("bias"), self.arg("dinitial"), silu)
        return self.arg("dx"), zeros["weight"], zeros.get("bias"), self.arg("dinitial")

    def decode(self):
        """Nothing of packed sequences, which update does not know."""
        if self.numbers is not None:
            return {}
        if not hasattr(self.module, "causal_conv1d_update"):
            self.complain(say("the module has no {}", "causal_conv1d_update"))
            return {}
        x, width = self.arg("x"), self.arg("weight").shape[1]
        state = torch.zeros(x.shape[0], x.shape[1], width, dtype=x.dtype, device=x.device)
        if "initial" in self.placed:
            state[:, :, 1:] = self.arg("initial")
        with threads_of_the_user():
            parts = [self.call_update(part, state) for part in (x[:, :, :1], x[:, :, 1:DECODED]) if part.shape[2] > 0]
            synchronize(self.device)
        return {"update_out": torch.cat(parts, 2), "conv_state": state}

    def call_update(self, x, state):
        first, silu = [x, state, self.arg("weight"), self.arg("bias")], self.case["silu"]
        if not self.returns:
            out = torch.full_like(x, float("nan"))
            self.module.causal_conv1d_update(*first, out, silu, None, None)
            return out
        try:
            return self.module.causal_conv1d_update(*first, silu, None, None)
        except TypeError:  # before 1.4.0: one step, without its dimension
            steps = [self.module.causal_conv1d_update(x[:, :, i], *first[1:], silu) for i in range(x.shape[2])]
            return torch.stack(steps, 2)

    def measure(self, results, exact, second):
        self.results_at.update((value.data_ptr(), name) for name, value in results.items())
        for name in sorted(results):
            value, (wanted, magnitude) = results[name], exact[name]
            if tuple(value.shape) != tuple(wanted.shape):
                self.complain(say("{} has shape {}, not {}", name, list(value.shape), list(wanted.shape)))
                continue
            rounded = wanted.to(value.dtype).to(wanted.dtype)
            entry = judge.compare(name, value, wanted, magnitude, rounded, value.dtype, self.tolerance)
            entry["data"] = 2 if second else 1
            self.report["tensors"].append(entry)

    def check_inputs(self, function):
        guard.complain(function, self.results_at, self.report["modified"])
        for name, placed in self.placed.items():
            if not placed.changed():
                continue
            text = say("{} changed {}", function, name) if placed.exact is not None else \
                say("{} changed memory around {}", function, name)
            if text not in self.report["modified"]:
                self.report["modified"].append(text)
            placed.restore()

    def once(self, second):
        given = {n: p.exact for n, p in self.placed.items() if p.exact is not None}
        exact = exact_results(given, self.numbers, self.case["silu"])
        results = self.forward()
        self.measure(results, exact, second)
        saved = {n: v.clone() for n, v in results.items()}
        self.check_inputs("causal_conv1d_fwd")
        results = self.backward()
        self.measure(results, exact, second)
        saved.update({n: v.clone() for n, v in results.items()})
        self.check_inputs("causal_conv1d_bwd")
        results = self.decode()
        self.measure(results, exact_steps(given, exact) if results else exact, second)
        saved.update(results)
        self.check_inputs("causal_conv1d_update")
        return saved

    def again(self, first):
        """The same calls on the same tensors, compared bit by bit."""
        second = {n: v.clone() for n, v in self.forward().items()}
        second.update(self.backward())
        second.update(self.decode())
        for name in sorted(first):
            if not same_bits(first[name], second[name]):
                difference = judge.largest_difference(first[name], second[name])
                self.report["nondeterministic"][name] = judge.number(difference)

    def run(self):
        self.again(self.once(False))
        if self.case["refill"]:
            for placed in self.placed.values():
                placed.refill(True)
            self.once(True)
        return self.report
