# SPDX-License-Identifier: Apache-2.0
"""selective_scan_cuda on CPU tensors against the float64 oracle: random cases of the whole contract.

python module_test.py [--attributes] [unittest's options]; --attributes hides torch's DLPack table, so that tensors are
read the way they are before torch 2.10.
"""
import itertools
import os
import random
import signal
import subprocess
import sys
import unittest

import torch

if "--attributes" in sys.argv:
    sys.argv.remove("--attributes")
    if hasattr(torch._C, "_dlpack_exchange_api"):
        del torch._C._dlpack_exchange_api

import selective_scan_cuda as module  # noqa: E402
from oracle_case import Case, plain_scan  # noqa: E402

DEVICE = "cpu"
FLOOR = 2e-5  # of fp32 sums, relative to the answer's norm
SETS = ["portable", "avx2", "avx512"]
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
LENGTHS = [0, 1, 2, 7, 31, 32, 33, 63, 64, 65, 100, 129, 200]
STATES = [1, 2, 3, 8, 16, 19, 64, 256]
KINDS = ["", "", "", "B", "C", "BC", "i", "iB", "iC", "iBC"]  # i(maginary parts: complex A), constant B, constant C


def instruction_sets():
    os.environ.pop("SCANKIT_CPU_ISA", None)
    best = module.scankit_info()["instruction_set"]
    return SETS[: SETS.index(best) + 1] if best in SETS else [best]  # neon


def laid_out(tensor, how):
    """The same values in another layout, all with unit last stride."""
    tensor = tensor.to(DEVICE)
    batch, dim, length = tensor.shape
    if how == "dim_major":  # strides (length, batch * length, 1), as mamba_inner makes them
        return tensor.permute(1, 0, 2).contiguous().permute(1, 0, 2)
    if how == "chunk":  # half of a wider tensor
        return torch.cat([tensor, torch.full_like(tensor, float("nan"))], 1).chunk(2, 1)[0] if dim else tensor
    if how == "offset":  # misaligned: starts one element into its storage
        store = torch.full((tensor.numel() + 1,), float("nan"), dtype=tensor.dtype, device=DEVICE)
        store[1:] = tensor.reshape(-1)
        return store[1:].view(batch, dim, length)
    return tensor.contiguous()


