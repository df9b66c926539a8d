# SPDX-License-Identifier: Apache-2.0
"""What ncu watches: for each of the six shapes a forward and a backward, each behind a marker, a kernel of torch's.

python profile_run.py FOLDER_OF_MODULES"""
import sys

sys.path.insert(0, sys.argv[1])
import torch  # noqa: E402

import selective_scan_cuda as module  # noqa: E402
import shapes  # noqa: E402
from sides import Tensors  # noqa: E402

for figure in (f for f in shapes.figures() if f["group"] == "goals"):
    given = Tensors(figure, "cuda:0")
    order = given.order()
    out, x = module.fwd(*order, True)[:2]
    calls = [lambda: module.fwd(*order, True), lambda: module.bwd(*order, given.dout, x, out, None, True, False)]
    for call in calls:
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    for call in calls:
        torch.cuda._sleep(100)  # the marker
        call()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()
    del given, order, out, x, calls
    torch.cuda.empty_cache()
