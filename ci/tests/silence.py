#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""silence.py LIMIT LOG [--tty] COMMAND...: runs COMMAND, writes its output to LOG, and says how long it was silent at most.

Without --tty the command has no terminal at all: output goes to a pipe, input is empty, the session is a new one. With --tty it
runs on a terminal of its own of 100 columns. Status: the command's; 1 where that is 0 and a silence exceeded LIMIT seconds.
"""
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time


def start(command, tty):
    """The process and the descriptor that its output is read from."""
    if not tty:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        return process, process.stdout.fileno()
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))

    def own_terminal():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=own_terminal)
    os.close(theirs)
    return process, ours


def main():
    limit, log, rest = float(sys.argv[1]), sys.argv[2], sys.argv[3:]
    tty = rest[0] == "--tty"
    process, output = start(rest[1:] if tty else rest, tty)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: (os.killpg(process.pid, signal.SIGTERM), sys.exit(1)))
    began = last = time.monotonic()
    longest, after, line = 0.0, "", b""
    with open(log, "wb") as file:
        while True:
            try:
                piece = os.read(output, 65536)
            except OSError:  # a terminal whose last user is gone
                piece = b""
            now = time.monotonic()
            if now - last > longest:
                longest, after = now - last, line.decode(errors="replace").strip()
            last = now
            if not piece:
                break
            file.write(piece)
            file.flush()
            lines = (line + piece).replace(b"\r", b"\n").split(b"\n")
            line = lines[-1][-200:] or (lines[-2][-200:] + b"\n" if len(lines) > 1 else b"")
    code = process.wait()
    print(f"silence: {now - began:.0f} s in all, longest silence {longest:.1f} s, after: {after or '(the start)'}", flush=True)
    if code == 0 and longest > limit:
        print(f"silence: FAILED, more than {limit:g} s")
        return 1
    return code if code >= 0 else 128 - code


sys.exit(main())
