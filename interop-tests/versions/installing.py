"""Installs a version of a client inside this directory, once, and tells how its program is started."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import secured  # noqa: E402

# What is installed and built, one directory for each version.
MADE = HERE / ".made"


@dataclass
class Client:
    """A version of a client, as clients.toml describes it."""

    group: str
    kind: str
    package: str
    version: str
    why: str
    # Arguments of the program: it runs once with each.
    variants: list[str] = field(default_factory=lambda: [""])
    quick: bool = False

    @property
    def directory(self) -> Path:
        """Where the program runs."""
        return MADE / f"{self.kind}-{self.version}"

    def pins(self) -> list[Path]:
        """The files that say what is installed: if one is changed, it is installed anew."""
        raise NotImplementedError

    def make(self) -> None:
        """Installs into the empty directory."""
        raise NotImplementedError

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return {}

    def install(self) -> None:
        MADE.mkdir(exist_ok=True)
        wanted = "".join(path.read_text() for path in self.pins())
        mark = self.directory / "made"
        # Suites run at the same time.
        with open(MADE / f"{self.directory.name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if mark.is_file() and mark.read_text() == wanted:
                return
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory.mkdir()
            self.make()
            mark.write_text(wanted)


def run(*command: str | Path, **options) -> None:
    """Runs an installation; what it prints goes to the suite's log."""
    subprocess.run([str(word) for word in command], check=True, stdin=subprocess.DEVNULL, **options)


class Python(Client):
    @property
    def requirements(self) -> Path:
        return HERE / "python" / f"{self.package}-{self.version}.txt"

    @property
    def directory(self) -> Path:
        return MADE / f"python-{self.package}-{self.version}"

    def pins(self) -> list[Path]:
        return [self.requirements]

    def make(self) -> None:
        run(sys.executable, "-m", "venv", self.directory / "venv")
        run(self.directory / "venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", self.requirements)

    def command(self) -> list[str]:
        return [str(self.directory / "venv/bin/python"), str(HERE / "python" / ("kombu_client.py" if self.package == "kombu" else "client.py"))]

    def environment(self) -> dict[str, str]:
        found = {"PYTHONDONTWRITEBYTECODE": "1"}
        if self.package == "kombu":
            # Its transport wants a name of the service's, which the site leads to the broker.
            found |= {
                "PYTHONPATH": str(HERE.parent / "frameworks/site"), "SUITE_HOST": secured.SERVICE_NAME,
                "SUITE_ADDRESS": os.environ["JITNEY_SECURED_ADDRESS"],
                "KOMBU_URL": f"azureservicebus://{secured.ROOT}:{secured.ROOT_KEY}@{secured.SERVICE_NAME}",
            }
        return found


class JavaScript(Client):
    """package.json and package-lock.json of the version are installed in a copy of their directory."""

    @property
    def source(self) -> Path:
        return HERE / "javascript" / f"{self.package.rpartition('/')[2]}-{self.version}"

    @property
    def directory(self) -> Path:
        return MADE / f"javascript-{self.source.name}"

    def pins(self) -> list[Path]:
        return [self.source / "package.json", self.source / "package-lock.json"]

    def make(self) -> None:
        for path in self.pins():
            shutil.copy(path, self.directory)
        run("npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", cwd=self.directory)

    def command(self) -> list[str]:
        name = "rhea-client.js" if self.package == "rhea" else "client1.js" if self.version.startswith("1.") else "client.js"
        return ["node", "--disable-warning=DEP0123", str(HERE / "javascript" / name)]


class Go(Client):
    """A program of one module file for each version: pins/VERSION.mod."""

    @property
    def source(self) -> Path:
        return HERE / "go" / SOURCES[self.package]

    @property
    def directory(self) -> Path:
        return MADE / f"go-{self.source.name}-{self.version}"

    def pins(self) -> list[Path]:
        return [self.source / "main.go", self.source / "pins" / f"{self.version}.mod", self.source / "pins" / f"{self.version}.sum"]

    def make(self) -> None:
        run(
            "go", "build", f"-modfile=pins/{self.version}.mod", "-o", self.directory / "program", ".", cwd=self.source,
            env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"},
        )

    def command(self) -> list[str]:
        return [str(self.directory / "program")]


class Java(Client):
    """A Maven project for all versions: the version is a property."""

    @property
    def source(self) -> Path:
        return HERE / "java" / SOURCES[self.package]

    @property
    def rules(self) -> Path:
        """How it has rules; the client for rules over AMQP came with 7.13."""
        numbers = [int(number) for number in self.version.split(".")]
        return self.source / ("rules-manager" if numbers >= [7, 13] else "rules-administration")

    @property
    def directory(self) -> Path:
        return MADE / f"java-{self.source.name}-{self.version}"

    def pins(self) -> list[Path]:
        return [self.source / "pom.xml", *sorted([*self.source.glob("src/*.java"), *self.rules.glob("*.java"), *self.source.glob("../shared/*.java")])]

    def make(self) -> None:
        # Maven checks what it downloads; jars go into `lib`, so that one JVM is enough to run them.
        run(
            "mvn", "--batch-mode", "--quiet", "--strict-checksums", f"-Dclient.version={self.version}", f"-Dclient.made={self.directory}",
            f"-Dclient.rules={self.rules}", "compile", "dependency:copy-dependencies", cwd=self.source,
        )

    def command(self) -> list[str]:
        trust = f"-Djavax.net.ssl.trustStore={os.environ['JITNEY_SECURED_CERTIFICATES']}/ca.p12"
        return [
            "java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", trust, "-Djavax.net.ssl.trustStorePassword=changeit",
            "-cp", f"{self.directory}/classes:{self.directory}/lib/*", "Main",
        ]


class Jms(Java):
    """Qpid JMS: versions before 2 have the packages of Java EE."""

    def make(self) -> None:
        text = (self.source / "src/Main.java").read_text()
        if int(self.version.split(".")[0]) < 2:
            text = text.replace("import jakarta.jms.", "import javax.jms.")
        (self.directory / "src").mkdir()
        (self.directory / "src/Main.java").write_text(text)
        super().make()


# The sources for Java and Go, by package.
SOURCES = {
    "com.azure:azure-messaging-servicebus": "messaging",
    "com.microsoft.azure:azure-servicebus": "servicebus",
    "org.apache.qpid:qpid-jms-client": "jms",
    "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus": "azservicebus",
    "github.com/Azure/azure-service-bus-go": "servicebus",
}
KINDS = {"python": Python, "javascript": JavaScript, "go": Go, "java": Java, "jms": Jms}
