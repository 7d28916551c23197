"""NCCL_IB_HCA and NCCL_SOCKET_IFNAME: the ports and interfaces that NCCL uses."""

import re
from collections.abc import Iterable, Sequence

import msgspec

from agent.model.finding import Evidence
from agent.model.nic import Netdev, Nic, Port
from agent.rules.applicability import shows_gpus
from agent.rules.context import RuleContext
from agent.rules.devices import one_level_lower
from agent.rules.nccl.settings import EffectiveSetting, effective_settings, why_files_unread
from agent.rules.rule import NODE, Fail, Result, rule
from agent.rules.wording import join_labels

_INTEGER = r"[+-]?[0-9]+"
_OWN_WAY = ("efa", "gve", "mana", "erdma", "siw")  # their providers bring a plugin; NCCL's own RDMA is not used


class HcaFilter(msgspec.Struct, frozen=True):
    """A list as NCCL reads it."""

    exclude: bool
    exact: bool
    names: tuple[tuple[str, int | None], ...]  # name or prefix, port; None: every port

    def takes(self, name: str, port: int | None = None) -> bool:
        """Whether a device or interface is taken. An empty list names everything."""
        is_named = not self.names or any(self._names(wanted, name, port) for wanted in self.names)
        return is_named != self.exclude

    def matching(self, entry: tuple[str, int | None], names: Iterable[str]) -> list[str]:
        """Which of these names one entry of the list stands for, whatever the port."""
        return [name for name in names if self._names((entry[0], None), name, None)]

    def _names(self, entry: tuple[str, int | None], name: str, port: int | None) -> bool:
        same = name == entry[0] if self.exact else name.startswith(entry[0])
        return same and (port is None or entry[1] is None or port == entry[1])


class Hca(msgspec.Struct, frozen=True):
    """One active port that NCCL could take."""

    nic: Nic
    port: Port

    @property
    def name(self) -> str:
        """The RDMA device's name."""
        return self.nic.rdma_device or self.nic.label

    @property
    def label(self) -> str:
        """For people: the port only where the device has several."""
        return self.name if len(self.nic.ports) == 1 else f"{self.name}:{self.port.port}"


def read_hca_filter(value: str) -> HcaFilter:
    """Read a list.

    >>> read_hca_filter("^=mlx5_1:2,mlx5_3")
    HcaFilter(exclude=True, exact=True, names=(('mlx5_1', 2), ('mlx5_3', None)))
    """
    exclude = value.startswith("^")
    value = value[exclude:]
    exact = value.startswith("=")
    entries = (entry.split(":") for entry in value[exact:].split(","))
    return HcaFilter(exclude, exact, tuple((words[0], _parse_port(words[1:])) for words in entries if words[0]))


def active_ports(context: RuleContext) -> list[Hca]:
    """Every port that NCCL would consider, by device name."""
    hcas = [
        Hca(nic, port)
        for nic in context.topology.nics
        if nic.state == "present" and nic.rdma_device
        for port in nic.ports
        if port.state == "ACTIVE" and port.link_layer in ("InfiniBand", "Ethernet")
    ]
    return sorted(hcas, key=lambda hca: (len(hca.name), hca.name, hca.port.port))


def rdma_rails(context: RuleContext) -> list[Hca]:
    """Active ports of rails that NCCL's own RDMA is for: not those of clouds whose plugin replaces it."""
    rails = [port for port in active_ports(context) if port.nic.role == "rail" and not port.nic.software]
    return [rail for rail in rails if not (rail.nic.driver or "").startswith(_OWN_WAY)]


def report_no_rails(context: RuleContext) -> Result | None:
    """The answer where RDMA of NCCL's own is not expected; None where it is."""
    if silent := shows_gpus(context):
        return silent
    if rdma_rails(context):
        return None
    why = (context.why_probe_failed("rdma") if context.topology.nics else None) or context.why_no_rail_known
    return NODE.unknown(why) if why else NODE.not_applicable("not-in-use", detail="no active RDMA rail")


def severity_by_scope(severity: str, where: Iterable[EffectiveSetting]) -> str:
    """What a setting of all jobs is; one severity lower where only running jobs have it: they may try something."""
    return severity if any(setting.persistent for setting in where) else one_level_lower(severity)


