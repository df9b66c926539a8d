# SPDX-License-Identifier: Apache-2.0
"""One case: calls fwd and bwd as mamba_ssm's SelectiveScanFn and MambaInnerFn do, and looks at all that comes back."""
import contextlib

import torch

from scankit_harness import gpu_guard, guard, judge, nonfinite, oracle
from scankit_harness.channel import say
from scankit_harness.tensors import Placed, same_bits, same_results

FWD = ("u", "delta", "A", "B", "C", "D", "z", "delta_bias")
GRADIENTS = ("du", "ddelta", "dA", "dB", "dC", "dD", "ddelta_bias")
LIKE = {"out": "delta", "out_z": "z", "du": "u", "ddelta": "delta", "dz": "z", "dA": "A", "dB": "B", "dC": "C",
        "dD": "D", "ddelta_bias": "delta_bias", "dinitial_state": "initial_state"}
LAYOUT_MATTERS = ("out", "out_z", "du", "ddelta", "dz")


class ContractError(Exception):
    """The call came back with something that no caller of the module could use."""


class Exact:
    """The fp64 results of a case, of both its data sets; kept while the next device or way runs the same case."""

    def __init__(self):
        self.case, self.kept = None, {}

    def of(self, case, placed, second):
        if self.case != case["id"]:
            self.case, self.kept = case["id"], {}
        if second not in self.kept:
            given = {n: p.exact for n, p in placed.items() if p.exact is not None}
            self.kept[second] = given, oracle.run(softplus=case["softplus"], cu_seqlens=case.get("cu_seqlens"), **given)
        self.given, self.results = self.kept[second]
        return self.results

    def rounded(self, name, dtype):
        exact = self.results[name][0]
        if name == "dz":  # the contract computes dz from the saved, rounded out
            gate = torch.sigmoid(self.given["z"])
            exact = self.given["dout"] * self.results["out"][0].to(dtype).to(torch.float64) * \
                gate * (1 + self.given["z"] * (1 - gate))
        return exact.to(dtype).to(exact.dtype)


DEFAULT_THREADS = torch.get_num_threads()


@contextlib.contextmanager
def threads_of_the_user():
    """The module runs with as many threads as it would; our own small tensors with one: OpenMP's waiting threads burn
    the processors of a busy machine, and made cases of one second last twenty."""
    torch.set_num_threads(DEFAULT_THREADS)
    try:
        yield
    finally:
        torch.set_num_threads(1)


def synchronize(device):
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def poison(case, device):
    """Freed blocks of the sizes of the results hold NaN, so that an element nobody writes is seen.

    On the CPU the malloc of this process does it (scankit sets glibc's perturb tunable), between bands the allocator."""
    if not device.startswith("cuda") or gpu_guard.active():
        return
    sizes = [case["batch"] * case["dim"] * case["length"]] * 8
    parts = 2 if case["tensors"]["A"]["dtype"] == "c64" else 1
    sizes += [case["dim"] * case["states"] * parts] * 6 + [case["dim"]] * 4
    sizes += [case["batch"] * case["groups"] * case["states"] * case["length"] * parts] * 6
    blocks = [torch.full((s,), float("nan"), device=device, dtype=t) for s in sizes
              for t in (torch.float32, torch.bfloat16)]
    del blocks


