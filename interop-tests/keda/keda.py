"""Runs KEDA's scaler for Service Bus, as it is shipped, against a broker that looks like the service.

KEDA's module is large, and its scalers are one package. The suite copies the packages that this scaler needs out of Go's cache, and of the
package of the scalers the file of this one, its tests and what all scalers share: no file is changed, others are not there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / each) for each in ("go-samples", "")]
import secured  # noqa: E402
from outcomes import Outcomes  # noqa: E402
from provider import ASSERTION, Provider  # noqa: E402

MODULE = "github.com/kedacore/keda/v2"
# Its last number is the suffix of a private cloud, to KEDA.
ADDRESS = "127.0.0.30"
SCALERS = "pkg/scalers"
# Of the scalers' package: this one with its tests, what all share, and two in which constants stand that it uses.
KEPT = ["azure_servicebus_scaler.go", "azure_servicebus_scaler_test.go", "scaler.go", "azure_queue_scaler.go", "rabbitmq_scaler.go"]
# Of KEDA's own tests those of this scaler; one of them goes to the service when it is told one.
OWN = ["TestParseServiceBusMetadata", "TestGetServiceBusAdminClientIsCached", "TestGetServiceBusLength", "TestAzServiceBusGetMetricSpecForScaling"]

# The last of its three cases names no namespace, and no service can be found; the two others must be right.
BROKEN = "TestGetServiceBusLength"
BROKEN_SAYS = ["Expected success but got error: no Host in request URL", "Expected 1 message, got -1"]


def work() -> Path:
    return Path(os.environ["JITNEY_WORK"])


def build() -> Path:
    """The scaler's tests and the harness, as one program."""
    pinned = re.search(rf"{re.escape(MODULE)} (v\S+)", (HERE / "go.mod").read_text())
    assert pinned, "go.mod pins no version"
    answer = subprocess.run(["go", "mod", "download", "-json", f"{MODULE}@{pinned[1]}"], cwd=HERE, capture_output=True, text=True, check=True)
    shipped, module = Path(json.loads(answer.stdout)["Dir"]), work() / "module"
    shutil.rmtree(module, ignore_errors=True)
    for name in "apis", "pkg", "version":
        shutil.copytree(shipped / name, module / name)
    for name in "go.mod", "go.sum":
        shutil.copy(shipped / name, module / name)
    for path in [module, *module.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    for path in (module / SCALERS).glob("*.go"):
        if path.name not in KEPT:
            path.unlink()
    shutil.copy(HERE / "harness" / "scaler_test.go", module / SCALERS / "harness_test.go")
    program = work() / "scaler.test"
    subprocess.run(["go", "test", "-c", "-o", program, f"./{SCALERS}"], cwd=module, check=True)
    return program


def main() -> int:
    program = build()
    house = secured.described(work() / "secured", ADDRESS)
    certs = house.directory / "certs"
    provider = Provider(ADDRESS, str(certs / "server.pem"), str(certs / "server.key"))
    house.add("--oidc-issuer", provider.name, "--oidc-ca", house.authority)
    house.broker.start()
    assertion = house.directory / "assertion"
    assertion.write_text(ASSERTION)
    namespace, _, suffix = ADDRESS.rpartition(".")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AZURE_")}
    identity = {name: value for name, value in provider.environment().items() if name != "AZURE_CLIENT_SECRET"}
    answer = subprocess.run(
        [program, "-test.v"], cwd=work() / "module" / SCALERS, text=True, errors="replace", timeout=200,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={
            **environment, **identity,
            "AZURE_FEDERATED_TOKEN_FILE": str(assertion),
            "SERVICEBUS_CONNECTION_STRING": house.connection_string(),
            "LISTENER_CONNECTION_STRING": house.connection_string("listener", secured.LISTENER_KEY),
            "WRONG_CONNECTION_STRING": house.connection_string(secret=secured.key("wrong")),
            "NAMESPACE": namespace, "SUFFIX": suffix,
            # Whom to trust.
            "SSL_CERT_FILE": house.authority,
        },
    )
    print(answer.stdout)
    # One of the tests prints numbers in front of that.
    results = {name: word == "PASS" for word, name in re.findall(r"^\d*--- (PASS|FAIL|SKIP): (\S+)", answer.stdout, re.MULTILINE)}
    outcomes = Outcomes()
    for name in OWN:
        if name not in results:
            outcomes.fail(f"{name} did not run")
    broken = re.findall(r"^ +azure_servicebus_scaler_test\.go:\d+: (Expected .*)", answer.stdout, re.MULTILINE) == BROKEN_SAYS
    if broken and not results.pop(BROKEN, True):
        outcomes.program(f"KEDA's own {BROKEN}", "not offered", "names no namespace in its last case; the two others pass")
    for name, is_good in results.items():
        if name in OWN:
            outcomes.program(f"KEDA's own {name}", "pass" if is_good else "fail")
        else:
            outcomes.test(name, is_good)
    if answer.returncode and not outcomes.failed and not broken:
        outcomes.fail(f"exit code {answer.returncode}")
    if provider.given == 0:
        outcomes.fail("no token was asked for")
    if complaint := secured.finish(house):
        outcomes.fail(complaint)
    return outcomes.finish()


if __name__ == "__main__":
    sys.exit(main())
