# SPDX-License-Identifier: Apache-2.0
"""fwd_fp64 and bwd_fp64 of selective_scan_cuda: against the oracle, and under torch.autograd.gradcheck through the wrapper.

PYTHONPATH=<build>/modules python fp64_test.py [--attributes] [unittest's options]
"""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [HERE, os.path.join(os.path.dirname(HERE), "selective_scan", "binding_universal"),
                 os.path.join(os.path.dirname(HERE), "binding")]

import torch  # noqa: E402

from module_test import KINDS, module  # noqa: E402
from oracle_case import Case  # noqa: E402
from source_archive import require  # noqa: E402
from stateful_cases import cu_seqlens, make_stateful  # noqa: E402

GRADIENTS = ["u", "delta", "A", "B", "C", "D", "delta_bias", "z", "initial_state"]
BOUND = 1e-12  # of float64's sums, relative to the answer's norm


def double(tensor):
    """In float64 or complex128, with the same strides."""
    if tensor is None:
        return None
    wide = torch.empty_strided(tensor.shape, tensor.stride(), dtype=torch.complex128 if tensor.is_complex() else torch.float64)
    return wide.copy_(tensor)


def make_double(seed, packed, **fixed):
    case, dout, _ = make_stateful(seed, packed, **fixed)
    tensors = {name: double(t) for name, t in case.tensors.items()}
    return Case(tensors, case.softplus, double(dout), double(case.initial_state), case.bounds, double(case.dlast))


class Float64(unittest.TestCase):
    def close(self, name, got, exact):
        self.assertEqual((got.shape, got.dtype), (exact.shape, exact.dtype), name)
        error, norm = (got - exact).norm().item(), exact.norm().item()
        self.assertLessEqual(error, BOUND * norm + 1e-300, name)

    def test_random_cases(self):
        for seed in range(60):
            with self.subTest(seed=seed):
                case = make_double(seed, packed=seed % 3 == 0)
                more = (case.initial_state, cu_seqlens(case))
                out, last, *gated = module.fwd_fp64(*case.tensors.values(), case.softplus, *more)
                self.close("out", out, case.answers["out"])
                self.close("last_state", last, case.answers["last_state"])
                for out_z in gated:
                    self.close("out_z", out_z, case.answers["out_z"])
                self.assertEqual(len(gated), case.tensors["z"] is not None)
                results = module.bwd_fp64(*case.tensors.values(), case.dout, case.softplus, *more, case.dlast)
                given = {**case.tensors, "initial_state": case.initial_state}
                for name, got in zip(GRADIENTS, results):
                    if given[name] is None:
                        self.assertIsNone(got, name)
                    else:
                        self.close("d" + name, got, case.gradients[name])

    def test_what_it_refuses(self):
        case = make_double(1, False, kind="", initial_state=False, dlast=False)
        tensors = case.tensors
        call = lambda **changes: module.fwd_fp64(*{**tensors, **changes}.values(), True, None, None)
        for name, change, error in (("u", "float", "u is float32, expected float64"),
                                    ("A", "float", "A is float32, expected float64 or complex128"),
                                    ("B", "float", "B is float32, expected float64")):
            with self.assertRaisesRegex(RuntimeError, "fwd_fp64: " + error):
                call(**{name: getattr(tensors[name], change)()})
        with self.assertRaisesRegex(TypeError, "fwd_fp64: takes 11 arguments .* got 3"):
            module.fwd_fp64(1, 2, 3)
        with self.assertRaisesRegex(RuntimeError, r"initial_state has shape \(1,\), expected"):
            module.fwd_fp64(*tensors.values(), True, torch.zeros(1, dtype=torch.float64), None)
        for function in (module.fwd, module.fwd_stateful):
            with self.assertRaisesRegex(RuntimeError, "u is float64; float32, float16 and bfloat16 are supported"):
                function(*tensors.values(), True, *([] if function is module.fwd else [None, None, True]))


class Gradcheck(unittest.TestCase):
    """Against finite differences, the wrapper's autograd included."""

    def setUp(self):
        if not hasattr(torch.library, "register_autograd"):
            self.skipTest("the wrapper needs torch 2.4")
        require("sympy", "sympy==1.14.0", "mpmath==1.3.0")  # torch.library's fake implementations import it

    def check(self, seed, packed, **fixed):
        from scankit_kernels import selective_scan_fn
        case = make_double(seed, packed, **fixed)
        names = [n for n in [*case.tensors, "initial_state"] if {**case.tensors, "initial_state": case.initial_state}[n] is not None]
        given = {**case.tensors, "initial_state": case.initial_state}

        def scan(*leaves):
            now = {**given, **dict(zip(names, leaves))}
            initial = now.pop("initial_state")
            out, last = selective_scan_fn(*now.values(), case.softplus, return_last_state=True, initial_state=initial,
                                          cu_seqlens=cu_seqlens(case))
            plain = selective_scan_fn(*now.values(), case.softplus)
            return out, torch.view_as_real(last) if last.is_complex() else last, plain

        leaves = [given[n].detach().clone().requires_grad_() for n in names]
        self.assertTrue(torch.autograd.gradcheck(scan, leaves))

    def test_every_kind(self):
        for seed, kind in enumerate(dict.fromkeys(KINDS)):
            with self.subTest(kind=kind):
                self.check(seed, False, kind=kind, length=4, states=2, per_group=2, batch=2, initial_state=True)

    def test_groups_and_packed_sequences(self):
        for kind in ("", "i"):
            self.check(11, True, kind=kind, lengths=[2, 0, 3], states=2, per_group=2, groups=2, initial_state=True, z=True,
                       D=True, delta_bias=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
