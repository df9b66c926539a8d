# SPDX-License-Identifier: Apache-2.0
"""fwd_stateful, bwd_stateful and state_update on CUDA tensors, as device_test.py: the CPU's cases, and what only a device
has. 77: nothing to test here.
"""
import sys
import unittest

import torch

if not torch.cuda.is_available():
    print("SKIPPED: torch finds no CUDA device")
    sys.exit(77)

import selective_scan_cuda as module  # noqa: E402

if not module.scankit_info()["images"]:
    print("SKIPPED: the module contains no device images; scankit build makes one that does")
    sys.exit(77)

import stateful_checks  # noqa: E402
import module_test  # noqa: E402
import stateful_test  # noqa: E402
import update_test  # noqa: E402
from stateful_test import backward, everything, forward, make_stateful  # noqa: E402

module_test.DEVICE = "cuda"
module_test.FLOOR = 1e-4  # as device_test.py
module_test.instruction_sets = stateful_checks.instruction_sets = lambda: ["portable"]
CASES = max(stateful_checks.CASES, 100)
stateful_test.CASES = update_test.CASES = CASES


class DeviceScans(stateful_test.Scans):
    test_threads_do_not_show = None
    # Below, without the same bits: a real A with variable B and C has other kernels where no state is asked for.
    test_chunks_are_the_whole = test_packed_sequences_are_those_alone = test_no_state_given_is_fwd_and_bwd = None

    def setUp(self):
        # torch then fills what it allocates with NaN.
        torch._C._set_deterministic_algorithms(True)
        self.addCleanup(torch._C._set_deterministic_algorithms, False)

    def test_no_state_given_is_about_fwd_and_bwd(self):
        for kind in ("", "iB"):
            case, dout, _ = make_stateful(5, False, kind=kind, dtype=torch.float32, length=70, z=True, initial_state=False,
                                          dlast=False)
            plain = module.fwd(*case.tensors.values(), case.softplus)
            mine = forward(case)
            for one, other in ((plain[0], mine[0]), (plain[2], mine[3])):
                self.close("output", other, one.cpu().double())
            for x in (plain[1], mine[1], None):
                rest = (dout, x, plain[0], None, case.softplus, True)
                results = module.bwd_stateful(*case.tensors.values(), *rest, None, None, None)
                self.assertIsNone(results.pop())
                self.same([t for t in module.bwd(*case.tensors.values(), *rest) if t is not None],
                          [t for t in results if t is not None])

    def test_chunks_are_about_the_whole(self):
        for kind in ("", "i", "BC"):
            case, dout, _ = make_stateful(8, False, kind=kind, dtype=torch.float32, length=150, batch=2, initial_state=True)
            out, x, last = forward(case)[:3]
            gradients = backward(case, dout, x, out)
            whole = [out, last, gradients[-1], gradients[0], gradients[1]]
            for one, other in zip(whole, self.parts_of(case, dout, [0, 1, 32, 96, 150])):
                self.close("in parts", other, one.cpu().to(torch.complex128 if one.is_complex() else torch.float64))

    def test_two_runs_give_the_same_bits(self):
        for packed, shape in ((False, dict(length=300, batch=2)), (True, dict(lengths=[100, 0, 33, 1, 200]))):
            for kind in ("", "B", "i", "iBC"):
                with self.subTest(packed=packed, kind=kind):
                    case, dout, _ = make_stateful(12, packed, kind=kind, dtype=torch.bfloat16, states=20, per_group=70, z=True,
                                                  initial_state=True, dlast=True, **shape)
                    self.same(everything(case, dout), everything(case, dout))

    def test_bounds_that_no_row_has(self):
        """Nobody looks at them before the launch: whatever they are, nothing outside the tensors may be touched."""
        case, dout, _ = make_stateful(3, True, kind="", dtype=torch.float32, lengths=[20, 30, 14], initial_state=True, dlast=True)
        for bounds in ([0, 1000, 1001, 64], [-5, 20, 50, 64], [0, 60, 10, 64], [64, 40, 20, 0], [0, 0, 0, 2 ** 31 - 1]):
            case.bounds = bounds
            out, x, _ = forward(case)[:3]
            backward(case, dout, x, out)
            backward(case, dout, None, out)
            torch.cuda.synchronize()

    def test_cuda_graph(self):
        case, dout, _ = make_stateful(4, True, kind="", dtype=torch.float32, lengths=[40, 3, 90], initial_state=True, dlast=True,
                                      z=True)
        expected = everything(case, dout)
        u, bounds = case.tensors["u"], stateful_test.cu_seqlens(case)
        original = u.clone()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            rest = (case.softplus, case.initial_state, bounds)
            results = module.fwd_stateful(*case.tensors.values(), *rest, True)
            gradients = module.bwd_stateful(*case.tensors.values(), dout, results[1], results[0], None, case.softplus, False,
                                            *rest[1:], case.dlast)
        u.zero_()
        graph.replay()
        u.copy_(original)
        graph.replay()
        torch.cuda.synchronize()
        self.same(expected, [t for t in [results[0], *results[2:], *gradients] if t is not None])


class DeviceSteps(update_test.Steps):
    test_threads_do_not_show = None

    def test_cuda_graph(self):
        (state, _), tensors, softplus = self.make_step(1, batch=2, groups=1, per_group=64, states=16)
        before = state.clone()
        expected = [module.state_update(state, *tensors.values(), softplus), state.clone()]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = module.state_update(state, *tensors.values(), softplus)
        state.copy_(before)
        graph.replay()
        torch.cuda.synchronize()
        self.same(expected, [out, state])


class DeviceScanRefusals(stateful_test.Refusals):
    def test_bounds_on_the_cpu(self):
        self.refused(module.fwd_stateful, self.scan, "cu_seqlens is on the CPU, u on cuda:0",
                     cu_seqlens=torch.tensor([0, 6], dtype=torch.int32))


class DeviceStepRefusals(update_test.Refusals):
    def test_state_on_the_cpu(self):
        self.refused(module.state_update, self.step, "state is on the CPU, x on cuda:0", state=torch.ones(3, 4, 2))


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(torch.cuda.get_device_name(), torch.__version__, module.scankit_info()["path"])
    unittest.main()
