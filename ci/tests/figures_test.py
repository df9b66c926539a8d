# SPDX-License-Identifier: Apache-2.0
"""ci/scripts/gpu/figures.sh and ci/figures without a GPU: real runs on the CPU with small shapes, and made-up results.

python figures_test.py FOLDER_OF_MODULES"""
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "ci", "figures"))
import profile_table  # noqa: E402
import report  # noqa: E402

MODULES = ""


def figures(*options, script="scripts/gpu/figures.sh"):
    return subprocess.run(["bash", os.path.join(ROOT, "ci", script), "--python", sys.executable, *options],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)


def entry(ms, other=None, **more):
    sides = {"module": {"ms": ms, "spread": 0.01, "rounds": 9}}
    if other is not None:
        sides["against"] = {"ms": other, "spread": 0.01, "rounds": 9}
    return dict({"key": "scan bf16 B8 D2048 L2048 N16", "group": "goals", "pass": "fwd", "sides": sides, "wanted": 3.0,
                 "of_limit": {"copy": 0.3, "exp": 0.5, "fma": 0.4}}, **more)


def result(*entries, **more):
    return dict({"schema": 1, "gpu": "NVIDIA H200", "torch": "2", "module": "m", "against": "u", "against_sha256": "a",
                 "limits": {}, "figures": list(entries), "memory": [], "missing": [], "wanted": {"fwd": 3.1, "bwd": 3.8}}, **more)


class Report(unittest.TestCase):
    def test_the_table_names_ratio_goal_and_mean(self):
        slow = entry(0.5, 0.4, key="scan bf16 slow", group="others", wanted=None)
        slow["sides"]["a plain Triton kernel"] = {"ms": 1.0, "spread": 0, "rounds": 3}
        slow["sides"]["SSD"] = {"skipped": "no such module"}
        text = "\n".join(report.table(result(entry(0.2, 0.5), slow)))
        self.assertIn("2.50x", text)
        self.assertIn("  3.0x", text)
        self.assertIn("geometric mean of the goals, fwd: 2.50x (wanted 3.1x)", text)
        self.assertIn("slower than the other module: scan bf16 slow fwd (0.80x)", text)
        self.assertIn("a plain Triton kernel: 1.0000 ms, 2.0 times", text)
        self.assertIn("SSD: skipped: no such module", text)
        self.assertIn("  50%", text)

    def test_memory_is_held_against_the_other_modules_and_an_activation(self):
        memory = {"key": "memory", "activation": 10 << 20, "module": 30 << 20, "against": 15 << 20, "low": 9 << 20,
                  "step_ms": 1.0, "low_ms": 1.2}
        self.assertIn("25.0 MiB allowed: NOT held; without kept states 9.0 MiB, 1.200 times", report.memory_line(memory))
        self.assertIn("allowed: held", report.memory_line(dict(memory, module=25 << 20)))

    def test_what_is_slower_than_the_baseline_is_named(self):
        self.assertEqual(report.compare(result(entry(0.209)), result(entry(0.2)))[1], 0)
        lines, status = report.compare(result(entry(0.211)), result(entry(0.2)))
        self.assertEqual(status, 6)
        self.assertIn("scan bf16 B8 D2048 L2048 N16 fwd: 0.2110 ms, was 0.2000 (+5.5 %)", lines[0])

    def test_beside_the_same_other_module_the_ratio_counts(self):
        # A machine that is 10 % slower in everything is no regression.
        self.assertEqual(report.compare(result(entry(0.22, 0.55)), result(entry(0.2, 0.5)))[1], 0)
        self.assertEqual(report.compare(result(entry(0.2, 0.45)), result(entry(0.2, 0.5)))[1], 6)
        other = result(entry(0.22, 0.55), against_sha256="b")
        self.assertEqual(report.compare(other, result(entry(0.2, 0.5)))[1], 6)

    def test_memory_may_not_grow(self):
        now, before = ({"key": "memory", "module": n} for n in (1100, 1000))
        lines, status = report.compare(result(entry(1), memory=[now]), result(entry(1), memory=[before]))
        self.assertEqual(status, 6)
        self.assertIn("more memory than the baseline: memory: 1100 bytes, was 1000", lines[0])

    def test_a_foreign_baseline_is_refused_in_words(self):
        lines, status = report.compare(result(entry(1)), result(entry(1), gpu="NVIDIA L4"))
        self.assertEqual(status, 4)
        self.assertEqual(lines, ["the baseline is of another GPU: it was measured on NVIDIA L4, this is NVIDIA H200"])
        self.assertEqual(report.compare(result(entry(1)), result(entry(1), schema=2))[1], 4)
        self.assertEqual(report.compare(result(entry(1)), result())[1], 4)


