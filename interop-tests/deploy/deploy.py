#!/usr/bin/env python3
"""Checks docs/deploy: the chart by helm, what it makes of several values by kubeconform, and the arguments and paths by the broker;
the composition by its schema, and workflows by actionlint."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import checks  # noqa: E402
from broker import ROOT, binary  # noqa: E402

CHART = ROOT / "docs/deploy/helm/jitney"
MANIFEST = ROOT / "docs/deploy/kubernetes/jitney.yaml"
SINGLE = ROOT / "docs/deploy/kubernetes/single.yaml"
COMPOSITION = ROOT / "docs/deploy/compose/docker-compose.yml"
WORKFLOWS = [ROOT / ".github/workflows/release.yml", ROOT / "docs/deploy/github-actions/test.yml"]
SCHEMAS = HERE / "target/schemas/kubernetes_validate/kubernetes-json-schema"
# The oldest and the newest version of Kubernetes that the objects are checked for.
VERSIONS = ("1.30.0", "1.37.0")
# The kinds of objects that the chart makes, and those of one broker.
KINDS = {"ConfigMap", "Deployment", "PodDisruptionBudget", "Service", "ServiceAccount"}
KINDS_OF_SINGLE = {"ConfigMap", "Service", "StatefulSet"}
# Values that change each part of the chart.
FULL = {
    "replicas": 5,
    "image": {"repository": "registry.example/jitney", "tag": "1.2.3", "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "pull"}],
    "store": {"secretName": "other", "secretKey": "dsn", "ca": {"secretName": "store-ca", "secretKey": "root.pem"}},
    "tls": {"secretName": "certificate"},
    "operatorKey": {"secretName": "operator", "secretKey": "text"},
    "service": {"type": "LoadBalancer", "annotations": {"example.com/class": "internal"}, "loadBalancerSourceRanges": ["10.0.0.0/8"]},
    "extraArgs": ["--metrics-entities=10"],
    "disruptionBudget": {"maxUnavailable": "50%"},
    "podAnnotations": {"example.com/note": "1"},
    "nodeSelector": {"disk": "none"},
    "tolerations": [{"key": "brokers", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "jitney"}}}},
    ]}},
}


def helm(*words: object) -> str:
    done = subprocess.run([str(HERE / "target/helm"), *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, f"helm {words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def made(values: dict | None = None, version: str = VERSIONS[-1], name: str = "jitney") -> str:
    """The chart's output."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(values or {}, file)
        file.flush()
        return helm("template", name, CHART, "--kube-version", version, "--values", file.name)


def objects(text: str) -> list[dict]:
    return [found for found in yaml.safe_load_all(text) if found]


def deployment(text: str) -> dict:
    return next(found for found in objects(text) if found["kind"] in ("Deployment", "StatefulSet"))


def container(text: str) -> dict:
    return deployment(text)["spec"]["template"]["spec"]["containers"][0]


def schemas(version: str) -> Path:
    """The package's schemas name each other by addresses of the web; kubeconform gets copies that name files."""
    source, target = SCHEMAS / f"v{version}-local-strict", HERE / "target" / f"schemas-{version}"
    target.mkdir(exist_ok=True)
    for file in source.glob("*-*.json"):
        if file.name.split("-")[0] in {kind.lower() for kind in KINDS | KINDS_OF_SINGLE}:
            copy_schema(file, target)
    copy_schema(source / "_definitions.json", target)
    return target


def copy_schema(file: Path, target: Path) -> None:
    document = json.loads(file.read_text().replace('"/api/_definitions.json', '"_definitions.json'))
    document.pop("$id", None)
    (target / file.name).write_text(json.dumps(document))


def conform(text: str, version: str) -> subprocess.CompletedProcess:
    location = f"{schemas(version)}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    command = [str(HERE / "target/kubeconform"), "-strict", "-summary", "-output", "json", "-schema-location", location, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)


def the_chart_passes_helm_lint(_: object) -> None:
    helm("lint", "--strict", "--kube-version", VERSIONS[-1], CHART)


def the_manifest_is_what_the_chart_makes(_: object) -> None:
    assert MANIFEST.read_text() == manifest(), "run `interop-tests/deploy/run write`"


def manifest() -> str:
    head = "# Three servers over PostgreSQL. The chart's output with its default values: interop-tests/deploy/run write\n"
    return head + made()


