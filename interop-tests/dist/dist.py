#!/usr/bin/env python3
"""The release files in target/dist, used as their users do (README.md): `dist.py [WORD…]`."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

from azure.servicebus import ServiceBusClient, ServiceBusMessage
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from system import UNIT, System

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import checks  # noqa: E402
from broker import ROOT, WORK, free_ports  # noqa: E402

DIST = ROOT / "target/dist"
WORKING = Path(os.environ.get("JITNEY_WORK", WORK / "dist")).resolve() / "own"
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
READY = "Emulator Service is Successfully Up!"
BYTES_MAX = 22_000_000
# The names of a processor: Rust's and RPM's, Debian's and OCI's, and its number in an ELF file.
PROCESSORS = {"x86_64": ("amd64", 62), "aarch64": ("arm64", 183)}
# ELF's segment that names a dynamic linker, and its sections of symbols.
INTERPRETER, SYMBOLS = 3, 2
# What a service of this unit is exposed to, by systemd's count; 10 is everything.
EXPOSURE_MAX = 25


def binary_of(machine: str) -> Path:
    """The binary in the tar file of a processor."""
    directory = WORKING / "binaries"
    name = f"jitney-{VERSION}-linux-{machine}"
    if not (directory / name).exists():
        with tarfile.open(DIST / f"{name}.tar.gz") as archive:
            archive.extractall(directory, filter="data")
    return directory / name / "jitney"


def ran(*command: object, **options) -> str:
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **options)
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}"
    return done.stdout


def sends_and_receives(port: int, key: str, queue: str, bodies: list[str]) -> list[str]:
    """Sends messages, and returns the bodies of all that the queue has."""
    text = f"Endpoint=sb://localhost:{port};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey={key};UseDevelopmentEmulator=true;"
    with ServiceBusClient.from_connection_string(text) as client:
        with client.get_queue_sender(queue) as sender:
            for body in bodies:
                sender.send_messages(ServiceBusMessage(body))
        with client.get_queue_receiver(queue) as receiver:
            return [str(message) for message in receiver.peek_messages(100)]


def every_file_has_its_checksum(_: object) -> None:
    ran("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=DIST)
    listed = {line.split("  ")[1] for line in (DIST / "SHA256SUMS").read_text().splitlines()}
    assert listed == {file.name for file in DIST.iterdir()} - {"SHA256SUMS"}
    for machine, (architecture, _number) in PROCESSORS.items():
        names = {
            f"jitney-{VERSION}-linux-{machine}.tar.gz", f"jitney_{VERSION}-1_{architecture}.deb", f"jitney-{VERSION}-1.{machine}.rpm",
            f"jitney-{VERSION}-image-{architecture}.tar",
        }
        assert names <= listed, names - listed


def binaries_are_static_stripped_and_small(_: object) -> None:
    for machine, (_architecture, number) in PROCESSORS.items():
        content = binary_of(machine).read_bytes()
        assert len(content) <= BYTES_MAX, f"{machine}: {len(content)} bytes"
        assert content[:5] == b"\x7fELF\x02" and struct.unpack_from("<H", content, 18) == (number,), machine
        segments_at, sections_at = struct.unpack_from("<QQ", content, 32)
        segment_size, segments, section_size, sections = struct.unpack_from("<4H", content, 54)
        kinds = {struct.unpack_from("<I", content, segments_at + at * segment_size)[0] for at in range(segments)}
        assert INTERPRETER not in kinds, f"{machine}: it is not static"
        kinds = {struct.unpack_from("<I", content, sections_at + at * section_size + 4)[0] for at in range(sections)}
        assert SYMBOLS not in kinds, f"{machine}: it is not stripped"


def the_binary_for_arm_serves(_: object) -> None:
    """Under an emulation of the processor, with the SDK as its client."""
    amqp, http = free_ports(2)
    log = WORKING / "arm.log"
    emulator = HERE / "target/tools/usr/bin/qemu-aarch64-static"
    command = [emulator, binary_of("aarch64"), "serve", "--ephemeral", "--amqp", f"127.0.0.1:{amqp}", "--http", f"127.0.0.1:{http}"]
    with log.open("wb") as sink:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.PIPE, text=True)
        try:
            for line in process.stderr:
                sink.write(line.encode())
                if READY in line:
                    break
            assert process.poll() is None, f"it has ended\n{log.read_text()}"
            assert sends_and_receives(amqp, "any", "queue.1", ["by arm"]) == ["by arm"]
            assert "healthy" in ran(binary_of("x86_64"), "health", "--url", f"http://127.0.0.1:{http}")
            process.terminate()
            process.stderr.read()
            assert process.wait(60) == 0, f"after SIGTERM it ended with {process.returncode}"
        finally:
            process.kill()
            process.wait()


def the_tar_file_has_all_that_packages_have(_: object) -> None:
    directory = binary_of("x86_64").parent
    names = {str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file()}
    wanted = {"jitney", "licences.txt", "LICENSE-MIT", "LICENSE-APACHE", UNIT, "jitney.env", "Config.json", "man/jitney.1", "man/jitney-serve.1",
              "completions/jitney.bash", "completions/_jitney", "completions/jitney.fish"}
    assert wanted <= names, wanted - names
    ran("bash", "-n", directory / "completions/jitney.bash")
    for page in (directory / "man").iterdir():
        assert ".TH " in page.read_text(), page
    told = ran(directory / "jitney", "config", "check", "--strict", directory / "Config.json")
    assert "ok" in told, told


def repackaged(file: Path, version: str) -> Path:
    """The same Debian package with another version."""
    unpacked, made = WORKING / f"debian-{version}", WORKING / f"jitney_{version}_amd64.deb"
    shutil.rmtree(unpacked, ignore_errors=True)
    ran("dpkg-deb", "--raw-extract", file, unpacked)
    control = unpacked / "DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", f"Version: {version}", control.read_text(), flags=re.MULTILINE))
    ran("dpkg-deb", "--root-owner-group", "--build", unpacked, made)
    return made


def serves(system: System, bodies: list[str], expected: list[str]) -> None:
    """Starts the unit's command with ports of this test, uses it, and stops it."""
    amqp, http = free_ports(2)
    settings = system.path("/etc/jitney/jitney.env")
    text = re.sub(r"^JITNEY_AMQP=.*$", f"JITNEY_AMQP=127.0.0.1:{amqp}", settings.read_text(), flags=re.MULTILINE)
    settings.write_text(re.sub(r"^JITNEY_HTTP=.*$", f"JITNEY_HTTP=127.0.0.1:{http}", text, flags=re.MULTILINE))
    config = system.path("/etc/jitney/Config.json")
    config.write_text(config.read_text().replace('{"Name": "jitney"}', '{"Name": "jitney", "Queues": [{"Name": "orders"}]}'))
    system.start()
    try:
        key = system.path("/var/lib/jitney/root.key").read_text().strip()
        found = sends_and_receives(amqp, key, "orders", bodies)
        assert found == expected, found
        system.stop()
    finally:
        system.close()


