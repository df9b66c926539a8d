# SPDX-License-Identifier: Apache-2.0
"""Hostile files for test_fuzz.py: HOSTILE[kind](maker, random) returns a file name and its bytes. The same random numbers
make the same file."""
import io
import json
import struct
import subprocess
import zipfile

EDGES = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 2**63 - 1, 2**63, 2**64 - 1]
WORDS = ["\x1b[31m\x1b]0;x\x07", "", "a" * 10000, "../" * 50, None, True, -1, 2**63, 2**64, 1e308, [], {}, [[]], "\u202e", "\0",
         "9" * 400, "2.11.0+cu130"]
LINES = ["Traceback (most recent call last):", '  File "/x/torch/__init__.py", line 1',
         "ImportError: libcudart.so.12: cannot open shared object file", "undefined symbol: _ZN" + "3c10" * 500, "\x1b]0;title\x07\x1b[2J",
         "\r" * 100, "\0" * 300, "\xff\xfe", "Killed", "nvcc fatal : Unsupported gpu architecture '\x1b[31m'",
         "undefined symbol: _Z" + "N" * 3000, "version `GLIBC_" + "9" * 500 + "' not found (required by \x1b[31mx.so)",
         "During handling of the above exception, another exception occurred:", "RuntimeError: CUDA error: " + "x" * 70000,
         "E   " * 2000, "Guessing wheel URL: http://\x1b[31m/x.whl"]


def mutate(data, rnd, times):
    data = bytearray(data)
    for _ in range(times):
        at, way = rnd.randrange(len(data) or 1), rnd.randrange(6)
        if way == 0 and data:
            data[at] ^= 1 << rnd.randrange(8)
        elif way == 1:
            data[at:at + 8] = struct.pack("<Q", rnd.choice(EDGES))
        elif way == 2:
            data[at:at + 4] = struct.pack("<I", rnd.choice(EDGES) & 0xffffffff)
        elif way == 3:
            del data[at:at + rnd.randrange(1, 200)]
        elif way == 4:
            data[at:at] = data[at:at + rnd.randrange(1, 200)]
        elif len(data) > 64:
            data = data[:rnd.randrange(64, len(data))]
    return bytes(data)


class Good:
    """What is mutated: a good module, whose path is given, and the snapshot of a real machine, as JSON text."""

    def __init__(self, module, snapshot):
        self.path, self.module, self.snapshot = module, module.read_bytes(), snapshot


def elf(good, rnd):  # most of what decides stands in the first kilobyte and in the tables that it names
    if rnd.random() < 0.5:
        return "x.so", mutate(good.module[:1024], rnd, rnd.randrange(1, 6))[:1024] + good.module[1024:]
    return "x.so", mutate(good.module, rnd, rnd.randrange(1, 30))


def fatbin_section(rnd):  # layout as doctor/elf/fatbin.cc reads it: a header of 16 bytes, entries of 64 and their payload
    out = b""
    for _ in range(rnd.randrange(1, 4)):
        body = b""
        for _ in range(rnd.randrange(1, 5)):
            payload = bytes(rnd.randrange(256) for _ in range(rnd.randrange(8, 400)))
            flags = rnd.choice([0x11, 0x2011, 0x8011, 0x1011])
            head = struct.pack("<HHIQIIIIIIQQQ", rnd.choice([1, 2, 8]), 0x101, rnd.choice([64, 64, 72, rnd.choice(EDGES) & 0xffffffff]),
                               len(payload) if rnd.random() < 0.7 else rnd.choice(EDGES), rnd.choice([0, len(payload)]), 0,
                               rnd.choice([7, 8]), rnd.choice([80, 90, 103, 0xffff]), 0, 0, flags, 0, rnd.choice([0, 4096] + EDGES))
            body += head.ljust(64, b"\0")[:64] + payload
        size = len(body) if rnd.random() < 0.7 else rnd.choice(EDGES)
        out += struct.pack("<IHHQ", 0xBA55ED50, rnd.choice([1, 1, 2]), rnd.choice([16, 16, 0, 0xffff]), size) + body
    return mutate(out, rnd, rnd.randrange(0, 6))


def fatbin(good, rnd):
    section, with_it = good.path.with_name("section"), good.path.with_name("with.so")
    section.write_bytes(fatbin_section(rnd) or b"\0")
    subprocess.run(["objcopy", "--add-section", f".nv_fatbin={section}", "--set-section-flags", ".nv_fatbin=readonly,data",
                    good.path, with_it], check=True, stderr=subprocess.DEVNULL)
    return "x.so", with_it.read_bytes()


def wheel(good, rnd):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", rnd.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        names = ["good.cpython-311-x86_64-linux-gnu.so", "x/../../../evil.so", "/etc/evil.so", "good.so", "a" * 300 + ".so",
                 "\x1b]0;x\x07.so"]
        archive.writestr("m-1.dist-info/WHEEL",
                         "Wheel-Version: 1.0\nTag: %s\n" % rnd.choice(["cp311-cp311-linux_x86_64", "\x1b[31m", "a-b", "x" * 5000]))
        for name in rnd.sample(names, rnd.randrange(1, 3)):
            archive.writestr(name, bytes(50 << 20) if rnd.random() < 0.03 else elf(good, rnd)[1])
    data = buffer.getvalue()
    return ("m-1-%s-none-linux_x86_64.whl" % rnd.choice(["py3", "cp311", "x" * 100]),
            data if rnd.random() < 0.3 else mutate(data, rnd, rnd.randrange(1, 8)))


def snapshot(good, rnd):
    if rnd.random() < 0.1:
        return "s.json", rnd.choice([b"[" * 200000, b'{"a":' * 100000, b'"' + b"\\u0000" * 1000 + b'"', b"\xff" * 100, b"{}", b"null"])
    machine = json.loads(good.snapshot)
    for _ in range(rnd.randrange(1, 8)):
        node = machine
        while True:
            keys = list(node.keys()) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            key = rnd.choice(keys)
            if isinstance(node[key], (dict, list)) and node[key] and rnd.random() < 0.85:
                node = node[key]
                continue
            node[key] = rnd.choice(WORDS)
            break
    text = json.dumps(machine).encode()
    return "s.json", mutate(text, rnd, 3) if rnd.random() < 0.2 else text


def log(good, rnd):
    out = b""
    for _ in range(rnd.randrange(1, 60)):
        line = rnd.choice(LINES).encode("utf-8", "surrogateescape")
        out += (mutate(line, rnd, rnd.randrange(1, 4)) if rnd.random() < 0.5 else line) + rnd.choice([b"\n", b"\r\n", b"\r", b""])
    return "x.log", out or b"x"


HOSTILE = {"elf": elf, "fatbin": fatbin, "wheel": wheel, "snapshot": snapshot, "log": log}
