# SPDX-License-Identifier: Apache-2.0
"""install.sh with whole, changed, cut and missing files of a release, in each shell and with each program that downloads.

install_test.py RELEASE: the directory that make.sh filled. The server is on the loopback.
"""
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "builder/tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import tarball
from fetch_server import Folder, Server

RELEASE = Path(sys.argv.pop(1)).resolve()
SCRIPT = RELEASE / "install.sh"
if not SCRIPT.exists():
    print("SKIPPED: %s has no release: release.artifacts makes it" % RELEASE)
    sys.exit(77)
NAME = next(RELEASE.glob("scankit-*-linux-*.tar.gz")).name
VERSION, ARCH = re.fullmatch(r"scankit-([0-9.]+)-linux-(\w+)\.tar\.gz", NAME).groups()
OLD = "0.0.9"
# All that install.sh may use besides a shell and a program that downloads.
TOOLS = ("cat cp diff dirname grep gzip ln mkdir mktemp mv readlink rm rmdir sed sha256sum tar tr uname").split()
SHELLS = [shell for shell in (["dash"], ["bash", "--posix"], ["busybox", "sh"]) if shutil.which(shell[0])]


def sums(folder):
    """Writes SHA256SUMS of the directory's files, as make.sh does."""
    names = sorted(path.name for path in folder.iterdir() if path.name != "SHA256SUMS")
    made = subprocess.run(["sha256sum", "--", *names], cwd=folder, check=True, capture_output=True, text=True).stdout
    (folder / "SHA256SUMS").write_text(made)


def everything_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*")) if folder.exists() else None


