# SPDX-License-Identifier: Apache-2.0
"""scankit_kernels: the operators against the float64 oracle and under torch's own checks, fake tensors, torch.compile,
torch.export and autocast.

PYTHONPATH=<build>/modules python wrapper_test.py [--device cuda] [Wrapper|Inductor|...] [unittest's options]
"""
import os
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
KERNELS = os.path.dirname(HERE)
sys.path[1:1] = [HERE] + [os.path.join(KERNELS, *part) for part in (("selective_scan", "binding_universal"), ("binding",))]

import torch  # noqa: E402

from source_archive import require, skip  # noqa: E402

if not hasattr(torch.library, "register_autograd"):
    skip(f"torch {torch.__version__} is older than 2.4")
# What torch.compile imports, which a small environment lacks.
for needed, *requirements in (("sympy", "sympy==1.14.0", "mpmath==1.3.0"), ("networkx", "networkx==3.4.2"),
                              ("jinja2", "jinja2==3.1.6", "markupsafe==3.0.2"), ("filelock", "filelock==3.16.1"),
                              ("fsspec", "fsspec==2024.10.0"), ("setuptools", "setuptools==75.1.0")):
    require(needed, *requirements)

import module_test  # noqa: E402
import scankit_kernels  # noqa: E402
from module_test import KINDS, make_case  # noqa: E402
from oracle_case import excess  # noqa: E402
from scankit_kernels import (  # noqa: E402
    causal_conv1d_fn, causal_conv1d_update, selective_scan_fn, selective_state_update)
from stateful_cases import cu_seqlens, make_stateful  # noqa: E402
from torch._subclasses import FakeTensorMode  # noqa: E402

if "--device" in sys.argv:
    at = sys.argv.index("--device")
    module_test.DEVICE = sys.argv[at + 1]
    del sys.argv[at:at + 2]
    module_test.FLOOR = 1e-4  # as device_test.py
DEVICE = module_test.DEVICE
OPS = torch.ops.scankit
NAMES = ["u", "delta", "A", "B", "C", "D", "z", "delta_bias"]
SHORT = [kind for kind in dict.fromkeys(KINDS)]


def small_case(seed, kind="", **fixed):
    return make_case(seed, kind=kind, **{"length": 40, "states": 3, "per_group": 3, "batch": 2, **fixed})


def leaves_of(case):
    return {n: None if t is None else t.detach().requires_grad_() for n, t in case.tensors.items()}


def flat(results):
    return results if isinstance(results, (tuple, list)) else (results,)


def randn(*shape):
    return torch.randn(*shape).to(DEVICE)


def conv_arguments(dtype=torch.float32, length=9, states=True, width=4):
    torch.manual_seed(length)
    x, initial = randn(2, 5, length).to(dtype), randn(2, 5, width - 1).to(dtype)
    return [t.requires_grad_() for t in (x, randn(5, width), randn(5))] + [
        None, initial.requires_grad_() if states else None, states, True]


def block(x, weight, conv_bias, delta, A, B, C, D, z):
    u = causal_conv1d_fn(x * 0.5, weight, conv_bias, activation="silu")
    out = selective_scan_fn(u, delta.tanh(), -A.exp(), B, C, D, z=z, delta_softplus=True)
    return out.transpose(1, 2) * 2 + 1


def block_arguments(length):
    torch.manual_seed(length)
    shapes = [(2, 6, length), (6, 4), (6,), (2, 6, length), (6, 4), (2, 4, length), (2, 4, length), (6,), (2, 6, length)]
    return [randn(*shape).requires_grad_() for shape in shapes]


def compiled_equals_eager(**options):
    arguments, answers = block_arguments(40), []
    for one in (block, torch.compile(block, fullgraph=True, **options)):
        out = one(*arguments)
        answers.append([out, *torch.autograd.grad(out.square().sum(), arguments)])
    for eager, compiled in zip(*answers):
        torch.testing.assert_close(compiled, eager, rtol=1e-4, atol=1e-4)


class Inductor(unittest.TestCase):
    """Its generated code around the operators, forward and backward; it takes a C++ compiler and some ten seconds."""

    def test_compile(self):
        compiled_equals_eager()


