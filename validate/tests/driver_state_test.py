# SPDX-License-Identifier: Apache-2.0
"""The words for a GPU that is there and cannot be used, of a libcuda.so.1 that stands in for the driver (gpu_memory_stub.c).
Needs LD_LIBRARY_PATH."""
import ctypes
import os
import pathlib
import sys
import types
import unittest
from unittest import mock

sys.modules["scankit_harness"] = package = types.ModuleType("scankit_harness")
package.__path__ = [str(pathlib.Path(__file__).resolve().parent.parent / "harness")]
from scankit_harness import driver_state, kernels, main  # noqa: E402

EXCLUSIVE, PROHIBITED = driver_state.EXCLUSIVE, driver_state.PROHIBITED


def refuse(*_, **__):
    raise RuntimeError("CUDA error: CUDA-capable device(s) is/are busy or unavailable\nCUDA kernel errors might be ...")


def torch_that(available, cuda="13.0"):
    return types.SimpleNamespace(
        cuda=types.SimpleNamespace(is_available=lambda: available, get_device_name=lambda _: "a GPU",
                                   device_count=lambda: 4), zeros=refuse,
        version=types.SimpleNamespace(cuda=cuda), __version__="2.11", get_num_threads=lambda: 1)


class DriverState(unittest.TestCase):
    def setUp(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.said = []
        main.send = lambda kind, **fields: self.said.append(fields)

    def tearDown(self):
        self.driver.stub_state(0, 0, 0)

    def why(self, *state):
        self.driver.stub_state(*state)
        return driver_state.why()

    def test_nothing_is_wrong_or_nothing_is_there(self):
        self.assertEqual(self.why(0, 0, 0), "")
        self.assertEqual(self.why(0, EXCLUSIVE, 0), "", "exclusive, and ours")
        self.assertEqual(self.why(100, 0, 0), "", "a driver without a GPU")
        self.assertEqual(driver_state.why(library="libcuda-that-is-not-here.so.1"), "")

    def test_compute_modes(self):
        self.assertEqual(self.why(0, EXCLUSIVE, 46), "its compute mode is exclusive, and another process uses it")
        self.assertIn("is prohibited (nvidia-smi", self.why(0, PROHIBITED, 46))
        self.assertEqual(self.why(0, 0, 46), "it is busy or unavailable (CUDA driver error 46)")

    def test_whether_more_than_one_process_may_have_it(self):
        for state, expected in (((0, 0, 0), True), ((0, EXCLUSIVE, 0), False), ((100, 0, 0), True)):
            self.driver.stub_state(*state)
            self.assertEqual(driver_state.shared(), expected, state)
        self.assertTrue(driver_state.shared(library="libcuda-that-is-not-here.so.1"))

    def test_kernels_are_asked_about_in_the_context_of_torch_and_without_it(self):
        driver, current = kernels._driver(), ctypes.c_void_p()
        driver.cuCtxGetCurrent(ctypes.byref(current))
        self.assertTrue(current.value)
        self.driver.stub_state(0, 0, 214)
        with self.assertRaisesRegex(RuntimeError, "cuDevicePrimaryCtxRetain: CUDA driver error 214"):
            kernels._driver()

    def test_error_states(self):
        self.assertIn("uncorrectable error (ECC)", self.why(0, 0, 214))
        self.assertIn("fabric manager", self.why(802, 0, 0))
        self.assertIn("the versions of the driver's library", self.why(803, 0, 0))
        self.assertIn("error state", self.why(999, 0, 0))
        self.assertEqual(self.why(0, 0, 777), "CUDA driver error 777")

    def hello(self, torch, wanted=True):
        usable = main._hello(torch, [0] if wanted else [])
        return usable, self.said[-1]["cuda"], self.said[-1]["cuda_problem"]

    def test_what_the_child_says_of_them(self):
        self.driver.stub_state(0, EXCLUSIVE, 46)
        told = "the GPU cannot be used: its compute mode is exclusive, and another process uses it"
        self.assertEqual(self.hello(torch_that(True)), ([], "", told))
        self.driver.stub_state(999, 0, 0)
        self.assertIn("error state", self.hello(torch_that(False))[2])
        self.assertEqual(self.hello(torch_that(False, cuda=None))[2], "", "a torch without CUDA has none to miss")
        self.assertEqual(self.hello(torch_that(False), wanted=False)[2], "")
        self.driver.stub_state(0, 0, 0)
        self.assertIn("busy or unavailable CUDA kernel", self.hello(torch_that(True))[2], "torch's own words")
        self.assertEqual(self.hello(torch_that(True), wanted=False), (["cuda:0"], "a GPU", ""))

    def test_one_of_several_that_cannot_be_used_is_named(self):
        self.driver.stub_state(0, 0, 0)

        def zeros(_, device):
            return refuse() if device in ("cuda:1", "cuda:2") else types.SimpleNamespace(cpu=lambda: None)

        torch = torch_that(True)
        torch.zeros = zeros
        with mock.patch.dict(os.environ, SCANKIT_STUB_GPUS="4"):
            self.assertEqual(main._hello(torch, [0, 1, 2, 3]), ["cuda:0", "cuda:3"])
        self.assertIn("cuda:1, cuda:2 cannot be used: RuntimeError: CUDA error", self.said[-1]["cuda_problem"])
        self.assertEqual(self.said[-1]["gpus"], {"cuda:0": "a GPU", "cuda:3": "a GPU"})

    def test_a_number_that_torch_does_not_have(self):
        self.assertEqual(main._hello(torch_that(True), [7]), [])
        self.assertEqual(self.said[-1]["cuda_problem"], "the GPU cannot be used: torch sees GPUs 0 to 3")

    def test_counts_the_gpus_of_the_driver(self):
        with mock.patch.dict(os.environ, SCANKIT_STUB_GPUS="3"):
            self.assertEqual(driver_state.count(), 3)
        self.driver.stub_state(999, 0, 0)
        self.assertEqual(driver_state.count(), 0)
        self.assertEqual(driver_state.count("libcuda-that-is-not-here.so.1"), 0)

    def test_the_number_of_a_device(self):
        self.assertEqual([driver_state.number_of(d) for d in ("cpu", "cuda:0", "cuda:12+graph", "cpu@against")],
                         [None, 0, 12, None])


if __name__ == "__main__":
    unittest.main()