def is_private(system: System, name: str) -> bool:
    """Its owner is root, its group jitney, and others cannot read it."""
    group = int(system.run("id", "-g", "jitney"))
    state = system.path(name).stat()
    return (state.st_uid, state.st_gid, state.st_mode & 0o777) == (0, group, 0o640)


def the_debian_package_is_installed_upgraded_and_removed(_: object) -> None:
    file = DIST / f"jitney_{VERSION}-1_amd64.deb"
    told = ran("dpkg-deb", "--field", file)
    for line in ("Package: jitney", "Architecture: amd64", "Depends: adduser", f"Version: {VERSION}-1"):
        assert line in told.splitlines(), told
    system = System(HERE / "target/debian", WORKING / "debian")
    system.run("dpkg", "--install", system.bring(file))
    assert system.run("/usr/bin/jitney", "--version") == f"jitney {VERSION}\n"
    assert is_private(system, "/etc/jitney/Config.json") and is_private(system, "/etc/jitney/jitney.env")
    assert system.path("/etc/systemd/system/multi-user.target.wants/jitney.service").is_symlink(), "it is not enabled"
    for name in ("man/man1/jitney.1.gz", "bash-completion/completions/jitney", "doc/jitney/licences.txt", "doc/jitney/copyright"):
        assert system.path(f"/usr/share/{name}").is_file(), name
    serves(system, ["first"], ["first"])

    # What the machine has set stays, and so do its messages.
    settings = system.path("/etc/jitney/jitney.env").read_text()
    system.run("dpkg", "--install", "--force-confold", system.bring(repackaged(file, f"{VERSION}-2")))
    assert system.run("dpkg-query", "--show", "--showformat=${Version} ${db:Status-Status}", "jitney") == f"{VERSION}-2 installed"
    assert system.path("/etc/jitney/jitney.env").read_text() == settings
    assert is_private(system, "/etc/jitney/jitney.env")
    serves(system, ["second"], ["first", "second"])

    system.run("dpkg", "--remove", "jitney")
    assert not system.path("/usr/bin/jitney").exists() and system.path("/etc/jitney/jitney.env").exists()
    assert any(system.path("/var/lib/jitney").iterdir()), "the messages are gone"
    system.run("dpkg", "--purge", "jitney")
    left = [str(file) for place in ("etc", "var/lib", "usr/share/doc", "usr/share/man") for file in (system.root / place).rglob("*jitney*")]
    left = [each for each in left if "/dpkg/" not in each]
    assert not left, left


