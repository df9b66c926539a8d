# SPDX-License-Identifier: Apache-2.0
"""causal_conv1d_cuda against the float64 oracle: random cases of the whole contract.

python module_test.py [--device cuda] [--cases N] [unittest's options]
"""
import os
import sys
import unittest

import torch

import causal_conv1d_cuda as module
from cases import LENGTHS, LONG, Case, Guarded, excess, update


def option(name, default):
    if name not in sys.argv:
        return default
    at = sys.argv.index(name)
    value = sys.argv[at + 1]
    del sys.argv[at : at + 2]
    return value


DEVICE = option("--device", "cpu")
CASES = int(option("--cases", "120"))
# Of fp32 sums. A GPU's exponential and reciprocal are each good to a few units only.
FLOOR = 1e-6 if DEVICE == "cpu" else 4e-6
SETS = ["portable", "avx2", "avx512"]


def instruction_sets():
    os.environ.pop("SCANKIT_CPU_ISA", None)
    best = module.scankit_info()["instruction_set"]
    if DEVICE != "cpu" or best not in SETS:
        return [best]
    return SETS[: SETS.index(best) + 1]


def forward(case):
    out, final = case.output(case.shape), case.output(case.states)
    assert module.causal_conv1d_fwd(case.x, case.weight, case.bias, case.sequence, case.initial, out.view, final.view,
                                    case.silu) is None
    return {"out": out, "final": final}


def backward(case):
    dx = case.output(case.shape)
    dinitial = case.output(case.states) if case.initial is not None else None
    zeros = lambda t: torch.zeros(t.shape, dtype=torch.float32, device=DEVICE)
    dweight, dbias = zeros(case.weight), None if case.bias is None else zeros(case.bias)
    assert module.causal_conv1d_bwd(case.x, case.weight, case.bias, case.dout, case.sequence, case.initial, case.dfinal,
                                    dx.view, dweight, dbias, None if dinitial is None else dinitial.view,
                                    case.silu) is None
    return {"dx": dx, "dinitial": dinitial, "dweight": dweight, "dbias": dbias}


def values(results):
    return {k: v.view if isinstance(v, Guarded) else v for k, v in results.items() if v is not None}


