# SPDX-License-Identifier: Apache-2.0
"""scankit-fetch against a server that cuts, stalls, lies and redirects:  fetch_test.py SCANKIT_FETCH [Fetch Https | Stall]"""
import hashlib
import os
import random
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import unittest

from fetch_server import Server

HELPER = sys.argv.pop(1)
BODY = random.Random(1).getrandbits(8 * 100000).to_bytes(100000, "little")
SHA256 = hashlib.sha256(BODY).hexdigest()
OK, FAILED, USAGE, ABSENT = 0, 1, 2, 3


class Fetch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server({"f": BODY, "old": BODY[::-1], "empty": b""})

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.out = os.path.join(self.folder, "f")
        self.server.counts.clear()
        self.server.seen.clear()

    def run_helper(self, url, *options, env=None):
        process = subprocess.run(
            [HELPER, "--url", url, "--out", self.out, "--attempts", "3", "--backoff-ms", "10", "--stall-s", "1", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=60, env=env)
        self.said = process.stderr.strip()
        self.told = process.stdout
        return process.returncode

    def fetch(self, fault, *options, env=None, pinned=True):
        pins = ("--sha256", SHA256, "--size", str(len(BODY))) if pinned else ()
        return self.run_helper(self.server.url + "/" + fault + "/f", *pins, *options, env=env)

    def succeeds(self, fault, *options, **more):
        self.assertEqual((self.fetch(fault, *options, **more), self.said), (OK, ""))
        with open(self.out, "rb") as file:
            self.assertEqual(file.read(), BODY)
        self.assertIn("sha256=" + SHA256, self.told)
        self.assertEqual(os.listdir(self.folder), ["f"])

    # The message names the place; nothing lies at the target; at most a part whose hash a later run will judge.
    def fails(self, fault, *expected, part=False, options=(), **more):
        self.assertEqual(self.fetch(fault, *options, **more), FAILED, self.said)
        for text in (self.server.url + "/" + fault.split("/")[0],) + expected:
            self.assertIn(text, self.said)
        self.assertEqual(len(self.said.splitlines()), 1)
        self.assertEqual(os.listdir(self.folder), ["f.part"] if part else [])

    def test_a_file(self):
        self.succeeds("ok")
        self.succeeds("ok", pinned=False)
        self.succeeds("no-length")
        self.succeeds("moved")

    def test_a_connection_that_is_cut_goes_on_where_it_was(self):
        self.succeeds("cut")
        ranges = [headers.get("Range") for _, headers in self.server.seen]
        self.assertEqual(ranges, [None, "bytes=30000-", "bytes=60000-", "bytes=90000-"])
        self.assertEqual(self.server.seen[1][1]["If-Range"], '"1"')
        self.succeeds("cut", pinned=False)

    def test_without_an_etag_only_a_hash_allows_it(self):
        self.succeeds("cut-without-etag")

    def test_a_file_that_changes_meanwhile_begins_anew(self):
        self.succeeds("cut-then-changed")
        self.succeeds("cut-then-changed", pinned=False)

    def test_a_server_without_ranges(self):
        # Each attempt brings the first 30000 bytes, and no more.
        self.fails("cut-without-ranges", "closed after 30000 of 100000 bytes", part=True)
        self.assertEqual(list(self.server.counts.values()), [3])

    def test_a_length_that_is_a_lie(self):
        self.fails("longer-claim", "has 100500 bytes, expected 100000")
        self.fails("shorter-claim", "has 99500 bytes, expected 100000")
        self.fails("shorter-claim", "its sha256 is", "expected " + SHA256, pinned=False, options=("--sha256", SHA256))
        self.fails("longer-claim", "closed after 100000 of 100500 bytes", pinned=False)

    def test_other_bytes(self):
        self.fails("other-bytes", "its sha256 is", "expected " + SHA256)
        self.fails("other-part", "closed after 30000 of 100000 bytes", part=True)

    def test_a_limit(self):
        self.fails("ok", "longer than the limit of 5000 bytes", options=("--limit", "5000"), pinned=False)
        self.fails("no-length", "longer than the limit of 5000 bytes", options=("--limit", "5000"), pinned=False)

    # RLIMIT_FSIZE is the witness that nothing beyond the size was written: one byte more would be SIGXFSZ.
    def test_a_body_without_an_end_stops_at_the_size(self):
        limit = ["prlimit", "--fsize=65536"] if shutil.which("prlimit") else []
        process = subprocess.run(
            limit + [HELPER, "--url", self.server.url + "/endless/f", "--out", self.out, "--sha256", SHA256, "--size", "5",
                     "--limit", str(16 << 30), "--attempts", "1"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=60)
        self.assertEqual(process.returncode, FAILED, process.stderr)
        self.assertRegex(process.stderr, r"sent more than the 5 bytes expected: the download was stopped after [0-9]+ bytes")
        self.assertEqual(os.listdir(self.folder), [])
        # A part that an earlier run left counts.
        with open(self.out + ".part", "wb") as file:
            file.write(b"xxxx")
        self.assertEqual(self.run_helper(self.server.url + "/endless/f", "--sha256", SHA256, "--size", "5"), FAILED)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_part_that_is_a_pipe_is_refused_at_once(self):
        os.mkfifo(self.out + ".part")
        self.assertEqual(self.fetch("ok"), FAILED)
        self.assertIn("f.part: it is not a regular file", self.said)

    def test_busy_servers(self):
        self.succeeds("busy-twice")
        os.unlink(self.out)
        self.fails("busy", "status 503")
        self.assertEqual(sum(self.server.counts.values()), 3 + 3)
        self.fails("empty-reply", "no response")
        self.fails("cut-at-zero", "no response")

    def test_no_is_no(self):
        for fault, text in (("none", "not found (status 404)"), ("forbidden", "other credentials (status 403)")):
            self.fails(fault, text)
        self.assertEqual(list(self.server.counts.values()), [1, 1])

    def test_redirects(self):
        self.fails("moved-elsewhere", "redirects to http://elsewhere.invalid/x, but only https is followed")
        self.fails("moved-ftp", "redirects to ftp://127.0.0.1/x")
        self.fails("moved-file", "redirects to file:///etc/passwd")
        self.fails("moved-round", "more than 10 times")

    def test_only_https(self):
        for url in ("http://example.invalid/f", "ftp://127.0.0.1/f", "file:///etc/passwd", "http://127.0.0.1.example.invalid/f",
                    "http://127.0.0.1@example.invalid/f", "http://example.invalid/@127.0.0.1", "HTTP://localhost.evil/f", "f",
                    "http://127.0.0.1:1/a b", "http://localhost\\@example.invalid/"):
            self.assertEqual(self.run_helper(url), USAGE, url)
            self.assertIn("only https is supported", self.said)
        self.assertEqual(os.listdir(self.folder), [])

    def test_what_an_earlier_run_left_is_gone_on_with(self):
        for left, expected in ((BODY[:40000], "bytes=40000-"), (BODY, None), (b"x" * 40000, "bytes=40000-"), (BODY + b"x", None)):
            self.server.seen.clear()
            with open(self.out + ".part", "wb") as file:
                file.write(left)
            self.succeeds("ok")
            self.assertEqual(self.server.seen[0][1].get("Range") if self.server.seen else None, expected)
            if left == BODY:
                self.assertEqual(self.server.seen, [])
            os.unlink(self.out)

    def test_a_part_that_is_longer_than_the_servers_file(self):
        with open(self.out + ".part", "wb") as file:
            file.write(b"x" * 100000)
        self.succeeds("ok")

    def test_a_link_at_the_part_is_not_followed(self):
        victim = os.path.join(self.folder, "victim")
        open(victim, "w").close()
        os.symlink(victim, self.out + ".part")
        self.assertEqual(self.fetch("ok"), FAILED)
        self.assertEqual(os.path.getsize(victim), 0)

    def test_folders_that_cannot_be_written(self):
        self.out = "/proc/none/f"
        self.assertEqual(self.fetch("ok"), FAILED)
        self.assertIn("cannot write /proc/none/f.part", self.said)

    def test_a_path_that_is_too_long(self):
        self.out = "/" + "f" * 4091
        self.assertEqual(self.fetch("ok"), USAGE)
        self.assertIn("the path is too long; choose a shorter one", self.said)

    def test_a_part_that_cannot_be_emptied(self):
        try:
            os.mknod(self.out + ".part", stat.S_IFCHR | 0o600, os.makedev(1, 3))  # /dev/null
        except OSError as error:
            self.skipTest(str(error))
        self.assertEqual(self.fetch("ok", pinned=False), FAILED)
        self.assertIn("cannot empty %s.part: " % self.out, self.said)
        self.assertIn("; delete it and try again", self.said)

    def test_a_full_disk(self):
        self.out = "/dev/full"
        os.symlink("/dev/full", os.path.join(self.folder, "f.part"))
        # A size limit of the process stands for the disk's: SIGXFSZ is ignored, write says EFBIG.
        self.out = os.path.join(self.folder, "g")
        code = "import os, resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); " \
               "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)); os.execv(sys.argv[1], sys.argv[1:])"
        run = subprocess.run([sys.executable, "-c", code, HELPER, "--url", self.server.url + "/ok/f", "--out", self.out],
                             stderr=subprocess.PIPE, universal_newlines=True, timeout=60)
        self.assertEqual(run.returncode, FAILED)
        self.assertIn("cannot write " + self.out, run.stderr)
        self.assertFalse(os.path.exists(self.out))

    def test_nobody_there(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.assertEqual(self.run_helper("http://127.0.0.1:%d/f" % taken.getsockname()[1]), FAILED)
        self.assertIn("no response", self.said)

    def test_the_proxy_of_the_environment(self):
        env = {**os.environ, "https_proxy": self.server.url, "no_proxy": ""}
        self.assertEqual(self.run_helper("https://name:secret@files.invalid/f?token=1", env=env), FAILED)
        self.assertEqual(self.server.seen[0][0], "CONNECT files.invalid:443")
        self.assertIn("https://files.invalid/f", self.said)
        self.assertNotIn("secret", self.said)
        self.assertNotIn("token", self.said)

    def test_an_empty_file(self):
        sha256 = hashlib.sha256(b"").hexdigest()
        self.assertEqual(self.run_helper(self.server.url + "/ok/empty", "--sha256", sha256), OK, self.said)
        self.assertEqual(os.path.getsize(self.out), 0)

    def test_the_accept_header_and_netrc(self):
        with open(os.path.join(self.folder, ".netrc"), "w") as file:
            file.write("machine 127.0.0.1 login me password it\n")
        self.out = os.path.join(self.folder, "g")
        self.assertEqual(self.fetch("ok", "--accept", "text/html", env={**os.environ, "HOME": self.folder}), OK, self.said)
        headers = self.server.seen[0][1]
        self.assertEqual(headers["Accept"], "text/html")
        self.assertEqual(headers["Authorization"], "Basic bWU6aXQ=")

    def test_what_the_program_needs(self):
        with open(HELPER, "rb") as file:
            program = file.read()
        floors = [int(n) for n in re.findall(rb"GLIBC_2\.(\d+)", program)]
        self.assertTrue(floors)
        self.assertLessEqual(max(floors), 17)
        for library in (b"libstdc++", b"libgcc_s", b"libssl"):
            self.assertNotIn(library, program)

    def test_usage(self):
        for options in ((), ("--url",), ("--url", "https://x/", "--size", "1k", "--out", "f"), ("--out", "f"),
                        ("--url", "https://x/", "--out", "f", "--sha256", "abc")):
            run = subprocess.run([HELPER, *options], stderr=subprocess.PIPE, universal_newlines=True)
            self.assertEqual(run.returncode, USAGE)
            self.assertIn("usage: scankit-fetch", run.stderr)


class Stall(Fetch):
    """Alone: libcurl takes seconds to call a connection slow."""
    for name in [n for n in vars(Fetch) if n.startswith("test_")]:
        vars()[name] = None
    del name

    def test_a_stall(self):
        self.fails("stall", "closed after", "of 100000 bytes", part=True, options=("--attempts", "1"))


@unittest.skipUnless(shutil.which("openssl"), "no openssl to make a certificate with")
class Https(unittest.TestCase):
    def setUp(self):
        import ssl
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        key, self.certificate = os.path.join(self.folder, "key"), os.path.join(self.folder, "certificate")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                        key, "-out", self.certificate, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                        "-days", "2"], check=True, stderr=subprocess.DEVNULL)
        self.server = Server({"f": BODY})
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.out = os.path.join(self.folder, "f")

    def fetch(self, *options, path="/ok/f", **variables):
        clean = {k: v for k, v in os.environ.items() if "CERT" not in k and "BUNDLE" not in k and "proxy" not in k.lower()}
        url = "https://localhost:%d%s" % (self.server.server_address[1], path)
        run = subprocess.run([HELPER, "--url", url, "--out", self.out, "--attempts", "1", *options], stderr=subprocess.PIPE,
                             stdout=subprocess.PIPE, universal_newlines=True, env={**clean, **variables}, timeout=60)
        return run.returncode, run.stderr.strip()

    def test_certificates(self):
        status, said = self.fetch()
        self.assertEqual(status, FAILED)
        self.assertIn("its certificate is not trusted", said)
        self.assertFalse(os.path.exists(self.out))
        for name in ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT"):
            self.assertEqual(self.fetch(**{name: self.certificate}), (OK, ""), name)
        self.assertEqual(self.fetch("--ca", self.certificate), (OK, ""))

    def test_https_never_leads_to_http(self):
        self.server.files["f"] = BODY
        plain = Server({"f": BODY})
        from fetch_server import Handler
        Handler.serve_moved_down = lambda handler, name, _: handler.moved(plain.url + "/ok/f")
        status, said = self.fetch("--ca", self.certificate, path="/moved-down/f")
        self.assertEqual(status, FAILED)
        self.assertIn("only https is followed", said)


if __name__ == "__main__":
    unittest.main()
