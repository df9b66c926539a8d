# SPDX-License-Identifier: Apache-2.0
"""ncu's CSV (--page raw) of profile_run.py as a table. Knows nothing of torch. profile_table.py FILE | --metrics"""
import csv
import sys

import shapes

MARKER = "spin_kernel"  # of torch.cuda._sleep
PIPE = "sm__inst_executed_pipe_{}.avg.pct_of_peak_sustained_active"
# Title, width, and the names under which releases of ncu have it, the first that is there counts.
COLUMNS = [
    ("us", 7, ["gpu__time_duration.sum"]),
    ("GHz", 5, ["sm__cycles_elapsed.avg.per_second", "smsp__cycles_elapsed.avg.per_second"]),
    ("regs", 5, ["launch__registers_per_thread"]),
    ("warps", 6, ["sm__warps_active.avg.per_cycle_active"]),
    ("issue%", 6, ["smsp__issue_active.avg.pct_of_peak_sustained_active", "sm__issue_active.avg.pct_of_peak_sustained_active",
                   "smsp__issue_active.avg.pct"]),
    ("mufu%", 6, [PIPE.format("xu")]),
    ("fma%", 6, [PIPE.format("fma"), "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active"]),
    ("alu%", 6, [PIPE.format("alu")]),
    ("lsu%", 6, [PIPE.format("lsu")]),
    ("bank%", 6, ["l1tex__data_bank_reads.avg.pct_of_peak_sustained_elapsed", "l1tex__data_bank_reads.avg.pct_of_peak_sustained_active"]),
    ("back%", 6, ["l1tex__lsu_writeback_active.avg.pct_of_peak_sustained_active",
                  "l1tex__lsu_writeback_active.avg.pct_of_peak_sustained_elapsed"]),
    ("dram%", 6, ["dram__throughput.avg.pct_of_peak_sustained_elapsed",
                  "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"]),
    ("Minst", 7, ["smsp__inst_executed.sum", "sm__inst_executed.sum"]),
]
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
STALLS = ["long_scoreboard", "short_scoreboard", "mio_throttle", "math_pipe_throttle", "barrier", "wait", "not_selected",
          "dispatch_stall", "lg_throttle", "no_instruction", "sleeping", "branch_resolving", "imc_miss"]
SCALE = {"nsecond": 1e-3, "ns": 1e-3, "usecond": 1, "us": 1, "msecond": 1e3, "ms": 1e3, "second": 1e6, "s": 1e6,
         "cycle/nsecond": 1, "cycle/second": 1e-9, "GHz": 1, "Ghz": 1, "MHz": 1e-3, "Mhz": 1e-3, "hz": 1e-9, "Hz": 1e-9,
         "inst": 1e-6, "Kinst": 1e-3, "Minst": 1}


def metrics():
    return sorted({names[0] for _, _, names in COLUMNS if "launch__" not in names[0]} | {STALL.format(s) for s in STALLS[:10]})


def read(lines):
    """[(kernel, {metric: value})], times in us, clocks in GHz, instructions in millions."""
    rows = list(csv.reader(line for line in lines if line.startswith('"')))
    if len(rows) < 2 or "Kernel Name" not in rows[0]:
        return []
    names, units, kernels = rows[0], rows[1], []
    for row in rows[2:]:
        values = {}
        for name, unit, text in zip(names, units, row):
            try:
                counted = unit.endswith("inst") and not name.endswith(".sum")  # a ratio, though its unit says so
                values[name] = float(text.replace(",", "")) * (1 if counted else SCALE.get(unit, 1))
            except ValueError:
                pass
        kernels.append((row[names.index("Kernel Name")], values))
    return kernels


def value_of(values, names):
    return next((values[n] for n in names if n in values), None)


def stalls_of(values):
    """The largest first: warps that waited for it, a cycle in which one issued."""
    found = sorted(((values[STALL.format(s)], s) for s in STALLS if STALL.format(s) in values), reverse=True)
    return ", ".join("{} {:.2f}".format(name, value) for value, name in found[:4] if value >= 0.05)


def table(kernels):
    passes = [shapes.key(f) + " " + p for f in shapes.figures() if f["group"] == "goals" for p in ("fwd", "bwd")]
    lines = ["{:<24}".format("kernel") + " ".join(t.rjust(w) for t, w, _ in COLUMNS) + "  warps waiting an issue, for"]
    at = -1
    for name, values in kernels:
        if MARKER in name:
            at += 1
            lines.append("-- " + (passes[at] if at < len(passes) else "?"))
            continue
        cells = []
        for _, width, names in COLUMNS:
            value = value_of(values, names)
            cells.append(("-" if value is None else "{:.2f}".format(value) if value < 10 else "{:.1f}".format(value)).rjust(width))
        lines.append("{:<24}".format(name.split("(")[0].replace("scankit_", "")[:23]) + " ".join(cells) + "  " + stalls_of(values))
    return lines


def main(arguments):
    if arguments == ["--metrics"]:
        print(",".join(metrics()))
        return 0
    with open(arguments[0], encoding="utf-8", errors="replace") as file:
        kernels = read(file)
    if not kernels:
        print("profile_table.py: no kernels in " + arguments[0])
        return 1
    print("\n".join(table(kernels)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
