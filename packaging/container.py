"""Starts an unpacked image as a container runtime does, for tests: container.py CONFIG ROOT.

CONFIG is the image's configuration. The service gets a free port instead of its own.
"""

import json
import os
import sys

with open(sys.argv[1]) as file:
    config = json.load(file)["config"]
port = next(iter(config["ExposedPorts"])).split("/")[0]
command = config["Entrypoint"] + config["Cmd"]
listening = [word for word in command if word.endswith(f":{port}")]
assert len(listening) == 1, f"the image exposes {port} and listens elsewhere: {command}"
command = [word.removesuffix(port) + "0" if word in listening else word for word in command]
user, group = (int(part) for part in config["User"].split(":"))
assert user > 0 and group > 0, config["User"]
os.chroot(sys.argv[2])
os.chdir(config["WorkingDir"])
os.setgroups([])
os.setgid(group)
os.setuid(user)
os.execve(command[0], command, dict(variable.split("=", 1) for variable in config["Env"]))
