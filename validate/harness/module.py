# SPDX-License-Identifier: Apache-2.0
"""Finds the module under test: by name as the user's programs import it, or from a file."""
import importlib
import importlib.machinery
import importlib.util
import os
import sys

from scankit_harness.channel import say


class ModuleProblem(Exception):
    def __init__(self, kind, message):
        Exception.__init__(self, message)
        self.kind = kind


def load(wanted, role="module"):
    """`wanted` is a dotted name, or a path when it holds a slash. Import torch first, as all callers do. A second module
    that is named as the first is has to be a file: it is not put in the first one's place."""
    module = _from_file(wanted, role) if "/" in wanted else _by_name(wanted)
    name = os.path.basename(wanted).split(".")[0] if "/" in wanted else wanted.split(".")[-1]
    prefix = "causal_conv1d_" if name == "causal_conv1d_cuda" else ""
    missing = [n for n in (prefix + "fwd", prefix + "bwd") if not callable(getattr(module, n, None))]
    if len(missing) > 1:
        raise ModuleProblem("lacks_functions", say("{} has no function {} and no {}", wanted, *missing))
    if missing:
        raise ModuleProblem("lacks_functions", say("{} has no function {}", wanted, *missing))
    return Vmamba(module, VMAMBA[name]) if name in VMAMBA else module


# What VMamba's modules are called with behind nrows: oflex is told whether out is to be float32.
VMAMBA = {"selective_scan_cuda_core": (), "selective_scan_cuda_oflex": (False,)}


class Vmamba:
    """VMamba's module with the arguments of the plain one; its cases have no z."""

    FREE_LAYOUT = ("out", "ddelta")  # its own build makes them contiguous or as u

    def __init__(self, module, more):
        self.module, self.more = module, more
        self.__file__ = getattr(module, "__file__", None)

    def fwd(self, u, delta, A, B, C, D, z, delta_bias, softplus):
        return self.module.fwd(u, delta, A, B, C, D, delta_bias, softplus, 1, *self.more)

    def bwd(self, u, delta, A, B, C, D, z, delta_bias, dout, x, out, dz, softplus, recompute_out_z):
        return self.module.bwd(u, delta, A, B, C, D, delta_bias, dout, x, softplus, 1)


def _by_name(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name.split(".")[0] or error.name == name:
            raise ModuleProblem("not_found", say("no module named {} on this Python's path", name))
        raise ModuleProblem("import_failed", _line(error))
    except BaseException as error:
        raise ModuleProblem("import_failed", _line(error))


def _from_file(path, role):
    base = os.path.basename(path)
    # An extension's name is part of its file's: its init function is called PyInit_NAME.
    name = base.split(".")[0] if base.endswith((".so", ".py")) else "selective_scan_cuda"
    if base.endswith(".py"):
        loader = importlib.machinery.SourceFileLoader(name, path)
    else:
        loader = importlib.machinery.ExtensionFileLoader(name, path)
    try:
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        module = importlib.util.module_from_spec(spec)
        if role == "module" or name not in sys.modules:
            sys.modules[name] = module
        loader.exec_module(module)
        return module
    except BaseException as error:
        raise ModuleProblem("import_failed", _line(error))


def _line(error):
    return ("%s: %s" % (type(error).__name__, error)).replace("\n", " ")[:800]
