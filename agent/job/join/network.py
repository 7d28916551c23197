"""Ports, flaps, GIDs and MTUs of the NICs of a cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.job.candidate import PossibleCause
from agent.job.join.context import CauseOnHost, HostReport, list_times, match_time
from agent.model.nic import Nic, Port

_KERNEL_KINDS = ("link_down", "aer", "dpc", "mlx5", "nic_firmware")


def _port_of(nic: Nic, number: int | None) -> Port | None:
    return next((port for port in nic.ports if number in (None, port.port)), None)


def join_ports(subject: CauseOnHost) -> Iterator[str]:
    """State, flaps and losses of the ports that a network cause uses."""
    cause, host, report, nics = subject.cause, subject.host, subject.report, subject.nics
    ranks = subject.conclusion.evidence.ranks
    if cause.role not in ("network", "port"):
        return
    down = [(nic, port) for nic in nics for port in nic.ports if port.state not in ("ACTIVE", None)]
    if cause.nic is None and cause.role == "port" and len(down) == 1:
        cause.nic, cause.port = down[0][0].label, down[0][1].port
        cause.summary = cause.summary.replace("a port of an RDMA device", f"port {cause.port} of {cause.nic}")
    for nic, port in down[:4]:
        yield f"{nic.label} port {port.port}: {port.state}{f' ({port.phys_state})' if port.phys_state else ''}"
    for nic in report.topology.nics if cause.nic is None else ():
        for port in nic.ports:
            if (
                nic not in nics
                and nic.rdma_device
                and nic.role in ("rail", "unknown")
                and port.state not in ("ACTIVE", None)
            ):
                yield f"not used by the job: {nic.label} port {port.port}: {port.state}"
    odd = [nic for nic in nics for port in nic.ports if port.link_layer == "Ethernet" and (port.lid or 0) > 0]
    if odd and cause.id == "qp-invalid":
        yield f"{odd[0].label}: LID {odd[0].ports[0].lid} on an Ethernet port"
        cause.summary += (
            f"; {odd[0].label} has LID {odd[0].ports[0].lid} on an Ethernet port, which old NCCL takes for InfiniBand"
        )
        cause.next.insert(0, "a later NCCL, which looks at the link layer and not at the LID")
    if down and (cause.nic in (None, down[0][0].rdma_device, down[0][0].label)) and cause.fault != "setting":
        nic = down[0][0]
        cause.fault, cause.nic, cause.port = "wire", nic.rdma_device or nic.label, down[0][1].port
        if cause.role == "network":
            cause.hosts = {host: None} if host else cause.hosts
            cause.ranks = {rank: None for rank in cause.ranks if ranks.host(rank) == host} or cause.ranks
        if "port is down there" not in cause.summary:
            cause.summary += f"; {nic.rdma_device or nic.label} on {host}: the port is down there"
        cause.confidence = "high"
    for nic in nics[:16]:
        used = _port_of(nic, cause.port)
        if used is None:
            continue
        counters = {**used.counters, **used.hw_counters}
        shown = [
            f"{name} {counters[name]}"
            for name in ("link_downed", "symbol_error", "local_ack_timeout_err", "out_of_sequence", "rnr_nak_retry_err")
            if counters.get(name)
        ]
        if shown and (cause.nic is not None or cause.role == "port"):
            yield f"{nic.label} port {used.port}: {', '.join(shown)} since the driver was loaded"
        yield from _list_events(subject, nic)


def _list_events(subject: CauseOnHost, nic: Nic) -> Iterator[str]:
    """What the kernel log of the report has of a NIC at the time of the failure: a flap, else PCIe and firmware."""
    cause, report = subject.cause, subject.report
    names = {nic.pci, nic.id, nic.label, nic.rdma_device} | {
        name for netdev in report.topology.netdevs if netdev.nic == nic.id for name in (netdev.id, netdev.label)
    }
    for event in report.events:
        if event.kind not in _KERNEL_KINDS or event.subject not in names:
            continue
        when = match_time(cause, list_times(event))
        if when is None:
            continue
        if event.kind == "link_down":
            _blame_flap(subject, nic, when)
            yield f"kernel log: {nic.label} went down {when}"
            return
        yield f"kernel log: {nic.label}: {event.text[:120]} {when}"


def _blame_flap(subject: CauseOnHost, nic: Nic, when: str) -> None:
    """A link that the kernel saw go down explains why a peer did not answer."""
    cause = subject.cause
    if cause.role != "network" or cause.fault in ("setting", "wire"):
        return
    cause.fault, cause.nic, cause.confidence = "wire", nic.rdma_device or nic.label, "high"
    cause.summary += f"; {nic.rdma_device or nic.label} on {subject.host or 'the host'} went down {when}"
    cause.next.insert(
        0, f"cable, optic and switch port of {nic.rdma_device or nic.label} on {subject.host or 'the host'}"
    )


def join_gids(subject: CauseOnHost) -> Iterator[str]:
    """The GID that is in use, and the one that is right."""
    cause, host, nics = subject.cause, subject.host, subject.nics
    if cause.id not in (
        "gid-link-local",
        "qp-address-unresolved",
        "qp-invalid",
        "qp-no-route",
        "completion-12",
        "gid-type-unreadable",
    ):
        return
    index = cause.facts.get("index")
    for nic in nics[:8]:
        port = _port_of(nic, cause.port)
        if port is None or not port.gids:
            continue
        if index is None and (local := cause.facts.get("local")):
            index = next((str(gid.index) for gid in port.gids if _same_gid(gid.gid, local)), None)
        used = next((gid for gid in port.gids if str(gid.index) == index), None)
        right = [
            gid
            for gid in port.gids
            if (gid.type or "").lower() in ("roce v2", "rocev2") and ":ffff:" in gid.gid.lower()
        ]
        if used is not None and _is_link_local(used.gid):
            yield f"{nic.label}: GID index {used.index} is link-local ({used.gid}, {used.type})"
        elif used is not None and (used.type or "").lower() in ("ib/roce v1", "roce v1"):
            yield f"{nic.label}: GID index {used.index} is RoCE v1"
        elif (
            index is not None and used is None and index.lstrip("-").isdecimal() and int(index) >= 0 and port.gids_known
        ):
            yield f"{nic.label}: GID index {index} has no entry"
        link_local = (cause.facts.get("local") or "").lower().startswith("fe80")
        wrong = used not in right if used is not None else (link_local or (index is not None and port.gids_known))
        if not right or not wrong:
            continue
        best = right[0]
        yield f"{nic.label}: GID index {best.index} is RoCE v2 with an IPv4 address ({best.gid})"
        where = host or "this host"
        advice = f"NCCL_IB_GID_INDEX={best.index} on {where} (NCCL 2.21 and later choose it without the setting)"
        if advice in cause.next or "RoCE v2 with an IPv4 address" in cause.summary:
            return
        state = "another GID is in use"
        if used is not None and _is_link_local(used.gid):
            state = f"GID index {used.index} is link-local"
        elif link_local:
            state = "the GID in use is link-local"
        cause.next.insert(0, advice)
        cause.summary += f"; {nic.label}: {state}, index {best.index} is RoCE v2 with an IPv4 address"
        cause.fault = "setting"
        return


def _is_link_local(gid: str) -> bool:
    return gid.lower().startswith("fe80")


def _same_gid(one: str, other: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(one) == ip_address(other)
    except ValueError:
        return one.lower() == other.lower()


def compare_mtu(cause: PossibleCause, reports: Sequence[HostReport]) -> None:
    """Rails of two hosts with different MTUs: the smaller one cuts the path."""
    mtus: dict[int, str] = {}
    for one in reports:
        for nic in one.report.topology.nics:
            if nic.role == "rail" and cause.nic in (None, nic.rdma_device, nic.label):
                for port in nic.ports:
                    if port.active_mtu and port.link_layer == "Ethernet":
                        mtus.setdefault(port.active_mtu, f"{one.report.node.hostname} {nic.label}")
    if len(mtus) > 1:
        text = ", ".join(f"{mtu} ({place})" for mtu, place in sorted(mtus.items()))
        cause.summary += f"; the active MTUs of the rails differ: {text}"
        cause.next.insert(0, "one MTU for all rails and switch ports")