def the_objects_conform(_: object) -> None:
    for version in VERSIONS:
        for text, kinds in ((MANIFEST.read_text(), KINDS), (made(FULL, version, "bus"), KINDS), (SINGLE.read_text(), KINDS_OF_SINGLE)):
            found = objects(text)
            assert {each["kind"] for each in found} == kinds, found
            done = conform(text, version)
            assert done.returncode == 0, done.stdout + done.stderr
            assert json.loads(done.stdout)["summary"]["valid"] == len(found), done.stdout


def an_object_that_does_not_conform_is_found(_: object) -> None:
    for before, after in (("imagePullPolicy", "imagePulPolicy"), ("failureThreshold: 60", "failureThreshold: sixty"), ("replicas: 3", "replicas: true")):
        text = MANIFEST.read_text().replace(before, after)
        assert text != MANIFEST.read_text()
        assert conform(text, VERSIONS[-1]).returncode != 0, after


def selectors_ports_and_volumes_fit_together(_: object) -> None:
    for text in (MANIFEST.read_text(), made(FULL, name="bus"), SINGLE.read_text()):
        template = deployment(text)["spec"]["template"]
        labels, own = template["metadata"]["labels"], container(text)
        ports = {port["name"] for port in own["ports"]}
        for found in objects(text):
            selector = found.get("spec", {}).get("selector", {})
            selector = selector.get("matchLabels", selector)
            assert selector.items() <= labels.items(), found["metadata"]["name"]
            if found["kind"] == "Service":
                assert selector and {port["targetPort"] for port in found["spec"]["ports"]} <= ports, found
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert own[probe]["httpGet"]["port"] in ports
        claims = deployment(text)["spec"].get("volumeClaimTemplates", [])
        volumes = {volume["name"] for volume in template["spec"]["volumes"]} | {claim["metadata"]["name"] for claim in claims}
        assert {mount["name"] for mount in own["volumeMounts"]} == volumes
        names = {found["metadata"]["name"] for found in objects(text) if found["kind"] == "ConfigMap"}
        assert {volume["configMap"]["name"] for volume in template["spec"]["volumes"] if "configMap" in volume} == names


