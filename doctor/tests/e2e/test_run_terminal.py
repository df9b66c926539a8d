# SPDX-License-Identifier: Apache-2.0
"""`scankit run` on a real terminal: the command sees one, its keys and its size work, and its modes are left as they were."""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

import pytest

pytestmark = pytest.mark.ctest(group="run_terminal", labels="matrix;e2e", timeout=120)

PYTHON = sys.executable


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *words, size=(33, 111), shell=False):
        self.seen, self.status = b"", None
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
            os.execvpe(str(words[0]), [str(word) for word in words], {**os.environ, "TERM": "xterm", "PS1": "prompt> "})

    def until(self, text, seconds=30):
        end = time.monotonic() + seconds
        while text not in self.seen:
            left = end - time.monotonic()
            assert left > 0, f"{text!r} was not printed: {self.seen!r}"
            if select.select([self.master], [], [], left)[0] and not self.read():
                assert text in self.seen, f"the command ended without {text!r}: {self.seen!r}"
        return self.seen

    def read(self):
        try:
            piece = os.read(self.master, 65536)
        except OSError:
            piece = b""
        self.seen += piece
        return piece

    def type(self, keys):
        os.write(self.master, keys)

    def end(self):
        """Everything that was printed, once the command has ended."""
        while self.read():
            pass
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.master)
        return self.seen


@pytest.fixture
def terminal(scankit, work):
    return lambda *words, **how: Terminal(scankit.path, "run", "--", *words, **how)


def test_is_a_terminal(terminal):
    code = "import os; print([os.isatty(n) for n in range(3)], os.get_terminal_size(), os.get_terminal_size(2))"
    seen = terminal(PYTHON, "-c", code)
    assert b"[True, True, True] os.terminal_size(columns=111, lines=33) os.terminal_size(columns=111, lines=33)\r\n" == seen.end()
    assert seen.status == 0


def test_same_bytes_as_without(scankit, terminal):
    """Line ends, escapes and bytes that are not text; the terminal itself translates the line ends, once."""
    code = "import os; os.write(1, b'a\\nb\\r\\n\\x1b[1mc\\x1b[0m\\t\\xff\\n' * 500); os.write(2, b'err\\n')"
    assert terminal(PYTHON, "-c", code).end() == Terminal(PYTHON, "-c", code).end()


def test_a_pipe_stays_a_pipe(scankit):
    code = "import os, sys; sys.stderr.write(str([os.isatty(n) for n in range(3)]))"
    seen = Terminal("sh", "-c", f'"$0" run -- "$1" -c "$2" | cat', scankit.path, PYTHON, code).end()
    assert seen == b"[True, False, True]", seen


def test_input_and_control_c(terminal):
    """The keys reach the command, ^C once; a command that survives it goes on, and nothing is diagnosed."""
    code = ("import signal, sys, time\nheard = []\nsignal.signal(signal.SIGINT, lambda *_: heard.append(1))\n"
            "print('name', input(), flush=True)\nend = time.monotonic() + 1\nwhile time.monotonic() < end: time.sleep(0.05)\n"
            "print('heard', len(heard)); sys.exit(9)")
    screen = terminal(PYTHON, "-c", code)
    screen.type(b"mamba\n")
    screen.until(b"name mamba")
    screen.type(b"\x03")
    seen = screen.end()
    assert b"heard 1\r\n" in seen and screen.status == 9 and b"scankit" not in seen, seen
    screen = terminal("sleep", "60")
    time.sleep(0.5)
    screen.type(b"\x03")
    assert b"scankit" not in screen.end() and screen.status == -signal.SIGINT


def test_control_z_and_fg(scankit):
    """Job control of a real shell: ^Z gives the prompt back, fg continues, the modes of the terminal survive."""
    screen = Terminal("bash", "--norc", "-i")
    screen.until(b"prompt> ")
    screen.type(f"'{scankit.path}' run -- sh -c 'echo beg''in; read line; echo got $line; exit 4'; echo st''atus $?\n".encode())
    screen.until(b"begin")
    time.sleep(0.3)
    screen.type(b"\x1a")
    screen.until(b"Stopped")
    screen.seen = b""
    screen.type(b"fg\n")
    screen.until(b"read line; echo got $line")  # bash names the job as it continues it
    time.sleep(0.5)
    screen.type(b"word\n")
    screen.until(b"got word")
    # bash gives 'status' at the stop (148); the job's own status is that of fg.
    screen.type(b"echo en''d $?\n")
    screen.until(b"end 4")
    screen.type(b"exit\n")
    screen.end()


def test_size_changes(terminal):
    code = ("import os, signal\nsizes = []\nsignal.signal(signal.SIGWINCH, lambda *_: print(os.get_terminal_size(), flush=True))\n"
            "print('ready', flush=True)\nwhile True: signal.pause()")
    screen = terminal(PYTHON, "-c", code)
    screen.until(b"ready")
    fcntl.ioctl(screen.master, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 77, 0, 0))
    screen.until(b"columns=77, lines=20")
    screen.type(b"\x03")
    screen.end()


def test_modes_of_the_screen(terminal):
    """Programs for a full screen set the modes through standard output: the keys follow them, and come back."""
    code = ("import sys, termios, tty, os\nold = termios.tcgetattr(1)\ntty.setcbreak(1)\nprint('key', flush=True)\n"
            "print('got', os.read(0, 1), flush=True)\ntermios.tcsetattr(1, termios.TCSANOW, old)\nprint('line', flush=True)\n"
            "print('then', os.read(0, 10), flush=True)")
    screen = terminal(PYTHON, "-c", code)
    before = termios.tcgetattr(screen.master)
    screen.until(b"key")
    time.sleep(0.2)
    screen.type(b"x")
    screen.until(b"got b'x'")
    screen.until(b"line")
    time.sleep(0.2)
    screen.type(b"ab\n")
    screen.until(b"then b'ab\\n'")
    assert termios.tcgetattr(screen.master) == before
    screen.end()


def test_failure_is_told_below_the_output(terminal):
    screen = terminal("sh", "-c", "printf unfinished; exit 3")
    seen = screen.end()
    assert screen.status == 3
    assert seen.startswith(b"unfinished\r\nscankit: the command exited with status 3; nothing in its output points"), seen


def test_a_closed_terminal_ends_the_command(terminal):
    screen = terminal("sh", "-c", "echo $$; exec sleep 60")
    screen.until(b"\r\n")
    pid = int(screen.seen.split()[0])
    os.close(screen.master)
    os.waitpid(screen.pid, 0)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            os.readlink(f"/proc/{pid}/exe")
        except OSError:
            return
        time.sleep(0.05)
    raise AssertionError("the command survived its terminal")
