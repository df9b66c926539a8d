# SPDX-License-Identifier: Apache-2.0
"""Runs in the user's Python as a child of scankit (CPython >= 3.8, torch >= 1.13, nothing else). Standard input holds
a JSON line with the options, then one line a task: {"device": ..., "case": {...}}. Answers go to descriptor 3."""
import faulthandler
import fcntl
import json
import platform
import sys
import time

from scankit_harness import devices, driver_state, gpu_guard, guard
from scankit_harness.channel import number, say, send
from scankit_harness.devices import in_one_line as _line


def _import_torch():
    try:
        import torch
        return torch
    except ModuleNotFoundError as error:
        if error.name == "torch":
            send("no_torch", message=say("this Python has no torch"))
        else:
            send("no_torch", message=say("torch cannot be imported: {}", _line(error)))
    except BaseException as error:
        send("no_torch", message=say("torch cannot be imported: {}", _line(error)))
    return None


def _cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        return ""
    return "%s x %d" % (names[0], len(names)) if names else ""


def _hello(torch, gpus):
    """Returns the devices among `gpus` that can be used."""
    names, problems = devices.try_gpus(torch, gpus)
    send("hello", python=platform.python_version(), torch=torch.__version__, cuda=next(iter(names.values()), ""), gpus=names,
         cuda_problem=devices.problem(gpus, problems), cpu=_cpu_name(), threads=torch.get_num_threads(),
         cuda_shared=bool(names) and all(driver_state.shared(driver_state.number_of(device)) for device in names))
    return list(names)


def _is_refusal(error, device):
    """A module made for CUDA alone says so of the first CPU tensor: then the device is none of its, not a fault."""
    text = str(error).lower()
    return device.startswith("cpu") and isinstance(error, (RuntimeError, ValueError, TypeError, NotImplementedError)) and \
        ("cuda" in text or "cpu" in text) and ("is_cuda" in text or "must be" in text or "expected" in text or
                                               "support" in text or "implement" in text)


