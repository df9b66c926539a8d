# SPDX-License-Identifier: Apache-2.0
"""One case of the functions that upstream's module lacks: fwd_stateful and bwd_stateful with initial and last states, their
gradients, and several sequences packed into one row; state_update, one step that changes its state in place."""
import torch

from scankit_harness import call
from scankit_harness import judge
from scankit_harness.channel import say
from scankit_harness.tensors import same_bits

FUNCTIONS = ("fwd_stateful", "bwd_stateful", "state_update")


def Runner(module, case, *rest):
    return (Step if case.get("step") else Scan)(module, case, *rest)


class Scan(call.Runner):
    def __init__(self, module, case, device, tolerance, exact):
        call.Runner.__init__(self, module, case, device, tolerance, exact)
        self.bounds = case.get("cu_seqlens")
        self.packed = None if self.bounds is None else torch.tensor(self.bounds, dtype=torch.int32, device=device)

    def forward(self):
        call.poison(self.case, self.device)
        with call.threads_of_the_user():
            got = self.module.fwd_stateful(*[self.arg(n) for n in call.FWD], self.case["softplus"],
                                           self.arg("initial_state"), self.packed, self.case["give_x"])
            call.synchronize(self.device)
        if isinstance(got, (list, tuple)) and len(got) > 1 and not self.case["give_x"]:
            if got[1] is not None:
                self.complain(say("{} returned {}, which was not requested", FUNCTIONS[0], "x"))
            got = [got[0]] + list(got[2:])
        wanted = ["out"] + (["x"] if self.case["give_x"] else []) + ["last_state"]
        return self.named(FUNCTIONS[0], got, wanted + (["out_z"] if "z" in self.placed else []))

    def backward(self, fwd):
        if "dz" in self.placed:
            self.placed["dz"].refill(False)
        call.poison(self.case, self.device)
        has_z, again = "z" in self.placed, self.case["recompute_out_z"]
        with call.threads_of_the_user():
            got = self.module.bwd_stateful(*[self.arg(n) for n in call.FWD], self.arg("dout"), fwd.get("x"),
                                           fwd["out"] if has_z else None, self.arg("dz"), self.case["softplus"], again,
                                           self.arg("initial_state"), self.packed, self.arg("dlast_state"))
            call.synchronize(self.device)
        wanted = list(call.GRADIENTS) + (["dz"] if has_z else []) + (["out_z"] if again else [])
        return self.named(FUNCTIONS[1], got, wanted + ["dinitial_state"])

    def check_inputs(self, function):
        call.Runner.check_inputs(self, "{}_stateful".format(function))
        if self.packed is not None and self.packed.tolist() != self.bounds:
            self.report["modified"].append(say("{} changed {}", "{}_stateful".format(function), "cu_seqlens"))
            self.packed.copy_(torch.tensor(self.bounds, dtype=torch.int32))

    def last_state(self, fwd):
        return fwd["last_state"]

    def check_form(self, function, name, value):
        if name == "x":
            return  # its layout is the module's own
        if name != "last_state":
            return call.Runner.check_form(self, function, name, value)
        sequences = self.case["batch"] if self.bounds is None else len(self.bounds) - 1
        shape = (sequences, self.case["dim"], self.case["states"])
        if tuple(value.shape) != shape:
            raise call.ContractError(say("{} of {} has shape {}, not {}", name, function, list(value.shape), list(shape)))
        if value.dtype != self.placed["A"].dtype:
            raise call.ContractError(say("{} of {} is of dtype {}, not {}", name, function, value.dtype,
                                         self.placed["A"].dtype))
        self.check_memory((name, function), name, value)


class Step(call.Runner):
    """The case is a scan of one step; its initial state is the one that is changed."""

    def step(self):
        """{name: result}. The state is as before afterwards, and whatever else was changed is named."""
        state = self.placed["initial_state"]
        argument = lambda name: self.placed[name].view[..., 0] if name in self.placed else None
        call.poison(self.case, self.device)
        with call.threads_of_the_user():
            out = self.module.state_update(state.view, argument("u"), argument("delta"), self.arg("A"), argument("B"),
                                           argument("C"), self.arg("D"), argument("z"), self.arg("delta_bias"),
                                           self.case["softplus"])
            call.synchronize(self.device)
        shape = (self.case["batch"], self.case["dim"])
        if not torch.is_tensor(out):
            raise call.ContractError(say("{} returned {} as {}, not a tensor", "state_update", type(out).__name__, "out"))
        if tuple(out.shape) != shape:
            raise call.ContractError(say("{} of {} has shape {}, not {}", "out", "state_update", list(out.shape),
                                         list(shape)))
        if out.dtype != self.dtype:
            raise call.ContractError(say("{} of {} is of dtype {}, not {}", "out", "state_update", out.dtype, self.dtype))
        self.results_at[out.data_ptr()] = "out"
        self.check_memory(("out", "state_update"), "out", out)
        changed = state.view.clone()
        state.view.copy_(torch.as_strided(state.saved, state.view.shape, state.view.stride(), state.spec["offset"]))
        self.check_inputs("state_update")
        return {"out_z" if "z" in self.placed else "out": out[..., None], "last_state": changed}

    def measured(self, second):
        self.exact.of(self.case, self.placed, second)
        results = self.step()
        for name in sorted(results):
            self.measure(name, results[name], second)
        return results

    def run(self):
        first, second = self.measured(False), self.step()
        for name in sorted(first):
            if not same_bits(first[name], second[name]):
                self.report["nondeterministic"][name] = judge.number(judge.largest_difference(first[name], second[name]))
        return self.report
