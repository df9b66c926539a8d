# SPDX-License-Identifier: Apache-2.0
"""A complex A that hardly damps, over 2100 steps: what of its error is the kernel's, and what comes from dt in float32.

python undamped_test.py [--attributes] [unittest's options], as module_test.py; device_test.py runs it on a device.
"""
import unittest

import torch

import module_test
from module_test import module

DIM, STATES, LENGTH = 4, 64, 2100
IMAGINARY = (1.0, 10.0, 100.0)  # sizes of A's imaginary part


class Undamped(unittest.TestCase):
    def error(self, imaginary, softplus):
        """Of the last state: the norm of its difference from a scan in complex128, as a part of that one's norm."""
        torch.manual_seed(1)
        u = torch.randn(1, DIM, LENGTH)
        delta = torch.randn(1, DIM, LENGTH) * 0.5 if softplus else torch.rand(1, DIM, LENGTH) * 0.9 + 0.1
        A = torch.complex(-1e-3 * torch.rand(DIM, STATES), imaginary * torch.randn(DIM, STATES))
        B, C = torch.randn(1, 1, STATES, 2 * LENGTH), torch.randn(1, 1, STATES, 2 * LENGTH)
        on = [tensor.to(module_test.DEVICE) for tensor in (u, delta, A, B, C)]
        last = module.fwd(*on, None, None, None, softplus)[1][0, :, -1, 1::2].cpu()
        dt = torch.nn.functional.softplus(delta[0].double()) if softplus else delta[0].double()
        a, b = A.to(torch.complex128), torch.view_as_complex(B[0, 0].double().reshape(STATES, LENGTH, 2))
        h = torch.zeros(DIM, STATES, dtype=torch.complex128)
        for t in range(LENGTH):
            h = torch.exp(dt[:, t, None] * a) * h + (dt[:, t] * u[0, :, t].double())[:, None] * b[None, :, t]
        return ((last - h).norm() / h.norm()).item()

    def coarser(self):
        """A GPU's exponential is good to 2 units, in softplus and in each decay."""
        return 1 if module_test.DEVICE == "cpu" else 10

    def test_a_dt_that_is_given_leaves_its_phase_exact(self):
        for imaginary in IMAGINARY:
            with self.subTest(imaginary=imaginary):
                self.assertLess(self.error(imaginary, False), 1e-5 * self.coarser())

    def test_a_dt_that_softplus_rounds_costs_phase_as_the_imaginary_part_is_large(self):
        # A step's angle is Im(A) dt, and dt, a float32, is off by up to 2e-7 of itself (numeric.cuh, simd.h): with an angle of
        # 100 rad a step that is 2e-5 rad, step after step. Rounding each decay or each state to float32 costs 6e-7 in all.
        for imaginary in IMAGINARY:
            with self.subTest(imaginary=imaginary):
                self.assertLess(self.error(imaginary, True), (1e-5 + 5e-6 * imaginary) * self.coarser())


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
