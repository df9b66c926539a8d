# SPDX-License-Identifier: Apache-2.0
"""The harness's fp64 oracle (validate/harness/oracle.py) for the tests of the modules: calls and their answers, and how far
a result may be from them.
"""
import importlib.util
import os

import torch

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
# By its path: the harness's folder on sys.path would give its `module` and `call` to every test.
_spec = importlib.util.spec_from_file_location("scankit_oracle", os.path.join(ROOT, "validate", "harness", "oracle.py"))
oracle = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(oracle)
plain_scan = oracle.plain_scan


def update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, softplus=False):
    """(out, new state) of one step, in float64."""
    step = lambda tensor: None if tensor is None else tensor[..., None]
    results = oracle.run(step(x), step(dt), A, step(B), step(C), torch.zeros_like(x)[..., None], D, step(z), dt_bias, softplus,
                         initial_state=state)
    return results["out" if z is None else "out_z"][0][..., 0], results["last_state"][0]


def _exact(tensor):
    if tensor is None:
        return None
    return tensor.detach().cpu().to(torch.complex128 if tensor.is_complex() else torch.float64)


class Case:
    """Tensors of one call and the oracle's answers. bounds: a list, of packed sequences; dlast: last's gradient."""

    def __init__(self, tensors, softplus, dout, initial_state=None, bounds=None, dlast=None):
        self.tensors, self.softplus, self.dout = tensors, softplus, dout
        self.initial_state, self.bounds, self.dlast = initial_state, bounds, dlast
        results = oracle.run(dout=_exact(dout), softplus=softplus, initial_state=_exact(initial_state), dlast_state=_exact(dlast),
                             cu_seqlens=bounds, **{name: _exact(t) for name, t in tensors.items()})
        self.answers = {name: value.resolve_conj() for name, (value, _) in results.items()}
        self.answers.setdefault("out_z", self.answers["out"])
        given = dict(tensors, initial_state=initial_state)
        self.gradients = {name: self.answers["d" + name] for name, t in given.items() if t is not None}

    def excess(self, name, got, **bounds):
        """excess() of a result. Above 1, what the inputs' own last bits do to it counts too: one number that a sum
        of hundreds nearly cancels in is right to a few units of those, not of its own."""
        ratio = excess(got, self.answers[name], **bounds)
        return ratio if ratio <= 1.0 else excess(got, self.answers[name], **bounds, unsure=8.0 * self.unsure(name))

    def unsure(self, name):
        generator = torch.Generator().manual_seed(0)

        def shaken(tensor):
            if tensor is None:
                return None
            noise = torch.randn(tensor.shape, dtype=torch.float64, generator=generator)
            return _exact(tensor) * (1 + 2.0 ** -24 * noise)

        moved = 0.0
        for _ in range(3):
            tensors = {k: shaken(t) for k, t in self.tensors.items()}
            other = Case(tensors, self.softplus, shaken(self.dout), shaken(self.initial_state), self.bounds, shaken(self.dlast))
            moved += (other.answers[name] - self.answers[name]).norm().item() / 3
        return moved


def excess(got, exact, factor=2.0, floor=2e-5, unsure=0.0):
    """Error over what is allowed: `factor` times the rounding of the exact answer to the tensor's dtype (at least its
    usual size: a few numbers may round luckily), plus `floor`, as ratios of norms, plus `unsure`. Above 1 is wrong; NaN
    or an infinity that the answer does not have is infinitely wrong."""
    if exact.is_complex():
        got, exact = torch.view_as_real(got), torch.view_as_real(exact)
    got, exact = got.cpu(), exact.double()
    norm = exact.norm().item()
    error = (got.double() - exact).norm().item()
    if not error < float("inf"):
        return float("inf")
    rounding = max((exact.to(got.dtype).double() - exact).norm().item(), 0.2 * torch.finfo(got.dtype).eps * norm)
    return error / (factor * rounding + floor * norm + unsure + 1e-30) if error else 0.0
