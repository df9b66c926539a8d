# SPDX-License-Identifier: Apache-2.0
"""What the tests of the functions beside fwd and bwd share. Import it before anything calls the module: it then allocates
its results on the CPU through the functions below, within NaN, and they are NaN where nobody writes.
"""
import os
import unittest

import torch

GUARD = 8
guarded = []
plain_strided, plain_like = torch.empty_strided, torch.empty_like


def empty_strided(sizes, strides, *, dtype, device):
    extent = 1 + sum((n - 1) * s for n, s in zip(sizes, strides)) if all(sizes) else 0
    storage = torch.full((extent + 2 * GUARD,), float("nan"), dtype=dtype, device=device)
    guarded.append((storage, extent))
    return storage.as_strided(sizes, strides, GUARD)


def empty_like(tensor):
    like = plain_like(tensor)
    return empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device)


torch.empty_strided, torch.empty_like = empty_strided, empty_like

import module_test  # noqa: E402
from module_test import instruction_sets, module  # noqa: E402
from oracle_case import excess  # noqa: E402

module.fwd(*[torch.ones(1, 1, 1)] * 2, torch.ones(1, 1), *[torch.ones(1, 1, 1, 1)] * 2, None, None, None, False)
torch.empty_strided, torch.empty_like = plain_strided, plain_like
# The torch flavor asks libtorch, where nothing of Python's can stand in between.
assert len(guarded) == (2 if module.scankit_info()["flavor"] == "universal" else 0), "the module allocates past this test"

CASES = int(os.environ.get("SCANKIT_TEST_CASES", "8"))


class Checks(unittest.TestCase):
    def close(self, name, got, exact, **bounds):
        self.assertEqual(tuple(got.shape), tuple(exact.shape), name)
        self.assertLessEqual(excess(got, exact, **{"floor": module_test.FLOOR, **bounds}), 1.0, name)

    def right(self, case, name, got, **bounds):
        self.assertEqual(tuple(got.shape), tuple(case.answers[name].shape), name)
        self.assertLessEqual(case.excess(name, got, **{"floor": module_test.FLOOR, **bounds}), 1.0, name)

    def same(self, one, other):
        self.assertEqual(len(one), len(other))
        for a, b in zip(one, other):
            self.assertTrue(torch.equal(a.cpu(), b.cpu()))

    def check_guards(self):
        for storage, extent in guarded:
            for guard in (storage[:GUARD], storage[GUARD + extent:]):
                self.assertTrue(bool(guard.isnan().all()), "a result was written past its ends")
        guarded.clear()

    def each_set(self):
        self.addCleanup(os.environ.pop, "SCANKIT_CPU_ISA", None)
        for isa in instruction_sets():
            os.environ["SCANKIT_CPU_ISA"] = isa
            with self.subTest(isa=isa):
                yield isa


    def refused(self, function, arguments, pattern, error=RuntimeError, **changes):
        with self.assertRaisesRegex(error, f"selective_scan_cuda.{function.__name__}: .*{pattern}"):
            function(*{**arguments, **changes}.values())