class Runner:
    def __init__(self, module, case, device, tolerance, exact):
        self.module, self.case, self.device = module, case, device
        least = tolerance["step"] * case["length"]
        self.tolerance = dict(tolerance, fp32=max(tolerance["fp32"], least), half=max(tolerance["half"], least))
        self.exact = exact
        self.placed = {n: Placed(s, device) for n, s in case["tensors"].items()}
        self.dtype = self.placed["u"].dtype
        self.report = {"tensors": [], "contract": [], "modified": [], "nondeterministic": {}}
        self.results_at = {}  # address: name of the result that lies there
        guard.damages()       # what was before is nobody's of this case

    def arg(self, name):
        return self.placed[name].view if name in self.placed else None

    def complain(self, text):
        if text not in self.report["contract"]:
            self.report["contract"].append(text)

    def invoke(self, function, *arguments):
        with threads_of_the_user():
            got = function(*arguments)
            synchronize(self.device)
        return got

    def forward(self):
        poison(self.case, self.device)
        got = self.invoke(self.module.fwd, *[self.arg(n) for n in FWD], self.case["softplus"])
        wanted = ["out", "x"] + (["out_z"] if "z" in self.placed else [])
        return self.named("fwd", got, wanted)

    def backward(self, fwd):
        if "dz" in self.placed:
            self.placed["dz"].refill(False)
        poison(self.case, self.device)
        has_z, again = "z" in self.placed, self.case["recompute_out_z"]
        got = self.invoke(self.module.bwd, *[self.arg(n) for n in FWD], self.arg("dout"),
                          fwd["x"] if self.case["give_x"] else None, fwd["out"] if has_z else None,
                          self.arg("dz"), self.case["softplus"], again)
        wanted = list(GRADIENTS) + (["dz"] if has_z else []) + (["out_z"] if again else [])
        return self.named("bwd", got, wanted)

    def named(self, function, got, wanted):
        if not isinstance(got, (list, tuple)):
            raise ContractError(say("{} returned {}, not a list of tensors", function, type(got).__name__))
        if len(got) != len(wanted):
            raise ContractError(say("{} returned {} values, not {} ({})", function, len(got), len(wanted),
                                    ", ".join(wanted)))
        result = {}
        for name, value in zip(wanted, got):
            absent = name in LIKE and LIKE[name] not in self.placed
            if absent:
                if value is not None and not (torch.is_tensor(value) and value.numel() == 0):
                    self.complain(say("{} returned a {} although no {} was given", function, name, LIKE[name]))
            elif not torch.is_tensor(value):
                raise ContractError(say("{} returned {} as {}, not a tensor", function, type(value).__name__, name))
            else:
                self.results_at[value.data_ptr()] = name
                self.check_form(function, name, value)
                result[name] = value
        return result

    def check_form(self, function, name, value):
        case, what = self.case, (name, function)
        if name == "x":
            shape = tuple(value.shape)
            if len(shape) != 4 or shape[:2] != (case["batch"], case["dim"]) or shape[3] != 2 * case["states"]:
                raise ContractError(say("x of fwd has shape {}, not ({}, {}, chunks, {})", list(shape), case["batch"],
                                        case["dim"], 2 * case["states"]))
            if value.dtype != self.placed["A"].dtype:
                self.complain(say("x of fwd is {}, not {}, the dtype of A", value.dtype, self.placed["A"].dtype))
            return
        like = self.placed[LIKE[name]].view
        if tuple(value.shape) != tuple(like.shape):
            raise ContractError(say("{} of {} has shape {}, not {}", *what, list(value.shape), list(like.shape)))
        if value.dtype != like.dtype:
            raise ContractError(say("{} of {} is of dtype {}, not {}", *what, value.dtype, like.dtype))
        if value.device != like.device:
            raise ContractError(say("{} of {} is on {}, not on {}", *what, value.device, like.device))
        if name == "dz" and "dz" in self.placed:
            if value.data_ptr() != self.arg("dz").data_ptr() or value.stride() != self.arg("dz").stride():
                self.complain(say("dz of bwd is not the given destination"))
        elif name in LAYOUT_MATTERS and name not in getattr(self.module, "FREE_LAYOUT", ()) and value.numel() > 0:
            self.check_strides(what, value, torch.empty_like(like))
        self.check_memory(what, name, value)

    def check_strides(self, what, value, like):
        pairs = zip(value.shape, value.stride(), like.stride())
        if any(extent > 1 and got != wanted for extent, got, wanted in pairs):
            self.complain(say("{} of {} has strides {}, not {}", *what, list(value.stride()), list(like.stride())))

    def check_memory(self, what, name, value):
        for other, placed in self.placed.items():
            if other == "dz" and name == "dz":
                continue
            begin = placed.storage.data_ptr()
            if begin <= value.data_ptr() < begin + placed.storage.numel() * placed.storage.element_size():
                self.complain(say("{} of {} is in the memory of {}", *what, other))

    def check_inputs(self, function):
        """Names what the call changed, in a tensor or in the storage around it, and puts it right again."""
        guard.complain(function, self.results_at, self.report["modified"])
        for name, placed in self.placed.items():
            if placed.changed():
                text = say("{} changed {}", function, name) if placed.exact is not None else \
                    say("{} changed memory around {}", function, name)
                if text not in self.report["modified"]:
                    self.report["modified"].append(text)
                placed.restore()

    def measure(self, name, value, second):
        wanted = value.dtype if self.case.get("step") or not name.endswith("_state") else self.placed["A"].dtype
        exact, magnitude = self.exact.results[name]
        spread = None if self.case.get("finite", True) else nonfinite.spread(name, self.exact.results)
        entry = judge.compare(name, value, exact, magnitude, self.exact.rounded(name, wanted), wanted, self.tolerance, spread)
        entry["worst"]["inputs"] = self.inputs_at(name, entry["worst"]["index"])
        entry["data"] = 2 if second else 1
        self.report["tensors"].append(entry)

    def inputs_at(self, name, index):
        """[[name, value]]: the inputs of the worst element, as far as they have a place of their own for it."""
        found = []
        like = self.placed.get(LIKE.get(name, "A"))
        if name == "last_state":
            index = index[1:]
        for other, placed in self.placed.items():
            if placed.exact is None or like is None or placed.exact.is_complex():
                continue
            at = index if placed.exact.shape == like.exact_shape() else \
                index[1:2] if placed.exact.dim() == 1 and len(index) == 3 else None
            if at is not None and len(at) == placed.exact.dim() and \
                    all(i < extent for i, extent in zip(at, placed.exact.shape)):
                found.append([other, judge.number(placed.exact[tuple(at)])])
        return found

    def last_state(self, fwd):
        return fwd["x"][:, :, -1, 1::2]

    def once(self, second):
        """One forward and backward, judged. Returns the results of both."""
        self.exact.of(self.case, self.placed, second)
        fwd = self.forward()
        results = {n: v for n, v in fwd.items() if n != "x"}
        results["last_state"] = self.last_state(fwd)
        for name in sorted(results):
            self.measure(name, results[name], second)
        self.check_inputs("fwd")
        saved = {n: v.clone() for n, v in results.items()}
        bwd = self.backward(fwd)
        for name in sorted(bwd):
            self.measure(name, bwd[name], second)
        back = {n if n != "out_z" else "out_z of bwd": v.clone() for n, v in bwd.items()}
        self.check_inputs("bwd")
        for name in ("out", "out_z"):
            if name in saved and not same_bits(results[name], saved[name]):
                self.complain(say("bwd changed the {} that fwd returned", name))
        saved.update(back)
        return saved

    def again(self, first):
        """The same calls on the same tensors, compared bit by bit."""
        fwd = self.forward()
        second = {n: v for n, v in fwd.items() if n != "x"}
        second["last_state"] = self.last_state(fwd)
        self.check_inputs("fwd")
        second.update((n if n != "out_z" else "out_z of bwd", v) for n, v in self.backward(fwd).items())
        for name in sorted(first):
            if not same_results(first[name], second[name]):
                difference = judge.largest_difference(first[name], second[name])
                self.report["nondeterministic"][name] = judge.number(difference)
        self.check_inputs("bwd")

    def run(self):
        self.again(self.once(False))
        if self.case["refill"]:
            for placed in self.placed.values():
                placed.refill(True)
            self.once(True)
        return self.report
