"""Writes a wheel that carries the program: wheel.py TREE VERSION TAGS DIRECTORY.

TREE is an installed tree (bin/, share/); TAGS are platform tags, joined with dots.
"""

import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

tree, version, tags, directory = sys.argv[1:]
tree = pathlib.Path(tree)
date = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]
info = f"sessile-{version}.dist-info"

METADATA = f"""Metadata-Version: 2.4
Name: sessile
Version: {version}
Summary: State that stays put for command-line tools and agents
Keywords: cli,context,session,agents,mcp
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-MIT
License-File: LICENSE-APACHE
Project-URL: Source, https://github.com/sessile/sessile
Classifier: Environment :: Console
Classifier: Topic :: Software Development
Description-Content-Type: text/markdown

Runs a command with state of its own: the kube context, the cloud profile and the account of a session, which no other agent on
the machine can switch.

    uvx sessile demo
    uvx sessile run --context staging -- claude

The wheel carries the program itself. On Windows use it in WSL.
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: sessile\nRoot-Is-Purelib: false\n"
WHEEL += "".join(f"Tag: py3-none-{tag}\n" for tag in tags.split("."))

data = f"sessile-{version}.data"
doc = tree / "share/doc/sessile"
files = [(f"{data}/scripts/sessile", (tree / "bin/sessile").read_bytes(), 0o755)]
for page in sorted((tree / "share/man/man1").iterdir()):
    files.append((f"{data}/data/share/man/man1/{page.name}", page.read_bytes(), 0o644))
for name in ["bash-completion/completions/sessile", "zsh/vendor-completions/_sessile", "fish/vendor_completions.d/sessile.fish"]:
    files.append((f"{data}/data/share/{name}", (tree / "share" / name).read_bytes(), 0o644))
for name in ["LICENSE-MIT", "LICENSE-APACHE"]:
    files.append((f"{info}/licenses/{name}", (doc / name).read_bytes(), 0o644))
files.append((f"{info}/METADATA", METADATA.encode(), 0o644))
files.append((f"{info}/WHEEL", WHEEL.encode(), 0o644))


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


record = "".join(f"{name},sha256={digest(content)},{len(content)}\n" for name, content, _ in files)
files.append((f"{info}/RECORD", (record + f"{info}/RECORD,,\n").encode(), 0o644))

with zipfile.ZipFile(f"{directory}/sessile-{version}-py3-none-{tags}.whl", "w") as wheel:
    for name, content, mode in files:
        entry = zipfile.ZipInfo(name, date)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        wheel.writestr(entry, content)
