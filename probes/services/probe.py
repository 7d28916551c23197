"""System services that a GPU node needs, by the traces that systemd leaves in files, and by the journal of this boot
where one is installed.

A unit file states that a service is installed; the service's control group states whether one of its processes lives;
/run/systemd/units holds a link for each unit that is not dead, which is all that a oneshot service leaves. A failed
service leaves the same traces as a stopped one, so both are "inactive". Source: systemd.unit(5),
Documentation/admin-guide/cgroup-v2.rst (cgroup.events), systemd's unit_unlink_state_files.

The daemons of the NVLink fabric: the version of the fabric manager, and how IMEX is set up on this node.

NVIDIA Fabric Manager user guide (`nv-fabricmanager --version`, /var/log/fabricmanager.log) and IMEX guide
(/etc/nvidia-imex/nodes_config.cfg, one address a line; `nvidia-imex-ctl -q`).
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from probes.host import commands
from probes.host.interface import READ_LIMIT_BYTES, Absent, Host, ReadError
from probes.host_reader import HostReader, as_text
from probes.kernel.log_facts import LogEvent
from probes.named_tuple import NamedTuple
from probes.probe import Reading
from probes.system.limits import CGROUPS, UNIT_FOLDERS
from probes.text import lazy_pattern

if TYPE_CHECKING:
    from probes.services.logs import ServiceLogs

LOG = "/var/log/fabricmanager.log"
NODES_CONFIG = "/etc/nvidia-imex/nodes_config.cfg"
_VERSION = lazy_pattern(
    r"Fabric Manager version(?: is)?[ \t]*(?::[ \t]*)?(\d{1,4}(?:\.\d{1,4}){1,3})(?![\d.])", re.IGNORECASE | re.ASCII
)
_STATE = lazy_pattern(r"[A-Z][A-Z_]{1,39}", re.ASCII)


def fabric_manager_version(reader: HostReader) -> str | None:
    """What the installed program states of itself; else what it wrote when it last started. None: neither."""
    version = parse_version(reader.output("nv-fabricmanager", "--version") or "")
    if version:
        return version
    log = reader.text(LOG, READ_LIMIT_BYTES) or ""
    return parse_version(log) if len(log) < READ_LIMIT_BYTES - 4 else None  # cut: its last start is not in it


def parse_version(text: str) -> str | None:
    """The last version that a text names.

    >>> parse_version("Fabric Manager version is : 570.124.06")
    '570.124.06'
    >>> parse_version("[INFO] Fabric Manager version 535.54.03 is running with the following configuration options")
    '535.54.03'
    """
    matches = _VERSION.findall(text)
    return matches[-1] if matches else None


def read_imex(reader: HostReader, running: bool) -> dict[str, str]:
    """The nodes of IMEX ("0": none), and the state of the local daemon where it runs. What is not known
    is left out."""
    values = {}
    names = reader.names(NODES_CONFIG.rpartition("/")[0])
    if names is not None:
        text = reader.text(NODES_CONFIG, READ_LIMIT_BYTES) if NODES_CONFIG.rpartition("/")[2] in names else ""
        if text is not None:
            values["nodes_config"] = str(parse_nodes(text))
    state = parse_state(reader.output("nvidia-imex-ctl", "-q") or "") if running else None
    if state:
        values["node"] = state
    return values


def parse_nodes(text: str) -> int:
    r"""How many nodes a configuration names.

    >>> parse_nodes("# nodes\n10.0.0.1\n\n10.0.0.2\n")
    2
    """
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith("#") for line in lines)


def parse_state(text: str) -> str | None:
    r"""The daemon's state, a word alone on its line; None for anything else.

    >>> parse_state("READY\n"), parse_state("Error: no such daemon\n")
    ('READY', None)
    """
    return next((line.strip() for line in text.splitlines()[:20] if _STATE.fullmatch(line.strip())), None)


_JOURNAL = "journalctl -b -u UNIT"
BOOTED = "/run/systemd/system"  # sd_booted(3)
INVOCATIONS = "/run/systemd/units"
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


class ServiceState(NamedTuple):
    """One system service of interest."""

    name: str  # "nvidia-fabricmanager"
    state: str  # active | inactive | failed | not_installed | unknown
    version: str | None = None


class ServiceFacts(NamedTuple):
    """Services that a GPU node needs or may need."""

    services: tuple[ServiceState, ...]
    imex: Mapping[str, str] | None = None  # "nodes_config": how many nodes; "node": READY | ..
    events: tuple[LogEvent, ...] = ()  # of their logs and of the journal, where the source holds these


class SystemdTraces(NamedTuple):
    """What one service left. None: that trace could not be looked for."""

    unit: str | None  # the unit file's text; None: no unit file
    invoked: bool | None  # systemd counts it as neither dead nor failed
    populated: bool | None  # a process lives in its control group
    process: bool = False  # the process of its PID file lives


def read(host: Host) -> Reading:
    """The state of every service of interest. Raises Absent where no systemd runs, and no log of a service is saved."""
    reader = HostReader(host)
    logs = None
    if not host.live and _may_hold_logs(host):
        from probes.services.logs import read_saved_logs  # lazy: neither a live host nor a bare tree needs it

        logs = read_saved_logs(host, reader)
    if reader.names(BOOTED) is None:
        if logs is None:
            raise Absent(f"no {BOOTED}: systemd is not the init here, or the source does not hold it")
        rows = tuple(ServiceState(name, logs.states[name]) for name in sorted(logs.states))
        return Reading(ServiceFacts(rows, None, logs.events), reader.sources, reader.missing)
    units = _units(reader)
    if not host.live or any(f"{unit}.service" in units for unit in commands.JOURNAL_UNITS):
        logs = _read_journal(host, reader) or logs
    invoked = reader.names(INVOCATIONS)
    groups, folder = _groups(reader)
    services = []
    for name in NAMES:
        unit = f"{name}.service"
        traces = SystemdTraces(
            unit=units.get(unit),
            invoked=None if invoked is None else f"invocation:{unit}" in invoked,
            populated=_is_populated(reader, f"{folder}/{unit}", unit in groups) if groups is not None else None,
            process=_process(reader, name),
        )
        services.append(ServiceState(name, state_of(traces)))
    if logs is not None:
        services = [_add_stated(service, logs.states.get(service.name)) for service in services]
    services, imex = _with_fabric(reader, services)
    if any(service.state == "unknown" for service in services):
        reader.gap("some states: no control groups of system.slice are readable here")
    events = logs.events if logs is not None else ()
    return Reading(ServiceFacts(tuple(services), imex, events), reader.sources, reader.missing)


def _may_hold_logs(host: Host) -> bool:
    """Whether a recorded source has an output or a folder with logs of services."""
    outputs = (*commands.KERNEL_LOG, *commands.KERNEL_LOG_SAVED, *commands.SERVICE_SAVED)
    if any(host.has_output(*argv) for argv in outputs) or any(
        host.saved_arguments(*argv) for argv in (commands.SERVICE_LOG, *commands.OF_SERVICE)
    ):
        return True
    from probes.kernel.log_files import FOLDER

    try:
        return bool(host.listdir(FOLDER))
    except ReadError as why:
        return not isinstance(why, Absent)


def _read_journal(host: Host, reader: HostReader) -> "ServiceLogs | None":
    """What the services wrote in this boot, by one bounded journalctl for all; None where it shows no line of them, as
    to a user who may not read the journal."""
    (command,) = commands.SERVICE_JOURNAL
    if not (host.live or host.has_output(*command)):
        return None
    text = HostReader(host).output(*command)
    if not text:
        return None
    from probes.services.logs import read_logs  # lazy: few nodes have one of the services

    reader.answered(_JOURNAL)
    return read_logs([(_JOURNAL, text, False)])


def _add_stated(service: ServiceState, stated: str | None) -> ServiceState:
    """What a log states of a service counts where the traces leave it open: a failed one leaves those of a stopped."""
    is_open = service.state == "unknown" or (service.state, stated) == ("inactive", "failed")
    return service._replace(state=stated) if stated and is_open else service


def _with_fabric(reader: HostReader, services: list[ServiceState]) -> tuple[list[ServiceState], dict[str, str] | None]:
    """The same, and what the daemons of the NVLink fabric state of themselves, where they are installed."""
    states = {service.name: service.state for service in services}
    installed = {name for name, state in states.items() if state != "not_installed"}
    if "nvidia-fabricmanager" in installed:
        version = fabric_manager_version(reader)
        services = [s._replace(version=version) if s.name == "nvidia-fabricmanager" else s for s in services]
    if "nvidia-imex" not in installed:
        return services, None
    return services, read_imex(reader, states["nvidia-imex"] == "active") or None


def state_of(traces: SystemdTraces) -> str:
    r"""A service's state from its traces.

    >>> state_of(SystemdTraces("[Service]\nType=forking\n", invoked=True, populated=True))
    'active'
    >>> state_of(SystemdTraces("[Service]\nType=forking\n", invoked=True, populated=False))  # waits for a restart
    'inactive'
    >>> state_of(SystemdTraces(None, invoked=False, populated=False))
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
    r"""Whether a process lives in a control group or below it (cgroup.events); None: the text does not show it.

    >>> parse_populated("populated 1\nfrozen 0\n")
    True
    """
    match = re.search(r"^populated ([01])$", text, re.MULTILINE)
    return match[1] == "1" if match else None


