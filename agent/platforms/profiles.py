"""Profiles: the expected hardware of a platform or a site. Built in as TOML files beside this one, or a site's file.

Loaded only when one is requested or recognized, and a built-in one without what reads any TOML.
"""

from __future__ import annotations

import os

import msgspec

from agent.model.node import Platform
from agent.model.profile import BadProfile, Device, Expected, Profile
from agent.model.report import Report
from agent.toml_file import TomlError, read_toml

HERE = os.path.dirname(os.path.abspath(__file__))
AUTO, NONE = "auto", "none"


class ProfileChoice(msgspec.Struct, frozen=True):
    """The profile to evaluate with, and the platform as the report names it then."""

    profile: Profile | None
    platform: Platform
    declared: str | None = None  # the operator's choice, for the report


_OF_PIPES: dict[str, Profile] = {}  # `<(ssh HOST cat FILE)` is read once: it is checked before a run, and used after it


def choose_profile(requested: str, platform: Platform) -> ProfileChoice:
    """Choose `auto` (the recognized platform's, if any), `none`, a name, or a file. Raises BadProfile."""
    if requested == NONE:
        return ProfileChoice(None, platform, "profile: none")
    if requested == AUTO:
        name = platform.profile
        return ProfileChoice(load_profile(name) if name and name in list_profiles() else None, platform)
    profile = load_profile(requested) if requested in list_profiles() else _load_file(requested)
    evidence = [*platform.evidence, f"declared: --profile {requested}"]
    return ProfileChoice(
        profile, Platform(profile=profile.name, confidence="exact", evidence=evidence), f"profile: {profile.name}"
    )


def list_profiles() -> list[str]:
    """List the built-in profiles."""
    return sorted(entry[:-5] for entry in os.listdir(HERE) if entry.endswith(".toml"))


def load_profile(name: str) -> Profile:
    """Load a built-in profile. Raises BadProfile."""
    path = os.path.join(HERE, f"{name}.toml")
    try:
        with open(path, encoding="utf-8") as file:
            return msgspec.json.decode(_write_as_json(file.read()), type=Profile)
    except (OSError, ValueError, msgspec.MsgspecError):
        return _read(path)


def _write_as_json(text: str) -> str:
    """A built-in profile, a key and its value a line: its values are those of JSON, but for the keys of a table.

    To import what reads any TOML, and to read so little, takes a fiftieth of a scan.

    >>> _write_as_json('name = "a-8"\\ngpus = { value = 8, source = "lspci" }')
    '{"name":"a-8","gpus":{"value": 8,"source": "lspci" }}'
    """
    rows = []
    for line in text.splitlines():
        key, _, value = line.partition(" = ")
        for inner in Expected.__struct_fields__ if value.startswith("{") else ():
            value = value.replace(f" {inner} = ", f'"{inner}": ', 1)
        rows.append(f'"{key}":{value}')
    return f"{{{','.join(rows)}}}"


def learn_profile(report: Report, name: str) -> Profile:
    """Derive a profile from a good node: counts, links, roles and positions of its GPUs, NVSwitches and NICs."""
    topology = report.topology
    functions = {f.id: f for f in topology.pci}
    where = f"learnt from {report.node.hostname or 'a node'} at {report.observed_at or 'a time that is not known'}"

    def device(kind: str, pci: str | None, label: str, **more: object) -> Device:
        function = functions.get(pci or "")
        link = function.link if function and function.link and function.link.quality.state == "conclusive" else None
        known = function and function.vendor and function.device
        return Device(
            kind=kind,
            pci=pci,
            slot=function.slot if function else None,
            name=label,
            vendor_device=f"{(function.vendor or '')[2:]}:{(function.device or '')[2:]}"
            if function and known
            else None,
            link_gt_s=link.speed_gt_s if link else None,
            link_width=link.width if link else None,
            numa_node=function.numa_node if function else None,
            **more,  # type: ignore[arg-type]  # words of Device, checked by msgspec's constructor
        )

    devices = [device("gpu", gpu.pci, gpu.label) for gpu in topology.gpus if gpu.pci]
    devices += [device("nvswitch", switch.pci, f"NVSwitch {switch.pci}") for switch in topology.nvswitches]
    for nic in topology.host_nics:
        if nic.pci and not nic.virtual_function and not nic.software:
            port = next((port for port in nic.ports if port.state == "ACTIVE"), None)
            devices.append(
                device(
                    "nic", nic.pci, nic.label, role=nic.role, firmware=nic.firmware,
                    rate_gbit_s=port.rate_gbit_s if port else None, link_layer=port.link_layer if port else None,
                )
            )  # fmt: skip
    rails = [nic for nic in topology.host_nics if nic.role == "rail"]
    links = {sum(link.state in ("active", "sleep") for link in gpu.links) for gpu in topology.gpus if gpu.links_known}
    return Profile(
        name=name,
        title=f"{report.node.vendor or ''} {report.node.product or ''}".strip(),
        gpu_devices=sorted({d.vendor_device for d in devices if d.kind == "gpu" and d.vendor_device}),
        gpus=Expected(value=len(topology.gpus), source=where),
        nvlinks_per_gpu=Expected(value=links.pop(), source=where) if len(links) == 1 else None,
        nvswitches=Expected(value=len(topology.nvswitches), source=where),
        rails=Expected(value=len(rails), source=where),
        devices=devices,
    )


def profile_to_toml(profile: Profile) -> str:
    """Format a profile as TOML: keys in the order of the struct, one table per device."""
    rows = msgspec.to_builtins(profile)
    lines = []
    for key, value in rows.items():
        if key == "devices" or value in (None, "", []):
            continue
        lines.append(f"{key} = {to_toml_value(value)}")
    for device in rows["devices"]:
        lines += [
            "",
            "[[devices]]",
            *(f"{key} = {to_toml_value(value)}" for key, value in device.items() if value is not None),
        ]
    return "\n".join(lines) + "\n"


def to_toml_value(value: object) -> str:
    """A value as TOML, on one line."""
    if isinstance(value, dict):
        inner = ", ".join(f"{key} = {to_toml_value(item)}" for key, item in value.items() if item is not None)
        return "{ " + inner + " }"
    if isinstance(value, list):
        return "[" + ", ".join(to_toml_value(item) for item in value) + "]"
    return msgspec.json.encode(value).decode()  # strings and numbers of JSON are those of TOML


def _load_file(path: str) -> Profile:
    if not os.path.exists(path):
        known = ", ".join(list_profiles())
        raise BadProfile(f"--profile {path}: no such file, and no built-in profile; these are {known}")
    if os.path.isfile(path):
        return _read(path)
    if path not in _OF_PIPES:
        _OF_PIPES[path] = _read(path)
    return _OF_PIPES[path]


def _read(path: str) -> Profile:
    try:
        return read_toml(path, Profile)
    except TomlError as error:
        raise BadProfile(str(error)) from error
