#!/usr/bin/env python3
"""Runs the tests of an example as its users do, and then what its helper must bear: several processes, a test process
that is killed, no program, and one that does not start. `examples.py EXAMPLE [WORD…]`; a WORD chooses checks by name.

The program that an example starts is a script. It becomes the broker, whose log is copied to a file named after the
process.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import checks  # noqa: E402
from broker import WORK, binary  # noqa: E402

# Compilers and JVMs start slowly on a busy machine.
SECONDS = 300
# A broker stops at once.
STOP_SECONDS = 20


@dataclass
class Example:
    """An example: how its tests are run, and what they print."""

    # Commands that install and compile, before the first run.
    prepare: list[list[str]]
    command: list[str]
    # What is printed if all have passed, and how many there are.
    passed: str
    tests: int = 3
    # Processes that run tests, each of which has a broker.
    processes: int = 1
    # The tests in several processes: further arguments, and the number of brokers.
    divided: tuple[list[str], int] | None = None
    environment: dict[str, str] = field(default_factory=dict)


MAVEN = ["mvn", "--batch-mode", "--strict-checksums"]
CSRUN = os.environ.get("CSRUN")
DOTNET = [CSRUN, ".", "--"] if CSRUN else ["dotnet", "run", "--project", "dotnet.csproj", "--"]
EXAMPLES = {
    "pytest": Example(
        [], [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"], r"^=+ 3 passed", divided=(["-n", "2"], 2),
        environment={"PYTHONDONTWRITEBYTECODE": "1"},
    ),
    "junit": Example(
        [[*MAVEN, "--quiet", "test-compile"]], [*MAVEN, "test"], r"Tests run: 3, Failures: 0, Errors: 0, Skipped: 0$",
        divided=(["-DforkCount=2"], 2),
    ),
    # A process for each package.
    "go": Example(
        [["go", "vet", "./..."]], ["go", "test", "-count=1", "./..."], r"^ok .*example/news.*\n^ok .*example/orders",
        processes=2, environment={"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"},
    ),
    # Workers share the broker of the main process.
    "vitest": Example(
        [["npm", "ci", "--silent", "--no-audit", "--no-fund"], ["npx", "tsc"]], ["npx", "vitest", "run"],
        r"^ +Tests +3 passed \(3\)", environment={"NO_COLOR": "1"},
    ),
    # The stand-ins of three frameworks, one after the other, in one process.
    "dotnet": Example(
        [], DOTNET, r"(^ok .*\n){4}", tests=4, processes=3,
        environment={"DOTNET_SYSTEM_NET_DISABLEIPV6": "1", "DOTNET_CLI_TELEMETRY_OPTOUT": "1", "DOTNET_NOLOGO": "1"},
    ),
}


class Run:
    """The tests of an example, with a directory of their own for the logs of the brokers."""

    def __init__(self, name: str, check: str):
        self.example = EXAMPLES[name]
        self.directory = HERE / name
        self.work = Path(os.environ.get("JITNEY_WORK", WORK / f"example-{name}")).resolve() / check
        shutil.rmtree(self.work, ignore_errors=True)
        (self.work / "logs").mkdir(parents=True)
        (self.work / "bin").mkdir()
        self.program = self.work / "bin" / "jitney"
        log = f"'{self.work}/logs/'$$"
        # `tee -p` continues where the reader of the log has gone.
        become = f"exec '{binary().resolve()}' \"$@\" 2> >(exec tee -p {log} >&2)"
        self.program.write_text(f"#!/bin/bash\n: >{log}\n{become}\n")
        self.program.chmod(0o755)

    def environment(self, **variables: str) -> dict[str, str]:
        """What a user has, with the program in PATH, and some variables."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("JITNEY_")}
        return {**kept, "PATH": f"{self.program.parent}:{kept['PATH']}", **self.example.environment, **variables}

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen:
        with (self.work / "output").open("wb") as output:
            return subprocess.Popen(
                [*self.example.command, *arguments], cwd=self.directory, env=self.environment(**variables),
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )

    def end(self, *arguments: str, **variables: str) -> tuple[int, str]:
        """Runs the tests to their end; returns the exit code and the output."""
        process = self.start(*arguments, **variables)
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise AssertionError(f"not finished after {SECONDS} s\n{self.output()}") from None
        return code, self.output()

    def output(self) -> str:
        text = (self.work / "output").read_text(errors="replace")
        return re.sub(r"\x1b\[[\d;]*m", "", text)

    def brokers(self) -> list[int]:
        return [int(file.name) for file in (self.work / "logs").iterdir()]

    def logged(self, operation: str) -> int:
        """How often the brokers did something that is in their logs."""
        return sum(file.read_text().count(f" {operation} actor=") for file in (self.work / "logs").iterdir())

    def check_that_all_have_stopped(self) -> None:
        try:
            wait_for(lambda: not any(map(runs, self.brokers())), STOP_SECONDS, "a broker is left behind")
        finally:
            for broker in filter(runs, self.brokers()):
                os.kill(broker, signal.SIGKILL)


