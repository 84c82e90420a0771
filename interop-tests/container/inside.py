"""The first step of what runs in a cell: `inside.py ROOT USER ENVIRONMENT COMMAND…`, in namespaces of its own.

Brings the loopback interface up, makes ROOT the root of all files, becomes USER, and runs COMMAND in ENVIRONMENT (JSON) alone, as process 1.
"""

import fcntl
import json
import os
import socket
import struct
import sys

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1

root, user, environment, *command = sys.argv[1:]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    request = struct.pack("16sh14x", b"lo", 0)
    _, flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))
os.chroot(root)
os.chdir("/")
os.setgroups([])
os.setgid(int(user))
os.setuid(int(user))
os.execve(command[0], command, json.loads(environment))
