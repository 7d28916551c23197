"""The kustomizations: valid by Kubernetes' own schemas, closed; their commands and secrets are real."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from agent.cli.command_tree import read_commands, walk_commands
from agent.cli.commands import app
from tests.conftest import ROOT
from tests.release.test_container import VERSIONS

KUBECTL = shutil.which("kubectl")
FOLDERS = (
    "container",
    "kubernetes/nodes",
    "kubernetes/collector",
    "kubernetes/nodes-mtls",
    "kubernetes/collector-mtls",
)
DOCS = (ROOT / "docs" / "kubernetes.md").read_text()
pytestmark = [
    pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed"),
    pytest.mark.usefixtures("real_commands"),
]


@functools.lru_cache
def rendered(folder: str) -> str:
    """What `kubectl apply -k` would send."""
    done = subprocess.run(
        [str(KUBECTL), "kustomize", str(ROOT / "packaging" / folder)], capture_output=True, text=True, check=True
    )
    assert "" == done.stderr
    return done.stdout


def objects(folder: str) -> list[Any]:
    """The same, read."""
    return list(yaml.safe_load_all(rendered(folder)))


def pods() -> Iterator[Any]:
    """The pod of each workload."""
    for folder in FOLDERS[1:]:
        for result in objects(folder):
            spec = result.get("spec", {})
            spec = spec.get("jobTemplate", {}).get("spec", spec)
            if "template" in spec:
                yield spec["template"]["spec"]


def containers() -> Iterator[Any]:
    """All containers."""
    for pod in pods():
        yield from pod.get("initContainers", [])
        yield from pod["containers"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("folder", FOLDERS)
def test_what_is_rendered_is_valid(folder: str, version: str) -> None:
    """Strictly."""
    validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed").validate
    for result in objects(folder):
        validate(result, version, strict=True)
        assert "fabricscope" in (result["metadata"].get("namespace"), result["metadata"]["name"])


def test_nodes_have_the_daemonset_and_one_container_more() -> None:
    """The patch keeps what it does not name."""
    (one,) = [item for item in objects("container") if item["kind"] == "DaemonSet"]
    (more,) = [item for item in objects("kubernetes/nodes") if item["kind"] == "DaemonSet"]
    pod = more["spec"]["template"]["spec"]

    assert ["fabricscope", "ship"] == sorted(item["name"] for item in pod["containers"])
    assert one["spec"]["template"]["spec"]["containers"][0] in pod["containers"]
    assert pod["hostNetwork"] is True


def test_every_container_is_closed() -> None:
    """No root, no capability, no writable image, no token for the cluster."""
    for container in containers():
        security = container["securityContext"]
        assert (["ALL"], False, True) == (
            security["capabilities"]["drop"], security["allowPrivilegeEscalation"], security["readOnlyRootFilesystem"],
        )  # fmt: skip
        assert {"cpu", "memory"} == set(container["resources"]["limits"])
    for pod in pods():
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert {mount["name"] for item in pod["containers"] for mount in item["volumeMounts"]} <= {
            volume["name"] for volume in pod["volumes"]
        }


def test_every_command_and_option_exists() -> None:
    """Of arguments and of scripts; scripts are read by sh."""
    known = {
        walk_command.words: {name for o in walk_command.options for name in o.names}
        for walk_command in walk_commands(read_commands(app))
    }
    count = 0
    for container in containers():
        lines = [" ".join(container["args"])] if "args" in container else []
        for script in container.get("command", [])[2:]:
            subprocess.run(["sh", "-n", "-c", script], check=True)
            lines += re.findall(r"fabricscope ((?:ship|fleet) .*)", script.replace("\\\n", " "))
        for line in lines:
            words = line.split()
            command = next(tuple(words[:size]) for size in (2, 1) if tuple(words[:size]) in known)
            assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known[command]
            count += 1
    assert 7 <= count


def test_secrets_are_those_that_the_docs_create() -> None:
    """And each file of them that a command names."""
    secrets = {volume["secret"]["secretName"] for pod in pods() for volume in pod["volumes"] if "secret" in volume} | {
        source["secretRef"]["name"] for container in containers() for source in container.get("envFrom", [])
    }

    assert secrets == set(re.findall(r"create secret \w+ (\S+)", DOCS))
    assert {"token", "ca.crt"} == set(re.findall(r"/etc/fabricscope/([a-z.]+)", rendered("kubernetes/nodes")))
    assert "--from-file=token --from-file=ca.crt" in DOCS


def test_with_certificates_there_is_no_token() -> None:
    """A certificate of the node itself, and nothing else is another than with a token."""
    ship, receive = (_containers(f"kubernetes/{name}-mtls") for name in ("nodes", "collector"))
    (script,), (arguments,) = [each["command"][2] for each in ship if each["name"] == "ship"], [
        each["args"] for each in receive if each["name"] == "receive"
    ]  # fmt: skip
    mounts = {mount["mountPath"] for each in ship if each["name"] == "ship" for mount in each["volumeMounts"]}

    assert "token" not in rendered("kubernetes/nodes-mtls").replace("automountServiceAccountToken", "")
    assert {"/etc/fabricscope-client/tls.crt", "/etc/fabricscope-client/tls.key", "/etc/fabricscope/ca.crt"} == set(
        re.findall(r"--(?:cert|key|ca) (\S+)", script)
    )
    assert {"/etc/fabricscope-client", "/etc/fabricscope"} < mounts
    assert "--client-ca=/etc/fabricscope/client-ca/ca.crt" in arguments
    assert not any(each.startswith("--clients") for each in arguments)
    assert "fabricscope-clients\n" not in rendered("kubernetes/collector-mtls")
    assert "`/etc/fabricscope/client`" in DOCS
    for name in ("nodes", "collector"):
        one, other = ({_called(each) for each in objects(f"kubernetes/{name}{more}")} for more in ("", "-mtls"))
        assert one == other


def _containers(folder: str) -> list[Any]:
    found = [each["spec"]["template"]["spec"] for each in objects(folder) if "template" in each.get("spec", {})]
    return [container for pod in found for container in pod["containers"]]


def _called(found: Any) -> tuple[str, str]:
    return found["kind"], found["metadata"]["name"]


def test_reports_are_sent_to_the_service() -> None:
    """By its name and port, which the docs name for the certificate."""
    (service,) = [item for item in objects("kubernetes/collector") if item["kind"] == "Service"]
    name = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"

    assert f"--to https://{name}:{service['spec']['ports'][0]['port']}/" in rendered("kubernetes/nodes")
    assert f"`{name}`" in DOCS


def test_reports_that_were_ingested_are_kept_as_long_as_by_the_unit() -> None:
    """The same days and bytes; no shell deletes by age whatever lies there."""
    (job,) = [item for item in objects("kubernetes/collector") if item["metadata"]["name"] == "fabricscope-ingest"]
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (ingest,) = pod["containers"]
    unit = (ROOT / "systemd" / "fabricscope-ingest.service").read_text()

    assert "initContainers" not in pod
    assert "-delete" not in unit
    bounds = dict(re.findall(r"--(move-\w+) (\d+)", unit))
    assert {"move-days", "move-limit"} == set(bounds)
    assert {f"--{name}={value}" for name, value in bounds.items()} <= set(ingest["args"])
    assert f"`taken` for {bounds['move-days']} days, {int(bounds['move-limit']) >> 30} GiB at most" in DOCS