class Module(unittest.TestCase):
    def tearDown(self):
        os.environ.pop("SCANKIT_CPU_ISA", None)
        os.environ.pop("OMP_NUM_THREADS", None)

    def check(self, case):
        answers = case.answers()
        results = {**forward(case), **backward(case)}
        for name, got in values(results).items():
            # Sums over batch and steps, and the states at a sequence's start, are as exact as fp32 sums are.
            self.assertLess(excess(got, answers[name], floor=4 * FLOOR if name in ("dweight", "dbias") else FLOOR), 1.0, name)
        for name, result in results.items():
            if isinstance(result, Guarded):
                self.assertTrue(result.outside_is_untouched(), f"{name} was written beside its elements")
        self.assertEqual(case.changed_inputs(), [])

    def test_random_cases(self):
        for isa in instruction_sets():
            os.environ["SCANKIT_CPU_ISA"] = isa
            for seed in range(CASES):
                with self.subTest(isa=isa, seed=seed):
                    self.check(Case(seed, DEVICE))

    def test_long_ones_cross_the_segments(self):
        for isa in instruction_sets():
            os.environ["SCANKIT_CPU_ISA"] = isa
            for seed, length in enumerate(LONG):
                with self.subTest(isa=isa, length=length):
                    self.check(Case(1000 + seed, DEVICE, length=length, batch=2, dim=19))

    def test_every_length_around_width(self):
        for width in (2, 3, 4):
            for length in range(6):
                with self.subTest(width=width, length=length):
                    self.check(Case(7 * width + length, DEVICE, width=width, length=length, initial=True, dfinal=True))

    def test_no_channels_or_no_batch(self):
        for empty in ({"batch": 0}, {"dim": 0}):
            with self.subTest(**empty):
                self.check(Case(5, DEVICE, sequence="none", **empty))

    def test_same_bits_for_any_number_of_threads(self):
        case = Case(3, DEVICE, length=2050, batch=3, dim=129, sequence="packed", initial=True, dtype=torch.float32)
        seen = []
        for threads in ("1", "2", "3", "7", "2"):
            os.environ["OMP_NUM_THREADS"] = threads
            seen.append({**values(forward(case)), **values(backward(case))})
        for other in seen[1:]:
            for name, first in seen[0].items():
                self.assertTrue(torch.equal(first, other[name]), name)

    def test_infinite_inputs_reach_their_window_alone(self):
        for width in (2, 3, 4):
            case = Case(width, DEVICE, width=width, length=40, dim=17, sequence="none", initial=False, silu=False,
                        layout="channel_last")
            case.x[:, :, 20] = float("inf")
            out = forward(case)["out"].view.float()
            finite = torch.isfinite(out).all(0).all(0).cpu()
            expected = torch.tensor([not 20 <= t < 20 + width for t in range(40)])
            self.assertTrue(torch.equal(finite, expected), finite)

    def test_bwd_adds_to_dweight_and_dbias(self):
        case = Case(11, DEVICE, bias=True, length=33)
        first = values(backward(case))
        dweight, dbias = torch.full_like(first["dweight"], 2.0), torch.full_like(first["dbias"], -1.0)
        dx = torch.empty_like(case.x)
        module.causal_conv1d_bwd(case.x, case.weight, case.bias, case.dout, case.sequence, case.initial, case.dfinal, dx,
                                 dweight, dbias, None, case.silu)
        self.assertTrue(torch.equal(dweight, first["dweight"] + 2.0))
        self.assertTrue(torch.equal(dbias, first["dbias"] - 1.0))

    def test_older_signatures_return_the_same(self):
        for seed in range(40):
            case = Case(seed, DEVICE)
            new = {**values(forward(case)), **values(backward(case))}
            out = module.causal_conv1d_fwd(case.x, case.weight, case.bias, case.sequence, case.initial, None, case.silu)
            self.assertEqual(out.stride(), torch.empty_like(case.x).stride())
            old = dict(zip(("dx", "dweight", "dbias", "dinitial"), module.causal_conv1d_bwd(
                case.x, case.weight, case.bias, case.dout, case.sequence, case.initial, case.dfinal, None,
                case.initial is not None, case.silu)))
            for name, got in {"out": out, **old}.items():
                if got is None:
                    self.assertNotIn(name, new)
                    continue
                if DEVICE != "cpu" and name in ("dweight", "dbias"):
                    # A GPU's kernel is chosen by the strides, those of dx too, and each has its order of these sums.
                    torch.testing.assert_close(got.float(), new[name].to(got.dtype).float(), rtol=1e-4 if got.dtype == torch.float32
                                               else 2e-2, atol=1e-3)
                else:
                    self.assertTrue(torch.equal(got, new[name].to(got.dtype)), name)
            self.assertEqual(old["dweight"].dtype, case.weight.dtype)

    def test_signatures_of_the_first_releases(self):
        case = Case(2, DEVICE, initial=False, dfinal=False, bias=True, sequence="packed", length=33)
        x, w, b, dout, silu = case.x, case.weight, case.bias, case.dout, case.silu
        full = lambda seq: module.causal_conv1d_fwd(x, w, b, seq, None, None, silu)
        full_bwd = lambda seq: module.causal_conv1d_bwd(x, w, b, dout, seq, None, None, None, False, silu)[:3]
        self.assertTrue(torch.equal(module.causal_conv1d_fwd(x, w, b, silu), full(None)))
        self.assertTrue(torch.equal(module.causal_conv1d_fwd(x, w, b, case.sequence, silu), full(case.sequence)))
        given = torch.empty_like(x)
        for got, seq in ((module.causal_conv1d_bwd(x, w, b, dout, given, silu), None),
                         (module.causal_conv1d_bwd(x, w, b, dout, case.sequence, None, silu), case.sequence)):
            self.assertEqual(len(got), 3)
            for ours, same in zip(got, full_bwd(seq)):
                self.assertTrue(torch.equal(ours, same))

    def test_refusals(self):
        case = Case(1, DEVICE, bias=True, sequence="packed", initial=True, dtype=torch.float32, batch=2,
                    weight_dtype=torch.float32, width=4, length=16, dim=8, layout="channel_first")
        good = [case.x, case.weight, case.bias, case.sequence, case.initial, torch.empty_like(case.x), None, True]
        module.causal_conv1d_fwd(*good)
        wide = torch.randn(8, 5, device=DEVICE)
        for at, bad, words in ((0, case.x.double(), "float64"), (0, case.x[0], "three dimensions"),
                               (1, wide, "width 5"), (1, case.weight[:4], "weight has shape"),
                               (2, case.bias.half(), "bias is float16"), (3, case.sequence.long(), "seq_idx"),
                               (3, case.sequence.t().contiguous().t(), "contiguous"),
                               (4, case.initial[..., :2], "initial_states has shape"),
                               (5, case.x.half(), "out is float16"), (5, None, "out must be a torch.Tensor"),
                               (6, case.initial[..., 1:], "final_states_out has shape"), (7, case.x, "silu_activation")):
            arguments = list(good)
            arguments[at] = bad
            with self.subTest(at=at, words=words):
                with self.assertRaisesRegex((RuntimeError, TypeError), words):
                    module.causal_conv1d_fwd(*arguments)
        for count in (0, 3, 6, 9):
            with self.assertRaisesRegex(TypeError, "takes 8 arguments"):
                module.causal_conv1d_fwd(*(good + good)[:count])