def settings_evidence(key: str, where: Iterable[EffectiveSetting]) -> tuple[Evidence, ...]:
    """Every place of a setting, up to eight."""
    return tuple(setting.evidence(key) for setting in list(where)[:8])


def _parse_port(words: list[str]) -> int | None:
    """A port as atoi reads it; none is reported: every one."""
    if not words or not words[0]:
        return None
    match = re.match(_INTEGER, words[0].strip())
    return int(match[0][:9]) if match else 0


_HCA_MISMATCH_KEY = "NCCL_IB_HCA"


class _Chosen(msgspec.Struct, frozen=True):
    """What one value of the list comes to on this node."""

    where: EffectiveSetting
    wanted: HcaFilter
    taken: list[Hca]
    missed: list[Hca]  # active rails that it leaves out
    foreign: list[Hca]  # taken, and no rail
    remedy: str


@rule("gdr-nccl-hca-mismatch", gate=report_no_rails)
def gdr_nccl_hca_mismatch(context: RuleContext) -> Result | Iterable[Result]:
    values = effective_settings(context, _HCA_MISMATCH_KEY)
    if not values:
        if why := why_files_unread(context):
            return NODE.unknown(why)
        text = f"{_HCA_MISMATCH_KEY} is not set: NCCL takes every active port"
        return NODE.not_applicable("not-configured", detail=text)
    answers = [_judge_hca_mismatch(context, where) for where in values]
    faults = {
        answer.cause: answer for answer in reversed(answers) if isinstance(answer, Fail)
    }  # of equal ones the first
    return faults.values() or NODE.passes()


def _judge_hca_mismatch(context: RuleContext, where: EffectiveSetting) -> Result:
    ports = active_ports(context)
    chosen = read_hca_filter(where.value)
    taken = [port for port in ports if chosen.takes(port.name, port.port.port)]
    missed = [port for port in ports if port.nic.role == "rail" and not port.nic.software and port not in taken]
    foreign = [hca for hca in taken if hca.nic.role not in ("rail", "unknown") or hca.nic.software]
    selection = _Chosen(where, chosen, taken, missed, foreign, _remedy(context, where))
    step = (lambda severity: severity) if where.persistent else one_level_lower
    if not taken:
        return _fail_hca_mismatch(
            selection,
            "none",
            step("error"),
            "takes no active port",
            "All traffic between nodes goes over TCP sockets, which is far slower.",
        )
    rails = len(taken) - len(foreign) + len(missed)
    if missed:
        what = f"takes {rails - len(missed)} of {rails} rails, not {join_labels([hca.label for hca in missed])}"
        share = f"{100 * len(missed) / rails:.0f}% of the bandwidth between nodes is not used."
        return _fail_hca_mismatch(selection, "missed", "error" if where.persistent else "info", what, share)
    if foreign:
        what = f"takes {join_labels([f'{hca.label} ({hca.nic.role})' for hca in foreign])} beside the rails"
        return _fail_hca_mismatch(
            selection, "foreign", step("warning"), what, "every rail waits for the slowest port that is taken."
        )
    strangers = _unknown_names(context, chosen)
    if strangers and not chosen.exclude:
        what = f"takes all rails, but also names {join_labels(strangers)}, which is no device here"
        return _fail_hca_mismatch(
            selection, "stranger", "info", what, "None, unless a NIC was renamed: then its rail is not used."
        )
    return NODE.passes()


def _unknown_names(context: RuleContext, chosen: HcaFilter) -> list[str]:
    """Names of the list that no RDMA device of this node has."""
    names = [nic.rdma_device for nic in context.topology.nics if nic.rdma_device]
    return [entry[0] for entry in chosen.names if not chosen.matching(entry, names)]


def _remedy(context: RuleContext, where: EffectiveSetting) -> str:
    """The whole list, to be copied: rails that are down now are rails, too."""
    rails = {nic.rdma_device for nic in context.rails if nic.rdma_device and not nic.software}
    names = ",".join(sorted(rails, key=lambda name: (len(name), name)))
    return f"In {where.unit} name every rail and nothing else, by whole names: {_HCA_MISMATCH_KEY}=={names}"