def runs(pid: int) -> bool:
    """Whether a process is a broker that runs; the script that becomes it is none yet."""
    try:
        return Path(f"/proc/{pid}/exe").readlink() == binary().resolve()
    except OSError:
        return False


def listens(pid: int) -> bool:
    """Whether the script has become the broker, and that has a port."""
    try:
        held = {os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:
        return False
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    # The state 0A is LISTEN, and the tenth column has the inode.
    return runs(pid) and any(f"socket:[{row[9]}]" in held for row in rows if row[3] == "0A")


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def wait_for(condition: Callable[[], object], seconds: float, complaint: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{complaint} after {seconds:.0f} s"
        time.sleep(0.005)


def the_tests_pass(name: str) -> None:
    passes(Run(name, "passed"), EXAMPLES[name].processes)


def the_tests_pass_in_several_processes(name: str) -> None:
    arguments, processes = EXAMPLES[name].divided
    passes(Run(name, "divided"), processes, *arguments)


def passes(run: Run, processes: int, *arguments: str) -> None:
    """Checks that all tests pass, with a broker for each process and a namespace for each test, which are gone then."""
    code, output = run.end(*arguments)
    assert code == 0 and re.search(run.example.passed, output, re.MULTILINE), output
    assert len(run.brokers()) == processes, f"{len(run.brokers())} brokers were started"
    run.check_that_all_have_stopped()
    tests = run.example.tests
    assert run.logged("create_namespace") == tests, "a namespace was not created"
    wait_for(lambda: run.logged("delete_namespace") == tests, STOP_SECONDS, "a namespace was not deleted")


def a_broker_stops_with_a_test_process_that_is_killed(name: str) -> None:
    run = Run(name, "killed")
    process = run.start()
    try:
        wait_for(lambda: run.brokers() or process.poll() is not None, SECONDS, "no broker is started")
        assert run.brokers(), run.output()
        [broker] = run.brokers()[:1]
        tests = parent(broker)
        # It waits here, whatever it is about to do.
        os.kill(tests, signal.SIGSTOP)
        wait_for(lambda: listens(broker), STOP_SECONDS, "the broker has no ports")
        os.kill(tests, signal.SIGKILL)
        wait_for(lambda: not runs(broker), STOP_SECONDS, "the broker runs without its tests")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        run.check_that_all_have_stopped()


def an_absent_program_is_an_error_that_says_what_to_do(name: str) -> None:
    run = Run(name, "absent")
    code, output = run.end(JITNEY_BINARY=str(run.work / "nothing"))
    text = r"[Tt]here is no program .?jitney.? in PATH, nor where JITNEY_BINARY says"
    assert code != 0 and re.search(text, output), output
    assert not run.brokers(), "the program of PATH was started"


def a_failed_start_shows_the_log(name: str) -> None:
    run = Run(name, "refused")
    run.program.rename(run.program.with_name("another-name"))
    # An address that is none ends the start.
    code, output = run.end(JITNEY_BINARY=str(run.program.with_name("another-name")), JITNEY_AMQPS="nonsense")
    assert code != 0 and re.search(r"[Tt]he broker has not started", output), output
    assert "invalid value 'nonsense' for '--amqps" in output, output
    assert run.brokers(), "the program that JITNEY_BINARY names was not started"
    run.check_that_all_have_stopped()


TESTS = [
    the_tests_pass, the_tests_pass_in_several_processes, a_broker_stops_with_a_test_process_that_is_killed,
    an_absent_program_is_an_error_that_says_what_to_do, a_failed_start_shows_the_log,
]


def main() -> int:
    name, *words = sys.argv[1:]
    example = EXAMPLES[name]
    for command in example.prepare:
        subprocess.run(command, cwd=HERE / name, check=True, env={**os.environ, **example.environment})
    tests = [test for test in TESTS if example.divided or test is not the_tests_pass_in_several_processes]
    return checks.run(tests, name, [], words)


if __name__ == "__main__":
    sys.exit(main())
