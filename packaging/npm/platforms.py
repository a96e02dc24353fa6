"""Adds the packages of the platforms to the manifest of the main one: platforms.py MANIFEST DIRECTORY.

Those are in DIRECTORY as sessile-OS-CPU-VERSION.tgz.
"""

import json
import pathlib
import sys

manifest = json.loads(pathlib.Path(sys.argv[1]).read_text())
ending = f"-{manifest['version']}.tgz"
for archive in sorted(pathlib.Path(sys.argv[2]).glob(f"sessile-*{ending}")):
    platform = archive.name.removeprefix("sessile-").removesuffix(ending)
    manifest["optionalDependencies"][f"@sessile/{platform}"] = manifest["version"]
json.dump(manifest, sys.stdout, indent=2)
print()