def _fail_hca_mismatch(selection: _Chosen, cause: str, severity: str, what: str, impact: str) -> Fail:
    where = selection.where
    devices = selection.missed + selection.foreign
    return NODE.fail(
        summary=f"{_HCA_MISMATCH_KEY}={where.value[:80]} in {where.source} {what}{_ambiguous_names(selection)}",
        impact=impact,
        remedy=selection.remedy,
        evidence=(
            where.evidence(_HCA_MISMATCH_KEY),
            Evidence("active ports taken", _port_labels(selection.taken), "/sys/class/infiniband"),
            *(
                Evidence(
                    "rail left out" if device in selection.missed else "taken, and no rail",
                    f"{device.label} {device.port.link_layer}",
                    f"/sys/class/infiniband/{device.name}/ports/{device.port.port}",
                )
                for device in devices[:8]
            ),
        ),
        severity=severity,
        cause=cause,
    )


def _ambiguous_names(selection: _Chosen) -> str:
    """Which name takes more than the device that it names; a whole name takes no other."""
    names = [hca.name for hca in (selection.foreign if not selection.wanted.exclude else selection.missed)]
    for entry in selection.wanted.names:
        longer = [
            name for name in selection.wanted.matching(entry, names) if name != entry[0] and entry[0][-1:].isdigit()
        ]
        if longer:
            return f'; {entry[0]} without "=" also means {longer[0]}'
    return ""


def _port_labels(ports: Sequence[Hca]) -> str:
    return join_labels([port.label for port in ports]) or "none"


_IFNAME = "NCCL_SOCKET_IFNAME"
_INSIDE = (
    "lo", "docker", "virbr", "veth", "br-", "cni", "flannel", "cali", "podman", "lxcbr", "lxdbr", "tunl", "dummy",
)  # fmt: skip


@rule("gdr-nccl-socket-ifname", gate=shows_gpus)
def gdr_nccl_socket_ifname(context: RuleContext) -> Result | Iterable[Result]:
    values = effective_settings(context, _IFNAME)
    if why := why_files_unread(context) or context.why_probe_failed("netdev"):
        return NODE.unknown(why)
    if not values:
        return NODE.not_applicable("not-configured", detail=f"{_IFNAME} is not set: NCCL looks for itself")
    faults = {fault.cause: fault for where in reversed(values) if (fault := _judge_socket_ifname(context, where))}
    return faults.values() or NODE.passes()


def _judge_socket_ifname(context: RuleContext, where: EffectiveSetting) -> Fail | None:
    chosen = read_hca_filter(where.value)
    taken = [netdev for netdev in context.topology.netdevs if chosen.takes(netdev.label) and _is_up(netdev)]
    if any(not netdev.label.startswith(_INSIDE) for netdev in taken):
        return None
    names = [netdev.label for netdev in taken]
    what = (
        f"takes only {join_labels(names)}, which leads to no other node" if names else "takes no interface that is up"
    )
    outside = _front_end_interface(context)
    up = [netdev.label for netdev in context.topology.netdevs if _is_up(netdev)]
    return NODE.fail(
        summary=f"{_IFNAME}={where.value[:80]} in {where.source} {what}",
        impact="Jobs of several nodes stop at their start, or hang.",
        remedy=f"Name the interface that reaches the other nodes, in full: {_IFNAME}=={outside}"
        if outside
        else f"Set {_IFNAME} to = and the whole name of the interface that reaches the other nodes.",
        evidence=(where.evidence(_IFNAME), Evidence("interfaces that are up", join_labels(up), "ip -br addr")),
        severity="warning" if where.persistent else one_level_lower("warning"),
        cause="inside" if names else "none",
    )


def _front_end_interface(context: RuleContext) -> str | None:
    """The one interface that is up, has an address and is no rail's; None: a person must choose."""
    rails = {nic.id for nic in context.rails}
    could = [
        netdev.label
        for netdev in context.topology.netdevs
        if _is_up(netdev) and netdev.addresses and netdev.nic not in rails and not netdev.label.startswith(_INSIDE)
    ]
    return could[0] if len(could) == 1 else None


def _is_up(netdev: Netdev) -> bool:
    return netdev.operstate in ("up", "unknown", None)
