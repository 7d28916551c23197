"""The image and the DaemonSet: valid by Kubernetes' own schemas, and as closed as docs/installing.md says."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from agent.cli.command_tree import read_commands, walk_commands
from agent.cli.commands import app
from tests.conftest import ROOT

FOLDER = ROOT / "packaging" / "container"
CONTAINERFILE = (FOLDER / "Containerfile").read_text()
VERSIONS = ("1.30", "1.34")  # recursiveReadOnly is known from 1.30 on


def daemonset() -> Any:
    """The committed one."""
    return next(
        item for item in yaml.safe_load_all((FOLDER / "daemonset.yaml").read_text()) if item["kind"] == "DaemonSet"
    )


def patched(one: Any, other: Any) -> Any:
    """A strategic merge, as kubectl does it for what is here: lists of named things by name, other lists replaced."""
    if isinstance(one, dict) and isinstance(other, dict):
        merged = {**one, **{name: patched(one.get(name), value) for name, value in other.items()}}
        return {name: value for name, value in merged.items() if value is not None}
    if (
        isinstance(one, list)
        and isinstance(other, list)
        and all("name" in item for item in other if isinstance(item, dict))
    ):
        if not other or not isinstance(other[0], dict):
            return other
        names = {item["name"]: item for item in other}
        return [patched(item, names.pop(item["name"], {})) for item in one] + list(names.values())
    return other


def as_root() -> Any:
    """The DaemonSet with the patch over it."""
    return patched(daemonset(), yaml.safe_load((FOLDER / "as-root.patch.yaml").read_text()))


@pytest.mark.parametrize("version", VERSIONS)
def test_both_are_valid(version: str) -> None:
    """Strictly: a key that the schema does not know is an error."""
    validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed").validate
    for item in (*yaml.safe_load_all((FOLDER / "daemonset.yaml").read_text()), as_root()):
        validate(item, version, strict=True)
    with pytest.raises(Exception, match="unexpected"):
        validate(patched(daemonset(), {"spec": {"template": {"spec": {"hostNetworks": True}}}}), version, strict=True)


def test_by_default_it_is_nobody_and_can_write_nothing_but_its_state() -> None:
    """No capability, no root, no writable image, the host read-only down to its last mount."""
    pod = daemonset()["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}

    assert (True, 65532) == (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"])
    assert {"type": "RuntimeDefault"} == pod["securityContext"]["seccompProfile"]
    assert (True, False, False) == (pod["hostNetwork"], pod["hostPID"], pod["hostIPC"])
    assert {"drop": ["ALL"]} == container["securityContext"]["capabilities"]
    assert not container["securityContext"]["allowPrivilegeEscalation"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert ("/host", True, "IfPossible") == tuple(
        mounts["host"][k] for k in ("mountPath", "readOnly", "recursiveReadOnly")
    )
    assert {"host", "state"} == set(mounts)
    assert {"requests", "limits"} == set(container["resources"])
    assert not pod["automountServiceAccountToken"]


def test_as_root_it_has_three_capabilities_and_still_no_writable_host() -> None:
    """What the patch changes, and nothing else."""
    pod, plain = as_root()["spec"]["template"]["spec"], daemonset()["spec"]["template"]["spec"]
    (container,), (before,) = pod["containers"], plain["containers"]

    assert ["SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE"] == container["securityContext"]["capabilities"]["add"]
    assert (0, False) == (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsNonRoot"])
    assert container["securityContext"]["allowPrivilegeEscalation"]  # the API refuses false beside SYS_ADMIN
    assert container["volumeMounts"] == before["volumeMounts"]
    assert [{"name": "state", "hostPath": {"path": "/var/lib/fabricscope", "type": "DirectoryOrCreate"}}] == pod[
        "volumes"
    ][1:]
    assert container["args"] == before["args"]


def test_what_it_runs_is_a_command_with_these_options() -> None:
    """A renamed option would be found by the first pod only."""
    (container,) = daemonset()["spec"]["template"]["spec"]["containers"]
    command, *options = container["args"]
    known = {
        name
        for walk_command in walk_commands(read_commands(app))
        if walk_command.words == (command,)
        for o in walk_command.options
        for name in o.names
    }

    assert {option.partition("=")[0] for option in options} <= known


def test_the_image_runs_as_the_user_of_the_daemonset() -> None:
    """By number, which a cluster can check; and copies what is there."""
    user = daemonset()["spec"]["template"]["spec"]["securityContext"]

    assert f"\nUSER {user['runAsUser']}:{user['runAsGroup']}\n" in CONTAINERFILE
    copied = [
        item for line in re.findall(r"^COPY (?!--from)(.*) \S+$", CONTAINERFILE, re.MULTILINE) for item in line.split()
    ]
    assert [] == [item for item in copied if not (ROOT / item).exists()]
    assert {"agent", "probes", "systemd", "release", "fabricscope.py"} <= set(copied)