def make_call(seed, **fixed):
    """(tensors, delta_softplus, dout, what drew them) of a random call, small enough for the oracle."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    pick = lambda name, choices: fixed.get(name, rng.choice(choices))
    dtype, length, states = pick("dtype", DTYPES), pick("length", LENGTHS), pick("states", STATES)
    kind = pick("kind", KINDS)
    is_complex, constant_B, constant_C = (letter in kind for letter in "iBC")
    groups = 1 if constant_B else pick("groups", [1, 1, 2, 3])
    dim = groups * pick("per_group", [1, 3, 4, 8, 17, 33])
    batch = pick("batch", [1, 2, 3])
    layouts = ["plain", "dim_major", "chunk", "offset"]
    sequence = lambda scale=1.0: laid_out((torch.randn(batch, dim, length) * scale).to(dtype), rng.choice(layouts))
    optional = lambda name, value: value if fixed.get(name, rng.random() < 0.5) else None
    on = lambda *shape: torch.randn(*shape).to(DEVICE)
    transposed = lambda matrix: matrix.t().contiguous().t() if rng.random() < 0.3 else matrix
    number = lambda *shape: torch.complex(on(*shape), on(*shape)) if is_complex else on(*shape)
    A = -on(dim, states).abs() * rng.choice([0.1, 1.0, 8.0])
    if is_complex:
        A = torch.complex(A, on(dim, states) * rng.choice([0.1, 1.0, 20.0]))
    projection = lambda constant: transposed(number(dim, states)) if constant else \
        on(batch, groups, states, length * (2 if is_complex else 1)).to(dtype)
    tensors = {
        "u": sequence(), "delta": sequence(0.5), "A": transposed(A),
        "B": projection(constant_B), "C": projection(constant_C),
        "D": optional("D", on(dim)), "z": optional("z", sequence()),
        "delta_bias": optional("delta_bias", on(dim) - 1.0),
    }
    softplus = fixed.get("softplus", rng.random() < 0.7)
    if not softplus:
        tensors["delta"] = tensors["delta"].abs()
        if tensors["delta_bias"] is not None:
            tensors["delta_bias"] = tensors["delta_bias"].abs()
    return tensors, softplus, sequence(), rng


def make_case(seed, **fixed):
    tensors, softplus, dout, rng = make_call(seed, **fixed)
    return Case(tensors, softplus, dout), dout, rng


def forward(case):
    return module.fwd(*case.tensors.values(), case.softplus)


def backward(case, dout, x, out, dz=None, recompute=False):
    return module.bwd(*case.tensors.values(), dout, x, out, dz, case.softplus, recompute)


GRADIENTS = ["u", "delta", "A", "B", "C", "D", "delta_bias"]


class Contract(unittest.TestCase):
    def close(self, case, name, got, **bounds):
        self.assertEqual(tuple(got.shape), tuple(case.answers[name].shape), name)
        self.assertLessEqual(case.excess(name, got, **{"floor": FLOOR, **bounds}), 1.0, name)

    # Each gradient that is a sum over the steps, of a scan that forgets at once (A = -40): dA's terms vanish beside B's and C's.
    def test_sums_over_millions_of_steps(self):
        length = 3_000_001
        on = lambda *shape, value: torch.full(shape, value, device=DEVICE)
        u, delta, dout = on(1, 1, length, value=1.1), on(1, 1, length, value=1.0), on(1, 1, length, value=1.3)
        A, B, C = (on(1, 1, value=v) for v in (-40.0, 0.7, 0.9))
        out, x = module.fwd(u, delta, A, B, C, on(1, value=0.5), None, on(1, value=0.0), False)
        gradients = module.bwd(u, delta, A, B, C, on(1, value=0.5), None, on(1, value=0.0), dout, x, out, None, False, False)
        got = dict(zip(("dA", "dB", "dC", "dD", "ddelta_bias"), gradients[2:]))
        terms = dict(dB=1.3 * 0.9 * 1.1, dC=1.3 * 0.7 * 1.1, dD=1.3 * 1.1, ddelta_bias=1.3 * 0.9 * 0.7 * 1.1)
        for name, term in terms.items():
            self.assertLessEqual(abs(got[name].item() / (length * term) - 1), 1e-6 if DEVICE == "cpu" else 1e-3, name)

    def check_forward(self, case):
        results = forward(case)
        tensors = case.tensors
        self.assertEqual(len(results), 2 if tensors["z"] is None else 3)
        self.assertEqual(results[0].dtype, tensors["u"].dtype)
        self.assertEqual(results[1].dtype, tensors["A"].dtype)
        self.assertEqual(results[0].stride(), torch.empty_like(tensors["delta"]).stride())
        self.close(case, "out", results[0])
        self.close(case, "last_state", results[1][:, :, -1, 1::2])
        if tensors["z"] is not None:
            self.close(case, "out_z", results[2])
        return results

    def check_backward(self, case, dout, x, out, rng):
        tensors = case.tensors
        recompute = rng.random() < 0.5
        dz = None
        if tensors["z"] is not None and rng.random() < 0.5:
            dz = torch.full_like(torch.cat([tensors["z"]] * 2, 1), float("nan")).chunk(2, 1)[1]
        results = backward(case, dout, x, out, dz, recompute)
        for name, got in zip(GRADIENTS, results):
            if tensors[name] is None:
                self.assertIsNone(got, name)
            else:
                self.assertEqual(got.dtype, tensors[name].dtype, name)
                self.close(case, "d" + name, got)
        if tensors["z"] is not None:
            self.close(case, "dz", results[7], factor=3.0)  # made from the rounded out
            if dz is not None:
                self.assertIs(results[7], dz)
        if recompute and tensors["z"] is not None:
            self.close(case, "out_z", results[8], factor=3.0)
        self.assertEqual(len(results), 7 + (tensors["z"] is not None) + recompute)

    def check_case(self, case, dout, rng):
        inputs = [t for t in [*case.tensors.values(), dout] if t is not None]
        before = [t.clone() for t in inputs]
        results = self.check_forward(case)
        x, length = results[1], dout.shape[2]
        upstream = x.new_full((*x.shape[:2], -(-length // 2048), x.shape[3]), float("nan"))
        for states in (x, x.clone(memory_format=torch.contiguous_format), None, upstream):
            self.check_backward(case, dout, states, results[0], rng)
        for now, then in zip(inputs, before):
            self.assertTrue(torch.equal(now, then), "an input was changed")

    def test_random_cases(self):
        # torch then fills what it allocates with NaN. Not torch.use_deterministic_algorithms: it imports the compiler.
        torch._C._set_deterministic_algorithms(True)
        self.addCleanup(torch._C._set_deterministic_algorithms, False)
        for isa in instruction_sets():
            os.environ["SCANKIT_CPU_ISA"] = isa
            for seed in range(int(os.environ.get("SCANKIT_TEST_CASES", "40"))):
                with self.subTest(isa=isa, seed=seed):
                    self.check_case(*make_case(seed))
        os.environ.pop("SCANKIT_CPU_ISA")

    def test_every_kind_length_and_state_count(self):
        for kind in KINDS[3:]:
            for dtype, length in zip(itertools.cycle(DTYPES), LENGTHS):
                with self.subTest(kind=kind, dtype=dtype, length=length):
                    self.check_case(*make_case(length, kind=kind, dtype=dtype, length=length, states=5, per_group=17))
            for dtype, states in zip(itertools.cycle(DTYPES), STATES):
                with self.subTest(kind=kind, dtype=dtype, states=states):
                    self.check_case(*make_case(states, kind=kind, dtype=dtype, states=states, length=65, per_group=4))

    def test_every_dtype_length_and_state_count(self):
        for dtype in DTYPES:
            for length in LENGTHS:
                with self.subTest(dtype=dtype, length=length):
                    self.check_case(*make_case(length, kind="", dtype=dtype, length=length, states=16, batch=2))
            for states in STATES:
                with self.subTest(dtype=dtype, states=states):
                    self.check_case(*make_case(states, kind="", dtype=dtype, states=states, length=65, per_group=4))

    def test_past_upstreams_chunk(self):
        for kind in ("", "iB"):
            with self.subTest(kind=kind):
                self.check_case(*make_case(5, kind=kind, length=2049, states=2, groups=1, per_group=3, batch=1,
                                           dtype=torch.float32))

    def test_many_channels_and_many_steps(self):
        for fixed in (dict(per_group=66000, length=3, kind=""), dict(per_group=2, length=5000, kind=""),
                      dict(per_group=66000, length=3, kind="iC")):
            with self.subTest(**fixed):
                self.check_case(*make_case(7, dtype=torch.float32, groups=1, batch=1, states=1, **fixed))

    def test_nothing_to_do(self):
        for shape in (dict(batch=0, kind=""), dict(per_group=0, groups=1, kind=""), dict(batch=0, kind="iB"),
                      dict(per_group=0, kind="BC"), dict(per_group=0, kind="iBC"), dict(batch=0, kind="C")):
            with self.subTest(**shape):
                case, dout, _ = make_case(1, length=9, states=4, z=True, D=True, delta_bias=True, **shape)
                results = forward(case)
                for got in backward(case, dout, results[1], results[0]):
                    self.assertEqual(got.abs().double().sum().item(), 0.0)


class Arithmetic(unittest.TestCase):
    def compare_with_plain(self, case):
        """Where the recurrence in float32 is finite, infinite or NaN, so are we."""
        y, gated, _ = plain_scan(*case.tensors.values(), softplus=case.softplus)
        for isa in instruction_sets():
            os.environ["SCANKIT_CPU_ISA"] = isa
            got = forward(case)
            for mine, plain in ((got[0], y), (got[2], gated)):
                self.assertTrue(torch.equal(mine.isnan(), plain.isnan()), isa)
                self.assertTrue(torch.equal(mine.isinf(), plain.isinf()), isa)
                so_far = plain.nan_to_num(0, 0, 0).abs().cummax(-1)[0] + 1e-3  # states that grow keep their errors
                error = torch.where(plain.isfinite(), (mine - plain).abs() / so_far, 0)
                self.assertLess(error.max().item(), 1e-3, isa)
        os.environ.pop("SCANKIT_CPU_ISA")

    def make(self, **fixed):
        fixed.setdefault("kind", "")
        return make_case(3, dtype=torch.float32, length=70, states=4, batch=1, per_group=17, groups=1, D=True, z=True,
                         delta_bias=True, **fixed)[0]

    def test_positive_rates(self):
        case = self.make(softplus=True)
        case.tensors["A"] = torch.linspace(-3, 5, 17 * 4).reshape(17, 4)
        self.compare_with_plain(case)

    def test_infinities_and_nan_in_the_inputs(self):
        for name in ("u", "delta", "z", "B", "C"):
            for value in (float("inf"), float("-inf"), float("nan"), -200.0, 200.0):
                with self.subTest(name=name, value=value):
                    case = self.make(softplus=True)
                    case.tensors[name] = case.tensors[name].clone()
                    case.tensors[name][..., 3, 40] = value
                    self.compare_with_plain(case)

    def test_tiny_steps_keep_their_decay(self):
        """Decays of 1 - 1e-6 over 4,000 steps: a bias of the exponential near 0 would add up."""
        u = torch.ones(1, 16, 4000)
        delta, A = torch.full_like(u, 1e-6), -torch.ones(16, 1)
        B = torch.ones(1, 1, 1, 4000)
        exact = plain_scan(*(t.double() for t in (u, delta, A, B, B)), wide=torch.float64)[2]
        plain = plain_scan(u, delta, A, B, B)[2]
        got = module.fwd(u, delta, A, B, B, None, None, None, False)[1][:, :, -1, 1::2]
        error = lambda state: ((state - exact).norm() / exact.norm()).item()
        self.assertLess(error(got), 1.1 * error(plain) + 1e-6)

    def test_softplus_keeps_its_relative_accuracy(self):
        delta = torch.linspace(-80, 30, 64).reshape(1, 64, 1)  # one step: y is the softplus
        ones = torch.ones(1, 1, 1, 1)
        exact = torch.nn.functional.softplus(delta.double())
        for isa in instruction_sets():
            os.environ["SCANKIT_CPU_ISA"] = isa
            got = module.fwd(torch.ones_like(delta), delta, -torch.ones(64, 1), ones, ones, None, None, None, True)
            self.assertLess(((got[0] - exact) / exact).abs().max().item(), 1e-6, isa)
        os.environ.pop("SCANKIT_CPU_ISA")


class Threads(unittest.TestCase):
    def everything(self, case, dout):
        results = forward(case)
        return results + [g for g in backward(case, dout, results[1], results[0]) if g is not None]

    def big_case(self):
        return make_case(11, dtype=torch.float32, length=129, states=16, batch=2, per_group=70, groups=1, D=True, z=True)

    def test_the_number_of_threads_does_not_show(self):
        case, dout, _ = self.big_case()
        self.addCleanup(os.environ.pop, "OMP_NUM_THREADS", None)
        for isa in instruction_sets():
            os.environ["SCANKIT_CPU_ISA"] = isa
            self.addCleanup(os.environ.pop, "SCANKIT_CPU_ISA", None)
            runs = []
            for threads in ("1", "2", "5", "5"):
                os.environ["OMP_NUM_THREADS"] = threads
                self.assertEqual(module.scankit_info()["threads"], int(threads))
                runs.append(self.everything(case, dout))
            for run in runs[1:]:
                for one, other in zip(runs[0], run):
                    self.assertTrue(torch.equal(one, other))

    def test_works_in_a_forked_child(self):
        case, dout, _ = self.big_case()
        os.environ["OMP_NUM_THREADS"] = "4"
        self.addCleanup(os.environ.pop, "OMP_NUM_THREADS", None)
        before = self.everything(case, dout)
        child = os.fork()
        if child == 0:
            signal.alarm(30)  # a pool whose threads stayed behind would hang
            same = all(torch.equal(a, b) for a, b in zip(before, self.everything(case, dout)))
            os._exit(0 if same else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        for one, other in zip(before, self.everything(case, dout)):
            self.assertTrue(torch.equal(one, other))


class Refusals(unittest.TestCase):
    def setUp(self):
        case, self.dout, _ = make_case(2, kind="", dtype=torch.float32, length=40, states=4, groups=2, per_group=4, batch=2, D=True,
                                       z=True, delta_bias=True)
        self.arguments = dict(case.tensors)

    def refused(self, error, pattern, **changes):
        arguments = {**self.arguments, **changes}
        with self.assertRaisesRegex(error, "selective_scan_cuda.fwd: .*" + pattern):
            module.fwd(*arguments.values(), True)

    def test_shapes_types_and_strides(self):
        a = self.arguments
        self.refused(RuntimeError, "u is float64; float32, float16 and bfloat16", u=a["u"].double())
        self.refused(RuntimeError, "delta is bfloat16, expected float32", delta=a["delta"].bfloat16())
        self.refused(RuntimeError, r"delta has shape \(2, 8, 39\), expected \(2, 8, 40\)", delta=a["delta"][..., :39])
        self.refused(RuntimeError, "u has stride 2 in its last", u=a["u"].repeat(1, 1, 2)[..., ::2])
        self.refused(RuntimeError, "z has shape", z=a["z"][:1])
        self.refused(RuntimeError, "D is float16, expected float32", D=a["D"].half())
        self.refused(RuntimeError, r"delta_bias has shape \(7,\)", delta_bias=a["delta_bias"][:7])
        self.refused(RuntimeError, r"A has shape \(4, 8\)", A=a["A"].t())
        self.refused(RuntimeError, "257 states", A=torch.ones(8, 257))
        self.refused(RuntimeError, "3 groups, which do not divide the 8", B=torch.ones(2, 3, 4, 40))
        self.refused(RuntimeError, "C has shape", C=a["C"][:, :1])
        self.refused(RuntimeError, "A is float64, expected float32 or complex64", A=a["A"].double())
        self.refused(RuntimeError, r"B has shape \(2, 2, 4, 40\), expected \(2, 2, 4, 80\).*real and imaginary",
                     A=a["A"].to(torch.complex64))
        self.refused(RuntimeError, "C has shape .*with a constant B there is one group", B=torch.ones(8, 4))
        self.refused(RuntimeError, r"B has shape \(4, 8\), expected \(8, 4\)", B=torch.ones(4, 8))
        self.refused(RuntimeError, "C is complex64, expected float32, the dtype of A", C=torch.ones(8, 4).to(torch.complex64))
        self.refused(TypeError, "D must be a torch.Tensor", D=[1.0])
        with self.assertRaisesRegex(TypeError, "takes 9 arguments"):
            module.fwd(a["u"])
        with self.assertRaisesRegex(TypeError, "must be True or False"):
            module.fwd(*a.values(), a["u"])

    def test_tensors_without_plain_memory(self):
        u = self.arguments["u"]
        for tensor in (u.to("meta"), u[0].to_sparse()):
            self.refused(RuntimeError, "u, a .*cannot be read", u=tensor)
        self.refused(RuntimeError, "lazily negated", u=torch._neg_view(u))

    def test_fake_tensors(self):
        try:
            from torch._subclasses.fake_tensor import FakeTensorMode
            with FakeTensorMode() as mode:
                fake = mode.from_tensor(self.arguments["u"])
        except ImportError as error:
            self.skipTest(f"torch's fake tensors need {error.name}")
        self.refused(RuntimeError, "u, a .*cannot be read", u=fake)

    def test_backward(self):
        a, dout = self.arguments, self.dout
        out, x, _ = module.fwd(*a.values(), True)
        for pattern, arguments in (
                ("out, the ungated", (dout, x, None, None, True, False)),
                ("x does not have the shape", (dout, x[:, :, :, :4], out, None, True, False)),
                ("x is float64", (dout, x.double(), out, None, True, False)),
                ("dout has shape", (dout[:1], x, out, None, True, False)),
                ("dz is float16", (dout, x, out, out.half(), True, False))):
            with self.subTest(pattern), self.assertRaisesRegex(RuntimeError, "selective_scan_cuda.bwd: " + pattern):
                module.bwd(*a.values(), *arguments)


class Interpreters(unittest.TestCase):
    def test_another_interpreter_is_refused(self):
        # In a child: torch's own bookkeeping of interpreters does not survive a second one.
        needs_torch = module.scankit_info()["flavor"] == "torch"
        code = ("import torch\n" if needs_torch else "") + """