class Update(unittest.TestCase):
    def check(self, seed):
        case = Case(seed, DEVICE, length=1 + seed % 6 if seed % 9 else 40, sequence="none", initial=False)
        generator = torch.Generator().manual_seed(seed)
        slots = case.width - 1 + seed % 5
        entries = None
        count = case.batch
        if seed % 2:
            count = 7
            entries = torch.randperm(count, generator=generator)[: case.batch].int()
            if seed % 4 == 1:
                entries[0] = -1
        positions = torch.randint(0, 100, (case.batch,), generator=generator).int() if seed % 3 == 0 else None
        state = Guarded((count, case.dim, slots), case.dtype, DEVICE, case.layout())
        state.filled(torch.randn(count, case.dim, slots, generator=generator))
        exact = lambda t: None if t is None else t.cpu().double()
        out_exact, state_exact = update(exact(case.x), exact(state.view), exact(case.weight), exact(case.bias), case.silu,
                                        positions, entries)
        on = lambda t: None if t is None else t.to(DEVICE)
        before = state.view.clone()
        out = case.output(case.shape)
        module.causal_conv1d_update(case.x, state.view, case.weight, case.bias, out.view, case.silu, on(positions), on(entries))
        self.assertLess(excess(out.view, out_exact, floor=FLOOR), 1.0)
        self.assertTrue(torch.equal(state.view.cpu().double(), state_exact), "conv_state")
        self.assertTrue(state.outside_is_untouched() and out.outside_is_untouched())
        self.assertEqual(case.changed_inputs(), [])
        self.check_other_forms(case, state, before, on(positions), on(entries), out)

    def check_other_forms(self, case, state, before, positions, entries, out):
        after = state.view.clone()
        state.view.copy_(before)
        returned = module.causal_conv1d_update(case.x, state.view, case.weight, case.bias, case.silu, positions, entries)
        self.assertTrue(torch.equal(returned, out.view) and torch.equal(state.view, after))
        state.view.copy_(before)
        in_place = case.x.clone()
        module.causal_conv1d_update(in_place, state.view, case.weight, case.bias, in_place, case.silu, positions, entries)
        self.assertTrue(torch.equal(in_place, out.view) and torch.equal(state.view, after))
        if entries is None and positions is None and case.length == 1:
            state.view.copy_(before)
            flat = module.causal_conv1d_update(case.x[..., 0], state.view, case.weight, case.bias, case.silu)
            self.assertTrue(torch.equal(flat, out.view[..., 0]) and torch.equal(state.view, after))

    def test_random_cases(self):
        for isa in instruction_sets():
            os.environ["SCANKIT_CPU_ISA"] = isa
            for seed in range(90):
                with self.subTest(isa=isa, seed=seed):
                    self.check(seed)
        os.environ.pop("SCANKIT_CPU_ISA", None)

    def test_entries_that_are_not_there(self):
        x, state, weight = torch.ones(2, 3, 1), torch.ones(2, 3, 4), torch.ones(3, 3)
        entries = torch.tensor([0, 2], dtype=torch.int32)
        on = [t.to(DEVICE) for t in (x, state, weight, entries)]
        call = lambda: module.causal_conv1d_update(on[0], on[1], on[2], None, False, None, on[3])
        if DEVICE == "cpu":
            with self.assertRaisesRegex(IndexError, r"conv_state_indices\[1\] is 2"):
                call()
        else:
            self.assertEqual(torch.isnan(call()).flatten(1).all(1).tolist(), [False, True])
        with self.assertRaisesRegex(RuntimeError, "at least width - 1 = 2"):
            module.causal_conv1d_update(on[0], on[1][..., :1], on[2], None, False)


if __name__ == "__main__":
    assert set(LENGTHS) & {0, 1, 2, 3}
    torch.set_num_threads(1)
    unittest.main()
