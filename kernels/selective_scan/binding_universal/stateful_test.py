# SPDX-License-Identifier: Apache-2.0
"""fwd_stateful and bwd_stateful on CPU tensors against the float64 oracle: initial and last states and their gradients,
packed sequences, a backward without saved states; what they refuse.

python stateful_test.py [--attributes] [unittest's options], as module_test.py. SCANKIT_TEST_CASES: random cases.
"""
import os
import unittest

import torch

from stateful_checks import CASES, Checks
import module_test
from module_test import GRADIENTS, module
from oracle_case import Case
from stateful_cases import cu_seqlens, make_stateful


def forward(case, save=True):
    return module.fwd_stateful(*case.tensors.values(), case.softplus, case.initial_state, cu_seqlens(case), save)


def backward(case, dout, x, out, dz=None, recompute=False):
    return module.bwd_stateful(*case.tensors.values(), dout, x, out, dz, case.softplus, recompute, case.initial_state,
                               cu_seqlens(case), case.dlast)


def everything(case, dout):
    """All results of a call that do not hold rows that nobody reads."""
    results = forward(case)
    gradients = backward(case, dout, results[1], results[0])
    return [t for t in [results[0], *results[2:], *gradients] if t is not None]


class Scans(Checks):
    def check_forward(self, case, save=True):
        results = forward(case, save)
        self.assertEqual(len(results), 3 if case.tensors["z"] is None else 4)
        self.assertEqual((results[0].dtype, results[2].dtype), (case.tensors["u"].dtype, case.tensors["A"].dtype))
        self.right(case, "out", results[0])
        self.right(case, "last_state", results[2])
        if case.tensors["z"] is not None:
            self.right(case, "out_z", results[3])
        if not save:
            self.assertIsNone(results[1])
        elif case.bounds is None:
            self.same([results[2]], [results[1][:, :, -1, 1::2]])
        return results

    def check_backward(self, case, dout, x, out, rng):
        has_z, recompute = case.tensors["z"] is not None, rng.random() < 0.5
        dz = torch.full_like(torch.cat([dout] * 2, 1), float("nan")).chunk(2, 1)[1] if has_z else None
        results = backward(case, dout, x, out, dz, recompute)
        for name, got in zip(GRADIENTS, results):
            if case.tensors[name] is None:
                self.assertIsNone(got, name)
            else:
                self.assertEqual(got.dtype, case.tensors[name].dtype, name)
                self.right(case, "d" + name, got)
        if has_z:
            self.assertIs(results[7], dz)
            self.right(case, "dz", dz, factor=3.0)  # made from the rounded out
        if has_z and recompute:
            self.right(case, "out_z", results[8], factor=3.0)
        self.assertEqual(len(results), 8 + has_z + recompute)
        if case.initial_state is None:
            self.assertIsNone(results[-1])
        else:
            self.assertEqual(results[-1].dtype, case.tensors["A"].dtype)
            self.right(case, "dinitial_state", results[-1])

    def check_case(self, case, dout, rng):
        inputs = [t for t in [*case.tensors.values(), dout, case.initial_state, case.dlast] if t is not None]
        before = [t.clone() for t in inputs]
        out, x = self.check_forward(case)[:2]
        self.check_forward(case, False)
        for states in (x, x.clone(memory_format=torch.contiguous_format), None):
            self.check_backward(case, dout, states, out, rng)
        self.same(inputs, before)
        self.check_guards()

    def test_random_cases(self):
        for seed in range(CASES):
            for packed in (False, True):
                case = make_stateful(seed, packed)
                for _ in self.each_set():
                    with self.subTest(seed=seed, packed=packed):
                        self.check_case(*case)

    def test_every_kind(self):
        for seed, kind in enumerate(sorted(set(module_test.KINDS))):
            for packed in (False, True):
                with self.subTest(kind=kind, packed=packed):
                    lengths = dict(lengths=[33, 0, 1, 64]) if packed else dict(length=65, batch=2)
                    self.check_case(*make_stateful(seed, packed, kind=kind, states=3, per_group=17, initial_state=True,
                                                   dlast=True, **lengths))

    def test_nothing_to_do(self):
        """No step, or no sequence: the last state is the initial one, and its gradient the initial state's."""
        for packed, shape in ((False, dict(length=0)), (False, dict(batch=0, length=5)), (True, dict(lengths=[0, 0])),
                              (True, dict(lengths=[3, 0], per_group=0))):
            for kind in ("", "iBC", "C"):
                with self.subTest(packed=packed, kind=kind, **shape):
                    case, dout, _ = make_stateful(3, packed, kind=kind, initial_state=True, dlast=True, z=True, D=True, **shape)
                    out, x, last, _ = forward(case)
                    gradients = backward(case, dout, x, out)
                    if case.tensors["u"].numel() == 0:
                        self.same([last, gradients[-1]], [case.initial_state, case.dlast])
                        self.assertEqual(sum(g.abs().double().sum().item() for g in gradients[:-1] if g is not None), 0.0)
        case, dout, _ = make_stateful(3, False, kind="", length=0, batch=1)
        case.bounds, case.initial_state, case.dlast = [0], None, None
        out, x, last = forward(case)[:3]
        self.assertEqual((last.shape[0], x.shape[2]), (0, 0))
        self.assertEqual(backward(case, dout, x, out)[2].abs().double().sum().item(), 0.0)

    def test_no_state_given_is_fwd_and_bwd(self):
        for kind in ("", "iB"):
            case, dout, _ = make_stateful(5, False, kind=kind, length=70, z=True, initial_state=False, dlast=False)
            plain = module.fwd(*case.tensors.values(), case.softplus)
            mine = forward(case)
            self.same([plain[0], plain[2]], [mine[0], mine[3]])
            for x in (plain[1], None):
                rest = (dout, x, plain[0], None, case.softplus, True)
                results = module.bwd_stateful(*case.tensors.values(), *rest, None, None, None)
                self.assertIsNone(results.pop())
                self.same([t for t in module.bwd(*case.tensors.values(), *rest) if t is not None],
                          [t for t in results if t is not None])
            zero = torch.zeros_like(mine[2])
            self.same(mine[2:], module.fwd_stateful(*case.tensors.values(), case.softplus, zero, None, True)[2:])

    def parts_of(self, case, dout, bounds):
        """The case's steps in several calls, one after the other, and back: all that is the same bits then."""
        parts = 2 if case.tensors["A"].is_complex() else 1
        def cut(name, tensor, first, end):
            if tensor is None or name in ("A", "D", "delta_bias") or (name in "BC" and tensor.dim() == 2):
                return tensor
            scale = parts if name in "BC" else 1
            return tensor[..., scale * first:scale * end].contiguous()
        pieces, results, state = [], [], case.initial_state
        for first, end in zip(bounds, bounds[1:]):
            tensors = [cut(n, t, first, end) for n, t in case.tensors.items()]
            results.append(module.fwd_stateful(*tensors, case.softplus, state, None, True))
            pieces.append((tensors, state, cut("dout", dout, first, end)))
            state = results[-1][2]
        gradients, dstate = [], case.dlast
        for (tensors, initial, d), result in zip(pieces[::-1], results[::-1]):
            initial = torch.zeros_like(result[2]) if initial is None else initial
            gradients.append(module.bwd_stateful(*tensors, d, result[1], result[0], None, case.softplus, False, initial,
                                                 None, dstate))
            dstate = gradients[-1][-1]
        join = lambda lists, i: torch.cat([each[i] for each in lists], -1)
        return [join(results, 0), state, dstate, *(join(gradients[::-1], i) for i in (0, 1))]

    def test_chunks_are_the_whole(self):
        """In calls of whole chunks the very bits, since nothing is computed otherwise."""
        for kind in ("", "i", "BC"):
            case, dout, _ = make_stateful(8, False, kind=kind, dtype=torch.float32, length=150, batch=2, initial_state=True)
            out, x, last = forward(case)[:3]
            gradients = backward(case, dout, x, out)
            whole = [out, last, gradients[-1], gradients[0], gradients[1]]
            self.same(whole, self.parts_of(case, dout, [0, 32, 96, 150]))
            for one, other in zip(whole, self.parts_of(case, dout, [0, 1, 50, 150])):
                self.close("in parts", other, one.cpu().to(torch.complex128 if one.is_complex() else torch.float64))

    def test_packed_sequences_are_those_alone(self):
        lengths = [40, 0, 7, 64, 1]
        for kind in ("", "iC"):
            case, dout, _ = make_stateful(9, True, kind=kind, lengths=lengths, initial_state=True, dlast=True)
            out, x, last = forward(case)[:3]
            gradients = backward(case, dout, x, out)
            for s, (first, end) in enumerate(zip(case.bounds, case.bounds[1:])):
                alone = Case.__new__(Case)
                alone.initial_state, alone.dlast = case.initial_state[s:s + 1], case.dlast[s:s + 1]
                alone.softplus, parts = case.softplus, 2 if "i" in kind else 1
                alone.tensors = {n: t if t is None or t.dim() < 3 else
                                 t[..., (parts if n in "BC" else 1) * first:(parts if n in "BC" else 1) * end]
                                 for n, t in case.tensors.items()}
                results = self.parts_of(alone, dout[..., first:end], [0, end - first])
                self.same([out[..., first:end], last[s:s + 1], gradients[-1][s:s + 1], gradients[0][..., first:end],
                           gradients[1][..., first:end]], results)

    def test_saved_states_of_packed_sequences(self):
        """Chunk c of sequence s stands at cu_seqlens[s] // 32 + s + c and holds the state behind it: the last state of
        the sequence's steps so far."""
        for kind in ("", "i"):
            case, _, _ = make_stateful(13, True, kind=kind, dtype=torch.float32, lengths=[70, 0, 32, 1, 33], initial_state=True)
            x, parts = forward(case)[1], 2 if kind else 1
            self.assertEqual(x.shape[2], 136 // 32 + 5)
            for s, (first, end) in enumerate(zip(case.bounds, case.bounds[1:])):
                for chunk in range(-(-(end - first) // 32)):
                    upto = min(first + 32 * (chunk + 1), end)
                    tensors = [t if t is None or t.dim() < 3 else t[..., :(parts if n in "BC" else 1) * upto].contiguous()
                               for n, t in case.tensors.items()]
                    bounds = torch.tensor([*case.bounds[:s + 1], upto], dtype=torch.int32, device=module_test.DEVICE)
                    last = module.fwd_stateful(*tensors, case.softplus, case.initial_state[:s + 1], bounds, False)[2][s]
                    self.same([x[0, :, first // 32 + s + chunk]], [last])

    def test_threads_do_not_show(self):
        self.addCleanup(os.environ.pop, "OMP_NUM_THREADS", None)
        for packed, shape in ((False, dict(length=129, batch=2)), (True, dict(lengths=[100, 0, 33, 1, 200]))):
            case, dout, _ = make_stateful(11, packed, kind="", dtype=torch.float32, states=16, per_group=70, groups=1, D=True,
                                          z=True, initial_state=True, dlast=True, **shape)
            for _ in self.each_set():
                os.environ["OMP_NUM_THREADS"] = "1"
                first = everything(case, dout)
                for threads in ("2", "5", "5"):
                    os.environ["OMP_NUM_THREADS"] = threads
                    self.same(first, everything(case, dout))

    def test_non_finite_states(self):
        """Where the plain recurrence in float32 is finite so are we."""
        for value in (float("inf"), float("-inf"), float("nan"), 1e38):
            case, _, _ = make_stateful(6, False, kind="", dtype=torch.float32, length=70, states=4, batch=1, per_group=17, groups=1,
                                       initial_state=True)
            case.initial_state[0, 3, 2] = value
            y, _, last = module_test.plain_scan(*case.tensors.values(), softplus=case.softplus, initial_state=case.initial_state)
            for _ in self.each_set():
                got = forward(case)
                for mine, plain in ((got[0], y), (got[2], last)):
                    self.assertTrue(torch.equal(mine.isnan(), plain.isnan()))
                    self.assertTrue(torch.equal(mine.isinf(), plain.isinf()))


class Refusals(Checks):
    def setUp(self):
        on = lambda *shape: torch.ones(*shape, device=module_test.DEVICE)
        self.scan = dict(u=on(1, 4, 6), delta=on(1, 4, 6), A=-on(4, 2), B=on(1, 2, 2, 6), C=on(1, 2, 2, 6), D=None, z=None,
                         delta_bias=None, softplus=True, initial_state=None, cu_seqlens=None, save_states=True)

    def bounds(self, *values, dtype=torch.int32):
        return torch.tensor(values, dtype=dtype, device=module_test.DEVICE)

    def test_sequences(self):
        refused = lambda pattern, **changes: self.refused(module.fwd_stateful, self.scan, pattern, **changes)
        refused("cu_seqlens is another dtype, expected int32", cu_seqlens=self.bounds(0, 6, dtype=torch.int64))
        refused("cu_seqlens is float32, expected int32", cu_seqlens=self.bounds(0, 6, dtype=torch.float32))
        refused(r"cu_seqlens has shape \(1, 2\), expected \(sequences \+ 1,\)", cu_seqlens=self.bounds(0, 6)[None])
        refused(r"cu_seqlens has shape \(0,\)", cu_seqlens=self.bounds())
        refused("names no sequence, but u has 6 steps", cu_seqlens=self.bounds(0))
        refused(r"cu_seqlens has stride 2.*cu_seqlens.contiguous\(\)", cu_seqlens=self.bounds(0, 9, 6, 9)[::2])
        refused("cu_seqlens must be a torch.Tensor", error=TypeError, cu_seqlens=[0, 6])
        refused("u has a batch of 2, expected 1: with cu_seqlens", cu_seqlens=self.bounds(0, 6),
                **{n: self.scan[n].repeat(2, *[1] * (self.scan[n].dim() - 1)) for n in ("u", "delta", "B", "C")})
        refused(r"initial_state has shape \(1, 4, 2\), expected \(2, 4, 2\): \(sequences, dim, states\)",
                cu_seqlens=self.bounds(0, 3, 6), initial_state=torch.ones(1, 4, 2, device=module_test.DEVICE))

    def test_values_of_cu_seqlens(self):
        if module_test.DEVICE != "cpu":
            self.skipTest("on a device nobody looks at them before the launch")
        refused = lambda pattern, *values: self.refused(module.fwd_stateful, self.scan, pattern, cu_seqlens=self.bounds(*values))
        refused("cu_seqlens begins with 1, expected 0", 1, 6)
        refused("cu_seqlens begins with -1, expected 0", -1, 6)
        refused("cu_seqlens ends with 5, expected 6, the length of u", 0, 3, 5)
        refused("cu_seqlens ends with 7, expected 6", 0, 7)
        refused("cu_seqlens falls from 7 to 6 at entry 2", 0, 7, 6)
        refused("cu_seqlens falls from 4 to 3 at entry 2", 0, 4, 3, 6)

    def test_states(self):
        on = lambda *shape, **more: torch.ones(*shape, device=module_test.DEVICE, **more)
        refused = lambda pattern, **changes: self.refused(module.fwd_stateful, self.scan, pattern, **changes)
        refused("initial_state is float16, expected float32, the dtype of A", initial_state=on(1, 4, 2).half())
        refused("initial_state is complex64, expected float32", initial_state=on(1, 4, 2, dtype=torch.complex64))
        refused(r"initial_state has shape \(4, 2\), expected \(1, 4, 2\): \(batch, dim, states\)", initial_state=on(4, 2))
        refused("initial_state has stride 4 in its last dimension", initial_state=on(1, 2, 4).transpose(1, 2))
        refused("initial_state is a lazily negated view", initial_state=torch._neg_view(on(1, 4, 2)))
        refused("initial_state, a .*cannot be read", initial_state=torch.ones(1, 4, 2, device="meta"))
        refused("save_states must be True or False, not a tensor", error=TypeError, save_states=on(1))
        with self.assertRaisesRegex(TypeError, "takes 12 arguments .*save_states.*, got 9"):
            module.fwd_stateful(*list(self.scan.values())[:9])

    def test_backward(self):
        on = lambda *shape: torch.ones(*shape, device=module_test.DEVICE)
        scan = list(self.scan.values())
        packed = self.bounds(0, 2, 6)
        out, x, _ = module.fwd_stateful(*scan[:9], None, None, True)
        out, packed_x, _ = module.fwd_stateful(*scan[:9], None, packed, True)
        self.assertEqual(tuple(packed_x.shape), (1, 4, 2, 2))
        arguments = dict(zip(self.scan, scan[:8]), dout=on(1, 4, 6), x=x, out=out, dz=None, softplus=True, recompute=False,
                         initial_state=None, cu_seqlens=None, dlast_state=None)
        refused = lambda pattern, **changes: self.refused(module.bwd_stateful, arguments, pattern, **changes)
        refused(r"x has shape \(1, 4, 1, 4\), expected \(1, 4, 2, 2\): that of fwd_stateful's x", cu_seqlens=packed)
        refused("x does not have the shape", x=packed_x)
        refused("x has stride 2 in its last", cu_seqlens=packed, x=packed_x.repeat(1, 1, 1, 2)[..., ::2])
        refused(r"dlast_state has shape \(1, 4, 2\), expected \(2, 4, 2\)", cu_seqlens=packed, x=None, dlast_state=on(1, 4, 2))
        refused("dlast_state is float64, expected float32", dlast_state=on(1, 4, 2).double())
        with self.assertRaisesRegex(TypeError, "takes 17 arguments .*dlast_state.*, got 14"):
            module.bwd_stateful(*list(arguments.values())[:14])


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
