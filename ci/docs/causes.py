# SPDX-License-Identifier: Apache-2.0
"""A page for each cause, from what `scankit explain` knows: doctor/knowledge/faults.yaml and doctor/model/causes.def."""
import re

import yaml

import markdown as md

CAUSE = re.compile(r'^CAUSE\(\w+, "(\w+)", (\w+), ((?:"(?:[^"\\]|\\.)*"\s*)+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)', re.M)
STAGES = {"import": "The import fails", "environment": "The environment does not fit", "build": "The build fails",
          "run": "Commands fail", "runtime": "Calls fail", "numerics": "The results are wrong", "speed": "It is slow"}
THREAD = re.compile(r"^([\w.-]+/[\w.-]+)#(\d+)$")


def _joined(literals):
    return re.sub(r'\\(.)', r"\1", "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)))


def catalogue(root):
    """Slug -> (severity, title, next step), in the order of the catalogue."""
    rows = CAUSE.findall((root / "doctor/model/causes.def").read_text())
    return {slug: (severity.lower(), _joined(title), _joined(step)) for slug, severity, title, step in rows}


def _bullets(lines):
    return "".join(f"- {line}\n" for line in lines) + "\n" if lines else ""


def _source(source):
    thread = THREAD.match(source)
    return f"[{source}](https://github.com/{thread[1]}/issues/{thread[2]})" if thread else md.text(source)


def _proofs(fault):
    proof, body = fault.get("proof") or {}, ""
    for key, excuse, heading in (("static", "no_static", "From the files"), ("probe", "no_observed", "By running it")):
        body += f"### {heading}\n\n" + _bullets([md.text(line) for line in proof.get(key) or []])
        if fault.get(excuse):
            body += f"Not by doctor: {md.text(fault[excuse])}\n\n"
    log = md.text("Not by doctor: " + fault["no_log"]) if fault.get("no_log") else "`scankit doctor --log FILE` knows the lines above."
    return "## How it is proven\n\n" + body + f"### From a log\n\n{log}\n\n"


def page_of(fault, known):
    severity, title, step = known
    lines = fault.get("error_lines") or []
    # People search for the line that they see; a cause without one is called by its title.
    seen = lines[0] if lines else title
    body = f"**{fault['id']}** · {severity} · {md.text(title)} · [all causes](index.md)\n\n"
    body += "    " + f"scankit explain {fault['id']}\n\n"
    body += "## What users see\n\n" + (md.block(lines) if lines else "No error line: the comparison itself reports it.\n\n")
    if fault.get("seen_with"):
        body += "Seen together with it:\n\n" + md.block(fault["seen_with"])
    body += f"## Why\n\n{md.text(fault['root_cause'])}\n\n" + _proofs(fault)
    body += f"## How it is repaired\n\n{md.text(fault['fix'])}\n\nIn doctor's words: {md.text(step)}. `scankit fix` prints a plan first; "
    body += "what it cannot repair it says.\n\n"
    if fault.get("sources"):
        body += "## Seen in\n\n" + _bullets([_source(source) for source in fault["sources"]])
    return md.page(seen, md.code(seen) if lines else md.text(title), body)


def index_of(faults, known):
    body = f"\n## All {len(faults)}\n\nEach with its usual severity.\n\n"
    for stage, heading in STAGES.items():
        rows = [(f"[`{f['id']}`]({f['id']}.md)", md.text(known[f["id"]][1]), known[f["id"]][0]) for f in faults if f["stage"] == stage]
        body += f"### {heading}\n\n" + md.table(("cause", "meaning", "severity"), rows)
    return body


def write(root, pages):
    known = catalogue(root)
    faults = yaml.safe_load((root / "doctor/knowledge/faults.yaml").read_text())["faults"]
    for fault in faults:
        (pages / "causes" / (fault["id"] + ".md")).write_text(page_of(fault, known[fault["id"]]))
    with (pages / "causes/index.md").open("a") as index:
        index.write(index_of(faults, known))