class Install(unittest.TestCase):
    def setUp(self):
        self.work = Path(tempfile.mkdtemp(prefix="install test."))  # with a space, as home directories may have
        self.addCleanup(shutil.rmtree, self.work)
        self.prefix = self.work / "prefix"
        self.release = self.work / "release"
        self.release.mkdir()
        for name in (NAME, "SHA256SUMS"):
            shutil.copy(RELEASE / name, self.release)

    def serve(self):
        server = Server(Folder(self.release))
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)  # the last is the first to run
        return server.url

    def tools(self, *more):
        """A directory with nothing but the tools that install.sh may use, for PATH."""
        folder = self.work / "-".join(("tools",) + more)
        folder.mkdir(exist_ok=True)
        for tool in TOOLS + list(more):
            if not (folder / tool).exists():
                (folder / tool).symlink_to(shutil.which(tool))
        return folder

    def command(self, source, *words, shell=("dash",)):
        return [shutil.which(shell[0]), *shell[1:], str(SCRIPT), "--from", str(source), "--prefix", str(self.prefix), *words]

    def install(self, source, *words, shell=("dash",), path=None):
        return subprocess.run(self.command(source, *words, shell=shell), capture_output=True, text=True, timeout=120,
                              env={"PATH": str(path or self.tools("curl")), "HOME": str(self.work)})

    def installed(self):
        return subprocess.run([self.prefix / "bin/scankit", "--version"], capture_output=True, text=True).stdout.strip()

    def versions(self):
        return sorted(path.name.split("-")[0] for path in (self.prefix / "lib/scankit").iterdir())

    def refuses(self, result, *texts):
        """It ends with 1, says each text, and leaves nothing at all."""
        self.assertEqual(result.returncode, 1, result)
        for text in texts:
            self.assertIn(text, result.stderr)
        self.assertIsNone(everything_below(self.prefix))

    def on_another(self, system, machine):
        """PATH of a machine whose uname says that."""
        folder = self.work / ("on-" + machine)
        shutil.copytree(self.tools(), folder, symlinks=True, dirs_exist_ok=True)
        (folder / "uname").unlink()
        (folder / "uname").write_text("#!%s\ncase $1 in -s) echo %s ;; -m) echo %s ;; esac\n" % (shutil.which("dash"), system, machine))
        (folder / "uname").chmod(0o755)
        return folder

    def older_release(self, version=OLD, arch=ARCH):
        """A whole release of another version, whose program does nothing but say that."""
        root = self.work / ("root-" + version)
        with tarfile.open(RELEASE / NAME) as archive:
            archive.extractall(root)
        tree = root / NAME.removesuffix(".tar.gz")
        # No script: its shell would open the name once more, which may be the new program by then.
        subprocess.run(["cc", "-static", "-x", "c", "-", "-o", tree / "bin/scankit"], check=True, text=True,
                       input='#include <stdio.h>\nint main(void) { return puts("scankit %s") < 0; }\n' % version)
        folder = self.work / ("release-" + version)
        folder.mkdir()
        os.environ["SOURCE_DATE_EPOCH"] = "315532800"
        prefix = "scankit-%s-linux-%s" % (version, arch)
        tarball.write(tree, folder / (prefix + ".tar.gz"), prefix, [])
        sums(folder)
        return folder

    def test_every_shell_and_program_that_downloads(self):
        self.assertGreaterEqual(len(SHELLS), 2)
        for shell in SHELLS:
            for program in [name for name in ("curl", "wget") if shutil.which(name)] + [None]:
                with self.subTest(shell=shell, program=program):
                    shutil.rmtree(self.prefix, ignore_errors=True)
                    source = self.serve() + "/ok/" if program else self.release
                    result = self.install(source, shell=shell, path=self.tools(*([program] if program else [])))
                    self.assertEqual((result.returncode, result.stderr), (0, ""), result)
                    self.assertEqual(self.installed(), "scankit " + VERSION)
                    for file in ("share/man/man1/scankit.1", "share/bash-completion/completions/scankit",
                                 "share/zsh/site-functions/_scankit", "share/fish/vendor_completions.d/scankit.fish"):
                        self.assertTrue((self.prefix / file).is_file(), file)
                    home = (self.prefix / "bin/scankit").resolve().parents[1]
                    self.assertTrue((home / "share/scankit/modules/selective_scan_cuda.abi3.so").is_file())
                    self.assertEqual([path.name for path in home.parent.iterdir()], [home.name], "something is left over")

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("busybox"), "needs root and busybox")
    def test_a_root_with_nothing_but_busybox(self):
        root = self.work / "root"
        (root / "bin").mkdir(parents=True)
        busybox = shutil.which("busybox")
        if "INTERP" in subprocess.run(["readelf", "-lW", busybox], capture_output=True, text=True).stdout:
            self.skipTest("busybox is not static")
        shutil.copy(busybox, root / "bin/busybox")
        shutil.copy(SCRIPT, root)
        subprocess.run(["chroot", root, "/bin/busybox", "--install", "-s", "/bin"], check=True)
        (root / "dev").mkdir()
        os.mknod(root / "dev/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        environment = {"PATH": "/bin:/usr/sbin:/usr/bin:/sbin", "HOME": "/"}
        result = subprocess.run(["chroot", root, "/bin/sh", "/install.sh", "--from", self.serve() + "/ok", "--prefix", "/opt"],
                                capture_output=True, text=True, env=environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        says = subprocess.run(["chroot", root, "/opt/bin/scankit", "--version"], capture_output=True, text=True, env=environment)
        self.assertEqual(says.stdout, "scankit %s\n" % VERSION, says)

    def test_a_changed_tarball_is_refused(self):
        path = self.release / NAME
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        for source in (self.release, self.serve() + "/ok"):
            self.refuses(self.install(source), "is not the file that SHA256SUMS names", "Nothing was installed")

    def test_a_download_that_is_cut_is_refused(self):
        url = self.serve()
        for program in [name for name in ("curl", "wget") if shutil.which(name)]:
            for fault in ("cut_without_ranges", "cut_without_etag"):
                with self.subTest(program=program, fault=fault):
                    self.refuses(self.install("%s/%s" % (url, fault), path=self.tools(program)))
        # A server that ends the connection properly after too little gives the download no reason to complain.
        (self.release / NAME).write_bytes((self.release / NAME).read_bytes()[:50000])
        self.refuses(self.install(url + "/ok"), "incomplete")

    def test_a_missing_sum_or_file_is_refused(self):
        lines = (self.release / "SHA256SUMS").read_text().splitlines(True)
        for wrong in ("", "".join(line for line in lines if NAME not in line), "<html>sign in</html>\n",
                      "".join(line.replace(NAME, "../" + NAME) for line in lines), "0" * 63 + "  " + NAME + "\n"):
            with self.subTest(wrong=wrong):
                (self.release / "SHA256SUMS").write_text(wrong)
                self.refuses(self.install(self.release), "has no checksum of", "Nothing was installed")
        (self.release / "SHA256SUMS").unlink()
        self.refuses(self.install(self.release), "SHA256SUMS does not exist")
        self.refuses(self.install(self.serve() + "/ok"), "SHA256SUMS could not be downloaded")
        (self.release / "SHA256SUMS").write_text("".join(lines))
        (self.release / NAME).unlink()
        self.refuses(self.install(self.release), NAME + " does not exist")

    def signed(self, key, namespace="scankit-release"):
        (self.release / "SHA256SUMS.sig").unlink(missing_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", key, self.release / "SHA256SUMS"], check=True,
                       capture_output=True)

    @unittest.skipUnless(shutil.which("ssh-keygen"), "needs ssh-keygen")
    def test_only_what_a_known_key_has_signed_is_installed_if_asked_for(self):
        keys = {name: self.work / name for name in ("publisher", "stranger")}
        for key in keys.values():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        signers = self.work / "signers"
        signers.write_text('releases@publisher namespaces="scankit-release" ' + keys["publisher"].with_suffix(".pub").read_text())
        path = self.tools("ssh-keygen")
        command = ("--signers", str(signers))
        self.refuses(self.install(self.release, *command, path=path), "SHA256SUMS.sig does not exist")
        self.signed(keys["publisher"])
        self.refuses(self.install(self.release, *command, path=self.tools()), "ssh-keygen is not installed", "Nothing was installed")
        self.refuses(self.install(self.release, "--signers", str(self.work / "none"), path=path), "cannot be read")
        self.refuses(self.install(self.release, "--signers", "", path=path), "--signers needs", "Nothing was installed")
        for wrong in (lambda: self.signed(keys["stranger"]), lambda: self.signed(keys["publisher"], "file")):
            wrong()
            self.refuses(self.install(self.release, *command, path=path), "is not signed by a key of", "Nothing was installed")
        self.signed(keys["publisher"])
        # The key's other line comes first, and is for something else.
        signers.write_text('alice namespaces="git" ' + keys["publisher"].with_suffix(".pub").read_text() + signers.read_text())
        sums_of_all = (self.release / "SHA256SUMS").read_text()
        (self.release / "SHA256SUMS").write_text(sums_of_all + "0" * 64 + "  more\n")
        self.refuses(self.install(self.release, *command, path=path), "or was changed since", "incorrect signature")
        (self.release / "SHA256SUMS").write_text(sums_of_all)
        result = self.install(self.release, *command, path=path)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        self.assertIn("SHA256SUMS is signed by releases@publisher", result.stdout)
        self.assertEqual(self.installed(), "scankit " + VERSION)

    @unittest.skipUnless(shutil.which("ssh-keygen"), "needs ssh-keygen")
    def test_the_line_that_kept_a_signature_from_counting_is_named(self):
        for name in ("publisher", "stranger"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.work / name], check=True)
        publisher, stranger = ((self.work / name).with_suffix(".pub").read_text() for name in ("publisher", "stranger"))
        self.signed(self.work / "publisher")
        signers = self.work / "signers"
        other = 'bob namespaces="scankit-release" ' + stranger
        for lines, reason in (
                (["# keys\n", 'alice namespaces="git" ' + publisher, other],
                 '(line 2: key is not permitted for use in signature namespace "scankit-release")'),
                (["releases namespaces=scankit-release " + publisher, other], "(line 1: bad options: missing start quote)"),
                ([other, 'alice namespaces="git" ' + publisher, "releases ssh-ed25519 AAAA\n"],
                 '(line 2: key is not permitted for use in signature namespace "scankit-release"; line 3: invalid key)'),
                ([other, other], "(none of its keys made the signature)"),
                ([], "(none of its keys made the signature)")):
            signers.write_text("".join(lines))
            for shell in SHELLS:
                result = self.install(self.release, "--signers", str(signers), shell=shell, path=self.tools("ssh-keygen"))
                self.refuses(result, reason, "Nothing was installed")
        (self.release / "SHA256SUMS.sig").write_text("no signature\n")
        signers.write_text(other + other)
        self.refuses(self.install(self.release, "--signers", str(signers), path=self.tools("ssh-keygen")),
                     "(Couldn't parse signature: missing header)")

    def test_without_a_source_it_says_what_to_give(self):
        script = self.work / "install.sh"
        shutil.copy(SCRIPT, script)
        for text, words in ("", [str(script)]), (script.read_text(), []):  # as a file, and piped into a shell
            with self.subTest(words=words):
                result = subprocess.run([shutil.which("dash"), *words], input=text, capture_output=True, text=True,
                                        env={"PATH": str(self.tools()), "HOME": str(self.work / "home")})
                self.assertEqual(result.returncode, 1, result)
                self.assertIn("--from DIR|URL", result.stderr)
                self.assertFalse((self.work / "home").exists())

    def test_an_older_version_works_until_the_new_one_does(self):
        self.assertEqual(self.install(self.older_release()).returncode, 0)
        self.assertEqual(self.installed(), "scankit " + OLD)
        seen, done = set(), threading.Event()

        def look():
            while not done.is_set():
                seen.add(self.installed())
        looking = threading.Thread(target=look)
        looking.start()
        result = self.install(self.release)
        time.sleep(0.2)
        done.set()
        looking.join()
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        self.assertEqual(seen, {"scankit " + OLD, "scankit " + VERSION})
        # The one before stays for those who run it, until the next installation.
        self.assertEqual(self.versions(), [OLD, VERSION])
        self.assertEqual(self.install(self.older_release("0.0.8")).returncode, 0)
        self.assertEqual(self.versions(), ["0.0.8", VERSION])

    def test_a_refused_release_leaves_the_older_version(self):
        self.assertEqual(self.install(self.older_release()).returncode, 0)
        before = everything_below(self.prefix)
        (self.release / NAME).write_bytes(b"something else")
        self.assertEqual(self.install(self.release).returncode, 1)
        self.assertEqual((everything_below(self.prefix), self.installed()), (before, "scankit " + OLD))

    def test_once_more_repairs_a_damaged_installation(self):
        self.assertEqual(self.install(self.release).returncode, 0)
        before = everything_below(self.prefix)
        self.assertEqual(self.install(self.release).returncode, 0)
        self.assertEqual(everything_below(self.prefix), before)
        program = (self.prefix / "bin/scankit").resolve()
        program.write_bytes(b"damaged")
        self.assertEqual(self.install(self.release).returncode, 0)
        self.assertEqual(self.installed(), "scankit " + VERSION)
        # Not at once: the damaged one is "the one before" for one installation.
        self.assertEqual(self.install(self.release).returncode, 0)
        for one in (self.prefix / "lib/scankit").glob("*/bin/scankit"):
            self.assertNotEqual(one.read_bytes(), b"damaged")

    def test_several_versions_need_a_choice(self):
        for path in self.older_release().glob("*.tar.gz"):
            shutil.copy(path, self.release)
        sums(self.release)
        self.refuses(self.install(self.release), "--version", OLD, VERSION)
        self.assertEqual(self.install(self.release, "--version", OLD).returncode, 0)
        self.assertEqual(self.installed(), "scankit " + OLD)
        result = self.install(self.release, "--version", "9.9")
        self.assertEqual(result.returncode, 1)
        self.assertIn("scankit-9.9-linux-%s.tar.gz" % ARCH, result.stderr)

    def test_the_processor_of_the_machine_decides(self):
        # The program of the other one is a stand-in that runs here; release.arm64 installs the real one under an emulator.
        other = "aarch64" if ARCH == "x86_64" else "x86_64"
        for path in self.older_release(arch=other).glob("*.tar.gz"):
            shutil.copy(path, self.release)
        sums(self.release)
        self.assertEqual(self.install(self.release, path=self.on_another("Linux", other)).returncode, 0)
        self.assertEqual(self.installed(), "scankit " + OLD)
        self.assertEqual(self.install(self.release).returncode, 0)
        self.assertEqual(self.installed(), "scankit " + VERSION)

    def test_a_machine_that_the_release_is_not_for_is_told_what_there_is(self):
        self.refuses(self.install(self.release, path=self.on_another("Linux", "riscv64")),
                     "no checksum of scankit-VERSION-linux-riscv64.tar.gz, only of %s for %s" % (VERSION, ARCH))
        self.refuses(self.install(self.release, path=self.on_another("Darwin", "arm64")), "program for Linux", "Darwin")

    def test_files_of_others_stay(self):
        (self.prefix / "bin").mkdir(parents=True)
        (self.prefix / "bin/scankit").write_text("mine")
        result = self.install(self.release)
        self.assertEqual(result.returncode, 1)
        self.assertIn("was not installed by this script", result.stderr)
        self.assertEqual(everything_below(self.prefix), ["bin", "bin/scankit"])
        self.assertEqual((self.prefix / "bin/scankit").read_text(), "mine")
        (self.prefix / "bin/scankit").unlink()
        man = self.prefix / "share/man/man1/scankit.1"
        man.parent.mkdir(parents=True)
        man.write_text("mine")
        result = self.install(self.release)
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("scankit.1 was not installed by this script and stays", result.stdout)
        self.assertEqual((man.read_text(), self.installed()), ("mine", "scankit " + VERSION))

    def test_a_program_that_does_not_start_is_refused(self):
        folder = self.older_release("1.0")
        root = self.work / "broken"
        (root / "bin").mkdir(parents=True)
        (root / "bin/scankit").write_bytes(b"\x7fELF of another machine")
        (root / "bin/scankit").chmod(0o755)
        name = "scankit-1.0-linux-" + ARCH
        tarball.write(root, folder / (name + ".tar.gz"), name, [])
        sums(folder)
        self.refuses(self.install(folder), "does not start on this machine")

    def test_an_interrupt_leaves_nothing(self):
        process = subprocess.Popen(self.command(self.serve() + "/stall"), stderr=subprocess.DEVNULL, start_new_session=True,
                                   env={"PATH": str(self.tools("curl")), "HOME": str(self.work)})
        deadline = time.monotonic() + 30
        while not list(self.prefix.glob("lib/scankit/.new.*/SHA256SUMS")) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertTrue(list(self.prefix.glob("lib/scankit/.new.*")), "it did not come to the download")
        os.killpg(process.pid, signal.SIGTERM)
        self.assertEqual(process.wait(30), 143)
        self.assertIsNone(everything_below(self.prefix))

    def test_path_is_only_told_where_it_is_needed(self):
        self.assertIn("is not on PATH", self.install(self.release).stdout)
        told = self.install(self.release, path="%s:%s" % (self.tools(), self.prefix / "bin")).stdout
        self.assertNotIn("PATH", told)


if __name__ == "__main__":
    unittest.main()
