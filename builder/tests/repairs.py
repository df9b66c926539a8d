# SPDX-License-Identifier: Apache-2.0
"""What the tests of `scankit fix` and `scankit restore` are written with: an environment, and what must be as before."""
import hashlib
import os
import stat

from fixtures import run
from program import run_program

WEB_PAGE = "<!DOCTYPE html><html>not found</html>"


def tree(folder, skipped, hashed):
    """Every file and link below the folder: kind, mode, size, target, and the hash of files of less than `hashed` bytes."""
    found = {}
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        folders[:] = [name for name in folders if name not in skipped]
        for path in (os.path.join(place, name) for name in files + links):
            status = os.lstat(path)
            told = [stat.filemode(status.st_mode), status.st_size]
            if stat.S_ISLNK(status.st_mode):
                told.append(os.readlink(path))
            elif status.st_size < hashed:
                told.append(sha256(path))
            found[os.path.relpath(path, folder)] = told
    return found


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Repair:
    """An environment that scankit repairs, and takes back."""

    def __init__(self, scankit, env):
        self.scankit, self.env, self.python, self.site = scankit, env, env.python, env.site

    def fix(self, *words, timeout=900, **how):
        return self.scankit("fix", "--python", self.python, *words, timeout=timeout, **how)

    def restore(self, *words, **how):
        return self.scankit("restore", "--python", self.python, *words, timeout=300, **how)

    def break_module(self, module):
        """A web page, saved under the module's name."""
        file = self.site / f"{module}{self.env.suffix}"
        file.write_text(WEB_PAGE)
        return file

    def state(self):
        """The hash of every file among the packages."""
        return {str(path.relative_to(self.site)): sha256(path) for path in self.site.rglob("*")
                if path.is_file() and not path.is_symlink() and path.suffix != ".pyc"}

    def everything(self, contents=True):
        """All of the environment but Python's own cache and scankit's state; the contents of what is not large."""
        return tree(self.env.folder, ("__pycache__", ".scankit"), hashed=200 << 10 if contents else 0)

    def staged(self):
        """What a repair has left that did not end."""
        staging = self.env.folder / ".scankit/staging"
        return os.listdir(staging) if staging.is_dir() else []

    def runs(self, code, **how):
        """The environment's Python runs the code; returns what it prints."""
        return run(self.python, "-c", code, **how).strip()

    def fails(self, code):
        """The code must not run; returns what Python says."""
        result = run_program(self.python, "-c", code)
        assert result.status, f"it works: {result!r}"
        return result.err

    def module_file(self, module):
        """Where `import` takes it from, below torch; "" where it does not import."""
        result = run_program(self.python, "-c", f"import torch, {module} as m; print(m.__file__)")
        return result.out.strip() if result.status == 0 else ""
