# SPDX-License-Identifier: Apache-2.0
"""state_update on CPU tensors against the float64 oracle; what it refuses.

python update_test.py [--attributes] [unittest's options], as stateful_test.py.
"""
import os
import unittest

import torch

from stateful_checks import CASES, Checks
import module_test
from module_test import module
from oracle_case import update
from stateful_test import make_stateful


class Steps(Checks):
    def make_step(self, seed, **fixed):
        rng = module_test.random.Random(seed)
        torch.manual_seed(seed)
        pick = lambda name, choices: fixed.get(name, rng.choice(choices))
        dtype = pick("dtype", module_test.DTYPES)
        batch, groups, states = pick("batch", [0, 1, 2, 5]), pick("groups", [1, 1, 3]), pick("states", module_test.STATES)
        dim = groups * pick("per_group", [1, 3, 17, 32])
        on = lambda *shape: torch.randn(*shape).to(module_test.DEVICE)
        wide = lambda tensor: torch.cat([tensor, torch.full_like(tensor, float("nan"))], 1).chunk(2, 1)[0] \
            if rng.random() < 0.5 else tensor
        step = lambda: on(dim, batch).to(dtype).t() if rng.random() < 0.2 else wide(on(batch, dim).to(dtype))
        parameter = lambda: on(dim).to(rng.choice([torch.float32, dtype])) if rng.random() < 0.6 else None
        flat = groups == 1 and rng.random() < 0.5
        projection = lambda: wide(on(batch, states).to(dtype)) if flat else wide(on(batch, groups, states).to(dtype))
        A = -on(dim, states).abs()
        A = A.t().contiguous().t() if rng.random() < 0.3 else A
        state = on(batch, dim, states).to(rng.choice([torch.float32, dtype]))
        dt_bias, softplus = parameter(), rng.random() < 0.6
        tensors = dict(x=step(), dt=step() if softplus else step().abs() * 0.3, A=A, B=projection(), C=projection(), D=parameter(),
                       z=step() if rng.random() < 0.5 else None,
                       dt_bias=dt_bias if softplus or dt_bias is None else dt_bias.abs())
        return self.laid_out(state, rng), tensors, softplus

    def laid_out(self, state, rng):
        """(the state, the storage around it): NaN in all that is not the state's."""
        batch, dim, states = state.shape
        how = rng.choice(["plain", "dim_major", "padded", "every_second"])
        if how == "dim_major":
            storage = torch.full((dim, batch + 1, states), float("nan"), dtype=state.dtype, device=state.device)
            view = storage[:, :batch].transpose(0, 1)
        elif how == "every_second":
            storage = torch.full((batch, 2 * dim - 1, states), float("nan"), dtype=state.dtype, device=state.device)
            view = storage[:, ::2]
        else:
            more = how == "padded"
            storage = torch.full((batch + 1, dim + more, states + 3 * more), float("nan"), dtype=state.dtype,
                                 device=state.device)
            view = storage[:batch, :dim, :states]
        view.copy_(state)
        return view, storage

    def check_step(self, made):
        (state, storage), tensors, softplus = made
        exact = {n: None if t is None else t.cpu().double() for n, t in tensors.items()}
        if exact["B"].dim() == 2:
            exact.update(B=exact["B"][:, None], C=exact["C"][:, None])
        before = state.clone()
        out, new = update(before.cpu().double(), *exact.values(), softplus=softplus)
        copies = {n: None if t is None else t.clone() for n, t in tensors.items()}
        got = module.state_update(state, *tensors.values(), softplus)
        self.assertEqual((got.dtype, got.shape), (tensors["x"].dtype, tensors["x"].shape))
        self.close("out", got, out)
        self.close("state", state, new)
        self.assertEqual(int((~storage.isnan()).sum()), state.numel(), "memory around the state was written")
        for name, tensor in copies.items():
            if tensor is not None:
                self.same([tensor], [tensors[name]])
        self.check_guards()
        state.copy_(before)
        self.same([got], [module.state_update(state, *tensors.values(), softplus)])
        state.copy_(before)

    def test_random_steps(self):
        for seed in range(4 * CASES):
            made = self.make_step(seed)
            for _ in self.each_set():
                with self.subTest(seed=seed):
                    self.check_step(made)

    def test_decoding_is_the_scan(self):
        """Prompt by fwd_stateful, then step by step: the whole scan's outputs and last state."""
        for dtype in module_test.DTYPES:
            case, _, _ = make_stateful(4, False, kind="", dtype=dtype, length=65, states=16, groups=2, per_group=17, batch=2,
                                       z=True, D=True, delta_bias=True, initial_state=True)
            t = case.tensors
            prompt = {n: x[..., :40].contiguous() if n in ("u", "delta", "z", "B", "C") else x for n, x in t.items()}
            out, _, state, gated = module.fwd_stateful(*prompt.values(), case.softplus, case.initial_state, None, False)
            outs = [gated]
            for l in range(40, 65):
                outs.append(module.state_update(state, t["u"][..., l], t["delta"][..., l], t["A"], t["B"][..., l].contiguous(),
                                                t["C"][..., l].contiguous(), t["D"], t["z"][..., l], t["delta_bias"],
                                                case.softplus)[..., None])
            self.right(case, "out_z", torch.cat(outs, -1))
            self.right(case, "last_state", state)

    def test_threads_do_not_show(self):
        self.addCleanup(os.environ.pop, "OMP_NUM_THREADS", None)
        (state, _), tensors, softplus = self.make_step(1, batch=5, groups=1, per_group=700, states=16)
        results = []
        for threads in ("1", "2", "5"):
            os.environ["OMP_NUM_THREADS"] = threads
            mine = state.clone()
            results.append([module.state_update(mine, *tensors.values(), softplus), mine])
        self.same(results[0], results[1])
        self.same(results[0], results[2])


