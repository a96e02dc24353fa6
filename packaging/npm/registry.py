"""A registry of npm packages on the loopback, for tests: registry.py PORT_FILE ARCHIVE..."""

import base64
import hashlib
import http.server
import json
import os
import sys
import tarfile
import urllib.parse

port_file, *archives = sys.argv[1:]
packages = {}
for archive in archives:
    with open(archive, "rb") as file:
        content = file.read()
    with tarfile.open(archive) as opened:
        manifest = json.load(opened.extractfile("package/package.json"))
    packages[manifest["name"]] = (manifest, content)


class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        # npm asks for `/@scope%2fname`.
        path = urllib.parse.unquote(self.path)[1:]
        name = path.removesuffix(".tgz")
        if name not in packages:
            self.send_error(404)
            return
        manifest, content = packages[name]
        if path.endswith(".tgz"):
            self.answer(content, "application/octet-stream")
            return
        version = manifest["version"]
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
        dist = {"tarball": f"http://127.0.0.1:{self.server.server_port}/{name}.tgz", "integrity": integrity}
        document = {"name": name, "dist-tags": {"latest": version}, "versions": {version: {**manifest, "dist": dist}}}
        self.answer(json.dumps(document).encode(), "application/json")

    def answer(self, body, kind):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
with open(port_file + ".new", "w") as file:
    file.write(str(server.server_port))
os.rename(port_file + ".new", port_file)
server.serve_forever()