def _units(reader: HostReader) -> dict[str, str]:
    """Unit files by name. One that may not be read is installed all the same: its text is "" here."""
    units: dict[str, str] = {}
    wanted = [f"{name}.service" for name in NAMES]
    for folder in UNIT_FOLDERS:
        try:
            answers = reader.host.attributes(folder, wanted)
        except ReadError:
            continue
        for unit, answer in answers.items():
            reader.answered(f"{folder}/{unit}")
            units.setdefault(unit, "" if isinstance(answer, ReadError) else as_text(answer))
    return units


def _groups(reader: HostReader) -> tuple[frozenset[str] | None, str]:
    """The control groups of system.slice and their folder; None: not to be seen here."""
    for folder in CGROUPS:
        names = reader.names(folder)
        if names is not None and any(name.endswith(".service") for name in names):
            return frozenset(names), folder
    return None, CGROUPS[0]


def _is_populated(reader: HostReader, group: str, there: bool) -> bool | None:
    if not there:
        return False
    files = reader.attributes(group, ("cgroup.events", "cgroup.procs"), source=group)
    populated = parse_populated(files.get("cgroup.events", ""))
    if populated is not None:
        return populated
    return bool(files["cgroup.procs"]) if "cgroup.procs" in files else None


def _process(reader: HostReader, name: str) -> bool:
    """Whether the process that wrote the PID file still lives, by its name."""
    for path in PID_FILES.get(name, ()):
        pid = reader.text(path) or ""
        if re.fullmatch(r"[1-9][0-9]{0,9}", pid):
            comm = reader.text(f"/proc/{pid}/comm")
            if comm and PROCESSES[name][:COMM_LENGTH] == comm:
                return True
    return False
