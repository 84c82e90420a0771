#!/usr/bin/env python3
"""Makes a container image without an engine: `image.py OUTPUT VERSION LICENCES ARCHITECTURE=BINARY…`.

OUTPUT is a tar file with an OCI image layout. With one architecture it is also what `docker load` of any version takes. The image has
the binary, the authorities of certificates, a user, and directories; its environment makes it do what the emulator's image does. The
same inputs and the same SOURCE_DATE_EPOCH make the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import certifi

NAME = "jitney"
USER = 65532
# Group 0 too may write: some clusters run images as any user of that group.
WRITABLE = 0o770
CONFIG: dict[str, Any] = {
    "User": f"{USER}:{USER}",
    "Entrypoint": ["/usr/bin/jitney"],
    "Cmd": ["serve"],
    "WorkingDir": "/",
    # Any key is accepted, as by the emulator, unless JITNEY_AUTH=sas is set or Config.json has authorization rules.
    "Env": [
        "PATH=/usr/bin",
        "JITNEY_DATA_DIR=/data",
        "JITNEY_IN_CONTAINER=true",
        "JITNEY_ALLOW_ANY_KEY_BEYOND_LOOPBACK=true",
    ],
    "ExposedPorts": {"443/tcp": {}, "5300/tcp": {}, "5671/tcp": {}, "5672/tcp": {}},
    "Volumes": {"/data": {}},
    # Times are nanoseconds.
    "Healthcheck": {
        "Test": ["CMD", "/usr/bin/jitney", "health"],
        "Interval": 10_000_000_000, "Timeout": 6_000_000_000, "StartPeriod": 600_000_000_000, "StartInterval": 500_000_000,
        "Retries": 3,
    },
    "StopSignal": "SIGTERM",
}
PASSWD = f"root:x:0:0:root:/:/sbin/nologin\njitney:x:{USER}:{USER}:jitney:/data:/sbin/nologin\n"
GROUP = f"root:x:0:\njitney:x:{USER}:\n"


def epoch() -> int:
    return int(os.environ["SOURCE_DATE_EPOCH"])


def add(archive: tarfile.TarFile, name: str, content: bytes | None, mode: int, owner: tuple[int, int] = (0, 0)) -> None:
    """Adds a file, or a directory if there is no content."""
    entry = tarfile.TarInfo(name)
    entry.mode, entry.mtime = mode, epoch()
    entry.uid, entry.gid = owner
    if content is None:
        entry.type = tarfile.DIRTYPE
        archive.addfile(entry)
    else:
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))


def layer(binary: Path, licences: Path) -> bytes:
    """The files of the image, as a tar file."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in ("etc", "etc/ssl", "etc/ssl/certs", "usr", "usr/bin", "usr/share", "usr/share/doc", "usr/share/doc/jitney",
                     # Where tools for the emulator copy or mount its Config.json.
                     "ServiceBus_Emulator", "ServiceBus_Emulator/ConfigFiles"):
            add(archive, name, None, 0o755)
        add(archive, "data", None, WRITABLE, (USER, 0))
        add(archive, "tmp", None, 0o1777)
        add(archive, "etc/passwd", PASSWD.encode(), 0o644)
        add(archive, "etc/group", GROUP.encode(), 0o644)
        add(archive, "etc/ssl/certs/ca-certificates.crt", Path(certifi.where()).read_bytes(), 0o644)
        add(archive, "usr/share/doc/jitney/licences.txt", licences.read_bytes(), 0o644)
        add(archive, "usr/bin/jitney", binary.read_bytes(), 0o755)
    return made.getvalue()


class Layout:
    """An OCI image layout: blobs by their digests."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def put(self, content: bytes, media_type: str) -> dict[str, Any]:
        """Adds a blob; returns its descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        self.blobs[digest] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def put_json(self, document: dict[str, Any], media_type: str) -> dict[str, Any]:
        return self.put(json.dumps(document, sort_keys=True).encode(), media_type)

    def image(self, architecture: str, files: bytes, version: str) -> dict[str, Any]:
        """Adds an image of one layer; returns the descriptor of its manifest."""
        created = datetime.fromtimestamp(epoch(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        labels = {
            "org.opencontainers.image.title": NAME, "org.opencontainers.image.version": version,
            "org.opencontainers.image.created": created, "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            "org.opencontainers.image.description": "A broker that speaks the Azure Service Bus protocol",
        }
        config = {
            "architecture": architecture, "os": "linux", "created": created, "config": {**CONFIG, "Labels": labels},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(files).hexdigest()}"]},
            "history": [{"created": created, "created_by": "packaging/image.py"}],
        }
        manifest = {
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": self.put_json(config, "application/vnd.oci.image.config.v1+json"),
            "layers": [self.put(gzip.compress(files, 9, mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip")],
            "annotations": labels,
        }
        described = self.put_json(manifest, manifest["mediaType"])
        return {**described, "platform": {"architecture": architecture, "os": "linux"}}

    def write(self, output: Path, images: list[dict[str, Any]], tag: str) -> None:
        """Writes the tar file, whose index names one image, or an index of several."""
        named = {"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": f"{NAME}:{tag}"}
        media_type = "application/vnd.oci.image.index.v1+json"
        top = images[0]
        if len(images) > 1:
            top = self.put_json({"schemaVersion": 2, "mediaType": media_type, "manifests": images}, media_type)
        index = {"schemaVersion": 2, "mediaType": media_type, "manifests": [{**top, "annotations": named}]}
        files: dict[str, Any] = {"oci-layout": {"imageLayoutVersion": "1.0.0"}, "index.json": index}
        if len(images) == 1:
            files["manifest.json"] = self.docker(top, tag)
        with tarfile.open(output, "w", format=tarfile.USTAR_FORMAT) as archive:
            for name in ("blobs", "blobs/sha256"):
                add(archive, name, None, 0o755)
            for digest, content in sorted(self.blobs.items()):
                add(archive, f"blobs/sha256/{digest}", content, 0o644)
            for name, document in files.items():
                add(archive, name, json.dumps(document).encode(), 0o644)

    def docker(self, image: dict[str, Any], tag: str) -> list[dict[str, Any]]:
        """What engines read that do not know the layout of OCI."""
        def path(descriptor: dict[str, Any]) -> str:
            return "blobs/" + descriptor["digest"].replace(":", "/")

        manifest = json.loads(self.blobs[image["digest"].removeprefix("sha256:")])
        layers = [path(each) for each in manifest["layers"]]
        return [{"Config": path(manifest["config"]), "RepoTags": [f"{NAME}:{tag}"], "Layers": layers}]


def main() -> int:
    if len(sys.argv) < 5 or not all("=" in argument for argument in sys.argv[4:]):
        print(__doc__, file=sys.stderr)
        return 2
    output, version, licences = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    layout = Layout()
    images = []
    for argument in sys.argv[4:]:
        architecture, binary = argument.split("=", 1)
        images.append(layout.image(architecture, layer(Path(binary), licences), version))
    layout.write(output, images, version)
    return 0


if __name__ == "__main__":
    sys.exit(main())
