# SPDX-License-Identifier: Apache-2.0
"""A torch that says it has a GPU and computes on the CPU, for pretended_gpu_test.cc: which children run, and with what. Side
streams do nothing of their own, and graphs are not replayed. With SCANKIT_PRETENDED_TROUBLE nothing can be put on it
(or on SCANKIT_PRETENDED_TROUBLED, one of several), with
SCANKIT_PRETENDED_FULL, a file to be made, nothing by the first child with bands."""
import contextlib
import os
import sys


def full():
    path, guard = os.environ.get("SCANKIT_PRETENDED_FULL"), sys.modules.get("scankit_harness.gpu_guard")
    if not path or os.path.exists(path) or guard is None or not guard.active():
        return False
    with open(path, "w", encoding="ascii"):
        return True


def here(value):
    if not isinstance(value, str) or not value.startswith("cuda"):
        return value
    if full():
        raise RuntimeError("CUDA error: out of memory")
    if "SCANKIT_PRETENDED_TROUBLE" in os.environ and value == os.environ.get("SCANKIT_PRETENDED_TROUBLED", value):
        raise RuntimeError("CUDA error: " + os.environ["SCANKIT_PRETENDED_TROUBLE"])
    return "cpu"


class Nothing:
    def synchronize(self):
        pass

    replay = synchronize


def pretend():
    import torch
    from torch.overrides import TorchFunctionMode

    class OnTheCpu(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*[here(a) for a in args], **{n: here(v) for n, v in (kwargs or {}).items()})

    OnTheCpu().__enter__()
    torch.cuda.is_available = lambda: True
    torch.cuda.get_device_name = lambda *_: "pretended"
    torch.cuda.set_device = lambda *_: None
    torch.cuda.device_count = lambda: int(os.environ.get("SCANKIT_STUB_GPUS", "1"))
    torch.cuda.synchronize = torch.cuda._sleep = lambda *_: None
    torch.cuda.Stream = torch.cuda.CUDAGraph = Nothing
    torch.cuda.stream = torch.cuda.graph = lambda *_: contextlib.nullcontext()


if "-c" not in getattr(sys, "orig_argv", ()):  # the question whether this Python runs at all needs no torch
    pretend()