class Session:
    def __init__(self, options, torch, module, against):
        from scankit_harness import call, conv, stateful, ways
        self.options, self.module, self.call, self.conv, self.stateful = options, module, call, conv, stateful
        self.against, self.ways, self.stages = against, ways, {}
        torch.set_num_threads(1)
        self.exact = call.Exact()
        self.refused, self.accepted = set(), set()

    def run(self, task):
        case, device = task["case"], task["device"]
        if device in self.refused:
            return
        send("start", id=case["id"], device=device)
        faulthandler.dump_traceback_later(self.options["case_timeout"], exit=True)
        begin, fields = time.perf_counter(), {}
        try:
            place, way, other = self.ways.split(device)
            kind = self.conv.Runner if case.get("width") else self.stateful.Runner if case.get("stateful") else \
                self.ways.runner(way)
            module = self.against if other else self.module
            runner = kind(module, case, place, self.options["tolerance"], self.exact)
            fields = runner.report
            runner.run()
            self.accepted.add(device)
        except self.call.ContractError as error:
            fields["error"], fields["error_kind"] = str(error), "contract"
        except MemoryError as error:
            fields["error"], fields["error_kind"] = _line(error), "memory"
        except Exception as error:
            if device not in self.accepted and _is_refusal(error, device):
                self.refused.add(device)
                send("refused", device=device, message=_line(error))
                return
            fields["error"] = _line(error)
            fields["error_kind"] = "arity" if self.wrong_arity(error) else "memory" if "out of memory" in str(error) \
                else "exception"
        finally:
            faulthandler.cancel_dump_traceback_later()
        self.add_trouble(fields)
        send("case", id=case["id"], device=device, seconds=number(time.perf_counter() - begin), **fields)
        if "CUDA error" in fields.get("error", ""):
            sys.exit(0)  # such an error stays in the context; scankit starts another child for the rest

    def add_trouble(self, fields):
        """What the allocator with bands could not do: torch does not ask it, and goes on with a null pointer."""
        for text in gpu_guard.trouble():
            fields.setdefault("contract", []).append(text)
            if text.startswith("out of memory") and "error" in fields:
                fields["error_kind"] = "memory"

    def wrong_arity(self, error):
        text = str(error)
        return isinstance(error, TypeError) and ("argument" in text or "incompatible" in text)

    def stage(self, device):
        """Measures the limits of the device when it is first asked for."""
        from scankit_harness import limits, timing
        if device not in self.stages:
            self.stages[device] = timing.Stage(device)
            try:
                send("limits", device=device, **limits.measure(device))
                if device.startswith("cuda"):
                    from scankit_harness import kernels
                    send("gpu_facts", **kernels.facts(driver_state.number_of(device)))
            except Exception as error:
                send("note", message=say("the limits of {} were not measured: {}", device, _line(error)))
        return self.stages[device]

    def model(self, device, wanted):
        from scankit_harness import model
        kinds = [("model-block", lambda: model.own(self.module, device, wanted["seed"], self.options["tolerance"]))]
        if wanted["upstream"] and device.startswith("cuda") and model.has_mamba():
            kinds.append(("model-mamba_ssm", lambda: model.upstreams(device, wanted["seed"], self.options["tolerance"])))
        for identifier, run in kinds:
            send("start", id=identifier, device=device)
            faulthandler.dump_traceback_later(self.options["case_timeout"], exit=True)
            begin, fields = time.perf_counter(), {}
            try:
                fields = run()
            except Exception as error:
                fields = {"error": _line(error), "error_kind": "exception"}
            finally:
                faulthandler.cancel_dump_traceback_later()
            send("case", id=identifier, device=device, seconds=number(time.perf_counter() - begin), **fields)

    def time(self, shape):
        from scankit_harness import timed, timing
        device = shape["device"]
        if device in self.refused or device not in self.accepted:
            return
        send("start", id="timing", device=device)
        _alone(self.options.get("alone"))
        faulthandler.dump_traceback_later(self.options["case_timeout"] + shape["seconds"], exit=True)
        begin = time.perf_counter()
        sides = {"module": self.module}
        if self.against is not None and device + "@against" in self.accepted:
            sides["against"] = self.against
        try:
            with self.call.threads_of_the_user(), guard.without_bands():
                given, dout = timing.run(sides, shape, device, self.stage(device))
            fields = timed.check(self.module, given, dout, shape, device, self.options["tolerance"])
        except Exception as error:
            send("note", message=say("no timing on {}: {}", device, _line(error)))
            return
        finally:
            faulthandler.cancel_dump_traceback_later()
        if fields is not None:
            send("case", id=timed.identifier(shape), device=device, seconds=number(time.perf_counter() - begin), **fields)


def _alone(path):
    """Waits until no other child of scankit's computes: nothing is timed beside one."""
    if path:
        with open(path, encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH)


def _load_against(options):
    """The module to compare with, or None: its troubles are told and do not stop the other's validation."""
    from scankit_harness import module as loader
    if not options.get("against"):
        return None
    send("start", id="import module", device="@against")
    try:
        module = loader.load(options["against"], "against")
    except loader.ModuleProblem as problem:
        send("against", problem=problem.kind, message=str(problem))
        return None
    send("against", file=getattr(module, "__file__", None) or say("(built in)"))
    return module


def _load(options):
    from scankit_harness import module as loader
    try:
        module = loader.load(options["module"])
    except loader.ModuleProblem as problem:
        send("module", problem=problem.kind, message=str(problem))
        return None
    send("module", file=getattr(module, "__file__", None) or say("(built in)"))
    return module


