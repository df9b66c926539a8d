# SPDX-License-Identifier: Apache-2.0
"""The table of a run, and its comparison with a recorded one. Knows nothing of torch."""
import math

SLOWER = 1.05  # than in the baseline: named, and the status is 6


def ratio(entry, other="against"):
    sides = entry["sides"]
    if "ms" not in sides.get(other, {}) or "ms" not in sides.get("module", {}):
        return None
    return sides[other]["ms"] / sides["module"]["ms"]


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else None


def _number(value, form):
    return form.format(value) if value is not None else "-"


def _others(entry):
    """What stands behind a row: alternatives and what was skipped."""
    lines = []
    for side, found in entry["sides"].items():
        if side == "module" or (side == "against" and "ms" in found):
            continue
        if "ms" in found:
            lines.append("      {}: {:.4f} ms, {:.1f} times".format(side, found["ms"], ratio(entry, side)))
        else:
            lines.append("      {}: skipped: {}".format(side, found["skipped"]))
    return lines


def row(entry):
    mine, other = entry["sides"]["module"], entry["sides"].get("against", {})
    wanted = entry.get("wanted")
    parts = ["{:<52} {}".format(entry["key"], entry["pass"]), "{:>10.4f}".format(mine["ms"]), "{:>5.1f}%".format(100 * mine["spread"]),
             _number(other.get("ms"), "{:>10.4f}").rjust(10), _number(ratio(entry), "{:>7.2f}x").rjust(8),
             _number(wanted, "{:>5.1f}x").rjust(6)]
    parts += [_number(entry["of_limit"].get(limit), "{:>4.0%}").rjust(5) for limit in ("copy", "exp", "fma")]
    return "  ".join(parts)


def table(result):
    """Lines."""
    lines = ["{}, torch {}; module {}; against {}".format(result["gpu"], result["torch"], result["module"],
                                                            result["against"] or "nothing")]
    if result["limits"]:
        lines.append("limits measured now: copy {copy:.3g} B/s, {exp:.3g} exponentials/s, {fma:.3g} multiply-adds/s".format(
            **result["limits"]))
    lines.append("medians of single calls, ms; spread: the middle 80 %; the last columns: parts of the limits reached")
    lines.append("  ".join(["{:<56}".format("figure"), "{:>10}".format("module"), "spread", "{:>10}".format("against"),
                             "{:>8}".format("ratio"), "wanted", " copy", "  exp", "  fma"]))
    group = None
    for entry in result["figures"]:
        if entry["group"] != group:
            group = entry["group"]
            lines.append("-- " + group)
        lines.append(row(entry))
        lines.extend(_others(entry))
    for name, wanted in (("fwd", result["wanted"]["fwd"]), ("bwd", result["wanted"]["bwd"])):
        goals = [ratio(e) for e in result["figures"] if e["group"] == "goals" and e["pass"] == name]
        if goals and None not in goals:
            lines.append("geometric mean of the goals, {}: {:.2f}x (wanted {:.1f}x)".format(name, geometric_mean(goals), wanted))
    for memory in result["memory"]:
        lines.append(memory_line(memory))
    slower = [e for e in result["figures"] if ratio(e) is not None and ratio(e) < 0.97]
    lines += ["slower than the other module: {} {} ({:.2f}x)".format(e["key"], e["pass"], ratio(e)) for e in slower]
    lines += ["not measured: {}: {}".format(m["key"], m["why"]) for m in result["missing"]]
    return lines


def memory_line(memory):
    def mib(value):
        return "{:.1f} MiB".format(value / 2.0 ** 20) if value is not None else "-"
    text = "{}: peak of a training step {}".format(memory["key"], mib(memory["module"]))
    if memory.get("against") is not None:
        allowed = memory["against"] + memory["activation"]
        text += ", the other module {}; {} allowed: {}".format(mib(memory["against"]), mib(allowed),
                                                              "held" if memory["module"] <= allowed else "NOT held")
    if memory.get("low") is not None or memory.get("low_ms") is not None:
        text += "; without kept states {}, {:.3f} times the step's time".format(mib(memory["low"]),
                                                                               memory["low_ms"] / memory["step_ms"])
    return text


def compare(result, baseline):
    """(lines, status): status 6 where a figure is slower, 4 where the baseline says nothing of this machine."""
    if baseline.get("schema") != result["schema"]:
        return ["the baseline is of another version of this script"], 4
    if baseline["gpu"] != result["gpu"]:
        return ["the baseline is of another GPU: it was measured on {}, this is {}".format(baseline["gpu"], result["gpu"])], 4
    before = {(e["key"], e["pass"]): e for e in baseline["figures"]}
    lines, seen = [], 0
    for entry in result["figures"]:
        old = before.get((entry["key"], entry["pass"]))
        if old is None:
            continue
        seen += 1
        # Two machines differ by 3 to 5 % in every time, and hardly in the ratio of two modules.
        both = ratio(old) is not None and ratio(entry) is not None and baseline["against_sha256"] == result["against_sha256"]
        change = ratio(old) / ratio(entry) if both else entry["sides"]["module"]["ms"] / old["sides"]["module"]["ms"]
        if change > SLOWER:
            lines.append("slower than the baseline: {} {}: {:.4f} ms, was {:.4f}{} ({:+.1f} %)".format(
                entry["key"], entry["pass"], entry["sides"]["module"]["ms"], old["sides"]["module"]["ms"],
                "; {:.2f}x the other module, was {:.2f}x".format(ratio(entry), ratio(old)) if both else "", 100 * (change - 1)))
    was = {m["key"]: m for m in baseline["memory"]}
    for memory in result["memory"]:
        old = was.get(memory["key"], {}).get("module")
        if old and memory["module"] and memory["module"] > SLOWER * old:
            lines.append("more memory than the baseline: {}: {} bytes, was {}".format(memory["key"], memory["module"], old))
    if seen == 0:
        return ["the baseline has none of these figures"], 4
    status = 6 if lines else 0
    return lines + ["{} figures compared with the baseline, {} worse".format(seen, len(lines))], status