import sys
import selective_scan_cuda
code = f"import sys; sys.path[:0] = {sys.path!r}; import selective_scan_cuda"
try:
    import _interpreters  # 3.13 and newer: with a GIL of its own, and with this one's
    said = [_interpreters.exec(_interpreters.create(kind), code) for kind in ("isolated", "legacy")]
    said = ["imported" if problem is None else problem.formatted for problem in said]
except ImportError:
    try:
        import _xxsubinterpreters
    except ImportError:
        sys.exit(77)
    try:
        _xxsubinterpreters.run_string(_xxsubinterpreters.create(), code)
        said = ["imported"]
    except Exception as error:
        said = [str(error)]
# Ours, or that of Python 3.12 and newer where the other interpreter has a GIL of its own.
wrong = [each for each in said if "ImportError" not in each or "interpreter" not in each]
import os
print(*wrong, file=sys.stderr)
sys.stderr.flush()
os._exit(1 if wrong else 0)  # at its end, Python warns of interpreters that are still there
"""
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        if run.returncode == 77:
            self.skipTest("this Python has no module for sub-interpreters")
        self.assertEqual((run.returncode, run.stderr.strip()), (0, ""))

    def test_a_second_import_in_this_one_works(self):
        again = sys.modules.pop("selective_scan_cuda")
        try:
            import selective_scan_cuda
            self.assertEqual(selective_scan_cuda.scankit_info(), again.scankit_info())
        finally:
            sys.modules["selective_scan_cuda"] = again


if __name__ == "__main__":
    torch.set_num_threads(1)  # the oracle's many small operations only wait for each other
    print(module.scankit_info())
    unittest.main()