def _plan(options, tasks):
    """How many cases will be reported on each device: those of the list, the model's, and those after the timing."""
    counts = {}
    for task in tasks:
        counts[task["device"]] = counts.get(task["device"], 0) + 1
    if "model" in options:
        from scankit_harness import model
        both = options["model"]["upstream"] and model.has_mamba()
        for device in set(options["model"]["devices"]) & set(counts):
            counts[device] += 2 if both and device.startswith("cuda") else 1
    for shape in options["timing"]:
        from scankit_harness import timed
        if shape["device"] in counts and timed.is_checked(shape):
            counts[shape["device"]] += 1
    return counts


def _offered(tasks, module):
    """Without the cases of functions that upstream's module lacks, where this one does."""
    from scankit_harness.stateful import FUNCTIONS
    missing = [n for n in FUNCTIONS if not callable(getattr(module, n, None))]
    count = sum(bool(task["case"].get("stateful")) for task in tasks)
    if not missing or not count:
        return tasks
    send("lacks", count=count, message=say("skipped {} cases of functions that upstream's module does not have "
                                           "either: there is no {}", count, missing[0]))
    return [task for task in tasks if not task["case"].get("stateful")]


def _print_oracle(tasks, torch):
    """For the test that compares this oracle with the one in C++."""
    torch.set_num_threads(1)
    from scankit_harness import oracle
    from scankit_harness.tensors import Placed
    for task in tasks:
        placed = {n: Placed(s, "cpu") for n, s in task["case"]["tensors"].items()}
        exact = {n: p.exact for n, p in placed.items() if p.exact is not None}
        results = oracle.run(softplus=task["case"]["softplus"], cu_seqlens=task["case"].get("cu_seqlens"), **exact)
        for kind, values in (("input", exact), ("result", {n: r[0] for n, r in results.items()})):
            for name, value in values.items():
                value = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
                send(kind, id=task["case"]["id"], name=name, values=[number(v) for v in value.reshape(-1).tolist()])


def main():
    faulthandler.enable()
    lines = sys.stdin.read().splitlines()
    options, tasks = json.loads(lines[0]), [json.loads(line) for line in lines[1:]]
    faulthandler.dump_traceback_later(options["start_timeout"], exit=True)
    if options["mode"] == "devices":
        send("devices", gpus=driver_state.count())
        send("end")
        return
    if options["mode"] == "kernels":
        from scankit_harness import kernels
        for kernel in options["kernels"]:
            send("kernel", **kernels.occupancy(options["gpu"], **kernel))
        send("end")
        return
    send("start", id="import torch", device="")
    torch = _import_torch()
    if torch is None:
        return
    if not guard.here():
        send("note", message=say("writes past the end of a result on the CPU are not detected: nothing can be "
                                 "preloaded into this Python"))
    if options.get("gpu_bands"):
        why = gpu_guard.start(options["gpu_bands"], torch, guard.Damage)
        if why:
            send("no_bands", message=say("writes next to a result on the GPU are not detected: {}", why))
            return
    usable = _hello(torch, devices.gpus_of(options, tasks))
    if usable and usable[0] != "cuda:0":
        torch.cuda.set_device(usable[0])  # the ways and the timing are of the current device
    if options["mode"] == "oracle":
        faulthandler.cancel_dump_traceback_later()
        _print_oracle(tasks, torch)
        send("end")
        return
    send("start", id="import module", device="")
    module = _load(options)
    if module is None:
        return
    against = _load_against(options)
    faulthandler.cancel_dump_traceback_later()
    session = Session(options, torch, module, against)
    if against is None:
        tasks = [task for task in tasks if not task["device"].endswith("@against")]
    tasks = [task for task in tasks if devices.can_run(task["device"], usable)]
    tasks = _offered(tasks, module)
    send("plan", cases=_plan(options, tasks))
    for task in tasks:
        session.run(task)
    for device in sorted(session.accepted & set(options.get("model", {}).get("devices", []))):
        session.model(device, options["model"])
    for shape in options["timing"]:
        if devices.can_run(shape["device"], usable):
            session.time(shape)
    send("end")