class Profile(unittest.TestCase):
    def csv(self, *rows):
        names = ["ID", "Kernel Name", "gpu__time_duration.sum", "sm__cycles_elapsed.avg.per_second",
                 "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active", "smsp__inst_executed.sum"] + \
            [profile_table.STALL.format(s) for s in ("barrier", "wait")]
        units = ["", "", "nsecond", "cycle/nsecond", "%", "inst", "inst", "inst"]
        lines = ["==PROF== Connected to process 7\n"]
        return lines + [",".join('"{}"'.format(v) for v in row) + "\n" for row in (names, units) + rows]

    def test_kernels_stand_under_their_shapes(self):
        text = profile_table.table(profile_table.read(self.csv(
            ("0", "spin_kernel(long)", "1,000", "1.9", "0", "10", "0", "0"),
            ("1", "scankit_forward_4x4(ForwardArguments)", "243,500", "1.95", "67.3", "12,345,678", "0.4", "1.25"),
            ("2", "at::cuda::(anonymous namespace)::spin_kernel(long)", "1000", "1.9", "0", "10", "0", "0"),
            ("3", "scankit_backward_4x4(BackwardArguments)", "730000", "1.94", "40", "n/a", "0.01", "0.01"))))
        self.assertEqual(text[1], "-- scan bf16 B8 D2048 L2048 N16 fwd")
        self.assertEqual(text[3], "-- scan bf16 B8 D2048 L2048 N16 bwd")
        self.assertRegex(text[2], r"^forward_4x4 +243\.5 +1\.95 +- .* 67\.3 .* 12\.3  wait 1\.25, barrier 0\.40$")
        self.assertRegex(text[4], r"^backward_4x4 +730\.0 .*-  $")

    def test_what_is_no_report(self):
        self.assertEqual(profile_table.read(["==ERROR== no kernels were profiled\n"]), [])

    def test_the_script_without_ncu(self):
        run = figures("--modules", MODULES, "--ncu", "/nonexistent", script="scripts/gpu/profile.sh")
        self.assertEqual(run.returncode, 77, run.stdout)
        self.assertIn("SKIPPED: ", run.stdout)
        self.assertEqual(figures("--modules", "/nonexistent", script="scripts/gpu/profile.sh").returncode, 2)


class Script(unittest.TestCase):
    def test_usage(self):
        for options in (["--bogus", "1"], ["--modules"], ["--scankit", "/nonexistent"],
                        ["--modules", MODULES, "--device", "cpu", "--against", "/nonexistent.so"],
                        ["--modules", MODULES, "--device", "cpu", "--budget", "soon"]):
            run = figures(*options)
            self.assertEqual(run.returncode, 2, run.stdout)

    def test_without_a_gpu_it_is_skipped(self):
        import torch
        if torch.cuda.is_available():
            self.skipTest("there is one")
        for script, options in (("scripts/gpu/figures.sh", ["--modules", MODULES]),
                                ("scripts/gpu/main.sh", ["--modules", MODULES, "--against", os.path.join(MODULES, "x.so")])):
            run = figures(*options, script=script)
            self.assertEqual(run.returncode, 77, run.stdout)
            self.assertIn("SKIPPED: torch finds no GPU", run.stdout)

    def test_every_figure_on_the_cpu(self):
        with tempfile.TemporaryDirectory() as folder:
            others = {}
            for name in ("selective_scan_cuda", "causal_conv1d_cuda", "selective_scan_cuda_core"):
                others[name] = shutil.copy(os.path.join(MODULES, name + ".abi3.so"), folder)
            run = figures("--modules", MODULES, "--device", "cpu", "--seconds", "0.01", "--keep", folder + "/keep",
                          "--against", others["selective_scan_cuda"], "--conv-against", others["causal_conv1d_cuda"],
                          "--vmamba-against", others["selective_scan_cuda_core"])
            self.assertEqual(run.returncode, 0, run.stdout)
            with open(folder + "/keep/figures.json") as file:
                found = json.load(file)
            self.assertEqual(found["missing"], [])
            groups = {e["group"] for e in found["figures"]}
            self.assertEqual(groups, {"goals", "others", "inference", "conv", "vmamba", "alternatives"})
            keys = [(e["key"], e["pass"]) for e in found["figures"]]
            self.assertEqual(len(keys), len(set(keys)))
            for e in found["figures"]:
                self.assertGreater(e["sides"]["module"]["ms"], 0)
                if e["group"] != "alternatives":
                    self.assertGreater(e["sides"]["against"]["ms"], 0)
            step = [e["sides"]["torch.compile, a step"] for e in found["figures"]
                    if e["key"].startswith("small of alternatives")]
            self.assertEqual([sorted(s) for s in step], 2 * [["ms", "rounds", "spread"]])
            self.assertEqual(len(found["memory"]), 1)
            self.assertIn("geometric mean of the goals, bwd", run.stdout)
            self.baselines(folder, found)

    def baselines(self, folder, found):
        some = ["--modules", MODULES, "--device", "cpu", "--seconds", "0.01", "--group", "inference", "--baseline",
                folder + "/baseline.json"]
        for factor, gpu, status, words in ((1e3, "CPU", 0, "2 figures compared with the baseline, 0 worse"),
                                           (1e-3, "CPU", 6, "slower than the baseline: small of scan bf16"),
                                           (1, "NVIDIA H200", 4, "the baseline is of another GPU")):
            changed = copy.deepcopy(found)
            changed["gpu"] = gpu
            for e in changed["figures"]:
                e["sides"]["module"]["ms"] *= factor
            with open(folder + "/baseline.json", "w") as file:
                json.dump(changed, file)
            run = figures(*some)
            self.assertEqual(run.returncode, status, run.stdout)
            self.assertIn(words, run.stdout)

    def test_what_the_budget_does_not_reach_is_named(self):
        run = figures("--modules", MODULES, "--device", "cpu", "--budget", "0", "--group", "goals")
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("not measured: small of scan bf16 B8 D2048 L2048 N16: TimeoutError: the budget is spent", run.stdout)


if __name__ == "__main__":
    MODULES = os.path.abspath(sys.argv.pop(1))
    unittest.main()
