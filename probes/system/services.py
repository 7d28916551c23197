"""System services that a GPU node needs, by the traces that systemd leaves in files: nobody is asked, nothing is run.

A unit file says that a service is installed; the service's control group says whether one of its processes lives;
/run/systemd/units holds a link for each unit that is not dead, which is all that a oneshot service leaves. A failed
service leaves the same traces as a stopped one, so both are "inactive". Source: systemd.unit(5),
Documentation/admin-guide/cgroup-v2.rst (cgroup.events), systemd's unit_unlink_state_files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from probes.asking import Asking, as_text
from probes.host.interface import Absent, Host, Unanswered
from probes.probe import Probe, Reading
from probes.system import fabric_daemons

BOOTED = "/run/systemd/system"  # sd_booted(3)
INVOCATIONS = "/run/systemd/units"
# Where units lie, the strongest first: systemd.unit(5).
UNIT_FOLDERS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
)
CGROUPS = (  # v2, hybrid, v1
    "/sys/fs/cgroup/system.slice",
    "/sys/fs/cgroup/unified/system.slice",
    "/sys/fs/cgroup/systemd/system.slice",
)
NAMES = (
    "irqbalance",
    "lldpd",
    "nvidia-dcgm",
    "nvidia-fabricmanager",
    "nvidia-imex",
    "nvidia-persistenced",
    "openibd",
    "opensm",
    "opensmd",
)
# A daemon in a container of the host's PID namespace (GPU operator) has no unit here, but writes its PID.
PID_FILES: Mapping[str, tuple[str, ...]] = {
    "nvidia-fabricmanager": (
        "/run/nvidia-fabricmanager/nv-fabricmanager.pid",
        "/run/nvidia/driver/run/nvidia-fabricmanager/nv-fabricmanager.pid",
    ),
    "nvidia-persistenced": (
        "/run/nvidia-persistenced/nvidia-persistenced.pid",
        "/run/nvidia/driver/run/nvidia-persistenced/nvidia-persistenced.pid",
    ),
    "nvidia-imex": ("/run/nvidia-imex/nvidia-imex.pid", "/run/nvidia/driver/run/nvidia-imex/nvidia-imex.pid"),
}
PROCESSES = {
    "nvidia-fabricmanager": "nv-fabricmanager",
    "nvidia-persistenced": "nvidia-persistenced",
    "nvidia-imex": "nvidia-imex",
}
COMM_LENGTH = 15  # the kernel cuts a process's name here


class Service(NamedTuple):
    """One system service of interest."""

    name: str  # "nvidia-fabricmanager"
    state: str  # active | inactive | failed | not_installed | unknown
    version: str | None = None


class ServiceFacts(NamedTuple):
    """Services that a GPU node needs or may need."""

    services: tuple[Service, ...]
    imex: Mapping[str, str] | None = None  # "nodes_config": how many nodes; "node": READY | ..


class Traces(NamedTuple):
    """What one service left. None: that trace could not be looked for."""

    unit: str | None  # the unit file's text; None: no unit file
    invoked: bool | None  # systemd counts it as neither dead nor failed
    populated: bool | None  # a process lives in its control group
    process: bool = False  # the process of its PID file lives


def read(host: Host) -> Reading:
    """The state of every service of interest. Raises Absent where no systemd runs."""
    asking = Asking(host)
    if asking.names(BOOTED) is None:
        raise Absent(f"no {BOOTED}: systemd is not the init here, or the source does not hold it")
    units = _units(asking)
    invoked = asking.names(INVOCATIONS)
    groups, folder = _groups(asking)
    services = []
    for name in NAMES:
        unit = f"{name}.service"
        traces = Traces(
            unit=units.get(unit),
            invoked=None if invoked is None else f"invocation:{unit}" in invoked,
            populated=_populated(asking, f"{folder}/{unit}", unit in groups) if groups is not None else None,
            process=_process(asking, name),
        )
        services.append(Service(name, state_of(traces)))
    services, imex = _with_fabric(asking, services)
    if any(service.state == "unknown" for service in services):
        asking.gap("some states: no control groups of system.slice are readable here")
    return Reading(ServiceFacts(tuple(services), imex), asking.sources, asking.missing)


PROBE = Probe("services", read)


def _with_fabric(asking: Asking, services: list[Service]) -> tuple[list[Service], dict[str, str] | None]:
    """The same, and what the daemons of the NVLink fabric say of themselves, where they are installed."""
    states = {service.name: service.state for service in services}
    installed = {name for name, state in states.items() if state != "not_installed"}
    if "nvidia-fabricmanager" in installed:
        version = fabric_daemons.fabric_manager_version(asking)
        services = [s._replace(version=version) if s.name == "nvidia-fabricmanager" else s for s in services]
    if "nvidia-imex" not in installed:
        return services, None
    return services, fabric_daemons.imex(asking, states["nvidia-imex"] == "active") or None


def state_of(traces: Traces) -> str:
    r"""A service's state from its traces.

    >>> state_of(Traces("[Service]\nType=forking\n", invoked=True, populated=True))
    'active'
    >>> state_of(Traces("[Service]\nType=forking\n", invoked=True, populated=False))  # waits for its next restart
    'inactive'
    >>> state_of(Traces(None, invoked=False, populated=False))
    'not_installed'
    """
    if traces.populated or traces.process:
        return "active"
    if traces.unit is None:
        return "active" if traces.invoked else "not_installed"
    if traces.invoked is False:
        return "inactive"
    if is_oneshot(traces.unit):
        return "active" if traces.invoked else "unknown"
    return "unknown" if traces.populated is None else "inactive"


def is_oneshot(unit: str) -> bool:
    r"""Whether a service does its work and leaves, so that no process shows that it is up.

    >>> is_oneshot("[Service]\nType=oneshot\nRemainAfterExit=yes\n"), is_oneshot("[Service]\nExecStart=/bin/x\n")
    (True, False)
    """
    return bool(
        re.search(r"^Type[ \t]*=[ \t]*oneshot[ \t]*$", unit, re.MULTILINE)
        or re.search(r"^RemainAfterExit[ \t]*=[ \t]*(?:yes|true|on|1)[ \t]*$", unit, re.MULTILINE | re.IGNORECASE)
    )


def parse_populated(text: str) -> bool | None:
    r"""Whether a process lives in a control group or below it (cgroup.events); None: the text does not say.

    >>> parse_populated("populated 1\nfrozen 0\n")
    True
    """
    found = re.search(r"^populated ([01])$", text, re.MULTILINE)
    return found[1] == "1" if found else None


def _units(asking: Asking) -> dict[str, str]:
    """Unit files by name. One that may not be read is installed all the same: its text is "" here."""
    units: dict[str, str] = {}
    wanted = [f"{name}.service" for name in NAMES]
    for folder in UNIT_FOLDERS:
        try:
            answers = asking.host.attributes(folder, wanted)
        except Unanswered:
            continue
        for unit, answer in answers.items():
            asking.answered(f"{folder}/{unit}")
            units.setdefault(unit, "" if isinstance(answer, Unanswered) else as_text(answer))
    return units


def _groups(asking: Asking) -> tuple[frozenset[str] | None, str]:
    """The control groups of system.slice and their folder; None: not to be seen here."""
    for folder in CGROUPS:
        names = asking.names(folder)
        if names is not None and any(name.endswith(".service") for name in names):
            return frozenset(names), folder
    return None, CGROUPS[0]


def _populated(asking: Asking, group: str, there: bool) -> bool | None:
    if not there:
        return False
    said = asking.attributes(group, ("cgroup.events", "cgroup.procs"), source=group)
    populated = parse_populated(said.get("cgroup.events", ""))
    if populated is not None:
        return populated
    return bool(said["cgroup.procs"]) if "cgroup.procs" in said else None


def _process(asking: Asking, name: str) -> bool:
    """Whether the process that wrote the PID file still lives, by its name."""
    for path in PID_FILES.get(name, ()):
        pid = asking.text(path) or ""
        if re.fullmatch(r"[1-9][0-9]{0,9}", pid):
            comm = asking.text(f"/proc/{pid}/comm")
            if comm and PROCESSES[name][:COMM_LENGTH] == comm:
                return True
    return False
