# SPDX-License-Identifier: Apache-2.0
"""VMamba's selective_scan_cuda_core and selective_scan_cuda_oflex against the float64 recurrence under autograd.

python modules_test.py [--device cuda] [unittest's options]
"""
import os
import random
import sys
import unittest

import torch

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "binding_universal"))
import oracle_case  # noqa: E402
from oracle_case import excess  # noqa: E402

import selective_scan_cuda as plain  # noqa: E402
import selective_scan_cuda_core as core  # noqa: E402
import selective_scan_cuda_oflex as oflex  # noqa: E402

DEVICE = "cpu"


def floor():
    """Of fp32 sums, relative to the answer's norm; see selective_scan's module_test.py and device_test.py."""
    return 2e-5 if DEVICE == "cpu" else 1e-4
if "--device" in sys.argv:
    at = sys.argv.index("--device")
    DEVICE = sys.argv[at + 1]
    del sys.argv[at : at + 2]

NAMES = ["u", "delta", "A", "B", "C", "D", "delta_bias"]
HALVES = [torch.float16, torch.bfloat16]


class Case:
    def __init__(self, seed, share=1, **fixed):
        rng = random.Random(seed)
        generator = torch.Generator().manual_seed(seed)
        pick = lambda name, choices: fixed.get(name, rng.choice(choices))
        self.dtype, groups = pick("dtype", [torch.float32, *HALVES]), rng.choice([1, 2, 4])
        batch, length, states = rng.choice([1, 2, 3]), pick("length", [1, 2, 31, 32, 49, 100]), rng.choice([1, 4, 16])
        dim = groups * rng.choice([1, 3, 8]) * share
        channels = dim // share
        on = lambda *shape: torch.randn(*shape, generator=generator).to(DEVICE)
        optional = lambda value: value if rng.random() < 0.7 else None
        self.share, self.softplus = share, rng.random() < 0.7
        delta, bias = 0.5 * on(batch, channels, length), on(channels) - 1.0
        if not self.softplus:
            delta, bias = delta.abs(), bias.abs()
        self.tensors = {
            "u": on(batch, dim, length).to(self.dtype), "delta": delta.to(self.dtype), "A": -on(dim, states).abs(),
            "B": on(batch, groups, states, length).to(self.dtype), "C": on(batch, groups, states, length).to(self.dtype),
            "D": optional(on(dim)), "delta_bias": optional(bias),
        }
        self.dout = on(batch, dim, length)

    def given(self):
        return [self.tensors[name] for name in NAMES]

    def answers(self, dout):
        shared, full = ("delta", "delta_bias"), dict(self.tensors)  # by `share` channels each
        for name in shared:
            if full[name] is not None:
                full[name] = full[name].repeat_interleave(self.share, 1 if name == "delta" else 0)
        case = oracle_case.Case(full, self.softplus, dout)
        sums = lambda gradient, at: gradient.reshape(gradient.shape[:at] + (-1, self.share) + gradient.shape[at + 1:]).sum(at + 1)
        return case.answers["out"], {name: sums(gradient, 1 if name == "delta" else 0) if name in shared else gradient
                                     for name, gradient in case.gradients.items()}


