# SPDX-License-Identifier: Apache-2.0
"""The right module that the wrong ones of this folder lead astray: the file that SCANKIT_INNER_MODULE names."""
import importlib.util
import os
import sys

path = os.environ["SCANKIT_INNER_MODULE"]
name = os.path.basename(path).split(".")[0]
spec = importlib.util.spec_from_file_location(name, path)
module = importlib.util.module_from_spec(spec)
sys.modules[name] = module
spec.loader.exec_module(module)
fwd, bwd = module.fwd, module.bwd
