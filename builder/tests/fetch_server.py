# SPDX-License-Identifier: Apache-2.0
"""A server on the loopback that serves files and lies about them: the first part of a path says how.

/FAULT/NAME: NAME of the served files. As a program: fetch_server.py FOLDER prints its port, then serves until it is killed;
/simple/PROJECT/ is a package index of the folder's wheels.
"""
import hashlib
import http.server
import json
import os
import re
import socket
import sys
import threading
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        with self.server.lock:
            count = self.server.counts[self.path] = self.server.counts.get(self.path, 0) + 1
            self.server.seen.append((self.path, dict(self.headers)))
        fault, _, name = self.path[1:].partition("/")
        getattr(self, "serve_" + fault.replace("-", "_"), self.serve_nothing)(name, count)

    def do_HEAD(self):  # uv asks, and takes a no; it tries again after a "not implemented"
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_CONNECT(self):
        self.server.seen.append(("CONNECT " + self.path, dict(self.headers)))
        self.answer(403, b"no way out")

    def answer(self, status, body, **headers):
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **{k.replace("_", "-"): v for k, v in headers.items()}}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def body(self, name):
        return self.server.files[name]

    # The part that was asked for, with its headers; at most `length` bytes of it, then the connection is closed.
    def part(self, body, etag='"1"', length=None, ranges=True, claim=None):
        asked = re.match(r"bytes=(\d+)-$", self.headers.get("Range", "")) if ranges else None
        begin = int(asked.group(1)) if asked else 0
        if asked and self.headers.get("If-Range", etag) != etag:
            asked, begin = None, 0
        if asked and begin >= len(body):
            return self.answer(416, b"")
        rest = body[begin:]
        self.send_response(206 if asked else 200)
        if etag:
            self.send_header("ETag", etag)
        if asked:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (begin, len(body) - 1, len(body)))
        self.send_header("Content-Length", str(claim or len(rest)))
        self.end_headers()
        self.wfile.write(rest[:length])
        if claim or length is not None:
            self.close_connection = True
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)

    def serve_nothing(self, *_):
        self.answer(404, b"<html>nothing here</html>")

    def serve_ok(self, name, _):
        self.part(self.body(name))

    def serve_cut(self, name, _):
        self.part(self.body(name), length=30000)

    def serve_cut_without_etag(self, name, _):
        self.part(self.body(name), etag=None, length=30000)

    def serve_cut_without_ranges(self, name, _):
        self.part(self.body(name), length=30000, ranges=False)

    def serve_cut_then_changed(self, name, count):
        self.part(self.body(name if count > 1 else "old"), etag='"%d"' % min(count, 2), length=None if count > 1 else 30000)

    def serve_cut_at_zero(self, name, _):
        self.part(self.body(name), length=0)

    def serve_stall(self, name, _):
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body(name))))
        self.end_headers()
        self.wfile.write(self.body(name)[:1000])
        self.wfile.flush()
        time.sleep(4)

    def serve_longer_claim(self, name, _):
        self.part(self.body(name), claim=len(self.body(name)) + 500, ranges=False)

    def serve_shorter_claim(self, name, _):
        self.part(self.body(name), claim=len(self.body(name)) - 500, ranges=False)

    def serve_other_bytes(self, name, _):
        body = bytearray(self.body(name))
        body[len(body) // 2] ^= 1
        self.part(bytes(body))

    def serve_other_part(self, name, _):
        body = self.body(name)
        self.send_response(206 if "Range" in self.headers else 200)
        self.send_header("Content-Range", "bytes 5-%d/%d" % (len(body) - 1, len(body)))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:30000])
        self.close_connection = True

    def serve_no_length(self, name, _):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        body = self.body(name)
        for at in range(0, len(body), 8192):
            piece = body[at:at + 8192]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    # Without a length and without an end: what went out is counted.
    def serve_endless(self, name, _):
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        self.server.sent = 0
        try:
            while self.server.sent < 1 << 26:
                self.wfile.write(b"x" * 65536)
                self.server.sent += 65536
        except OSError:
            pass

    def serve_busy_twice(self, name, count):
        self.part(self.body(name)) if count > 2 else self.answer(503, b"later", Retry_After="0")

    def serve_busy(self, *_):
        self.answer(503, b"later")

    def serve_forbidden(self, *_):
        self.answer(403, b"no")

    def serve_empty_reply(self, *_):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def moved(self, to):
        self.answer(302, b"<html>there</html>", Location=to)

    def serve_moved(self, name, _):
        self.moved("/ok/" + name)

    def serve_moved_elsewhere(self, *_):
        self.moved("http://elsewhere.invalid/x")

    def serve_moved_ftp(self, *_):
        self.moved("ftp://127.0.0.1/x")

    def serve_moved_file(self, *_):
        self.moved("file:///etc/passwd")

    def serve_moved_round(self, name, _):
        self.moved("/moved-round/" + name)

    # PEP 691 for who asks for it, PEP 503 else.
    def serve_simple(self, name, _):
        project = name.strip("/").replace("-", "_")
        wheels = sorted(n for n in self.server.files if n.startswith(project + "-"))
        if not wheels:
            return self.serve_nothing()
        hashes = {n: self.server.hash_of(n) for n in wheels}
        kind = "text/html"
        if "+json" in self.headers.get("Accept", "") and not self.server.html_only:
            kind = "application/vnd.pypi.simple.v1+json"
            # With sizes, as PEP 700 has it.
            page = json.dumps({"meta": {"api-version": "1.1"}, "name": project, "versions": sorted({n.split("-")[1] for n in wheels}), "files": [
                {"filename": n, "url": "../../ok/" + n, "hashes": {"sha256": hashes[n]}, "size": len(self.server.files[n])} for n in wheels]})
        else:
            page = "<!DOCTYPE html><html><body>%s</body></html>" % "\n".join(
                '<a href="../../ok/%s#sha256=%s">%s</a><br/>' % (n, hashes[n], n) for n in wheels)
        self.answer(200, page.encode(), Content_Type=kind)


class Folder(dict):
    """The files of a folder by name, read when asked for."""

    def __init__(self, folder):
        super().__init__((n, None) for n in os.listdir(folder) if os.path.isfile(os.path.join(folder, n)))
        self.folder = folder

    def __getitem__(self, name):
        with open(os.path.join(self.folder, os.path.basename(name)), "rb") as file:
            return file.read()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.counts, self.seen, self.lock, self.html_only = files, {}, [], threading.Lock(), False
        self.hashes = {}
        self.url = "http://127.0.0.1:%d" % self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def hash_of(self, name):
        if name not in self.hashes:
            self.hashes[name] = hashlib.sha256(self.files[name]).hexdigest()
        return self.hashes[name]

    def handle_error(self, *_):
        pass  # a client that went away


if __name__ == "__main__":
    server = Server(Folder(sys.argv[1]))
    server.html_only = "--html" in sys.argv
    print(server.server_address[1], flush=True)
    threading.Event().wait()