class Modules(unittest.TestCase):
    def check(self, case, out, gradients, dout):
        y, exact = case.answers(dout)
        self.assertLess(excess(out, y, floor=floor()), 1.0, "out")
        self.assertEqual(len(gradients), 7)
        for name, got in zip(NAMES, gradients):
            tensor = case.tensors[name]
            if tensor is None:
                self.assertIsNone(got, name)
                continue
            self.assertEqual((got.shape, got.dtype), (tensor.shape, tensor.dtype), name)
            self.assertLess(excess(got, exact[name], floor=floor()), 1.0, "d" + name)

    def test_core(self):
        for seed in range(40):
            case = Case(seed)
            with self.subTest(seed=seed):
                dout = case.dout.to(case.dtype)
                out, x = core.fwd(*case.given(), case.softplus, 1)
                self.assertEqual(out.dtype, case.dtype)
                self.check(case, out, core.bwd(*case.given(), dout, x, case.softplus, 1), dout)
                u, delta, A, B, C, D, bias = case.given()
                self.assertTrue(torch.equal(out, plain.fwd(u, delta, A, B, C, D, None, bias, case.softplus)[0]))

    def test_oflex(self):
        for seed in range(80):
            case = Case(seed, share=(1, 2, 4)[seed % 3])
            out_float = seed % 2 == 0
            with self.subTest(seed=seed, share=case.share, out_float=out_float):
                out, x = oflex.fwd(*case.given(), case.softplus, 1, out_float)
                self.assertEqual(out.dtype, torch.float32 if out_float else case.dtype)
                self.assertTrue(out.is_contiguous())
                dout = case.dout if seed % 4 < 2 else case.dout.to(case.dtype)
                self.check(case, out, oflex.bwd(*case.given(), dout, x, case.softplus, 1), dout)

    def test_out_float_is_not_rounded_to_the_inputs(self):
        for dtype in HALVES:
            case = Case(1, dtype=dtype, length=100)
            exact = case.answers(case.dout)[0]
            wide, narrow = (oflex.fwd(*case.given(), case.softplus, 1, flag)[0].cpu().double() for flag in (True, False))
            self.assertLess((wide - exact).norm() * 50, (narrow - exact).norm())

    def test_same_bits_for_any_number_of_threads(self):
        case, seen = Case(3, share=4, length=100), []
        for threads in (1, 2, 1):
            torch.set_num_threads(threads)
            os.environ["OMP_NUM_THREADS"] = str(threads)
            x = oflex.fwd(*case.given(), case.softplus, 1, True)[1]
            seen.append(oflex.bwd(*case.given(), case.dout, x, case.softplus, 1))
        os.environ.pop("OMP_NUM_THREADS")
        torch.set_num_threads(1)
        for other in seen[1:]:
            for ours, theirs in zip(seen[0], other):
                self.assertTrue(ours is theirs or torch.equal(ours, theirs))

    def test_nrows_changes_nothing_and_x_may_be_missing(self):
        case = Case(5, dtype=torch.float32, length=100)
        first, x = core.fwd(*case.given(), case.softplus, 1)
        self.assertTrue(torch.equal(first, core.fwd(*case.given(), case.softplus, 4)[0]))
        kept = core.bwd(*case.given(), case.dout, x, case.softplus, 1)
        again = core.bwd(*case.given(), case.dout, None, case.softplus, 3)
        for ours, theirs in zip(kept, again):
            self.assertTrue(ours is theirs or torch.allclose(ours, theirs, rtol=1e-5, atol=1e-6))

    def test_refusals(self):
        case = Case(2, share=2, dtype=torch.float16)
        u, delta, A, B, C, D, bias = case.given()
        for module in (core, oflex):
            more = [True] if module is oflex else []
            own = delta if module is oflex else delta.repeat_interleave(2, 1)
            own_bias = None
            name = module.__name__ + r"\.fwd: "
            for bad, words in (((u, own, A.to(torch.complex64), B, C), "A is complex64"),
                               ((u, own, A, B[0, 0], C), "B has shape"), ((u, own, A, B, C.float()), "C is float32"),
                               ((u, own[:, :0], A, B, C), "delta has"), ((u.double(), own, A, B, C), "float")):
                with self.subTest(module=module.__name__, words=words):
                    with self.assertRaisesRegex(RuntimeError, name + ".*" + words):
                        module.fwd(*bad, D, own_bias, True, 1, *more)
            with self.assertRaisesRegex(TypeError, "nrows must be"):
                module.fwd(u, own, A, B, C, D, own_bias, True, None, *more)
            with self.assertRaisesRegex(TypeError, "takes"):
                module.fwd(u, own, A, B, C)
        with self.assertRaisesRegex(RuntimeError, "delta has shape"):
            core.fwd(u, delta, A, B, C, D, None, True, 1)
        wide = delta.repeat_interleave(2, 1)
        with self.assertRaisesRegex(RuntimeError, "dout is float32"):
            core.bwd(u, wide, A, B, C, D, None, case.dout, None, True, 1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
