# SPDX-License-Identifier: Apache-2.0
"""A program on a real pseudo terminal, and what a person sees there: pyte keeps the screen as a terminal would."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import unicodedata
import uuid

import pyte

ROWS = 500  # all that a command prints stays on the screen
DRAWN = re.compile(rb"\r\x1b\[J([^\r\x1b\n]+)\r(?!\n)")  # one drawing of the line of progress


def columns_of(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


class Run:
    """`at` is called with the run whenever something was written, and twice a second."""

    def __init__(self, argv, columns=80, variables=None, at=None, patience=300, folder=None):
        self.argv, self.at, self.raw, self.mark = argv, at, b"", uuid.uuid4().hex
        self.screen = pyte.Screen(columns, ROWS)
        self.stream = pyte.ByteStream(self.screen)
        self.too_wide, self.seen = [], []
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            if folder:
                os.chdir(folder)
            time.sleep(0.1)  # until the terminal has its size
            os.execve(argv[0], argv, dict(variables or {}, SCANKIT_TEST_MARK=self.mark))
        self.resize(columns)
        self.settings = termios.tcgetattr(self.fd)
        self.follow(time.monotonic() + patience)

    def resize(self, columns):
        self.columns = columns
        self.screen.resize(ROWS, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))

    def interrupt(self):
        os.write(self.fd, b"\x03")

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def follow(self, end):
        self.status = None
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.5)[0]:
                try:
                    piece = os.read(self.fd, 65536)
                except OSError:  # EIO: nobody has the other end open
                    piece = b""
                if not piece:
                    break
                self.take(piece)
            if self.at:
                self.at(self)
        else:
            os.kill(self.pid, signal.SIGKILL)
        self.after = termios.tcgetattr(self.fd)
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)

    def take(self, piece):
        self.raw += piece
        self.stream.feed(piece)
        for drawn in DRAWN.findall(piece):
            drawn = drawn.decode("utf-8", "replace")
            self.seen.append(drawn)
            if columns_of(drawn) >= self.columns:
                self.too_wide.append((self.columns, drawn))

    def left_over(self):
        """Processes of this run that still live."""
        mark, found = ("SCANKIT_TEST_MARK=" + self.mark).encode(), []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if mark in file.read():
                        found.append(int(pid))
            except OSError:
                pass
        return found

    def problems(self, interrupted=False, plain=False, ascii_only=False):
        """What no command may do on any terminal."""
        wrong, text = [], self.text()
        if self.status == 3 or self.status < 0 and not (interrupted and self.status == -signal.SIGINT):
            wrong.append(f"ended with {self.status}")
        if "internal error" in text:
            wrong.append("an internal error")
        for columns, drawn in self.too_wide:
            wrong.append(f"{columns_of(drawn)} columns on a terminal of {columns}: {drawn}")
        lines = text.splitlines()
        for drawn in set(self.seen):
            if any(len(drawn) >= 4 and line.startswith(drawn[:self.columns - 1]) for line in lines):
                wrong.append(f"left on the screen: {drawn}")
        if self.screen.cursor.hidden:
            wrong.append("the cursor is hidden")
        if self.after != self.settings:
            wrong.append("the terminal has other settings than before")
        if plain and re.search(rb"\x1b|\r(?!\n)", self.raw):
            wrong.append("escapes or carriage returns on a terminal that has none")
        if ascii_only and not self.raw.isascii():
            wrong.append("not ASCII: " + ascii(self.raw.decode("utf-8", "replace"))[:200])
        deadline = time.monotonic() + 5
        while self.left_over() and time.monotonic() < deadline:
            time.sleep(0.1)
        if self.left_over():
            wrong.append(f"processes left: {self.left_over()}")
        return wrong
