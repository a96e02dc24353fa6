"""Writes an OCI image from scratch as a layout in a tar archive: oci.py PROGRAM VERSION ARCHITECTURE FILE.

The image has the program, two directories and the names of its user. It serves as user 10001.
"""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
import time

program, version, architecture, path = sys.argv[1:]
epoch = int(os.environ["SOURCE_DATE_EPOCH"])
created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
USER = 10001


def tar_of(entries):
    """An archive of (name, mode, owner, content); without content a directory."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, mode, owner, content in entries:
            entry = tarfile.TarInfo(name)
            entry.mode, entry.uid, entry.gid, entry.mtime = mode, owner, owner, epoch
            if content is None:
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


blobs = {}


def blob(content, kind):
    digest = hashlib.sha256(content).hexdigest()
    blobs[digest] = content
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}


with open(program, "rb") as file:
    content = file.read()
layer = tar_of([
    ("etc", 0o755, 0, None),
    ("etc/passwd", 0o644, 0, f"sessile:x:{USER}:{USER}::/var/lib/sessile:/sbin/nologin\n".encode()),
    ("etc/group", 0o644, 0, f"sessile:x:{USER}:\n".encode()),
    ("tmp", 0o1777, 0, None),
    ("usr", 0o755, 0, None),
    ("usr/bin", 0o755, 0, None),
    ("usr/bin/sessile", 0o755, 0, content),
    ("var", 0o755, 0, None),
    ("var/lib", 0o755, 0, None),
    ("var/lib/sessile", 0o700, USER, None),
])
labels = {
    "org.opencontainers.image.title": "sessile",
    "org.opencontainers.image.version": version,
    "org.opencontainers.image.source": "https://github.com/sessile/sessile",
    "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
}
config = {
    "created": created,
    "architecture": architecture,
    "os": "linux",
    "config": {
        "User": f"{USER}:{USER}",
        "Env": ["PATH=/usr/bin", "HOME=/var/lib/sessile"],
        "Entrypoint": ["/usr/bin/sessile"],
        # Only a proxy or the ports that the person publishes reach a container.
        "Cmd": ["--no-config", "serve", "--store", "/var/lib/sessile/service.db", "--listen", "0.0.0.0:8737",
                "--behind-proxy", "--log", "json"],
        "ExposedPorts": {"8737/tcp": {}},
        "Volumes": {"/var/lib/sessile": {}},
        "WorkingDir": "/var/lib/sessile",
        "StopSignal": "SIGTERM",
        "Labels": labels,
    },
    "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    "history": [{"created": created, "created_by": "scripts/package oci"}],
}


def document(value):
    return json.dumps(value, indent=1).encode()


manifest = {
    "schemaVersion": 2,
    "mediaType": "application/vnd.oci.image.manifest.v1+json",
    "config": blob(document(config), "application/vnd.oci.image.config.v1+json"),
    "layers": [blob(gzip.compress(layer, 9, mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip")],
    "annotations": labels,
}
described = blob(document(manifest), "application/vnd.oci.image.manifest.v1+json")
described["platform"] = {"architecture": architecture, "os": "linux"}
described["annotations"] = {"org.opencontainers.image.ref.name": version}
index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [described]}
files = [("oci-layout", 0o644, 0, document({"imageLayoutVersion": "1.0.0"})), ("index.json", 0o644, 0, document(index)),
         ("blobs", 0o755, 0, None), ("blobs/sha256", 0o755, 0, None)]
files += [(f"blobs/sha256/{digest}", 0o644, 0, content) for digest, content in sorted(blobs.items())]
with open(path, "wb") as file:
    file.write(tar_of(files))
