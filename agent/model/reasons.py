"""Why something could not be checked, or cannot exist here: a closed set of codes, whose texts are made here alone.

A `Reason` is its text, so that outputs print it as it is; code that decides by a reason compares its code. Texts may be
reworded, codes may not: they are in reports (`reasons[]`, `reason_code`).
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Literal, Protocol, get_args

import msgspec

SettleKind = Literal["command", "file", "privilege", "sample"]

UnknownCode = Literal[
    # the evidence
    "evidence-absent",  # the source does not hold it
    "evidence-denied",
    "evidence-timed-out",
    "evidence-failed",
    "evidence-skipped",
    "evidence-not-run",
    "evidence-partial",
    "list-incomplete",  # a list of devices that does not have some
    "sources-disagree",  # two sources describe two hosts or times
    "not-read",
    "needs-root",
    "not-known",
    "not-reported",  # by the driver
    "stated-by-source",  # the driver or the source states itself why
    "not-shown",  # the output or driver that was read leaves it out
    "not-asked",  # asking would wake or change the device
    "output-missing",
    "log-not-read",
    "unsupported-device",
    "driver-without-device",
    # what surrounds it
    "guest-hides",
    "container-hides",
    "namespace-hides",
    "role-not-known",
    "rails-not-known",
    "link-layer-not-known",
    "link-inconclusive",  # an idle or sleeping link is no evidence
    "still-settling",  # soon after boot
    "no-peers",
    "undecided",  # all of it was read, and it allows more than one answer
    # counters and baselines
    "no-second-sample",
    "not-compared",  # this counter, over this window
    "sample-too-small",
    "no-baseline",
]
NotApplicableCode = Literal[
    "no-such-device",
    "other-kind",  # a device of another kind, model or role
    "inside-card",  # a link between a card's own chips
    "guest",
    "container",
    "by-design",
    "not-in-use",
    "not-configured",
    "not-measured",  # the hardware or its driver has no such value
    "nothing-to-compare",
    "judged-elsewhere",
    "declared",  # by the operator
    "no-profile",
    "disabled",
]
ReasonCode = Literal[UnknownCode, NotApplicableCode]

CODES: tuple[str, ...] = get_args(UnknownCode) + get_args(NotApplicableCode)

NO_EARLIER_SAMPLE = "counters need two samples: use --interval 60 or --state-dir"
NO_EARLIER_RUN = "first run, no baseline yet: use --state-dir to keep one"

# Of the other codes the text is the parameter `detail`.
_TEXTS: Mapping[str, str] = {
    "evidence-absent": "{why}",
    "evidence-denied": "{why}",
    "evidence-timed-out": "{why}",
    "evidence-failed": "{why}",
    "evidence-skipped": "{why}",
    "evidence-not-run": "{probes}: not run",
    "no-second-sample": "{why}",
    "no-baseline": "{why}",
    "not-compared": "{why}",
    "not-read": "{fact} could not be read",
    "not-known": "{fact} is not known",
    "not-reported": "the driver does not report {fact}",
    "output-missing": "no output of {command}",
    "log-not-read": "the kernel log was not read: {why}",
    "role-not-known": "what it is for is not known: {why}",
    "rails-not-known": "which NICs are rails is not known: {why}",
    "link-layer-not-known": "whether it is InfiniBand or Ethernet is not known",
    "unsupported-device": "PCI accelerators that are not supported: {devices}",
    "driver-without-device": "no GPU is on the PCI bus, and its driver is loaded: {drivers}",
    "disabled": "switched off by the configuration",
}


class Settle(msgspec.Struct, frozen=True):
    """What would answer the open question: a command to save, a file, a privilege or another sample."""

    kind: SettleKind
    what: str


ROOT = Settle("privilege", "root")
SECOND_SAMPLE = Settle("sample", "--interval 60")
BASELINE = Settle("sample", "--state-dir DIR")
_SETTLED_BY: Mapping[str, tuple[Settle, ...]] = {
    "role-not-known": (Settle("command", "lspci -vvv"),),
    "rails-not-known": (Settle("command", "lspci -vvv"),),
    "list-incomplete": (Settle("command", "lspci -vvv"),),
    "link-layer-not-known": (Settle("command", "ibstat"),),
    "needs-root": (ROOT,),
    "evidence-denied": (ROOT,),
    "log-not-read": (Settle("command", "dmesg"),),
    "no-second-sample": (SECOND_SAMPLE, BASELINE),
    "sample-too-small": (SECOND_SAMPLE,),
    "not-compared": (SECOND_SAMPLE,),
    "no-baseline": (BASELINE,),
}


# What to save for the facts of a subject (`needs` of a rule), most useful first
_SAVED_FOR: Mapping[str, tuple[str, ...]] = {
    "pci": ("lspci -vvv",),
    "pci_sysfs": ("lspci -vvv",),
    "rdma": ("ibstat", "ibv_devinfo -v"),
    "netdev": ("ip -d link",),
    "kernel_log": ("dmesg",),
    "modules": ("lsmod",),
    "hccn": ("hccn_tool -i 0 -link -g",),
    "cxl": ("cxl list -vvv",),
    "services": ("systemctl status nvidia-fabricmanager",),
    "optics": ("ethtool -m DEVICE",),
}
_GPU_COMMANDS: Mapping[str | None, tuple[str, ...]] = {
    "AMD": ("amd-smi static --json", "rocm-smi --showtopo"),
    "Intel Habana": ("hl-smi -Q index,bus_id,module_id,name,uuid,serial,driver_version -f csv",),
    "Amazon": ("neuron-ls --json-output",),
    "Huawei": ("npu-smi info",),
    None: ("nvidia-smi -q", "nvidia-smi topo -m"),
}


class _WithReason(Protocol):
    @property
    def reason(self) -> str | None: ...
    @property
    def reason_code(self) -> str | None: ...


class _RuleTally(_WithReason, Protocol):
    @property
    def state(self) -> str: ...
    @property
    def unknown_subjects(self) -> Sequence[_WithReason]: ...


def needs_sample(check: _RuleTally) -> bool:
    """Whether a rule, or one of its subjects, was not judged because there was no earlier sample."""
    return check.state != "disabled" and any(
        row.reason_code == "no-second-sample" or row.reason == NO_EARLIER_SAMPLE  # older reports have no codes
        for row in (check, *check.unknown_subjects)
    )


@cache
def list_commands(need: str, maker: str | None) -> tuple[Settle, ...]:
    """The commands whose saved outputs hold what a rule needs ("a|b": either), for GPUs of a maker."""
    commands: list[str] = []
    for subject in need.split("|"):
        is_gpu = subject == "gpu"
        commands += _GPU_COMMANDS.get(maker, _GPU_COMMANDS[None]) if is_gpu else _SAVED_FOR.get(subject, ())
    return tuple(Settle("command", command) for command in commands)


class Reason(str):
    """The text of a reason, with the code and the parameters that it was made from, and what would settle it.

    >>> why = Reason("not-read", fact="its GID table")
    >>> why, why.code, why.prefixed("ACTIVE; ").code
    ('its GID table could not be read', 'not-read', 'not-read')
    """

    __slots__ = ("code", "parameters", "settles")
    code: ReasonCode
    parameters: Mapping[str, str]
    settles: tuple[Settle, ...]

    def __new__(cls, code: ReasonCode, *settles: Settle, **parameters: str) -> "Reason":
        """The reason of a code; a command that is missing settles itself."""
        return cls._made(_TEXTS.get(code, "{detail}").format_map(parameters), code, settles, parameters)

    @classmethod
    def _made(cls, text: str, code: ReasonCode, settles: tuple[Settle, ...], parameters: Mapping[str, str]) -> "Reason":
        made = str.__new__(cls, text)
        made.code, made.parameters = code, parameters
        if not settles:
            settles = _SETTLED_BY.get(code, ())
            if code == "output-missing":
                settles = (Settle("command", parameters["command"]),)
        made.settles = settles
        return made

    def settled_by(self, settles: tuple[Settle, ...]) -> "Reason":
        """The same reason, settled by these where it names nothing itself."""
        return self if self.settles or not settles else self._made(str(self), self.code, settles, self.parameters)

    def prefixed(self, question: str) -> "Reason":
        """The same reason behind the question that it leaves open: "whether there are NVSwitches: " and the reason."""
        return self._made(f"{question}{self}", self.code, self.settles, {**self.parameters, "question": question})


def quote_source(text: str | None, code: ReasonCode = "stated-by-source") -> Reason | None:
    """A reason that a driver or a source states itself; None where it states none."""
    return Reason(code, detail=text) if text else None


class SettleRow(msgspec.Struct, frozen=True, kw_only=True):
    """What would answer an open question: the output of a command, a file, a privilege, another sample."""

    kind: SettleKind
    what: str


class ReasonRow(msgspec.Struct, frozen=True, kw_only=True):
    """A reason as the report lists it: one row per code and text."""

    code: str
    parameters: dict[str, str] = {}
    text: str
    settles: list[SettleRow] = []


def list_reasons(reasons: Iterable[Reason]) -> list[ReasonRow]:
    """Each code and text once, sorted."""
    parameters: dict[tuple[str, str], Mapping[str, str]] = {}
    settles: dict[tuple[str, str], dict[Settle, None]] = {}
    for reason in reasons:
        key = (reason.code, str(reason))
        parameters[key] = reason.parameters
        settles.setdefault(key, {}).update(dict.fromkeys(reason.settles))
    return [
        ReasonRow(
            code=key[0],
            parameters={name: str(value) for name, value in sorted(parameters[key].items())},
            text=key[1],
            settles=[SettleRow(kind=settle.kind, what=settle.what) for settle in settles[key]],
        )
        for key in sorted(parameters)
    ]
