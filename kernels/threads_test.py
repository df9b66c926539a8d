# SPDX-License-Identifier: Apache-2.0
"""The modules called from many threads at once: the bits of one thread, from the process's first call on.

threads_test.py [--free-threaded]: with it, the GIL must be off before and after all of it.
"""
import hashlib
import os
import subprocess
import sys
import threading
import unittest

THREADS, ROUNDS = 12, 8
FREE = "--free-threaded" in sys.argv and (sys.argv.remove("--free-threaded") or True)

# In a fresh process: nothing is imported or looked up yet when all threads begin.
FIRST_CALL = """
import sys, threading
import torch
torch.manual_seed(3)
u, A = torch.randn(2, 8, 40), -torch.rand(8, 16)
B = torch.randn(2, 1, 16, 40)
together, sums, problems = threading.Barrier(%d), [], []
def call():
    together.wait()
    try:
        import selective_scan_cuda as module
        sums.append(module.fwd(u, u.abs(), A, B, B, None, None, None, True)[0].double().sum().item())
    except BaseException as error:
        problems.append(repr(error))
threads = [threading.Thread(target=call) for _ in range(%d)]
for each in threads: each.start()
for each in threads: each.join()
assert not problems, problems[0]
assert len(sums) == %d and len(set(sums)) == 1, sums
import selective_scan_cuda as module
assert module.scankit_info()["reads_lazy_bits"]
print("gil", getattr(sys, "_is_gil_enabled", lambda: True)())
""" % (THREADS, THREADS, THREADS)


def at_once(work):
    """[work(0), work(1), ...], each on a thread of its own, all begun together."""
    together, results, problems = threading.Barrier(THREADS), [None] * THREADS, []

    def run(i):
        together.wait()
        try:
            results[i] = work(i)
        except BaseException as error:  # noqa: B902 - the test's own failure, told by the main thread
            problems.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if problems:
        raise problems[0]
    return results


def bits(tensors):
    digest = hashlib.sha256()
    for tensor in tensors:
        if tensor is not None:
            digest.update(bytes(tensor.detach().contiguous().view(torch.uint8).flatten().tolist()))
    return digest.hexdigest()


def scan_case(seed):
    """Another shape for each seed, so that threads miss in the caches as well as hit."""
    generator = torch.Generator().manual_seed(seed)
    rand = lambda *shape: torch.rand(*shape, generator=generator) - 0.5
    batch, dim, length, states = 1 + seed % 2, 4 + 4 * (seed % 3), 33 + 64 * (seed % 4), 8
    u, delta, z = rand(batch, dim, length), rand(batch, dim, length), rand(batch, dim, length)
    return dict(u=u, delta=delta, A=-rand(dim, states).abs(), B=rand(batch, 1, states, length), C=rand(batch, 1, states, length),
                D=rand(dim), z=z, delta_bias=rand(dim), dout=rand(batch, dim, length))


def scan(case):
    names = ("u", "delta", "A", "B", "C", "D", "z", "delta_bias")
    arguments = [case[name] for name in names]
    out, x, out_z = selective_scan_cuda.fwd(*arguments, True)
    return bits([out, x, out_z, *selective_scan_cuda.bwd(*arguments, case["dout"], x, out, None, True, False)])


def conv(case):
    x, weight, bias = case["u"], case["A"][:, :4].contiguous(), case["D"]
    out, dx, dweight, dbias = torch.empty_like(x), torch.empty_like(x), torch.zeros_like(weight), torch.zeros_like(bias)
    causal_conv1d_cuda.causal_conv1d_fwd(x, weight, bias, None, None, out, None, True)
    causal_conv1d_cuda.causal_conv1d_bwd(x, weight, bias, case["dout"], None, None, None, dx, dweight, dbias, None, True)
    return bits([out, dx, dweight, dbias])


class Threads(unittest.TestCase):
    def test_first_calls_together(self):
        for _ in range(3):
            run = subprocess.run([sys.executable, "-W", "ignore", "-c", FIRST_CALL], capture_output=True, text=True, timeout=300)
            self.assertEqual((run.returncode, run.stdout), (0, "gil %s\n" % (not FREE)), run.stderr[-2000:])

    def test_the_same_tensors(self):
        case = scan_case(1)
        expected = scan(case), conv(case)
        for _ in range(ROUNDS):
            self.assertEqual(set(at_once(lambda i: (scan(case), conv(case)))), {expected})

    def test_different_tensors(self):
        cases = [scan_case(seed) for seed in range(THREADS)]
        expected = [(scan(case), conv(case)) for case in cases]
        self.assertGreater(len(set(expected)), THREADS - 1)
        for _ in range(ROUNDS):
            self.assertEqual(at_once(lambda i: (scan(cases[i]), conv(cases[i]))), expected)

    def test_refusals_stay_with_their_thread(self):
        case = scan_case(2)
        expected = scan(case)
        wrong = dict(case, delta=case["delta"][:, :, :-1])

        def work(i):
            if i % 2:
                return scan(case)
            with self.assertRaisesRegex(RuntimeError, r"selective_scan_cuda\.fwd: delta "):
                scan(wrong)
            return expected

        for _ in range(ROUNDS):
            self.assertEqual(set(at_once(work)), {expected})

    def test_a_forked_child_computes_too(self):
        case = scan_case(3)
        expected, go_on = scan(case), threading.Event()

        def beside():
            while not go_on.is_set():
                scan(case)

        thread = threading.Thread(target=beside)
        thread.start()
        try:
            for _ in range(3):
                child = os.fork()
                if child == 0:
                    os._exit(0 if scan(case) == expected else 1)
                self.assertEqual(os.waitpid(child, 0)[1], 0)
        finally:
            go_on.set()
            thread.join()

    @unittest.skipUnless(FREE, "this Python has a GIL")
    def test_the_gil_stays_off(self):
        import selective_scan_cuda_core
        import selective_scan_cuda_oflex
        self.assertTrue(selective_scan_cuda_core.scankit_info() and selective_scan_cuda_oflex.scankit_info())
        self.assertFalse(sys._is_gil_enabled())


if __name__ == "__main__":
    import torch
    import causal_conv1d_cuda
    import selective_scan_cuda
    torch.set_num_threads(1)
    unittest.main()