class Refusals(Checks):
    def setUp(self):
        on = lambda *shape: torch.ones(*shape, device=module_test.DEVICE)
        self.step = dict(state=on(3, 4, 2), x=on(3, 4), dt=on(3, 4), A=-on(4, 2), B=on(3, 2, 2), C=on(3, 2, 2), D=None,
                         z=None, dt_bias=None, softplus=True)

    def test_step(self):
        on = lambda *shape: torch.ones(*shape, device=module_test.DEVICE)
        refused = lambda pattern, **changes: self.refused(module.state_update, self.step, pattern, **changes)
        refused("x is float64; float32, float16 and bfloat16 are supported", x=on(3, 4).double())
        refused(r"x has shape \(3, 4, 1\), expected \(batch, dim\)", x=on(3, 4, 1))
        refused("dt is float16, expected float32, the dtype of x", dt=on(3, 4).half())
        refused(r"z has shape \(3, 5\), expected \(3, 4\)", z=on(3, 5))
        refused("state is float16, expected float32, the dtype of x", state=on(3, 4, 2).half())
        half = {n: t.half() for n, t in self.step.items() if torch.is_tensor(t) and n != "A"}
        refused("state is bfloat16, expected float32 or float16, the dtype of x", **{**half, "state": on(3, 4, 2).bfloat16()})
        refused(r"state has shape \(2, 4, 2\), expected \(3, 4, 2\)", state=on(2, 4, 2))
        refused("state has stride 12 in its last dimension, expected 1; it is changed in place",
                state=on(2, 4, 3).permute(2, 1, 0)[:, :, :2])
        refused("state has stride 0 in dimension 0, so its elements share memory", state=on(1, 4, 2).expand(3, 4, 2))
        refused("state has stride 0 in dimension 1", state=on(3, 1, 2).expand(3, 4, 2))
        refused("state has stride 1 in dimension 1", state=on(64).as_strided((3, 4, 2), (8, 1, 1)))
        refused("A is complex64, expected float32; a complex A is not supported", A=on(4, 2).to(torch.complex64))
        refused(r"A has shape \(2, 4\), expected \(4, states\)", A=on(2, 4))
        refused("257 states", A=on(4, 257))
        refused("3 groups, which do not divide the 4", B=on(3, 3, 2))
        refused(r"B has shape \(3, 1, 2, 1\), expected \(3, 2\)", B=on(3, 1, 2, 1))
        refused(r"C has shape \(3, 2\), expected \(3, 2, 2\): \(batch, groups, states\)", C=on(3, 2))
        refused("C is bfloat16, expected float32", C=on(3, 2, 2).bfloat16())
        refused("D is float16, expected float32, the dtype of x", D=on(4).half())
        refused(r"dt_bias has shape \(4, 2\), expected \(4,\)", dt_bias=on(4, 2))
        refused("x must be a torch.Tensor", error=TypeError, x=None)
        refused("dt_softplus must be True or False", error=TypeError, softplus=on(1))
        with self.assertRaisesRegex(TypeError, "takes 10 arguments .*, got 1"):
            module.state_update(on(1))


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
