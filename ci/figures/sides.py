# SPDX-License-Identifier: Apache-2.0
"""The calls of a figure: {pass: {side: call}}. A side that cannot make a call has the reason, a text, in its place."""
import torch

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Tensors:
    def __init__(self, figure, device):
        generator = torch.Generator(device=device).manual_seed(1)
        batch, dim, length, states, groups = (figure[n] for n in ("batch", "dim", "length", "states", "groups"))
        kind = DTYPES[figure["dtype"]]

        def normal(*size, mean=0.0, scale=1.0, dtype=kind):
            return torch.randn(*size, generator=generator, device=device).mul_(scale).add_(mean).to(dtype)

        rate = -torch.exp(normal(dim, states, mean=1.0, scale=0.5, dtype=torch.float32))
        self.A = torch.complex(rate, normal(dim, states, dtype=torch.float32)) if figure["complex"] else rate
        constant = self.A.dtype

        def projection(name):
            if name in figure["constant"]:
                return torch.ones(dim, states, device=device).mul_(0.5).to(constant)
            return normal(batch, groups, states, length * (2 if figure["complex"] else 1))

        self.u, self.delta, self.dout = (normal(batch, dim, length, mean=m) for m in (0.0, -3.0, 0.0))
        self.B, self.C = projection("B"), projection("C")
        self.D, self.delta_bias = normal(dim, dtype=torch.float32), normal(dim, mean=0.0, scale=0.1, dtype=torch.float32)
        self.z = normal(batch, dim, length) if figure["z"] else None

    def order(self):
        return [self.u, self.delta, self.A, self.B, self.C, self.D, self.z, self.delta_bias]


def _scan_calls(module, figure, given):
    order = given.order()
    if not figure["save"]:
        if hasattr(module, "fwd_stateful"):
            return {"fwd": lambda: module.fwd_stateful(*order, True, None, None, False)}
        return {"fwd": lambda: module.fwd(*order, True)}
    out, x = module.fwd(*order, True)[:2]
    return {"fwd": lambda: module.fwd(*order, True),
            "bwd": lambda: module.bwd(*order, given.dout, x, out, None, True, False)}


def _vmamba_calls(module, figure, given):
    more = (False,) if module.__name__.endswith("oflex") else ()
    order = [given.u, given.delta, given.A, given.B, given.C, given.D, given.delta_bias]
    out, x = module.fwd(*order, True, 1, *more)[:2]
    return {"fwd": lambda: module.fwd(*order, True, 1, *more),
            "bwd": lambda: module.bwd(*order, given.dout, x, True, 1)}


def _conv_calls(module, figure, device):
    batch, dim, length, kind = figure["batch"], figure["dim"], figure["length"], DTYPES[figure["dtype"]]
    x, dout = (torch.randn(batch, dim, length, device=device).to(kind) for _ in range(2))
    weight, bias = torch.randn(dim, figure["width"], device=device).to(kind), torch.randn(dim, device=device).to(kind)

    def forward_filling():
        out = torch.empty_like(x)
        module.causal_conv1d_fwd(x, weight, bias, None, None, out, None, True)
        return out

    def backward_filling():
        dx, dweight, dbias = torch.empty_like(x), torch.zeros_like(weight, dtype=torch.float32), \
            torch.zeros_like(bias, dtype=torch.float32)
        module.causal_conv1d_bwd(x, weight, bias, dout, None, None, None, dx, dweight, dbias, None, True)
        return dx, dweight, dbias

    pairs = {"fwd": (forward_filling, lambda: module.causal_conv1d_fwd(x, weight, bias, None, None, None, True)),
             "bwd": (backward_filling,
                     lambda: module.causal_conv1d_bwd(x, weight, bias, dout, None, None, None, None, None, True))}
    calls = {}
    for name, (filling, returning) in pairs.items():  # of releases before 1.5.1: they return what others fill
        try:
            filling()
            calls[name] = filling
        except TypeError:
            returning()
            calls[name] = returning
    return calls


def _update_calls(module, figure, device):
    batch, dim, states, kind = figure["batch"], figure["dim"], figure["states"], DTYPES[figure["dtype"]]
    state, A = torch.zeros(batch, dim, states, device=device), -torch.rand(dim, states, device=device)
    x, dt, z = (torch.randn(batch, dim, device=device).to(kind) for _ in range(3))
    B, C = (torch.randn(batch, states, device=device).to(kind) for _ in range(2))
    D, bias = torch.randn(dim, device=device), torch.randn(dim, device=device)
    if callable(module):  # mamba_ssm's function
        return {"fwd": lambda: module(state, x, dt, A, B, C, D, z=z, dt_bias=bias, dt_softplus=True)}
    return {"fwd": lambda: module.state_update(state, x, dt, A, B, C, D, z, bias, True)}


def reason_of(error):
    return "{}: {}".format(type(error).__name__, error).replace("\n", " ")[:160]


def calls_of(figure, modules, device):
    """{pass: {side: call or why there is none}}; what our own module cannot do is an error."""
    given = Tensors(figure, device) if figure["kind"] in ("scan", "vmamba") else None
    make = {"scan": lambda m: _scan_calls(m, figure, given), "vmamba": lambda m: _vmamba_calls(m, figure, given),
            "conv": lambda m: _conv_calls(m, figure, device), "update": lambda m: _update_calls(m, figure, device)}[figure["kind"]]
    found = {}
    for side, module in modules.items():
        try:
            calls = module if isinstance(module, str) else make(module)
        except Exception as error:
            if side == "module":
                raise
            calls = reason_of(error)
        for name in (calls if isinstance(calls, dict) else found or {"fwd": 0}):
            found.setdefault(name, {})[side] = calls[name] if isinstance(calls, dict) else calls
    return found


def training_steps(module, figure, device):
    """{name: call}: a forward and the backward behind it, as a model makes them, and once more without kept states."""
    given = Tensors(figure, device)
    order = given.order()

    def step():
        out, x = module.fwd(*order, True)[:2]
        return module.bwd(*order, given.dout, x, out, None, True, False)

    def low():
        out = module.fwd_stateful(*order, True, None, None, False)[0]
        return module.bwd_stateful(*order, given.dout, None, out, None, True, False, None, None, None)

    return {"step": step, "low-memory": low} if hasattr(module, "fwd_stateful") else {"step": step}
