# SPDX-License-Identifier: Apache-2.0
"""How long the calls take: same tensors, same device, the modules take turns (A B A B ...), every sample is kept. The
statistics are scankit's. cold: the caches of a GPU hold something else before each call; host: what a tiny call costs the
caller."""
import os
import time

import torch

from scankit_harness import call, driver_state, gpu_state, limits, oracle
from scankit_harness.channel import number, say, send

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
ORDER = ("u", "delta", "A", "B", "C", "D", "z", "delta_bias")
LEAST_ROUNDS, MOST_ROUNDS = 6, 41
PLAIN_ROUNDS, PLAIN_SHARE = 3, 0.125  # of the seconds of a shape, for each of its passes
PAUSE_CYCLES = 400000  # about 0.2 ms: what no caller of ours needs to prepare a call
SLOWEST = 4  # times the seconds allowed: then even fewer rounds must do
HOST_CALLS, HOST_SECONDS = 200, 0.3
MOST_IN_A_ROW, SHARE_IN_A_ROW, GROUPS = 20, 0.04, 5


def tensors(shape, device):
    """Drawn on the device: the largest would take a processor a second."""
    batch, dim, length, states = (shape[n] for n in ("batch", "dim", "length", "states"))
    generator = torch.Generator(device=device).manual_seed(shape["seed"] % (1 << 62))
    kind = DTYPES[shape["dtype"]]

    def normal(*size):
        return torch.randn(*size, generator=generator, device=device).to(kind)

    given = {"u": normal(batch, dim, length), "delta": 0.1 * normal(batch, dim, length),
             "A": -1.0 - 15.0 * torch.rand(dim, states, generator=generator, device=device),
             "B": normal(batch, 1, states, length), "C": normal(batch, 1, states, length), "D": normal(dim).float(),
             "z": normal(batch, dim, length), "delta_bias": -4.0 + normal(dim).float()}
    return given, normal(batch, dim, length)


class Stage:
    """Where it is timed: a CPU, or the current GPU."""

    def __init__(self, device):
        self.gpu = device.startswith("cuda")
        self.seconds = limits.gpu_seconds if self.gpu else limits.cpu_seconds
        self.nvml = gpu_state.open_gpu(driver_state.number_of(device))[0] if self.gpu else None
        self.flushed = None
        if self.gpu:
            size = max(2 * getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0), 1 << 27)
            self.flushed = torch.zeros(size // 4, device=device)

    def caches(self):
        return ("cold", "warm") if self.gpu else ("warm",)

    def sample(self, function, cache):
        """The GPU is busy while the call is prepared, as in a model: else it would wait for the caller, and that be taken for
        the kernels' time."""
        if self.gpu and cache == "cold":
            self.flushed.add_(1.0)
        if self.gpu:
            torch.cuda._sleep(PAUSE_CYCLES)
        return self.seconds(function)

    def state(self):
        if not self.gpu:
            return {"load": os.getloadavg()[0], "cores": len(os.sched_getaffinity(0))}
        return self.nvml.read() if self.nvml else {}

    def peak(self, function):
        if not self.gpu:
            return None
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        function()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before


def in_turns(calls, sample, seconds, least=LEAST_ROUNDS):
    """{name: [seconds]} and what the rounds took. The first round is thrown away."""
    times, begin = {name: [] for name in calls}, time.perf_counter()
    kept = begin
    for turn in range(MOST_ROUNDS + 1):
        kept = time.perf_counter() if turn == 1 else kept
        for name, function in calls.items():
            one = sample(function)
            if turn > 0:
                times[name].append(one)
        taken = time.perf_counter() - begin
        if taken > seconds and (turn >= least or turn >= 1 and taken > SLOWEST * seconds):
            break
    return times, time.perf_counter() - kept


def in_a_row(function, stage, each, seconds):
    """What one of several calls takes with nothing of ours between them: samples are held against it."""
    count = max(2, min(MOST_IN_A_ROW, int(SHARE_IN_A_ROW * seconds / max(each, 1e-9))))

    def several():
        for _ in range(count):
            function()
    return sorted(stage.sample(several, "warm") for _ in range(GROUPS))[GROUPS // 2] / count


def host_seconds(calls, gpu):
    def sample(function):
        begin, done = time.perf_counter(), 0
        while done < HOST_CALLS and (done == 0 or time.perf_counter() - begin < HOST_SECONDS / LEAST_ROUNDS):
            function()
            done += 1
        taken = (time.perf_counter() - begin) / done
        if gpu:
            torch.cuda.synchronize()
        return taken
    return in_turns(calls, sample, HOST_SECONDS)[0]


def tell(device, shape, pass_, cache, times, stage, peak, **cost):
    send("timing", device=device, shape={n: shape[n] for n in ("batch", "dim", "length", "states")}, dtype=shape["dtype"],
         cache=cache, state=stage.state(), peak=peak,
         ms={name: [number(1e3 * t) for t in each] for name, each in times.items()}, **dict(cost, **{"pass": pass_}))


def plain_calls(given, dout):
    leaves = {n: t.clone().requires_grad_() for n, t in given.items()}
    # Built once; its backward is what is timed. A scalar, since torch needs sympy to be given another gradient.
    graph = (oracle.plain_forward(softplus=True, **leaves) * dout).sum()

    def forward():
        with torch.no_grad():
            oracle.plain_forward(softplus=True, **given)

    return {"fwd": forward, "bwd": lambda: torch.autograd.grad(graph, list(leaves.values()), retain_graph=True)}


def plain_times(given, dout, shape, stage):
    """{pass: [seconds]} of plain PyTorch: once for all caches, whose thousands of kernels empty them, and before the modules.
    Beside its turns a module's caller lost so much of its own caches that a GPU waited for it."""
    times = {}
    for pass_, function in plain_calls(given, dout).items():
        found = in_turns({"plain": function}, stage.seconds, PLAIN_SHARE * shape["seconds"], PLAIN_ROUNDS)[0]
        times[pass_] = found["plain"]
    return times


def passes_of(module, order, dout):
    out, x = module.fwd(*order, True)[:2]
    return {"fwd": lambda: module.fwd(*order, True),
            "bwd": lambda: module.bwd(*order, dout, x, out, None, True, False)}


def run(sides, shape, device, stage):
    """`sides`: {"module": ..., "against": ...}. Returns the tensors, for what is computed once more."""
    given, dout = tensors(shape, device)
    order = [given[n] for n in ORDER]
    plain = plain_times(given, dout, shape, stage) if shape["plain"] else {}
    if stage.gpu:
        torch.cuda.empty_cache()
    each = {name: passes_of(module, order, dout) for name, module in sides.items()}
    for pass_ in ("fwd", "bwd"):
        calls = {name: passes[pass_] for name, passes in each.items()}
        if shape["host"]:
            tell(device, shape, pass_, "host", host_seconds(calls, stage.gpu), stage, None)
            continue
        peak = stage.peak(calls["module"])
        for cache in stage.caches():
            seconds = shape["seconds"] / (2.0 * len(stage.caches()))
            times, wall = in_turns(calls, lambda function: stage.sample(function, cache), seconds)
            cost = {"wall": number(1e3 * wall)}
            if cache == "warm":
                cost["in_a_row"] = number(1e3 * in_a_row(calls["module"], stage, min(times["module"]), seconds))
            if plain:
                times["plain"] = plain[pass_]
            tell(device, shape, pass_, cache, times, stage, peak, **cost)
    return given, dout