def the_rpm_package_is_installed_upgraded_and_erased(_: object) -> None:
    file = DIST / f"jitney-{VERSION}-1.x86_64.rpm"
    system = System(HERE / "target/debian", WORKING / "rpm")
    package = system.bring(file)
    told = system.run("rpm", "--query", "--info", "--requires", "--configfiles", "--package", package)
    for line in ("License     : MIT OR Apache-2.0", "Architecture: x86_64", "/usr/sbin/useradd", "/etc/jitney/jitney.env"):
        assert line in told, told
    scripts = system.run("rpm", "--query", "--scripts", "--package", package)
    for kind in ("preinstall", "postinstall", "preuninstall", "postuninstall"):
        assert f"{kind} scriptlet" in scripts, scripts
    other = system.bring(DIST / f"jitney-{VERSION}-1.aarch64.rpm")
    assert "Architecture: aarch64" in system.run("rpm", "--query", "--info", "--package", other)
    # Its database does not know what Debian's packages bring.
    system.run("rpm", "--install", "--nodeps", package)
    assert system.run("/usr/bin/jitney", "--version") == f"jitney {VERSION}\n"
    assert is_private(system, "/etc/jitney/Config.json") and is_private(system, "/etc/jitney/jitney.env")
    system.run("rpm", "--verify", "--nodeps", "--nogroup", "jitney")
    serves(system, ["first"], ["first"])
    settings = system.path("/etc/jitney/jitney.env").read_text()
    system.run("rpm", "--upgrade", "--nodeps", "--force", package)
    assert system.path("/etc/jitney/jitney.env").read_text() == settings
    serves(system, ["second"], ["first", "second"])
    system.run("rpm", "--erase", "jitney")
    assert not system.path("/usr/bin/jitney").exists()
    assert any(system.path("/var/lib/jitney").iterdir()), "the messages are gone"


def the_unit_is_valid_and_restricted(_: object) -> None:
    system = System(HERE / "target/debian", WORKING / "unit")
    system.run("dpkg", "--install", system.bring(DIST / f"jitney_{VERSION}-1_amd64.deb"))
    unit = next(system.path(place) / UNIT for place in ("lib/systemd/system", "usr/lib/systemd/system") if (system.path(place) / UNIT).exists())
    assert unit.read_text() == (ROOT / "packaging" / UNIT).read_text()
    told = system.run("systemd-analyze", "verify", "--man=no", UNIT)
    assert UNIT not in told, told
    system.run("systemd-analyze", "security", "--no-pager", "--offline=true", f"--threshold={EXPOSURE_MAX}", UNIT)


def digests(archive: tarfile.TarFile) -> None:
    """Every blob is what its name says."""
    blobs = [each for each in archive if each.name.startswith("blobs/sha256/")]
    assert blobs
    for each in blobs:
        assert hashlib.file_digest(archive.extractfile(each), "sha256").hexdigest() == each.name.rsplit("/", 1)[1], each.name