def servers_run_without_rights(_: object) -> None:
    for text in (made(FULL), SINGLE.read_text()):
        spec, own = deployment(text)["spec"]["template"]["spec"], container(text)
        assert spec["automountServiceAccountToken"] is False and spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert own["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


def one_broker_has_its_volume_alone(_: object) -> None:
    found = deployment(SINGLE.read_text())
    assert found["kind"] == "StatefulSet" and found["spec"]["replicas"] == 1, found
    claim, = found["spec"]["volumeClaimTemplates"]
    mount = next(each for each in container(SINGLE.read_text())["volumeMounts"] if each["name"] == claim["metadata"]["name"])
    assert f"--data-dir={mount['mountPath']}" in container(SINGLE.read_text())["args"], mount


def the_url_of_the_store_is_a_secret_only(_: object) -> None:
    text = made(FULL)
    store = next(each for each in container(text)["env"] if each["name"] == "JITNEY_STORE")
    assert store["valueFrom"] == {"secretKeyRef": {"name": "other", "key": "dsn"}}
    assert "postgres://" not in text and not any(word.startswith("--store=") for word in container(text)["args"])


def another_configuration_reaches_the_servers_and_restarts_none(_: object) -> None:
    config = {"UserConfig": {"Namespaces": [{"Name": "other", "Queues": [{"Name": "queue.2"}]}]}}
    text = made({"config": config})
    assert deployment(text) == deployment(made())
    found = next(each for each in objects(text) if each["kind"] == "ConfigMap")["data"]["Config.json"]
    assert json.loads(found)["UserConfig"]["Namespaces"][0]["Queues"] == [{"Name": "queue.2"}]
    # A file that is mounted by itself would stay as it was.
    mount = next(each for each in container(text)["volumeMounts"] if each["name"] == "config")
    assert "subPath" not in mount and f"--config={mount['mountPath']}/Config.json" in container(text)["args"], mount


def the_broker_takes_the_configuration(_: object) -> None:
    maps = [found for path in (MANIFEST, SINGLE) for found in objects(path.read_text()) if found["kind"] == "ConfigMap"]
    texts = [found["data"]["Config.json"] for found in maps] + [
        (ROOT / path).read_text() for path in ("docs/deploy/compose/Config.json", "packaging/Config.json")
    ] + [yaml.safe_load(WORKFLOWS[1].read_text())["jobs"]["test"]["services"]["jitney"]["env"]["CONFIG_JSON"]]
    for config in texts:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(config)
            file.flush()
            done = subprocess.run([binary(), "config", "check", "--strict", file.name], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def the_broker_answers_the_probes(_: object) -> None:
    for own in (container(MANIFEST.read_text()), container(SINGLE.read_text())):
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            path = own[probe]["httpGet"]["path"]
            with urllib.request.urlopen(f"http://127.0.0.1:{os.environ['JITNEY_HTTP_PORT']}{path}", timeout=10) as answer:
                assert answer.status == 200, path


def the_broker_has_the_arguments_and_variables(_: object) -> None:
    told = subprocess.run([binary(), "serve", "--help"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"--[a-z][a-z-]+", told)) | set(re.findall(r"\[env: (\w+)", told))
    wanted: set[str] = set()
    for own in (container(made(FULL)), container(SINGLE.read_text())):
        wanted |= {word.split("=")[0] for word in own["args"] if word.startswith("--")}
        wanted |= {each["name"] for each in own.get("env", []) if each["name"].startswith("JITNEY_")}
    wanted |= set(re.findall(r"^#?(JITNEY_\w+)=", (ROOT / "packaging/jitney.env").read_text(), re.MULTILINE))
    assert wanted <= known, f"jitney serve has no {sorted(wanted - known)}"


def the_composition_has_its_form(_: object) -> None:
    def complaint(file: Path) -> str:
        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", file]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.stdout if done.returncode else ""

    assert not complaint(COMPOSITION), complaint(COMPOSITION)
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        file.write(COMPOSITION.read_text().replace("cap_drop:", "cap_drops:"))
        file.flush()
        assert "cap_drops" in complaint(Path(file.name))


def the_composition_publishes_what_the_image_has(_: object) -> None:
    broker = yaml.safe_load(COMPOSITION.read_text())["services"]["jitney"]
    ports = {each.rsplit(":", 1)[1] for each in broker["ports"]}
    volumes = {each.split(":")[1] for each in broker["volumes"]}
    sys.path.insert(0, str(ROOT / "packaging"))
    import image

    assert {f"{port}/tcp" for port in ports} <= set(image.CONFIG["ExposedPorts"])
    assert set(image.CONFIG["Volumes"]) <= volumes, volumes
    assert "/ServiceBus_Emulator/ConfigFiles/Config.json" in volumes


def the_workflows_have_their_form(_: object) -> None:
    def lint(text: str) -> subprocess.CompletedProcess:
        return subprocess.run([str(HERE / "target/actionlint"), "-shellcheck=", "-pyflakes=", "-"], input=text, capture_output=True, text=True)

    for file in WORKFLOWS:
        done = lint(file.read_text())
        assert done.returncode == 0, f"{file}\n{done.stdout}"
        assert lint(file.read_text().replace("runs-on:", "runs-at:")).returncode != 0


def the_release_is_what_make_makes(_: object) -> None:
    steps = yaml.safe_load(WORKFLOWS[0].read_text())["jobs"]["release"]["steps"]
    assert "make dist" in [step.get("run") for step in steps]
    assert "\nRUN make dist\n" in (ROOT / "Containerfile").read_text()


def versions_are_the_same_everywhere(_: object) -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    images = [container(SINGLE.read_text())["image"], yaml.safe_load(COMPOSITION.read_text())["services"]["jitney"]["image"]]
    assert chart["appVersion"] == version and {each.split(":")[1] for each in images} == {version}, (chart["appVersion"], images)


TESTS = [
    the_chart_passes_helm_lint,
    the_manifest_is_what_the_chart_makes,
    the_objects_conform,
    an_object_that_does_not_conform_is_found,
    selectors_ports_and_volumes_fit_together,
    servers_run_without_rights,
    one_broker_has_its_volume_alone,
    the_url_of_the_store_is_a_secret_only,
    another_configuration_reaches_the_servers_and_restarts_none,
    the_broker_takes_the_configuration,
    the_broker_answers_the_probes,
    the_broker_has_the_arguments_and_variables,
    the_composition_has_its_form,
    the_composition_publishes_what_the_image_has,
    the_workflows_have_their_form,
    the_release_is_what_make_makes,
    versions_are_the_same_everywhere,
]


def main() -> int:
    if sys.argv[1:] == ["write"]:
        MANIFEST.write_text(manifest())
        return 0
    return checks.run(TESTS, None, [], sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
