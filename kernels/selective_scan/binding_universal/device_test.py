# SPDX-License-Identifier: Apache-2.0
"""selective_scan_cuda on CUDA tensors: the contract, and what only a device has: streams, threads, graphs, host cost.

SCANKIT_TEST_MODULES=DIR ctest -L gpu, or PYTHONPATH=DIR python device_test.py, where DIR holds a module with images for
the device (scankit build --out DIR). 77: nothing to test here.
"""
import sys
import threading
import time
import unittest

import torch

if not torch.cuda.is_available():
    print("SKIPPED: torch finds no CUDA device")
    sys.exit(77)

import selective_scan_cuda as module  # noqa: E402

if not module.scankit_info()["images"]:
    print("SKIPPED: the module contains no device images; scankit build makes one that does")
    sys.exit(77)

import module_test  # noqa: E402
from module_test import backward, forward, make_case  # noqa: E402
from undamped_test import Undamped  # noqa: E402, F401

module_test.DEVICE = "cuda"
module_test.FLOOR = 1e-4  # validate's bound: the exponentials of the GPU are good to 2 units, and sums cancel


class DeviceContract(module_test.Contract):
    test_random_cases = test_every_dtype_length_and_state_count = None  # they loop over the CPU's instruction sets

    def test_random_device_cases(self):
        torch._C._set_deterministic_algorithms(True)
        self.addCleanup(torch._C._set_deterministic_algorithms, False)
        for seed in range(400):  # real and complex, variable and constant
            with self.subTest(seed=seed):
                self.check_case(*make_case(seed))


class Device(unittest.TestCase):
    KIND = ""

    def setUp(self):
        self.case, self.dout, _ = make_case(11, kind=self.KIND, dtype=torch.float32, length=129, states=16, batch=2, per_group=70,
                                            groups=1, D=True, z=True, delta_bias=True)
        self.expected = self.everything()

    def everything(self):
        results = forward(self.case)
        return results + [g for g in backward(self.case, self.dout, results[1], results[0]) if g is not None]

    def same(self, results):
        torch.cuda.synchronize()
        for one, other in zip(self.expected, results):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)

    def test_warm_names_the_device(self):
        major, minor = torch.cuda.get_device_capability()
        self.assertEqual(module.warm()["sm"], 10 * major + minor)

    def test_a_thread_without_a_context(self):
        results = []
        thread = threading.Thread(target=lambda: results.extend(self.everything()))
        thread.start()
        thread.join()
        self.assertEqual(len(results), len(self.expected))
        self.same(results)

    def test_autograds_thread(self):
        case, dout = self.case, self.dout

        class Scan(torch.autograd.Function):
            @staticmethod
            def forward(ctx, u):
                out, x, out_z = module.fwd(u, *list(case.tensors.values())[1:], case.softplus)
                ctx.save_for_backward(u, out, x)
                return out_z

            @staticmethod
            def backward(ctx, grad):
                u, out, x = ctx.saved_tensors
                rest = list(case.tensors.values())[1:]
                return module.bwd(u, *rest, grad.contiguous(), x, out, None, case.softplus, False)[0]

        u = case.tensors["u"].clone().requires_grad_()
        (Scan.apply(u) * dout).sum().backward()
        torch.testing.assert_close(u.grad, self.expected[3], rtol=1e-5, atol=1e-5)

    def test_follows_torchs_stream(self):
        side = torch.cuda.Stream()
        tensors = self.case.tensors
        u = torch.zeros_like(tensors["u"])
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(200_000_000)
            u.copy_(tensors["u"])  # a launch on another stream would read the zeros
            out = module.fwd(u, *list(tensors.values())[1:], self.case.softplus)[2]
        side.synchronize()
        torch.testing.assert_close(out, self.expected[2], rtol=1e-5, atol=1e-5)

    def test_cuda_graph(self):
        tensors = dict(self.case.tensors)
        tensors["u"] = torch.zeros_like(tensors["u"])
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out, x, out_z = module.fwd(*tensors.values(), self.case.softplus)
            grads = module.bwd(*tensors.values(), self.dout, x, out, None, self.case.softplus, False)
        tensors["u"].copy_(self.case.tensors["u"])
        graph.replay()
        self.same([out, x, out_z, *grads])

    def test_mixed_devices_are_refused(self):
        tensors = dict(self.case.tensors)
        tensors["A"] = tensors["A"].cpu()
        with self.assertRaisesRegex(RuntimeError, "A is on the CPU, u on cuda:0"):
            module.fwd(*tensors.values(), True)

    def test_print_the_host_cost(self):
        """No bound: a shared machine decides. The goals are 6.5 and 15 us."""
        module_test.DEVICE = "cuda"
        if self.KIND:
            self.skipTest("the figures are of the plain kind")
        case, dout, _ = make_case(1, kind="", dtype=torch.bfloat16, length=32, states=16, batch=1, per_group=1, groups=1, z=False)
        tensors = [t if t is None else t.expand(1, 64, 32).contiguous() if n in ("u", "delta") else t
                   for n, t in case.tensors.items()]
        tensors[2] = -torch.rand(64, 16, device="cuda")
        tensors[5], tensors[7] = torch.rand(64, device="cuda"), torch.rand(64, device="cuda")
        dout = torch.randn(1, 64, 32, device="cuda", dtype=torch.bfloat16)
        out, x = module.fwd(*tensors, True)
        calls = {"fwd": lambda: module.fwd(*tensors, True),
                 "bwd": lambda: module.bwd(*tensors, dout, x, out, None, True, False)}
        for name, call in calls.items():
            best = min(self.seconds(call) for _ in range(7))
            print(f"host cost of {name}, B1 D64 L32 N16 bf16: {best * 1e6:.1f} us")

    def seconds(self, call, count=300):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - start) / count


class GeneralDevice(Device):
    """The same with the kernels for complex A and constant B and C."""
    KIND = "iB"

    def test_two_runs_give_the_same_bits(self):
        for kind in module_test.KINDS:
            with self.subTest(kind=kind):
                self.case, self.dout, _ = make_case(12, kind=kind, dtype=torch.bfloat16, length=300, states=20, batch=2,
                                                    per_group=70, z=True)
                for one, other in zip(self.everything(), self.everything()):
                    self.assertTrue(torch.equal(one, other))

    def test_print_the_time(self):
        for kind in ("", "BC", "i", "iB"):
            case, dout, _ = make_case(1, kind=kind, dtype=torch.bfloat16, length=32, states=16, batch=1, per_group=1,
                                      groups=1, z=False, D=False, delta_bias=False)
            wide = {n: case.tensors[n].repeat(*((8, 1, 1, 64) if case.tensors[n].dim() == 4 else (2048, 1)))
                    for n in "ABC"}
            u, delta, dout = (t.repeat(8, 2048, 64).contiguous() for t in (case.tensors["u"], case.tensors["delta"], dout))
            rest = [u, delta, wide["A"], wide["B"], wide["C"], None, None, None]
            out, x = module.fwd(*rest, True)
            forward_s = self.seconds_on_device(lambda: module.fwd(*rest, True))
            backward_s = self.seconds_on_device(lambda: module.bwd(*rest, dout, x, out, None, True, False))
            print(f"B8 D2048 L2048 N16 bf16 {kind or 'plain'}: {1e3 * forward_s:.3f} / {1e3 * backward_s:.3f} ms")

    def seconds_on_device(self, call, count=20):
        call()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(count):
            call()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / count / 1e3


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(torch.cuda.get_device_name(), torch.__version__, module.scankit_info()["path"])
    unittest.main()
