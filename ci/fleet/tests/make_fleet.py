# SPDX-License-Identifier: Apache-2.0
"""make_fleet.py NODE_FILE FOLDER COUNT [--broken]: COUNT results made of one real one, with varied facts and times; with
--broken also whatever can be wrong with a folder of results."""
import hashlib
import json
import pathlib
import random
import sys

HOSTILE = "</p><script>window.hit = 1</script><img src=x onerror=window.hit=1> \x1b[31m &amp; | `end`"


def written(node):
    node.pop("sha256", None)
    text = json.dumps(node, separators=(",", ":"))[:-1]
    return text + ',"sha256":"' + hashlib.sha256(text.encode()).hexdigest() + '"}\n'


def varied(real, index, rng):
    node = json.loads(json.dumps(real))
    node["node"] = f"gpu{index:04d}"
    node["ended"] += rng.random()
    node["facts"].update({"driver": "580.65.06" if index % 250 else "570.86.10", "gpus": "8 x NVIDIA H200"})
    node["facts"]["kernel"] = f"6.1.0-{rng.choice((30, 30, 30, 31))}"
    slow = 1.4 if index % 333 == 5 else 1
    node["summary"]["measures"] += [
        {"name": f"cuda:0 fwd float32 B8 D{dim} L2048 N16 cold", "unit": "ms", "disturbed": False,
         "value": slow * dim / 2048 * rng.gauss(0.33, 0.004)} for dim in (256, 512, 1024, 2048, 4096)]
    return node


def break_some(folder, nodes, roster):
    failed = nodes[7]
    failed["exit_status"], failed["summary"]["verdict"] = 1, "broken"
    failed["summary"]["causes"] = [{"cause": "missing_cudart", "severity": "error", "subject": "m.so", "summary": HOSTILE}]
    (folder / f"{failed['node']}.json").write_text(written(failed))
    text = written(nodes[8])
    (folder / f"{nodes[8]['node']}.json").write_text(text[: len(text) // 2])
    (folder / f"{nodes[9]['node']}.json").unlink()
    roster["nodes"][nodes[9]["node"]].update(gave_up=True, reported=0)
    (folder / "copy.json").write_text(written(nodes[10]))
    (folder / "newer.json").write_text('{"$schema":"urn:scankit:fleet-node:9","x":1}')
    (folder / ("notes" + HOSTILE.replace("/", "") + ".txt")).write_text("nothing of ours")
    late = nodes[11]
    late["started"] += 7200
    late["ended"] += 7200
    late["facts"]["torch"] = HOSTILE
    (folder / f"{late['node']}.json").write_text(written(late))
    roster["nodes"][late["node"]].update(node_clock=late["started"])
    roster["absent"]["gpu9999"] = "down*: " + HOSTILE


def main(real, folder, count, *options):
    real, folder, rng = json.loads(pathlib.Path(real).read_text()), pathlib.Path(folder), random.Random(1)
    folder.mkdir(parents=True, exist_ok=True)
    nodes = [varied(real, index, rng) for index in range(int(count))]
    for node in nodes:
        (folder / f"{node['node']}.json").write_text(written(node))
    roster = {"$schema": "urn:scankit:fleet-roster:1", "fleet": real["fleet"], "tool_version": real["tool_version"], "engine": "slurm",
              "job": "7", "launch": "", "command": real["command"], "command_sha256": real["command_sha256"],
              "inputs": real["inputs"], "timeout": 900, "absent": {}, "said": [],
              "nodes": {node["node"]: {"asked": node["launched"], "started": node["started"], "reported": node["ended"],
                                       "node_clock": node["started"], "gave_up": False, "over": True, "problem": ""}
                        for node in nodes}}
    if "--broken" in options:
        break_some(folder, nodes, roster)
    (folder / "fleet.json").write_text(json.dumps(roster))


main(*sys.argv[1:])
