# SPDX-License-Identifier: Apache-2.0
"""The spec in an editor: a real YAML language server reads scankit.yaml, whose first line names the schema beside it.

language_server.py NODE SERVER FOLDER: FOLDER holds scankit.yaml and scankit.schema.json as `env init` wrote them.
"""
import json
import pathlib
import queue
import subprocess
import sys
import threading

LONGEST = 60


class Server:
    """The Language Server Protocol over standard input and output, base protocol as in its version 3.17."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.heard = queue.Queue()
        self.asked = 0
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            length = 0
            for line in iter(self.process.stdout.readline, b"\r\n"):
                if not line:
                    return
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            self.heard.put(json.loads(self.process.stdout.read(length)))

    def send(self, **message):
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.process.stdin.flush()

    def wait(self, wanted):
        while True:
            message = self.heard.get(timeout=LONGEST)
            if "method" in message and "id" in message:  # it asks for our settings, of which there are none
                params = message.get("params")
                items = params.get("items", []) if isinstance(params, dict) else []
                self.send(id=message["id"], result=[None] * len(items))
            elif wanted(message):
                return message

    def ask(self, method, params):
        self.asked += 1
        number = self.asked
        self.send(id=number, method=method, params=params)
        answer = self.wait(lambda message: message.get("id") == number)
        assert "error" not in answer, answer
        return answer["result"]


def main():
    node, program, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
    uri = (folder / "scankit.yaml").as_uri()
    good = (folder / "scankit.yaml").read_text()
    # Servers before 1.0 (the newest that the package index has) take an address alone; later ones make it of this path.
    line = "# yaml-language-server: $schema=scankit.schema.json"
    assert good.startswith(line + "\n"), good[:200]
    good = good.replace(line, "# yaml-language-server: $schema=" + (folder / "scankit.schema.json").as_uri(), 1)
    server = Server([node, program, "--stdio"])
    server.ask("initialize", {"processId": None, "rootUri": folder.as_uri(), "workspaceFolders": [{"uri": folder.as_uri(), "name": "project"}],
                              "capabilities": {"textDocument": {"completion": {"completionItem": {}}, "hover": {"contentFormat": ["markdown"]}}}})
    server.send(method="initialized", params={})
    # No catalogue of schemas from elsewhere: what it knows is what our first line names.
    server.send(method="workspace/didChangeConfiguration", params={"settings": {"yaml": {
        "validate": True, "hover": True, "completion": True, "schemaStore": {"enable": False}}, "http": {}}})
    version = 1
    server.send(method="textDocument/didOpen", params={"textDocument": {"uri": uri, "languageId": "yaml", "version": 1, "text": good}})

    def complaints():
        return server.wait(lambda m: m.get("method") == "textDocument/publishDiagnostics" and m["params"]["uri"] == uri)["params"]["diagnostics"]

    def change(text):
        nonlocal version
        version += 1
        server.send(method="textDocument/didChange", params={"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]})

    found = complaints()
    assert found == [], found
    print("ok: what init wrote has no complaint")
    for wrong, line, word in (
        ("schema: 1\ntocrh: {version: '2.11.*'}\n", 2, "tocrh"),
        ("schema: 1\npython:\n  version: 3.10\n", 3, "string"),
        ("schema: 1\ndriver: newest\n", 2, "pattern"),
        ("schema: 1\ngpus: [hopper]\n", 2, "pattern"),
        ("schema: 1\ntorch: {string_abi: cxx11}\n", 2, "new"),
        ("schema: 2\n", 1, "1"),
        ("driver: '>=580'\n", 1, "schema"),
    ):
        change(good.splitlines()[0] + "\n" + wrong)
        found = complaints()
        marked = [one for one in found if one["range"]["start"]["line"] == line and word in one["message"]]
        assert len(marked) == 1, (wrong, found)
        print("ok: %r is marked in its line: %s" % (wrong, found[0]["message"].split("\n")[0]))
    text = good.splitlines()[0] + "\nschema: 1\ntorch:\n  \n"
    change(text)
    complaints()
    offered = server.ask("textDocument/completion", {"textDocument": {"uri": uri}, "position": {"line": 3, "character": 2}})
    labels = {one["label"] for one in (offered["items"] if isinstance(offered, dict) else offered)}
    assert {"version", "cuda", "string_abi"} <= labels, labels
    print("ok: it offers the fields of torch: %s" % ", ".join(sorted(labels)))
    told = server.ask("textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 2}})
    assert "the schema version of this file" in json.dumps(told), told
    print("ok: it says what a field means")
    server.process.kill()


main()
