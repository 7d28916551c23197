"""What rules state: checks (every rule, every run) and findings (what is wrong)."""

from __future__ import annotations

import msgspec

SEVERITIES = ("info", "warning", "error", "critical")  # rising
VERDICTS = ("critical", "error", "warning", "unknown", "ok", "nothing_to_check")  # worst first


class Evidence(msgspec.Struct, frozen=True):
    """One observation and the file, command or call with which a person can repeat it."""

    what: str
    value: str
    source: str


class FarEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The other end of a port's cable: the switch and its port."""

    system: str | None = None
    port: str | None = None


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """The physical part that a finding is about. Null: not known, or the part has none."""

    part: str  # "SXM module 4", "PCIe card in slot 21", "port 1 of PCIe card in slot 5"
    # sxm | oam | pcie-card | superchip | onboard-nic | onboard-switch | root-port | nvswitch | drive | virtual
    form_factor: str | None = None
    slot: str | None = None
    module_id: int | None = None  # of a GPU module: the number of its socket
    serial: str | None = None
    uuid: str | None = None
    pci: str | None = None
    port_guid: str | None = None
    mac: str | None = None
    far_end: FarEnd | None = None  # by InfiniBand discovery or LLDP


STEP_COSTS = {  # what a step costs, the cheapest first; all but the last two can be done from a desk
    "traffic": "seconds of traffic",
    "drain": "a drain",
    "reset": "a reset",
    "restart": "a restart of the instance",
    "reboot": "a reboot",
    "power_cycle": "a power cycle",
    "on_site": "a visit on site",
    "part": "a service case or a part",
}


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a fix. Texts hold commands in backticks."""

    do: str
    cost: str | None = None  # a key of STEP_COSTS, the dearest of the step; null: nothing, or not known
    outcomes: list[str] = []  # what to conclude from what happens: "If the fault follows the card, replace the card."


def describe_step_cost(step: Step) -> str:
    """In parentheses, as pages have it; empty for a step that costs nothing.

    >>> describe_step_cost(Step(do="Reboot the node.", cost="reboot")), describe_step_cost(Step(do="Read the log."))
    ('(costs a reboot)', '')
    """
    return f"(costs {STEP_COSTS[step.cost]})" if step.cost in STEP_COSTS else ""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What a finding costs by the model of `recommend`: lost bus bandwidth of one collective."""

    collective: str  # all_reduce
    nodes: int  # of the job: 1, or more where the network is what suffers
    gbyte_s: float
    percent: float  # of what the machine without this fault reaches
    known_by: str  # model | measured | assumed


class Silenced(msgspec.Struct, frozen=True, kw_only=True):
    """The entry of the configuration by which the operator acknowledged a finding."""

    until: str | None = None  # its last day, "2026-03-31"; null: it has no end
    reason: str
    ticket: str | None = None


