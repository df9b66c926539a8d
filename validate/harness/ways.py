# SPDX-License-Identifier: Apache-2.0
"""The same case in another way: on a side stream, inside a CUDA graph, between bands. A task's device names it: "cuda:0+graph"; and
"@against" behind it is the other of two modules."""
import torch

from scankit_harness import call
from scankit_harness.channel import say

SLEEP_CYCLES = 6000000  # about 3 ms: long enough that work which did not wait is done before the inputs are there


def split(label):
    """("cuda:0", "graph", False) of "cuda:0+graph"."""
    place, _, other = label.partition("@")
    device, _, way = place.partition("+")
    return device, way, bool(other)


def runner(way):
    return {"": call.Runner, "bands": BetweenBands, "stream": OnSideStream, "graph": InGraph}[way]


class BetweenBands(call.Runner):
    """In a process whose every allocation on the GPU has them (gpu_guard.py). Once is enough to see who writes to them."""

    def run(self):
        self.once(False)
        return self.report


class Late(call.Runner):
    """The inputs are NaN while the call is made, and what they should be only when its turn comes on its stream."""

    def hide_inputs(self):
        for placed in self.placed.values():
            if placed.exact is not None:
                placed.storage.fill_(float("nan"))
        torch.cuda.synchronize()

    def show_inputs(self):
        for placed in self.placed.values():
            if placed.exact is not None:
                placed.storage.copy_(placed.saved)


class OnSideStream(Late):
    """Torch's side streams do not wait for the default one: a kernel launched there reads NaN."""

    def invoke(self, function, *arguments):
        self.hide_inputs()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(SLEEP_CYCLES)
            self.show_inputs()
            with call.threads_of_the_user():
                got = function(*arguments)
        stream.synchronize()
        # What the call left on other streams must not be done later than what the caller waits for.
        kept = [t.clone() if torch.is_tensor(t) else None for t in got] if isinstance(got, (list, tuple)) else []
        torch.cuda.synchronize()
        for before, now in zip(kept, got if kept else []):
            if before is not None and not call.same_results(before, now):
                self.complain(say("a result was not complete when its stream was: work is running on another one"))
        return got


class InGraph(Late):
    """Captured while the inputs are NaN, then replayed with the real ones."""

    def __init__(self, *arguments):
        Late.__init__(self, *arguments)
        self.graphs = []  # own the memory of their results

    def invoke(self, function, *arguments):
        with call.threads_of_the_user():
            function(*arguments)  # whatever is loaded at the first call
            torch.cuda.synchronize()
            self.hide_inputs()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                got = function(*arguments)
        self.show_inputs()
        torch.cuda.synchronize()
        graph.replay()
        torch.cuda.synchronize()
        self.graphs.append(graph)
        return got
