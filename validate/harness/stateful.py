# SPDX-License-Identifier: Apache-2.0
"""One case of fwd_stateful and bwd_stateful, which upstream's module lacks: initial and last states, their gradients, and
several sequences packed into one row."""
import torch

from scankit_harness import call
from scankit_harness.channel import say

FUNCTIONS = ("fwd_stateful", "bwd_stateful")


class Runner(call.Runner):
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
                self.complain(say("{} returned {} though nobody asked for it", FUNCTIONS[0], "x"))
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