class Wrapper(unittest.TestCase):
    def close(self, name, got, exact, factor=2.0):
        self.assertEqual(tuple(got.shape), tuple(exact.shape), name)
        self.assertLessEqual(excess(got.detach(), exact, factor=factor, floor=module_test.FLOOR), 1.0, name)

    def test_function_and_gradients_against_the_oracle(self):
        for seed in range(60):
            with self.subTest(seed=seed):
                case, dout, _ = make_case(seed)
                leaves = leaves_of(case)
                out = selective_scan_fn(*leaves.values(), case.softplus)
                self.close("out", out, case.answers["out_z"])
                (out * dout).sum().backward()
                for name, leaf in leaves.items():
                    if leaf is not None:
                        self.assertEqual(leaf.grad.dtype, leaf.dtype)
                        self.close("d" + name, leaf.grad, case.gradients[name], factor=3.0)

    def test_states_and_packed_sequences_against_the_oracle(self):
        for seed in range(60):
            with self.subTest(seed=seed):
                case, dout, rng = make_stateful(seed, packed=seed % 2 == 1)
                leaves = leaves_of(case)
                initial = None if case.initial_state is None else case.initial_state.detach().requires_grad_()
                out, last = selective_scan_fn(
                    *leaves.values(), case.softplus, return_last_state=True, initial_state=initial,
                    cu_seqlens=cu_seqlens(case), recompute=rng.random() < 0.3)
                self.close("out", out, case.answers["out_z"])
                self.close("last state", last, case.answers["last_state"])
                loss = (out * dout).sum()
                if case.dlast is not None:  # torch's convention: the gradient is with regard to the conjugate
                    product = (last.conj() * case.dlast).sum()
                    loss = loss + (product.real if product.is_complex() else product)
                loss.backward()
                for name, leaf in {**leaves, "initial_state": initial}.items():
                    if leaf is not None and not (name == "initial_state" and leaf.grad is None):
                        self.close("d" + name, leaf.grad, case.gradients[name], factor=3.0)

    def test_projections_of_three_dimensions_and_steps_not_last_in_memory(self):
        case, dout, _ = small_case(5, dtype=torch.float32, groups=1, z=True)
        leaves = leaves_of(case)
        by_steps = {n: leaves[n].transpose(1, 2).contiguous().transpose(1, 2) for n in ("u", "delta", "z")}
        three = {n: leaves[n].squeeze(1).transpose(1, 2).contiguous().transpose(1, 2) for n in "BC"}
        out = selective_scan_fn(*{**leaves, **by_steps, **three}.values(), case.softplus)
        self.close("out", out, case.answers["out_z"])
        (out * dout).sum().backward()
        for name, leaf in leaves.items():
            if leaf is not None:
                self.close("d" + name, leaf.grad, case.gradients[name], factor=3.0)

    def test_torchs_own_checks(self):
        for kind, z in (("", True), ("BC", False), ("i", False), ("iB", True)):
            case = small_case(7, kind, z=z, dtype=torch.float32)[0]
            with self.subTest(kind=kind, z=z):
                arguments = (*leaves_of(case).values(), case.softplus)
                torch.library.opcheck(OPS.selective_scan_fwd.default, arguments)
                plain = [t.detach() if isinstance(t, torch.Tensor) else t for t in arguments]
                out, states, _ = OPS.selective_scan_fwd(*plain)
                backward = (*plain[:8], torch.randn_like(out), states, out, case.softplus)
                torch.library.opcheck(OPS.selective_scan_bwd.default, backward)
        torch.use_deterministic_algorithms(True)  # the rows of a packed sequence's states that nobody reads: all NaN
        self.addCleanup(torch.use_deterministic_algorithms, False)
        for kind, packed in (("", False), ("i", True)):
            case, dout, _ = make_stateful(9, packed, kind=kind, dtype=torch.float32, states=3, per_group=3, z=True,
                                          initial_state=True, dlast=True, **({"lengths": [5, 40]} if packed else {"length": 40}))
            more = (case.initial_state, cu_seqlens(case))
            arguments = (*leaves_of(case).values(), case.softplus, more[0].detach().requires_grad_(), more[1], True)
            torch.library.opcheck(OPS.selective_scan_stateful_fwd.default, arguments)
            out, states, *_ = OPS.selective_scan_stateful_fwd(*case.tensors.values(), case.softplus, *more, True)
            torch.library.opcheck(OPS.selective_scan_stateful_bwd.default, (
                *case.tensors.values(), dout, states, out, case.softplus, *more, case.dlast))
        state, A, row = randn(2, 5, 3), -torch.rand(5, 3).to(DEVICE), randn(2, 3)
        torch.library.opcheck(OPS.selective_state_update.default, (
            state, randn(2, 5), randn(2, 5), A, row, row, None, None, None, True))
        for states in (False, True):
            arguments = conv_arguments(states=states)
            torch.library.opcheck(OPS.causal_conv1d_fwd.default, arguments)
            x, weight, bias, _, initial, *_ = [t.detach() if isinstance(t, torch.Tensor) else t for t in arguments]
            torch.library.opcheck(OPS.causal_conv1d_bwd.default, (
                x, weight, bias, torch.randn_like(x), None, initial, torch.randn_like(initial) if states else None, True))
        x, state = randn(2, 5), randn(2, 5, 3)
        torch.library.opcheck(OPS.causal_conv1d_update.default, (x, state, randn(5, 4), None, True, None, None))

    def same_metadata(self, operator, arguments):
        real = flat(operator(*arguments))
        with FakeTensorMode() as mode:
            fake = flat(operator(*[mode.from_tensor(t) if isinstance(t, torch.Tensor) else t for t in arguments]))
        for one, other in zip(real, fake):
            self.assertEqual((one.shape, one.dtype, one.device), (other.shape, other.dtype, other.device))
            steps = lambda t: [stride for stride, size in zip(t.stride(), t.shape) if size > 1]  # of 1: without meaning
            if one.numel() > 1:
                self.assertEqual(steps(one), steps(other))
        return real

    def test_fake_tensors_are_like_the_real_ones(self):
        for seed in range(30):
            case, dout, _ = make_case(seed)
            with self.subTest(seed=seed):
                out, states, _ = self.same_metadata(OPS.selective_scan_fwd, (*case.tensors.values(), case.softplus))
                self.same_metadata(OPS.selective_scan_bwd, (*case.tensors.values(), dout, states, out, case.softplus))
                case, dout, rng = make_stateful(seed, packed=seed % 2 == 1)
                more = (case.softplus, case.initial_state, cu_seqlens(case))
                out, states, *_ = self.same_metadata(OPS.selective_scan_stateful_fwd, (
                    *case.tensors.values(), *more, rng.random() < 0.7))
                self.same_metadata(OPS.selective_scan_stateful_bwd, (*case.tensors.values(), dout, states, out, *more, case.dlast))
        for length in (1, 2, 9):
            for last in (False, True):
                x, weight, bias, *_ = [t.detach() for t in conv_arguments(length=length)[:3]]
                x = x.transpose(1, 2).contiguous().transpose(1, 2) if last else x
                initial = randn(2, 5, 3)
                self.same_metadata(OPS.causal_conv1d_fwd, (x, weight, bias, None, initial, last, False))
                self.same_metadata(OPS.causal_conv1d_bwd, (x, weight, bias, x.clone(), None, initial, None, False))

    def test_compile_without_a_graph_break(self):
        torch._dynamo.reset()
        compiled_equals_eager(backend="aot_eager")
        torch._dynamo.reset()
        compiled = torch.compile(block, fullgraph=True, dynamic=True, backend="aot_eager")
        for length in (40, 64, 101):
            with torch.no_grad():
                torch.testing.assert_close(compiled(*block_arguments(length)), block(*block_arguments(length)))

    def test_export(self):
        class Scan(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.A, self.D = torch.nn.Parameter(torch.rand(6, 4)), torch.nn.Parameter(torch.rand(6))

            def forward(self, u, delta, B, C):
                return selective_scan_fn(u, delta, -self.A, B, C, self.D, delta_softplus=True, return_last_state=True)

        def arguments(length):
            return tuple(randn(2, n, length) for n in (6, 6, 4, 4))

        model, steps = Scan().to(DEVICE), torch.export.Dim("steps", min=2, max=4096)
        program = torch.export.export(model, arguments(40), dynamic_shapes=[{2: steps}] * 4)
        self.assertIn("scankit.selective_scan_stateful_fwd", str(program.graph))
        for length in (40, 33, 200):
            given = arguments(length)
            for one, other in zip(program.module()(*given), model(*given)):
                torch.testing.assert_close(one, other)

    def test_autocast(self):
        """The dtypes that a block's layers hand over under autocast: some bfloat16, some float32."""
        case, dout, _ = small_case(3, dtype=torch.float32, groups=1, z=True, D=True, delta_bias=True)
        leaves = leaves_of(case)
        mixed = {n: leaves[n].to(torch.bfloat16) for n in ("u", "B", "z", "D")}
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            out = selective_scan_fn(*{**leaves, **mixed}.values(), case.softplus)
            same = selective_scan_fn(*leaves.values(), case.softplus)
        self.assertEqual((out.dtype, same.dtype), (torch.bfloat16, torch.float32))
        self.close("out", same, case.answers["out_z"])
        torch.testing.assert_close(out.double().cpu(), case.answers["out_z"].cpu(), rtol=0.05, atol=0.2)
        (out * dout).sum().backward()
        for name, leaf in leaves.items():
            self.assertEqual(leaf.grad.dtype, torch.float32)
            exact = case.gradients[name].cpu()
            self.assertLess((leaf.grad.double().cpu() - exact).norm(), 0.05 * exact.norm(), name)
        with self.assertRaisesRegex(RuntimeError, "delta is float32, expected bfloat16"):  # outside it nothing is cast
            selective_scan_fn(*{**leaves, **mixed}.values(), case.softplus)

    def test_convolution(self):
        for dtype, states in ((torch.float32, True), (torch.float32, False), (torch.bfloat16, True)):
            x, weight, bias, _, initial, *_ = arguments = conv_arguments(dtype, states=states)
            got = causal_conv1d_fn(x, weight, bias, None, initial, states, None, "silu")
            before = torch.zeros(2, 5, 3, dtype=dtype, device=DEVICE) if initial is None else initial
            extended = torch.cat([before, x], -1).float()
            exact = torch.nn.functional.silu(torch.nn.functional.conv1d(extended, weight[:, None], bias, groups=5))
            answers = []
            for out, final in ((got if states else (got, None)), (exact, extended[..., -3:] if states else None)):
                loss = out.float().square().sum() + (0 if final is None else final.float().square().sum())
                leaves = [t for t in arguments if isinstance(t, torch.Tensor)]
                answers.append([out, *([] if final is None else [final]), *torch.autograd.grad(loss, leaves)])
            bound = 1e-4 if dtype == torch.float32 else 5e-2
            for one, other in zip(*answers):
                torch.testing.assert_close(one.float(), other.float(), rtol=bound, atol=bound)

    def test_update_is_the_convolution_step_by_step(self):
        x, weight, bias, _, initial, *_ = [t.detach() if isinstance(t, torch.Tensor) else t for t in conv_arguments()]
        state = initial.clone()
        steps = [causal_conv1d_update(x[..., t].contiguous(), state, weight, bias, "silu") for t in range(x.shape[2])]
        out, final = causal_conv1d_fn(x, weight, bias, None, initial, True, torch.empty(2, 5, 3, device=DEVICE), "silu")
        torch.testing.assert_close(torch.stack(steps, -1), out)
        torch.testing.assert_close(state, final)
        with self.assertRaisesRegex(NotImplementedError, "'relu'"):
            causal_conv1d_fn(x, weight, activation="relu")

    def test_state_update_is_the_scan_step_by_step(self):
        case = small_case(2, groups=1, dtype=torch.float32, D=True, z=True, delta_bias=True)[0]
        u, delta, A, B, C, D, z, bias = case.tensors.values()
        state = torch.zeros(*u.shape[:2], A.shape[1], device=DEVICE)
        steps = [selective_state_update(state, u[..., t], delta[..., t], A, B[:, 0, :, t].contiguous(),
                                        C[:, 0, :, t].contiguous(), D, z[..., t], bias, case.softplus)
                 for t in range(u.shape[2])]
        self.close("out", torch.stack(steps, -1), case.answers["out_z"])
        self.close("state", state, case.answers["last_state"])

    def test_what_is_missing_is_said(self):
        ones = torch.ones(1, 1, 1)
        other = types.ModuleType("selective_scan_cuda")
        other.__file__ = "other.so"
        for found, error in ((None, "selective_scan_cuda cannot be imported .*scankit fix --module selective_scan_cuda"),
                             (other, "selective_scan_cuda in other.so is not scankit's; ")):
            with unittest.mock.patch.dict(sys.modules, selective_scan_cuda=found):
                with self.assertRaisesRegex(scankit_kernels.ModuleMissing, error):
                    selective_scan_fn(ones, ones, ones[0], ones, ones)
        script = "import torch; del torch.library.register_autograd; import scankit_kernels"
        run = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": HERE}, capture_output=True,
                             text=True, timeout=120)
        self.assertRegex(run.stderr.strip().splitlines()[-1], "ImportError: scankit_kernels needs torch 2.4 or newer")


if __name__ == "__main__":
    scratch = tempfile.TemporaryDirectory()
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = scratch.name
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    print("torch", torch.__version__, scankit_kernels.__file__)
    unittest.main()