def describe_silence(silenced: Silenced) -> str:
    """Why a finding is silenced, and until when.

    >>> describe_silence(Silenced(until="2026-03-31", reason="riser ordered", ticket="OPS-4711"))
    'silenced until 2026-03-31: riser ordered (OPS-4711)'
    """
    until = f" until {silenced.until}" if silenced.until else ""
    return f"silenced{until}: {silenced.reason}" + (f" ({silenced.ticket})" if silenced.ticket else "")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One fault on one subject."""

    rule: str
    severity: str
    subject: str
    label: str
    summary: str
    evidence: list[Evidence] = []
    impact: str
    remedy: str  # the steps as one text
    steps: list[Step] = []  # in order
    confirm: list[str] | None = None  # commands that show the fault on this host; null: none is known
    location: Location | None = None  # null: about no single part, or nothing of it is known
    cost: Cost | None = None  # null: the model has no figure for it, or nothing is lost
    silenced: Silenced | None = None  # acknowledged: it counts in no verdict and no exit code
    confidence: str = "high"  # high | medium | low
    absorbs: list[str] = []  # "rule subject" lines that this cause explains
    devices: list[str] = []  # ids of those that it is about, where it is of the node or explains what is
    field: str | None = None  # of a part that differs from its peers: the field, "netdev.mtu"
    fingerprint: str

    def list_concerned(self) -> set[str]:
        """Ids of the devices that it is about, and of those whose findings it explains."""
        subjects = [self.subject, *(line.partition(" ")[2] for line in self.absorbs)]
        return {*self.devices, *(device for subject in subjects for device in list_devices(subject))}


def list_devices(subject: str) -> list[str]:
    """The ids in a subject; of a pair both.

    >>> list_devices("port:0000:1a:00.0/1"), list_devices("pair:0000:19:00.0+0000:1a:00.0"), list_devices("node")
    (['0000:1a:00.0'], ['0000:19:00.0', '0000:1a:00.0'], [])
    """
    ids = subject.partition(":")[2]
    return [part.partition("/")[0] for part in ids.split("+")] if ids else []


HISTORY_SOURCE = "reports in the fleet's dataset"  # of the evidence "window", where a fleet compared two reports
UNDATED_RULE = "counter-outlier"  # of counts since boot; where two samples date a counter, other rules judge it

_MOST_GRAVE = {"high": "critical", "medium": "error", "low": "warning"}  # by confidence


def bound_severity(severity: str, confidence: str) -> str:
    """The severity that a finding of this confidence may have at most.

    >>> bound_severity("critical", "low"), bound_severity("info", "low"), bound_severity("critical", "high")
    ('warning', 'info', 'critical')
    """
    return min(severity, _MOST_GRAVE[confidence], key=SEVERITIES.index)


_REACH = {"node": 0, "pci": 1, "gpu": 1, "nvswitch": 1}  # by the kind of the subject; a port, a link, a pair: 2


def rank_gravity(severity: str, subject: str, percent: float | None) -> tuple[int, float, int]:
    """The sort key of what is worst: by severity, then what costs a job most (`percent`), then by reach.

    A critical one takes the whole node out, whatever it costs: of these the node comes before a device, and a device
    before a port or a link.
    """
    cost = 0.0 if severity == "critical" else percent or 0.0
    return -SEVERITIES.index(severity), -cost, _REACH.get(subject.partition(":")[0], 2)


def worst_first(finding: Finding) -> tuple[bool, bool, tuple[int, float, int], str, str]:
    """The sort key of a report's findings: silenced ones last, before them those of low confidence, each by gravity.

    Those of one rule on one subject stay in the order in which the rule states them.
    """
    percent = finding.cost.percent if finding.cost else None
    return (
        finding.silenced is not None,
        finding.confidence == "low",
        rank_gravity(finding.severity, finding.subject, percent),
        finding.rule,
        finding.subject,
    )


class UnknownSubject(msgspec.Struct, frozen=True, kw_only=True):
    """A subject that could not be judged, and why."""

    subject: str
    reason: str
    reason_code: str | None = None  # of a row of the report's `reasons`, with this text; null: an older report


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One rule's tally over its subjects."""

    rule: str
    state: str  # fail | unknown | pass | not_applicable | disabled
    passed: int = 0
    failed: int = 0
    unknown: int = 0
    not_applicable: int = 0
    reason: str | None = None  # why the whole rule is unknown, not applicable or disabled
    reason_code: str | None = None
    unknown_subjects: list[UnknownSubject] = []


class Gpudirect(msgspec.Struct, frozen=True, kw_only=True):
    """GPUDirect RDMA of one GPU with one of its rails."""

    gpu: str
    nic: str
    verdict: str  # ready | degraded | blocked | unknown
    via: str = "unknown"  # dma-buf | peermem | data-direct | none | unknown
    causes: list[str] = []


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict, and how many findings of each severity that are not silenced."""

    verdict: str  # ok | warning | error | critical | unknown | nothing_to_check
    counts: dict[str, int]
    silenced: int = 0
    unknown_rules: list[str] = []
    unknown_essential: int = 0  # the first ones of unknown_rules: without them the verdict is not ok
    devices_unread: str | None = None  # why GPUs or NICs may exist that are not listed; null: all of them are
