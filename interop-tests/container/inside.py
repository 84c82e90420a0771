"""The first step of what runs in a cell: `inside.py ROOT USER:GROUP INIT ENVIRONMENT COMMAND…`, in namespaces of its own.

Brings the loopback interface up, makes ROOT the root of all files, of which only /data can be written, becomes USER, and runs COMMAND
in ENVIRONMENT (JSON) alone, as process 1. With INIT `init` this program stays process 1, as the init of an engine, and COMMAND is
its child.
"""

import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1

root, user, init, environment, *command = sys.argv[1:]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    request = struct.pack("16sh14x", b"lo", 0)
    _, flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))
# As engines set it.
Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").write_text("0")
# A read-only root, and a volume in it.
for arguments in (["--rbind", root, root], ["--bind", f"{root}/data", f"{root}/data"], ["-o", "remount,bind,ro", root]):
    subprocess.run(["mount", *arguments], check=True)
# The mount, and not the directory below it.
os.chdir(root)
os.chroot(".")
os.chdir("/")
number, group = map(int, user.split(":"))
os.setgroups([])
os.setgid(group)
os.setuid(number)
if init == "init" and (child := os.fork()):
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os.execve(command[0], command, json.loads(environment))
