# SPDX-License-Identifier: Apache-2.0
"""A kernel's machine code as instructions, and the path that one tile of whole pieces takes through it."""
import re
import subprocess

LOW = re.compile(r"^\s*/\*([0-9a-f]{4,6})\*/\s+(.*?)\s*;\s+/\* 0x[0-9a-f]{16} \*/")
HIGH = re.compile(r"^\s+/\* (0x[0-9a-f]{16}) \*/")
# Only pieces that are not whole take these.
SLOW = re.compile(r"^(LDG\.E(\.U16|\.64)?(\.CONSTANT)?|STG\.E(\.U16|\.64)?|LD\.E.*)$")


class Instruction:
    def __init__(self, address, text):
        self.address, self.text = address, text
        self.guard = text.split()[0] if text.startswith("@") else ""
        words = text.split(None, 2)[1:] if self.guard else text.split(None, 1)
        self.opcode, self.operands = words[0], words[1] if len(words) > 1 else ""
        self.base = self.opcode.split(".")[0]
        targets = re.findall(r"0x([0-9a-f]+)", self.operands) if self.base == "BRA" else []
        self.target = int(targets[-1], 16) if targets else None
        self.stall, self.write, self.read, self.wait = 1, 7, 7, 0

    def set_control(self, word):
        """Cycles to the next one, the barriers it sets when it has written and read, those it waits for."""
        self.stall, self.write, self.read, self.wait = (
            word >> 41 & 15, word >> 46 & 7, word >> 49 & 7, word >> 52 & 63)

    def goes_on(self):
        """Whether the next instruction may follow it."""
        sure = not self.guard and not re.match(r"!?U?P\d", self.operands)
        return not (self.base in ("BRA", "EXIT") and sure)


def read(listing):
    """Name to instructions, of what `cuobjdump -sass` prints."""
    found, now = {}, []
    for line in listing.splitlines():
        if "Function :" in line:
            now = found.setdefault(line.split(":")[1].strip(), [])
        elif match := LOW.match(line):
            now.append(Instruction(int(match[1], 16), match[2]))
        elif (match := HIGH.match(line)) and now:
            now[-1].set_control(int(match[1], 16))
    return found


def kernels(cubin, tool="cuobjdump"):
    return read(subprocess.run([tool, "-sass", cubin], check=True, capture_output=True, text=True).stdout)


def blocks_of(code):
    """First index of each basic block to its end and the blocks that may follow."""
    at = {i.address: n for n, i in enumerate(code)}
    jumps = [n for n, i in enumerate(code) if i.base in ("BRA", "EXIT", "RET")]
    starts = {0} | {n + 1 for n in jumps} | {at[code[n].target] for n in jumps if code[n].target in at}
    order = sorted(s for s in starts if s < len(code))
    blocks = {}
    for first, end in zip(order, order[1:] + [len(code)]):
        last = code[end - 1]
        after = [end] if last.goes_on() and end < len(code) else []
        if last.target in at and ".DIV" not in last.opcode:
            after.append(at[last.target])
        blocks[first] = (end, after)
    return blocks


def worth(block):
    """The path goes where work is done on whole pieces, and is short otherwise."""
    value = -len(block)
    for i in block:
        if i.base in ("MUFU", "BAR") or i.opcode in ("LDS.128", "STS.128"):
            value += 10**4
        elif i.opcode.startswith(("LDG.E.128", "STG.E.128", "ST.E.128")):
            value += 10**3
        elif i.base == "ST":
            value -= 10**3
        elif i.base == "BREAK" or i.base == "LOP3" and ", 0xf," in i.operands:  # of where a vector may stand
            value -= 10**5
        elif SLOW.match(i.opcode):
            value -= 10**7
    return value


def best_path(blocks, code, first, last):
    """Blocks from `first` to the one that ends with instruction `last`, never backwards."""
    best = {}
    for start in sorted((b for b in blocks if first <= b <= last), reverse=True):
        end, after = blocks[start]
        options = [best[n][:1] + (n,) for n in after if n > start and n in best]
        if end - 1 == last:
            best[start] = (worth(code[start:end]), None)
        elif options:
            value, following = max(options)
            best[start] = (value + worth(code[start:end]), following)
    path, now = [], first
    while now is not None:
        path += code[now:blocks[now][0]]
        now = best[now][1]
    return path


def tile_path(code):
    """Instructions of a tile: before its scan loop, of one turn of that, after it."""
    at = {i.address: n for n, i in enumerate(code)}
    edges = [(at[i.target], n) for n, i in enumerate(code) if i.target in at and at[i.target] < n]

    def count(edge, what):
        return sum(i.opcode.startswith(what) for i in code[edge[0]:edge[1] + 1])

    def span(edge):
        return edge[1] - edge[0]

    outer = max((e for e in edges if count(e, "BAR") and count(e, "MUFU.EX2")), key=span)
    scan = min((e for e in edges if outer[0] <= e[0] and e[1] < outer[1] and count(e, "MUFU.EX2") > 3), key=span)
    path = best_path(blocks_of(code), code, *outer)
    low, high = code[scan[0]].address, code[scan[1]].address
    inside = [n for n, i in enumerate(path) if low <= i.address <= high]
    return path[:inside[0]], path[inside[0]:inside[-1] + 1], path[inside[-1] + 1:]
