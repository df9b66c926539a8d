# SPDX-License-Identifier: Apache-2.0
"""Every figure of the kernels beside another build of the modules; ci/scripts/gpu/figures.sh runs it, ci/README.md describes it."""
import argparse
import hashlib
import json
import os
import sys
import time
import types

HERE = os.path.dirname(os.path.abspath(__file__))
HARNESS = os.path.join(HERE, "..", "..", "validate", "harness")
SECONDS = 0.5  # a pass, all sides together


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="figures")
    parser.add_argument("--modules", required=True, metavar="DIR", help="where our modules lie")
    for name in ("--against", "--conv-against", "--vmamba-against"):
        parser.add_argument(name, metavar="FILE", default="", help="the other build")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--group", action="append", help="only: goals, memory, others, inference, conv, vmamba, alternatives")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="a pass")
    parser.add_argument("--budget", type=float, default=1e9, help="seconds, after which no figure is begun")
    parser.add_argument("--out", metavar="FILE", help="JSON")
    parser.add_argument("--baseline", metavar="FILE", help="JSON of an earlier run; else baselines/GPU.json where that is")
    options = parser.parse_args(arguments)
    for name in ("against", "conv_against", "vmamba_against", "baseline"):
        path = getattr(options, name)
        if path and not os.path.isfile(path):
            parser.error("--{}: no file {}".format(name.replace("_", "-"), path))
    return options


def load_harness():
    package = types.ModuleType("scankit_harness")
    package.__path__ = [HARNESS]
    sys.modules["scankit_harness"] = package


def digest(path):
    if not path:
        return ""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def load(path, role):
    """A second module of one name beside the first: neither is put in the other's place."""
    import importlib.machinery
    import importlib.util
    name = os.path.basename(path).split(".")[0]
    source = path.endswith(".py")
    loader = (importlib.machinery.SourceFileLoader if source else importlib.machinery.ExtensionFileLoader)(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, path, loader=loader))
    if role == "module":
        sys.modules[name] = module
    loader.exec_module(module)
    return module


class Run:
    def __init__(self, options):
        self.options, self.begin = options, time.monotonic()
        self.device = "cuda:0" if options.device == "cuda" else "cpu"
        self.loaded = {}

    def ours(self, name):
        if name not in self.loaded:
            found = [f for f in sorted(os.listdir(self.options.modules)) if f.split(".")[0] == name]
            if not found:
                raise SystemExit("figures: no {} in {}".format(name, self.options.modules))
            self.loaded[name] = load(os.path.join(self.options.modules, found[0]), "module")
        return self.loaded[name]

    def other(self, path, role):
        if path and (role, path) not in self.loaded:
            self.loaded[role, path] = load(path, role)
        return self.loaded.get((role, path))

    def sides_of(self, figure):
        import alternatives
        kind, options = figure["kind"], self.options
        if kind == "vmamba":
            path = options.vmamba_against
            name = os.path.basename(path).split(".")[0] if path else "selective_scan_cuda_oflex"
            other = self.other(path, "against")
            return dict({"module": self.ours(name)}, **({"against": other} if other else {}))
        if kind == "update":
            return {"module": self.ours("selective_scan_cuda"), "mamba_ssm's Triton update": alternatives.upstream_update()}
        name, path = ("causal_conv1d_cuda", options.conv_against) if kind == "conv" else ("selective_scan_cuda", options.against)
        other = self.other(path, "against")
        return dict({"module": self.ours(name)}, **({"against": other} if other else {}))

    def memory(self, figure, result):
        import measure
        import sides
        entry = {"key": figure["key"], "activation": figure["batch"] * figure["dim"] * figure["length"] * 2}
        for side, module in self.sides_of(figure).items():
            steps = sides.training_steps(module, figure, self.device)
            entry[side] = measure.peak_of(steps["step"], self.device)
            if side != "module":
                continue
            entry["low"] = measure.peak_of(steps["low-memory"], self.device)
            both = {"module": steps["step"], "against": steps["low-memory"]}  # in turns
            times = measure.times_of(both, self.device, self.options.seconds)
            entry["step_ms"], entry["low_ms"] = times["module"]["ms"], times["against"]["ms"]
        result["memory"].append(entry)

    def figure(self, figure, result):
        import alternatives
        import measure
        import report
        import sides
        if figure["kind"] == "memory":
            return self.memory(figure, result)
        if figure["kind"] == "alternatives":
            passes = alternatives.calls(figure, self.ours("selective_scan_cuda"), self.device)
        else:
            passes = sides.calls_of(figure, self.sides_of(figure), self.device)
        for name, calls in passes.items():
            times = measure.times_of(calls, self.device, self.options.seconds)
            entry = {"key": figure["key"], "group": figure["group"], "pass": name, "sides": times,
                     "of_limit": measure.fractions(figure, name, times["module"]["ms"], result["limits"])}
            if figure["group"] == "goals":
                entry["wanted"] = figure["wanted"][name]
            result["figures"].append(entry)
            print(report.row(entry), flush=True)

    def all(self):
        import shapes
        import torch
        from scankit_harness import limits
        gpu = torch.cuda.get_device_name(0) if self.options.device == "cuda" else "CPU"
        result = {"schema": 1, "gpu": gpu, "torch": torch.__version__, "module": self.ours("selective_scan_cuda").__file__,
                  "against": self.options.against, "against_sha256": digest(self.options.against), "limits": {},
                  "figures": [], "memory": [], "missing": [],
                  "wanted": {name: each[-1] for name, each in shapes.WANTED.items()}}
        try:
            result["limits"] = limits.measure(self.device)
        except Exception as error:
            print("the limits were not measured: {}".format(error))
        for figure in shapes.figures():
            if self.options.group and figure["group"] not in self.options.group:
                continue
            if self.options.device == "cpu":
                figure = shapes.small(figure)
            try:
                if time.monotonic() - self.begin > self.options.budget:
                    raise TimeoutError("the budget is spent")
                self.figure(figure, result)
            except Exception as error:
                if os.environ.get("SCANKIT_FIGURES_RAISE"):
                    raise
                result["missing"].append({"key": figure["key"], "why": "{}: {}".format(
                    type(error).__name__, str(error).replace("\n", " ")[:200])})
            if self.options.device == "cuda":
                torch.cuda.empty_cache()
        result["seconds"] = time.monotonic() - self.begin
        return result


def main(arguments):
    options = options_of(arguments)
    load_harness()
    import report
    try:
        import torch
    except ImportError as error:
        print("SKIPPED: no torch: {}".format(error))
        return 77
    if options.device == "cuda" and not torch.cuda.is_available():
        print("SKIPPED: torch finds no GPU")
        return 77
    result = Run(options).all()
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    print("\n".join([""] + report.table(result)))
    status = 1 if result["missing"] else 0
    baseline = options.baseline or os.path.join(HERE, "baselines", result["gpu"].replace(" ", "-") + ".json")
    if options.baseline or os.path.isfile(baseline):
        with open(baseline, encoding="utf-8") as file:
            lines, compared = report.compare(result, json.load(file))
        print("\n".join(lines))
        status = compared or status
    print("{} figures in {:.0f} s".format(len(result["figures"]), result["seconds"]))
    return status


if __name__ == "__main__":
    sys.path.insert(0, HERE)
    sys.exit(main(sys.argv[1:]))
