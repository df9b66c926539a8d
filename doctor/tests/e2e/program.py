# SPDX-License-Identifier: Apache-2.0
"""scankit as the tests run it: Scankit starts it, a Result is what it did. Both say all of it when an assertion fails."""
import json
import os
import re
import subprocess


class Result:
    """The exit status, standard output and standard error of one command; signals are negative statuses."""

    def __init__(self, command, status, out, err):
        self.command, self.status, self.out, self.err = [str(word) for word in command], status, out, err

    def __repr__(self):
        return f"\n$ {' '.join(self.command)}\nexit status {self.status}\n{self.out[:6000]}{self.err[:3000]}"

    @property
    def text(self):
        """Both streams."""
        return self.out + self.err

    @property
    def last_line(self):
        return self.out.rstrip("\n").rpartition("\n")[2]

    @property
    def json(self):
        try:
            return json.loads(self.out)
        except ValueError:
            raise AssertionError(f"standard output is not JSON: {self!r}") from None

    def ends(self, status, sentence=""):
        """With that exit status, and the sentence on either stream."""
        assert self.status == status, f"exit status {self.status}, should be {status}: {self!r}"
        assert sentence in self.text, f"'{sentence}' is not said: {self!r}"
        return self

    def has_line(self, pattern):
        """A line of either stream matches the regular expression."""
        assert re.search(pattern, self.text, re.MULTILINE), f"no line matches '{pattern}': {self!r}"
        return self

    def refused(self, text):
        """A usage error that names `text`: status 2, and nothing on standard output."""
        assert self.status == 2, f"should be refused: {self!r}"
        assert not self.out, f"there is a report: {self!r}"
        assert text in self.err, f"the line does not name {text}: {self!r}"

    def one_line(self, status, text):
        """Besides the lines of progress one line on standard error, which names `text`."""
        assert self.status == status, f"exit status {self.status}, should be {status}: {self!r}"
        lines = [line for line in self.err.splitlines() if line and not re.match(r"scankit: (reading|importing|asking) ", line)]
        assert len(lines) == 1, f"one line expected: {self!r}"
        assert text in lines[0], f"the line does not name {text}: {self!r}"
        assert not self.out or self.json is not None

    # A report of `scankit doctor --json` ---------------------------------------------------------------------------------

    @property
    def root(self):
        """The slug of the root cause, or None."""
        return (self.json["root"] or {}).get("cause")

    @property
    def summary(self):
        report = self.json
        return {"verdict": report.get("verdict"), "root": self.root, "unknown": report.get("unknown"),
                "findings": [(f["cause"], f["severity"], f.get("because_of")) for f in report.get("findings", [])]}

    def findings(self, **wanted):
        """The findings whose fields are as wanted: findings(cause="corrupt_binary")."""
        return [finding for finding in self.json["findings"] if all(finding.get(key) == value for key, value in wanted.items())]

    def diagnosis(self, verdict, root="", found=(), status=None):
        """Holds the report to its verdict, the exit status that belongs to it, the root cause ("a|b": either; "": no error
        may be the root), and causes that must all be found. No finding may lack evidence or a summary."""
        expected = {"healthy": 0, "broken": 1, "unknown": 4, "empty": 4}[verdict] if status is None else status
        report = self.json
        print(json.dumps(self.summary))
        assert report["verdict"] == verdict, f"the verdict should be {verdict}: {self.summary}"
        assert self.status == expected, f"exit status {self.status}, should be {expected}: {self.err}"
        if root:
            assert self.root in root.split("|"), f"the root cause should be {root}: {self.summary}"
        else:
            assert report["root"] is None or report["root"]["severity"] != "error", f"an error as root: {self.summary}"
        missing = [cause for cause in found if not self.findings(cause=cause)]
        assert not missing, f"not found: {missing}: {self.summary}"
        bare = [finding for finding in report["findings"] if not finding["evidence"] or not finding["summary"]]
        assert not bare, f"a finding without evidence or summary: {bare}"
        return self

    def built_for(self, file, torch, string_abi=""):
        """Each entry of that file (the end of its name) has `torch` inside its range, bounded by evidence."""
        entries = [entry for entry in self.json["built_for"] if entry["file"].endswith(str(file))]
        assert entries, f"{file} is not dated: {self.json['built_for']}"
        for entry in entries:
            low, high = entry["torch_min"], entry["torch_max"]
            inside = (low is None or minor(low) <= minor(torch)) and (high is None or minor(torch) <= minor(high))
            assert inside and (low or high), f"{file} should be dated as of torch {torch}: {entry}"
            assert not entry["between_known_releases"] and entry["evidence"], entry
            assert string_abi in ("", entry["string_abi"]), f"{file} should have the {string_abi} string ABI: {entry}"
        return self

    def unknown_names(self, *texts):
        """One of the questions that could not be answered gives all of the texts as its reason."""
        assert any(all(text in entry["why"] for text in texts) for entry in self.json["unknown"]), f"{texts}: {self.json['unknown']}"


def minor(release):
    return [int(part) for part in release.split(".")]


class Scankit:
    """Starts scankit: scankit("explain"), scankit.doctor("--python", python). Its own `variables` hold for every command."""

    def __init__(self, path, variables=None, before=()):
        self.path, self.variables, self.before = path, variables or {}, list(before)

    def with_(self, *, path=None, variables=None, before=None):
        """The same scankit from elsewhere, with more variables, or behind a program as which user it runs, say."""
        return Scankit(path or self.path, {**self.variables, **(variables or {})}, self.before if before is None else before)

    def __call__(self, *words, variables=None, cwd=None, timeout=150):
        return run_program(*self.before, self.path, *words, variables={**self.variables, **(variables or {})}, cwd=cwd, timeout=timeout)

    def start(self, *words, out=None, err=None, variables=None):
        """In the background: a Popen, with what it says in the files `out` and `err`, if they are named."""
        with open(out or os.devnull, "wb") as to, open(err or os.devnull, "wb") as errors:
            return subprocess.Popen([str(word) for word in (*self.before, self.path, *words)], stdin=subprocess.DEVNULL, stdout=to,
                                    stderr=errors, env=environment_with({**self.variables, **(variables or {})}))

    def doctor(self, *words, **how):
        return self("doctor", "--json", *words, **how)

    def report(self, *words, **how):
        """The text that a person gets."""
        return self("doctor", *words, **how)

    def snapshot(self, *words, **how):
        """The facts, as JSON."""
        return self("snapshot", *words, **how).json


def environment_with(variables):
    """The environment variables of this process and these. One whose value is None is taken out."""
    return {name: str(value) for name, value in {**os.environ, **variables}.items() if value is not None}


def run_program(*command, variables=None, cwd=None, timeout=150, stdin=None):
    """Runs anything else. `variables` as in environment_with()."""
    try:
        done = subprocess.run([str(word) for word in command], cwd=cwd, env=environment_with(variables or {}), input=stdin,
                              stdin=None if stdin is not None else subprocess.DEVNULL, capture_output=True, timeout=timeout)
    except subprocess.TimeoutExpired as late:
        raise AssertionError(f"not done within {late.timeout} s: {' '.join(map(str, command))}\n{late.stderr}") from None
    return Result(command, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