def the_image_is_for_both_processors(_: object) -> None:
    with tarfile.open(DIST / f"jitney-{VERSION}-image.tar") as archive:
        def read(descriptor: dict) -> dict:
            content = archive.extractfile("blobs/" + descriptor["digest"].replace(":", "/")).read()
            assert len(content) == descriptor["size"], descriptor
            return json.loads(content)

        digests(archive)
        assert json.load(archive.extractfile("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
        top, = json.load(archive.extractfile("index.json"))["manifests"]
        assert top["annotations"]["org.opencontainers.image.ref.name"] == VERSION
        images = read(top)["manifests"]
        configs = [read(read(image)["config"]) for image in images]
        assert [config["architecture"] for config in configs] == [image["platform"]["architecture"] for image in images] == ["amd64", "arm64"]
    for machine, (architecture, _number) in PROCESSORS.items():
        with tarfile.open(DIST / f"jitney-{VERSION}-image-{architecture}.tar") as archive:
            digests(archive)
            manifest, = json.load(archive.extractfile("manifest.json"))
            assert manifest["RepoTags"] == [f"jitney:{VERSION}"], manifest
            assert json.load(archive.extractfile(manifest["Config"]))["architecture"] == architecture
            layer, = manifest["Layers"]
            with tarfile.open(fileobj=archive.extractfile(layer)) as files:
                assert files.extractfile("usr/bin/jitney").read() == binary_of(machine).read_bytes(), machine


def the_image_is_what_skopeo_copies(_: object) -> None:
    system = System(HERE / "target/debian", WORKING / "skopeo")
    for architecture, _number in PROCESSORS.values():
        one = system.bring(DIST / f"jitney-{VERSION}-image-{architecture}.tar")
        for transport in ("docker-archive", "oci-archive"):
            system.run("skopeo", "copy", "--insecure-policy", f"{transport}:{one}", f"dir:/tmp/{transport}-{architecture}")
    both = system.bring(DIST / f"jitney-{VERSION}-image.tar")
    told = system.run("skopeo", "copy", "--all", "--insecure-policy", f"oci-archive:{both}", "dir:/tmp/both")
    assert "Copying 2 of 2 images" in told, told


def the_image_keeps_the_contract(_: object) -> None:
    """The suite of the contract, with the image that is shipped."""
    work = WORKING / "contract"
    work.mkdir()
    environment = {**os.environ, "JITNEY_IMAGE": str(DIST / f"jitney-{VERSION}-image-amd64.tar"), "JITNEY_WORK": str(work)}
    told = ran(HERE.parent / "container/run", env=environment)
    assert re.search(r"^\d+ passed, 0 failed$", told, re.MULTILINE), told


def the_list_of_packages_is_complete(_: object) -> None:
    text = (DIST / f"jitney-{VERSION}.cdx.json").read_text()
    wrong = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
    assert wrong is None, wrong
    document = json.loads(text)
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    locked = {(package["name"], package["version"]): package.get("checksum") for package in lock}
    notices = (DIST / f"jitney-{VERSION}-licences.txt").read_text()
    for part in document["components"]:
        checksum = locked[part["name"], part["version"]]
        assert [each["content"] for each in part.get("hashes", [])] == ([checksum] if checksum else []), part
        assert not checksum or f"  {part['name']} {part['version']}: " in notices, part
    assert {"tokio", "rustls", "aws-lc-sys"} <= {part["name"] for part in document["components"]}
    for word in ("Rust's standard library", "musl", "preact"):
        assert word in notices, word


def the_formula_leads_to_the_files(_: object) -> None:
    url = DIST.as_uri()
    text = ran(ROOT / "packaging/formula", url, DIST)
    found = re.findall(r'url "([^"]+)"\n\s+sha256 "(\w+)"', text)
    assert len(found) == len(PROCESSORS) and "@" not in text, text
    for address, checksum in found:
        file = Path(address.removeprefix("file://"))
        assert hashlib.sha256(file.read_bytes()).hexdigest() == checksum, address
        with tarfile.open(file) as archive:
            names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
        for used in re.findall(r'install "([^"]+)"', text):
            assert used in names, used


TESTS = [
    every_file_has_its_checksum,
    binaries_are_static_stripped_and_small,
    the_binary_for_arm_serves,
    the_tar_file_has_all_that_packages_have,
    the_debian_package_is_installed_upgraded_and_removed,
    the_rpm_package_is_installed_upgraded_and_erased,
    the_unit_is_valid_and_restricted,
    the_image_is_for_both_processors,
    the_image_is_what_skopeo_copies,
    the_image_keeps_the_contract,
    the_list_of_packages_is_complete,
    the_formula_leads_to_the_files,
]


def main() -> int:
    shutil.rmtree(WORKING, ignore_errors=True)
    WORKING.mkdir(parents=True)
    return checks.run(TESTS, None, [], sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
