# SPDX-License-Identifier: Apache-2.0
"""selective_scan_cuda with tensors as they come: lazy views, subclasses, autograd's, without memory, expanded, inside
torch's modes and transforms. Right, or refused in words that say what to pass instead.

python tensors_test.py [--attributes] [unittest's options], as module_test.py.
"""
import gc
import itertools
import unittest

import torch

from module_test import KINDS, backward, forward, make_case, module

NAMES = ["u", "delta", "A", "B", "C", "D", "z", "delta_bias"]


def bits(results):
    return [None if t is None else torch.view_as_real(t) if t.is_complex() else t for t in results]


class Tensors(unittest.TestCase):
    def setUp(self):
        self.cases = {kind: make_case(4, kind=kind, dtype=torch.float32, length=40, states=3, per_group=5, batch=2, D=True,
                                      z=True, delta_bias=True) for kind in ("", "iBC")}

    def everything(self, case, dout, **changes):
        """fwd and bwd with some arguments replaced."""
        case.tensors.update(changes)
        results = forward(case)
        return results + backward(case, changes.get("dout", dout), results[1], results[0], recompute=True)

    def same(self, one, other):
        self.assertEqual(len(one), len(other))
        for a, b in zip(bits(one), bits(other)):
            self.assertTrue(torch.equal(torch.Tensor(a.detach()), torch.Tensor(b.detach())))

    def each(self):
        for kind, (case, dout, _) in self.cases.items():
            original = dict(case.tensors)
            expected = self.everything(case, dout)
            with self.subTest(kind=kind):
                yield case, dout, original, expected
            case.tensors = original

    def refused(self, pattern, case, **changes):
        arguments = {**case.tensors, **changes}
        with self.assertRaisesRegex(RuntimeError, "selective_scan_cuda.fwd: .*" + pattern):
            module.fwd(*arguments.values(), case.softplus)

    def test_lazily_conjugated_and_negated_views(self):
        case = self.cases["iBC"][0]
        for name in ("A", "B", "C"):
            conjugated = case.tensors[name].conj()
            self.refused(f"{name} is a lazily conjugated view; pass {name}.resolve_conj", case, **{name: conjugated})
            forward_of = dict(case.tensors, **{name: conjugated.resolve_conj()})
            module.fwd(*forward_of.values(), case.softplus)
        for name in NAMES:
            self.refused(f"{name} is a lazily negated view; pass {name}.resolve_neg", case,
                         **{name: torch._neg_view(case.tensors[name])})

    def test_lazy_bits_are_read_without_asking_torch(self):
        """In every release at hand; another one's are asked for, which is right too, and slower."""
        case, _, _ = self.cases[""]
        forward(case)
        self.assertTrue(module.scankit_info()["reads_lazy_bits"])
        for dtype in (torch.float16, torch.bfloat16):
            u = case.tensors["u"].to(dtype)
            for view in (torch._neg_view(u), torch._neg_view(torch.nn.Parameter(u)), torch._neg_view(u)[:, :, 1:][:1]):
                self.refused("u is a lazily negated view", case, u=view)
        self.refused("A is a lazily negated view", case, A=torch.randn(10, 3, dtype=torch.complex64).conj().imag)

    def test_tensors_that_autograd_follows(self):
        for case, dout, tensors, expected in self.each():
            leaves = {n: t.detach().clone().requires_grad_() for n, t in tensors.items()}
            self.same(self.everything(case, dout, **leaves), expected)
            self.assertFalse(any(t.requires_grad for t in forward(case)))
            self.same(self.everything(case, dout, **{n: t * 1 for n, t in leaves.items()}), expected)
            parameters = {n: torch.nn.Parameter(t) for n, t in tensors.items()}
            self.same(self.everything(case, dout, **parameters), expected)

    def test_subclasses(self):
        class Plain(torch.Tensor):
            pass

        for case, dout, tensors, expected in self.each():
            results = self.everything(case, dout, **{n: t.as_subclass(Plain) for n, t in tensors.items()})
            self.same(results, expected)

    def test_a_subclass_around_another_tensor_is_refused(self):
        class Wrapper(torch.Tensor):
            @staticmethod
            def __new__(cls, inner):
                return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

            @classmethod
            def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
                raise AssertionError("the module computed with a wrapper")

        for case, _, tensors, _ in self.each():
            for name in NAMES:
                with self.assertRaises(RuntimeError):
                    module.fwd(*dict(tensors, **{name: Wrapper(tensors[name])}).values(), case.softplus)

    def test_tensors_without_memory(self):
        for case, _, tensors, _ in self.each():
            for name in NAMES:
                self.refused(f"{name}, a .*cannot be read", case, **{name: tensors[name].to("meta")})
                self.refused(f"{name}, a .*cannot be read", case, **{name: tensors[name].to_sparse()})

    # What resize_() left of a storage is read to the tensor's shape otherwise, and the process ends.
    def test_a_storage_that_is_smaller_than_its_tensor_is_refused(self):
        for case, _, tensors, _ in self.each():
            for name in NAMES:
                small = tensors[name].clone()
                small.untyped_storage().resize_(4)
                self.refused(f"{name} has a storage of 4 bytes, but its shape and strides need [0-9]+: .* restore it", case,
                             **{name: small})
            # Behind an offset, one element too few.
            wide = torch.randn(2, tensors["u"].shape[1], 41)
            view = wide[:, :, 1:]
            case.tensors = {**tensors, "u": view}
            forward(case)
            wide.untyped_storage().resize_(wide.untyped_storage().nbytes() - 4)
            self.refused("u has a storage of", case, u=view)

    # Sizes that 32 bits do not hold, of tensors that no memory holds.
    def test_sizes_beyond_32_bits_are_refused_in_words(self):
        for case, _, tensors, _ in self.each():
            one = torch.zeros(1)
            for shape in ((2, 10, 1 << 31), (1 << 31, 10, 40), (2, 1 << 32, 40)):
                self.refused("u ", case, u=one.expand(shape))

    def test_inside_a_transform(self):
        if not hasattr(torch, "func"):
            self.skipTest("this torch has no torch.func")
        case, _, _ = self.cases[""]
        rest = list(case.tensors.values())[1:]
        call = lambda u: module.fwd(u, *rest, case.softplus)[0]
        batch = torch.stack([case.tensors["u"]] * 2)
        for transform in (lambda: torch.func.vmap(call)(batch),
                          lambda: torch.func.grad(lambda u: call(u).sum())(case.tensors["u"])):
            with self.assertRaisesRegex(RuntimeError, "selective_scan_cuda.fwd: u"):
                transform()

    def test_inside_torchs_modes(self):
        for case, dout, _, expected in self.each():
            with torch.inference_mode():
                self.same(self.everything(case, dout), expected)
            with torch.no_grad():
                self.same(self.everything(case, dout), expected)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                self.same(self.everything(case, dout), expected)
            torch.set_default_dtype(torch.float64)
            try:
                self.same(self.everything(case, dout), expected)
            finally:
                torch.set_default_dtype(torch.float32)
            if hasattr(torch, "get_default_device"):
                with torch.device("meta"):
                    results = self.everything(case, dout)
                self.same(results, expected)

    def test_inference_tensors(self):
        for case, dout, tensors, expected in self.each():
            with torch.inference_mode():
                made = {n: t.clone() for n, t in tensors.items()}
            self.same(self.everything(case, dout, **made), expected)

    def test_expanded_and_transposed_tensors(self):
        for case, dout, tensors, _ in self.each():
            one = {n: tensors[n][:1].expand(2, -1, -1) for n in ("u", "delta", "z")}
            one["A"] = tensors["A"][:1].expand(tensors["A"].shape)
            one["D"] = tensors["D"].clone()
            for name in ("B", "C"):
                one[name] = tensors[name][:1].expand(tensors[name].shape)
            dense = {n: t.contiguous() for n, t in one.items()}
            expected = self.everything(case, dout, **dense)
            self.same([t.contiguous() for t in self.everything(case, dout, **one)], expected)
            self.same(self.everything(case, dout, A=dense["A"].t().contiguous().t()), expected)

    def test_results_own_their_memory(self):
        """They outlive the inputs and each other, can be resized, and their storage is torch's."""
        for case, dout, tensors, expected in self.each():
            results = self.everything(case, dout, **{n: t.clone() for n, t in tensors.items()})
            case.tensors = dict(tensors)
            gc.collect()
            [torch.full((t.numel(),), float("nan")) for t in expected for _ in range(4)]
            self.same(results, expected)
            pointers = [t.untyped_storage().data_ptr() if hasattr(t, "untyped_storage") else t.data_ptr() for t in results]
            self.assertEqual(len(set(pointers)), len(pointers), "two results share memory")
            for result, value in zip(results, expected):
                first = value.reshape(-1)[0].clone()
                result.resize_(result.numel() + 100)
                self.assertEqual(result.numel(), value.numel() + 100)
                self.assertTrue(result.reshape(-1)[0].isnan().item() or result.reshape(-1)[0] == first)

    def test_empty_in_every_kind(self):
        for kind, length, batch in itertools.product(KINDS[3:], (0, 5), (0, 2)):
            with self.subTest(kind=kind, length=length, batch=batch):
                case, dout, _ = make_case(3, kind=kind, length=length, batch=batch, states=2, per_group=2, D=True, z=True)
                results = self.everything(case, dout)
                if length == 0 or batch == 0:
                    for result in results[3:]:
                        self.assertEqual(0.0 if result is None else result.abs().double().sum().item(), 0.0)
                    self.assertEqual(results[1][:, :, -1, 1::2].abs().sum().item(), 0.0)

    def test_the_last_state_is_the_state_with_a_constant_B(self):
        """Upstream's is h / B."""
        B = torch.tensor([[3.0]])
        ones = torch.ones(1, 1, 1)
        x = module.fwd(ones, 0.5 * ones, -torch.ones(1, 1), B, torch.ones(1, 1), None, None, None, False)[1]
        self.assertAlmostEqual(x[0, 0, -1, 1].item(), 1.5)

    def test_non_finite_complex(self):
        """Where the plain recurrence in float32 is finite so are we, and the other way round."""
        from oracle_case import plain_scan
        for name, value in itertools.product(("u", "delta", "z"), (float("inf"), float("-inf"), float("nan"), 200.0)):
            with self.subTest(name=name, value=value):
                case, _, _ = make_case(6, kind="i", dtype=torch.float32, length=70, states=4, batch=1, per_group=17,
                                       groups=1, D=True, z=True, delta_bias=True, softplus=True)
                case.tensors[name] = case.tensors[name].clone()
                case.tensors[name][0, 3, 40] = value
                plain = plain_scan(*case.tensors.values(), softplus=True)[1]
                got = forward(case)[2]
                self.assertTrue(torch.equal(got.isfinite(), plain.isfinite()))


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
