"""Ethernet links of RoCE ports: state, speed, FEC."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.nic import Fec, Netdev
from agent.model.reasons import Reason
from agent.rules.cabling import (
    board_model,
    describe_lost_rails,
    find_known_rate,
    judge_by_role,
    merge_whole_node,
    position_on_card,
    quote_tools,
)
from agent.rules.context import RuleContext
from agent.rules.node_wide import merge_if_on_all
from agent.rules.roce.ports import RocePort, cabled_interfaces, is_virtual, report_hidden, roce_ports, visible_interface
from agent.rules.rule import Fail, NamedSubject, NotApplicable, Result, Subject, Unknown, rule, split_subjects
from agent.rules.wording import find_majority, format_share_lost


@rule("roce-link-down")
def roce_link_down(context: RuleContext) -> Iterator[Result]:
    doubtful = {nic.id for nic in context.maybe_rails}
    down = {
        f"port:{nic.id}/{port.port}": port.state
        for nic in context.topology.nics
        for port in nic.ports
        if nic.id in doubtful and port.link_layer == "Ethernet" and port.state not in ("ACTIVE", None)
    }
    ports: list[RocePort] = []
    for other in roce_ports(context, down=True):
        if isinstance(other, RocePort):
            ports.append(other)
        elif isinstance(other, NotApplicable) and other.subject in down and (no_rail := context.why_no_rail_known):
            yield Unknown(other.subject, no_rail.prefixed(f"{down[other.subject]}; "))
        else:
            yield other
    yield from judge_by_role(context, ports, _judge_link_down, lambda _, faults: merge_whole_node(faults, "RoCE"))


def _judge_link_down(context: RuleContext, roce_port: RocePort, confidence: str) -> Result:
    state = roce_port.port.state or ""
    netdev = visible_interface(roce_port)
    if isinstance(netdev, Unknown) and not context.lists_whole:  # in a fragment the port's own state has to do
        return netdev
    shown = netdev if isinstance(netdev, Netdev) and netdev.operstate is not None else None
    is_set_unknown = not isinstance(netdev, Netdev) or netdev.admin_up is None
    cause, why = _down_reason(shown) if shown else ("", f"physical state {roce_port.port.phys_state or 'unknown'}")
    return roce_port.fail(
        summary=f"{state}: {why}",
        impact=describe_lost_rails(context, roce_port.nic),
        evidence=(
            roce_port.evidence("state", state, "state"),
            *(_evidence(shown) if shown else ()),
            *quote_tools(context, roce_port),
        ),
        severity=roce_port.severity("error"),
        confidence=confidence,
        cause=cause,
        situation=cause.replace(" ", "-") or ("maybe-set-down" if is_set_unknown else ""),
        ids=roce_port.ids | ({netdev.id} if isinstance(netdev, Netdev) else set()),
    )


def _down_reason(netdev: Netdev) -> tuple[str, str]:
    """A word for the fingerprint, and the reason in words."""
    module = netdev.module
    dark = [lane.lane for lane in module.lanes if "rx_los" in lane.flags] if module else []
    if netdev.admin_up is False:
        return "set down", f"{netdev.label} is set down"
    if netdev.module_reason_code == "no-module":
        return "no module", f"no module answers in the cage of {netdev.label}"
    if dark and module and len(dark) == len(module.lanes):
        return "no light", f"no light comes in on any lane of {netdev.label}"
    if dark:
        return "no light", f"no light comes in on lane {', '.join(map(str, dark))} of {netdev.label}"
    fastest, standard = netdev.max_speed_gbit_s or 0, (module.standard if module else None) or ""
    is_off = netdev.fec is not None and netdev.fec.configured == ["off"]
    if is_off and fastest >= _NEEDS_FEC_GBIT_S and not standard.endswith(_WITHOUT_FEC):
        return "fec off", f"{netdev.label} has no carrier, and FEC is off, which most links of {fastest:g} Gb/s need"
    return "", f"{netdev.label} has no carrier"


_NEEDS_FEC_GBIT_S = 100  # IEEE 802.3: RS-FEC of 100GBASE-CR4 and -SR4, and of all that is faster
_WITHOUT_FEC = ("LR4", "ER4")  # of 100 Gb/s


def _evidence(netdev: Netdev) -> Iterator[Evidence]:
    folder = f"/sys/class/net/{netdev.label}"
    yield Evidence(f"state of {netdev.label}", netdev.operstate or "not known", f"{folder}/operstate")
    if netdev.admin_up is not None:
        state = "up" if netdev.admin_up else "down"
        yield Evidence(f"{netdev.label} is set", state, f"{folder}/flags")
    if netdev.fec and netdev.fec.configured:
        modes = " ".join(netdev.fec.configured)
        yield Evidence(f"FEC of {netdev.label}", modes, f"ethtool --show-fec {netdev.label}")
    module = netdev.module
    if module:
        value = " ".join(filter(None, (module.identifier, module.vendor, module.part, module.serial, module.state)))
        yield Evidence(f"module of {netdev.label}", value, f"ethtool -m {netdev.label}")
    elif netdev.module_reason:
        yield Evidence(f"module of {netdev.label}", netdev.module_reason, f"ethtool -m {netdev.label}")


class _CabledLink(Subject, frozen=True):
    """One interface that has a cable, and the port that it belongs to."""

    roce_port: RocePort
    netdev: Netdev
    kind: tuple[object, ...] = ()  # what interfaces have in common that should be alike

    @property
    def about(self) -> Subject:
        """The port; of a bond the interface."""
        port, netdev = self.roce_port, self.netdev
        subject = port.subject if netdev is port.netdev else f"netdev:{netdev.id}"
        return NamedSubject(subject, port.label, port.ids | {netdev.id})

    @property
    def speed(self) -> float:
        """In Gb/s."""
        return self.netdev.speed_gbit_s or 0.0

    @property
    def fec(self) -> Fec:
        """What is known of its FEC."""
        return self.netdev.fec or Fec()


def _list_cabled(context: RuleContext) -> Iterator[_CabledLink | Result]:
    """The interfaces that have the cables of ports, or why they are not judged."""
    for port in roce_ports(context):
        if not isinstance(port, RocePort):
            yield port
        elif silent := is_virtual(context, port) or report_hidden(port):
            yield silent
        else:
            below = cabled_interfaces(context, port)
            yield from (_CabledLink(port, netdev) for netdev in below)
            if not below:
                yield port.unknown("not-shown", detail="the members of its bond are not visible here")


@rule("roce-speed-degraded")
def roce_speed_degraded(context: RuleContext) -> Iterator[Result]:
    cabled_links, others = split_subjects(_list_fast(context))
    yield from others
    answers = [
        _judge_speed_degraded(context, cabled, [o for o in cabled_links if o.kind == cabled.kind])
        for cabled in cabled_links
    ]
    slow = [answer for answer in answers if isinstance(answer, Fail) and answer.severity == "info"]
    yield from (answer for answer in answers if answer not in slow)
    yield from merge_if_on_all(slow, len(slow), "slower than the NIC supports, all alike")


def _list_fast(context: RuleContext) -> Iterator[_CabledLink | Result]:
    for one in _list_cabled(context):
        if not isinstance(one, _CabledLink):
            yield one
            continue
        port, netdev = one.roce_port, one.netdev
        if netdev.speed_gbit_s:
            kind = port.nic.role, board_model(context, port.nic), position_on_card(port.nic, port.port.port)
            yield replace(one, kind=kind if netdev is port.netdev else (*kind, netdev.master))
        elif netdev.operstate == "down":
            yield NotApplicable(f"netdev:{netdev.id}", Reason("not-in-use", detail="its link is down"))
        else:
            yield port.unknown("not-read", fact="the speed of its interface")


def _judge_speed_degraded(context: RuleContext, cabled: _CabledLink, alike: list[_CabledLink]) -> Result:
    speeds = [other.speed for other in alike]
    usual_speed, fastest = find_majority(speeds), max(speeds)
    able = cabled.netdev.max_speed_gbit_s
    if usual_speed is not None and cabled.speed < usual_speed:
        return _fail_speed_degraded(cabled, usual_speed, f"most ports of this board run at {usual_speed:g}", "high")
    if cabled.speed < fastest:  # most are slow: no norm, where one shows what the fabric can do
        return _fail_speed_degraded(cabled, fastest, f"another port of this board runs at {fastest:g}", "medium")
    was = find_known_rate(context, cabled.roce_port.subject) if cabled.netdev is cabled.roce_port.netdev else None
    if was is not None and cabled.speed < was:
        fault = _fail_speed_degraded(cabled, was, f"in an earlier run it had {was:g}", "medium")
        return replace(fault, severity=cabled.roce_port.severity("warning"))
    if able and cabled.speed < able:
        return _fail_speed_degraded(cabled, able, f"the interface supports {able:g}", "low")
    return cabled.roce_port.passes()


def _fail_speed_degraded(cabled: _CabledLink, expected_speed: float, because: str, confidence: str) -> Fail:
    netdev, folder = cabled.netdev, f"/sys/class/net/{cabled.netdev.label}"
    by_design = confidence == "low"
    module = netdev.module
    module_text = " ".join(filter(None, (module.vendor, module.part, module.serial))) if module else ""
    evidence = [Evidence(f"speed of {netdev.label}", f"{cabled.speed:g} Gb/s", f"{folder}/speed")]
    if netdev.max_speed_gbit_s:
        fastest = f"{netdev.max_speed_gbit_s:g} Gb/s"
        evidence.append(Evidence("fastest supported mode", fastest, f"ethtool {netdev.label}"))
    if module_text:
        evidence.append(Evidence("cable or module", module_text, f"ethtool -m {netdev.label}"))
    return cabled.fail(
        summary=f"{netdev.label} runs at {cabled.speed:g} Gb/s; {because}",
        impact=f"{cabled.speed / 8:g} instead of {expected_speed / 8:g} GB/s in each direction "
        f"({format_share_lost(cabled.speed, expected_speed)} less)"
        + (": nothing is lost where the fabric is slower by design." if by_design else "; collectives wait for it."),
        evidence=tuple(evidence),
        severity="info" if by_design else cabled.roce_port.severity("error"),
        confidence=confidence,
        cause="all" if by_design else "",
    )


_STRONG = ("rs", "llrs")  # Reed-Solomon, and the one of less latency
_LANES_OF_25G = 100.0  # Gb/s from which lanes run at 25 Gb/s and more
_PAM4 = 200.0  # Gb/s from which lanes run at 50 Gb/s and more: no link without Reed-Solomon
_WITHOUT_FEC = ("100GBASE-LR4", "100GBASE-ER4")  # IEEE 802.3 clause 88: their links have none
_SHORT_METRES = 3.0  # of a copper cable that may do without at 25 Gb/s a lane (IEEE 802.3by CA-25G-N)
_WORDS = {"off": "no FEC", "baser": "BASE-R FEC", "rs": "RS-FEC", "llrs": "low-latency RS-FEC"}


@rule("roce-fec-wrong")
def roce_fec_wrong(context: RuleContext) -> Iterator[Result]:
    cabled_links, others = split_subjects(_list_with_fec(context))
    yield from others
    answers = [
        _judge_fec_wrong(cabled, [o.fec.active for o in cabled_links if o.kind == cabled.kind])
        for cabled in cabled_links
    ]
    faults = [answer for answer in answers if isinstance(answer, Fail)]
    yield from (answer for answer in answers if not isinstance(answer, Fail))
    yield from merge_if_on_all(faults, len(answers), "FEC is wrong on every RoCE port")


def _list_with_fec(context: RuleContext) -> Iterator[_CabledLink | Result]:
    for one in _list_cabled(context):
        if not isinstance(one, _CabledLink):
            yield one
            continue
        roce_port, netdev, speed = one.roce_port, one.netdev, one.netdev.speed_gbit_s
        if speed is None:
            yield roce_port.unknown("not-read", fact="the speed of its interface")
        elif speed < _LANES_OF_25G:
            yield roce_port.not_applicable("other-kind", detail=f"{speed:g} Gb/s: a link that may do without")
        elif netdev.fec is None or netdev.fec.active is None:
            yield roce_port.unknown("not-reported", fact="its active FEC")
        else:
            part = netdev.module.part if netdev.module else None
            yield replace(one, kind=(roce_port.nic.role, board_model(context, roce_port.nic), speed, part))


def _judge_fec_wrong(cabled: _CabledLink, alike: list[str | None]) -> Result:
    active, speed = cabled.fec.active or "", cabled.speed
    standard = cabled.netdev.module.standard if cabled.netdev.module else None
    if active not in _STRONG and speed < _PAM4 and standard in _WITHOUT_FEC:
        return cabled.roce_port.not_applicable("other-kind", detail=f"{standard} has no FEC")
    usual_fec = find_majority(alike)
    if speed >= _PAM4 and active not in _STRONG:
        return _fail_fec_wrong(cabled, "lanes of 50 Gb/s and more need RS-FEC", "weak")
    if active not in _STRONG and "rs" in cabled.fec.supported:
        if cabled.netdev.module is None:
            return cabled.roce_port.unknown(
                "not-shown", detail=f"{_WORDS.get(active, active)}, and its cable could not be read"
            )
        if not _is_short_copper(cabled.netdev):
            return _fail_fec_wrong(cabled, "the port supports RS-FEC", "weak")
    if usual_fec is not None and active != usual_fec and cabled.netdev.module:
        return _fail_fec_wrong(cabled, f"most ports like it have {_WORDS.get(usual_fec, usual_fec)}", "differs")
    return cabled.roce_port.passes()


def _is_short_copper(netdev: Netdev) -> bool:
    module = netdev.module
    return bool(module and module.media == "copper" and module.length_m and module.length_m <= _SHORT_METRES)


def _fail_fec_wrong(cabled: _CabledLink, because: str, cause: str) -> Fail:
    netdev, fec = cabled.netdev, cabled.fec
    configured = ", ".join(fec.configured) or ("auto" if fec.auto else "not reported")
    source = f"ethtool --show-fec {netdev.label}"
    return cabled.fail(
        summary=f"{_WORDS.get(fec.active or '', fec.active)} at {netdev.speed_gbit_s:g} Gb/s; {because}",
        impact="Every bit error is a lost packet, at up to 2.4e-4 a bit by design; ends that differ have no link.",
        evidence=(
            Evidence(f"active FEC of {netdev.label}", fec.active or "", source),
            Evidence("configured", configured, source),
            Evidence("supported", ", ".join(fec.supported) or "not reported", f"ethtool {netdev.label}"),
        ),
        severity=cabled.roce_port.severity("warning"),
        cause=cause,
    )
