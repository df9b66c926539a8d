# SPDX-License-Identifier: Apache-2.0
"""What is measured: the six shapes of the goals, and a figure each beside them. A figure is a dictionary; its key names it
in a table and in a baseline."""

GOALS = [(8, 2048, 2048, "bf16"), (8, 5120, 2048, "bf16"), (1, 5120, 2048, "bf16"), (1, 2048, 16384, "bf16"),
         (64, 384, 196, "bf16"), (8, 2048, 2048, "fp32")]
# At least so many times as fast as the other module, forward and backward; the last is the geometric mean.
WANTED = {"fwd": [3.0, 3.2, 2.2, 2.6, 4.5, 4.0, 3.1], "bwd": [4.2, 4.2, 3.2, 3.6, 4.5, 3.3, 3.8]}

PLAIN = {"batch": 8, "dim": 2048, "length": 2048, "states": 16, "groups": 1, "dtype": "bf16", "z": True, "complex": False,
         "constant": "", "save": True}


def scan(group, **changes):
    return dict(PLAIN, kind="scan", group=group, **changes)


def figures():
    """Most important first."""
    found = [scan("goals", batch=b, dim=d, length=n, dtype=t, wanted={p: each[i] for p, each in WANTED.items()})
             for i, (b, d, n, t) in enumerate(GOALS)]
    found.append(dict(PLAIN, kind="memory", group="memory"))
    found.append(scan("others", dtype="fp16"))
    found += [scan("others", states=n, **({"batch": 2} if n > 64 else {})) for n in (1, 8, 64, 128, 256)]
    found += [scan("others", length=n, **({"batch": 1} if n > 8192 else {})) for n in (197, 512, 4097, 65536)]
    found += [scan("others", groups=g) for g in (2, 8)]
    found.append(scan("others", complex=True))
    found += [scan("others", constant=c) for c in ("B", "C", "BC")]
    found.append(scan("others", z=False))
    found += [dict(scan("inference", batch=b, dim=d, length=n), save=False) for b, d, n in ((8, 2048, 2048), (1, 5120, 2048))]
    found += [{"kind": "conv", "group": "conv", "batch": b, "dim": d, "length": n, "width": 4, "dtype": t}
              for b, d, n, t in ((8, 2048, 2048, "bf16"), (1, 5120, 2048, "bf16"), (8, 2048, 2048, "fp32"))]
    # The stages of VMamba at 224 x 224: four directions, so four groups; states 1 in its newer models, 16 in the first.
    found += [dict(PLAIN, kind="vmamba", group="vmamba", batch=32, dim=d, length=n, states=s, groups=4, z=False)
              for d, n, s in ((768, 3136, 1), (1536, 784, 1), (3072, 196, 1), (768, 3136, 16))]
    found += [dict(PLAIN, kind="alternatives", group="alternatives", batch=1), {"kind": "update", "group": "alternatives",
              "batch": 64, "dim": 5120, "states": 16, "dtype": "bf16"}]
    return [dict(figure, key=key(figure)) for figure in found]


def small(figure):
    """The same for a CPU and a test: a moment each."""
    changed = dict(figure, batch=min(figure["batch"], 2), dim=32, key="small of " + figure["key"])
    if "length" in changed:
        changed["length"] = min(figure["length"], 70 if figure["kind"] != "alternatives" else 12)
    return changed


def key(figure):
    text = "{kind} {dtype} B{batch} D{dim}".format(**figure)
    for name, letter in (("length", "L"), ("states", "N")):
        if name in figure:
            text += " {}{}".format(letter, figure[name])
    if figure.get("groups", 1) != 1:
        text += " G{groups}".format(**figure)
    if figure.get("complex"):
        text += " complex"
    if figure.get("constant"):
        text += " constant-" + figure["constant"]
    if figure["kind"] == "scan" and not figure["z"]:
        text += " no-z"
    if not figure.get("save", True):
        text += " no-states"
    return text
