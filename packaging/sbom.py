"""Writes a CycloneDX 1.5 document of the crates that go into a package: cargo metadata ... | sbom.py PACKAGE."""

import hashlib
import json
import os
import sys
import time
import tomllib
import uuid

metadata = json.load(sys.stdin)
root_name = sys.argv[1]
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
root = next(package["id"] for package in metadata["packages"] if package["name"] == root_name)
with open(os.path.join(metadata["workspace_root"], "Cargo.lock"), "rb") as file:
    lock = tomllib.load(file)
checksums = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}


def dependencies(package):
    """Crates that it is built with; those of tests are not."""
    for dependency in nodes[package]["deps"]:
        if any(kind["kind"] in (None, "build") for kind in dependency["dep_kinds"]):
            yield dependency["pkg"]


reached, waiting = {root}, [root]
while waiting:
    for dependency in dependencies(waiting.pop()):
        if dependency not in reached:
            reached.add(dependency)
            waiting.append(dependency)


def reference(package):
    package = packages[package]
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, kind="library"):
    package = packages[package]
    described = {
        "type": kind,
        "bom-ref": reference(package["id"]),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package["id"]),
    }
    if package["license"]:
        described["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        described["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return described


ordered = sorted(reached, key=reference)
graph = [{"ref": reference(package), "dependsOn": sorted({reference(one) for one in dependencies(package)})} for package in ordered]
serial = uuid.UUID(bytes=hashlib.sha256(json.dumps(graph).encode()).digest()[:16], version=4)
json.dump({
    "bomFormat": "CycloneDX",
    "specVersion": "1.5",
    "serialNumber": f"urn:uuid:{serial}",
    "version": 1,
    "metadata": {
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))),
        "component": component(root, "application"),
    },
    "components": [component(package) for package in ordered if package != root],
    "dependencies": graph,
}, sys.stdout, indent=1)
print()
