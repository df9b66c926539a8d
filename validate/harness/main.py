# SPDX-License-Identifier: Apache-2.0
"""Runs in the user's Python as a child of scankit (CPython >= 3.8, torch >= 1.13, nothing else). Standard input holds
a JSON line with the options, then one line a task: {"device": ..., "case": {...}}. Answers go to descriptor 3."""
import faulthandler
import json
import platform
import sys
import time

from scankit_harness.channel import number, say, send


def _line(error):
    return ("%s: %s" % (type(error).__name__, error)).replace("\n", " ")[:800]


def _import_torch():
    try:
        import torch
        return torch
    except ModuleNotFoundError as error:
        if error.name == "torch":
            send("no_torch", message=say("there is no torch in this Python"))
        else:
            send("no_torch", message=say("torch cannot be imported: {}", _line(error)))
    except BaseException as error:
        send("no_torch", message=say("torch cannot be imported: {}", _line(error)))
    return None


def _hello(torch):
    cuda = ""
    try:
        if torch.cuda.is_available():
            cuda = torch.cuda.get_device_name(0)
    except Exception as error:
        send("note", message=say("torch.cuda: {}", _line(error)))
    send("hello", python=platform.python_version(), torch=torch.__version__, cuda=cuda,
         threads=torch.get_num_threads())
    return bool(cuda)


def _is_refusal(error, device):
    """A module made for CUDA alone says so of the first CPU tensor: then the device is none of its, not a fault."""
    text = str(error).lower()
    return device == "cpu" and isinstance(error, (RuntimeError, ValueError, TypeError, NotImplementedError)) and \
        ("cuda" in text or "cpu" in text) and ("is_cuda" in text or "must be" in text or "expected" in text or
                                               "support" in text or "implement" in text)


class Session:
    def __init__(self, options, torch, module):
        from scankit_harness import call, conv, stateful
        self.options, self.module, self.call, self.conv, self.stateful = options, module, call, conv, stateful
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
            of_its_kind = self.conv if case.get("width") else self.stateful if case.get("stateful") else self.call
            runner = of_its_kind.Runner(self.module, case, device, self.options["tolerance"], self.exact)
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
        send("case", id=case["id"], device=device, seconds=number(time.perf_counter() - begin), **fields)
        if "CUDA error" in fields.get("error", ""):
            sys.exit(0)  # such an error stays in the context; scankit starts another child for the rest

    def wrong_arity(self, error):
        text = str(error)
        return isinstance(error, TypeError) and ("argument" in text or "incompatible" in text)

    def time(self, shape):
        from scankit_harness import timing
        if shape["device"] in self.refused or shape["device"] not in self.accepted:
            return
        send("start", id="timing", device=shape["device"])
        faulthandler.dump_traceback_later(self.options["case_timeout"] + shape["seconds"], exit=True)
        try:
            with self.call.threads_of_the_user():
                timing.run(self.module, shape, shape["device"])
        except Exception as error:
            send("note", message=say("no timing on {}: {}", shape["device"], _line(error)))
        finally:
            faulthandler.cancel_dump_traceback_later()


def _load(options):
    from scankit_harness import module as loader
    try:
        module = loader.load(options["module"])
    except loader.ModuleProblem as problem:
        send("module", problem=problem.kind, message=str(problem))
        return None
    send("module", file=getattr(module, "__file__", None) or say("(built in)"))
    return module


def _offered(tasks, module):
    """Without the cases of functions that upstream's module lacks, where this one does."""
    from scankit_harness.stateful import FUNCTIONS
    missing = [n for n in FUNCTIONS if not callable(getattr(module, n, None))]
    count = sum(bool(task["case"].get("stateful")) for task in tasks)
    if not missing or not count:
        return tasks
    send("lacks", count=count, message=say("left out {} cases of functions that upstream's module does not have either: "
                                           "there is no {}", count, missing[0]))
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
    send("start", id="import torch", device="")
    torch = _import_torch()
    if torch is None:
        return
    cuda = _hello(torch)
    if options["mode"] == "oracle":
        faulthandler.cancel_dump_traceback_later()
        _print_oracle(tasks, torch)
        send("end")
        return
    send("start", id="import module", device="")
    module = _load(options)
    faulthandler.cancel_dump_traceback_later()
    if module is None:
        return
    session = Session(options, torch, module)
    tasks = [task for task in tasks if cuda or not task["device"].startswith("cuda")]
    for task in _offered(tasks, module):
        session.run(task)
    for shape in options["timing"]:
        if cuda or not shape["device"].startswith("cuda"):
            session.time(shape)
    send("end")
