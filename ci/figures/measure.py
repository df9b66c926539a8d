# SPDX-License-Identifier: Apache-2.0
"""Times and memory of a figure's calls. Times are taken by CUDA events around one Python call, the
sides in turns, medians. On a CPU the clock's."""
import statistics
import time

import torch
from scankit_harness import limits

from sides import reason_of

SPREAD = 0.1  # of the calls are left out at either end
SLOW = 0.03    # seconds of a call from which few rounds have to do


LEAST_ROUNDS, MOST_ROUNDS = 6, 41
SLOWEST = 4   # times the seconds allowed: then even fewer rounds have to do


def _in_turns(calls, one, seconds):
    """{side: [seconds]}, A B A B. The first round is thrown away."""
    times, begin = {side: [] for side in calls}, time.perf_counter()
    for turn in range(MOST_ROUNDS + 1):
        for side, call in calls.items():
            taken = one(call)
            if turn > 0:
                times[side].append(taken)
        spent = time.perf_counter() - begin
        if spent > seconds and (turn >= LEAST_ROUNDS or turn >= 1 and spent > SLOWEST * seconds):
            break
    return times


def _spread(times):
    ordered = sorted(times)
    cut = int(len(ordered) * SPREAD)
    return (ordered[len(ordered) - 1 - cut] - ordered[cut]) / statistics.median(ordered)


def times_of(calls, device, seconds):
    """{side: {"ms", "spread", "rounds"}} or {side: {"skipped": why}}."""
    one = limits.gpu_seconds if device.startswith("cuda") else limits.cpu_seconds
    there, found = {}, {}
    for side, call in calls.items():
        if isinstance(call, str):
            found[side] = {"skipped": call}
            continue
        try:
            call()  # loads images, compiles, fills torch's cache
            there[side] = call
        except Exception as error:
            if side == "module":
                raise
            found[side] = {"skipped": reason_of(error)}
    # A slow alternative would leave the module few rounds: the two are timed against each other, not all in one turn.
    slow = {side for side, call in there.items() if side not in ("module", "against") and one(call) > SLOW}
    groups = [[s for s in there if s not in slow]] + [[s] for s in there if s in slow]
    for group in groups:
        samples = _in_turns({s: there[s] for s in group}, one, seconds)
        for side, times in samples.items():
            found[side] = {"ms": 1e3 * statistics.median(times), "spread": _spread(times), "rounds": len(times)}
    return found


def peak_of(call, device):
    """Bytes above what was there before the call; None on a CPU."""
    if not device.startswith("cuda"):
        call()
        return None
    call()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def work_of(figure, name):
    """What a pass has to do at least: bytes, multiply-adds and exponentials; as scankit validate counts it (speed.cc). None
    for what that does not count."""
    if figure["kind"] not in ("scan", "vmamba", "alternatives") or figure["complex"]:
        return None
    steps = float(figure["batch"] * figure["length"])
    elements, n, size = steps * figure["dim"], figure["states"], 4 if figure["dtype"] == "fp32" else 2
    projections = steps * n * figure["groups"] * (2 - len(figure["constant"]))
    gate = 1 if figure["z"] else 0
    if name == "fwd":
        return {"copy": size * ((3 + 2 * gate) * elements + projections), "fma": (4 * n + 11 + 2 * gate) * elements,
                "exp": (n + 2 + 2 * gate) * elements}
    return {"copy": size * ((5 + 3 * gate) * elements + 2 * projections), "fma": (11 * n + 33 + 10 * gate) * elements,
            "exp": (n + 4 + 2 * gate) * elements}


def fractions(figure, name, ms, measured):
    """Of each measured limit, the part that the pass reaches."""
    work = work_of(figure, name)
    if not work or not measured:
        return {}
    return {limit: work[limit] / measured[limit] / (1e-3 * ms) for limit in work if measured.get(limit)}
