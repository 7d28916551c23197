"""A slow way between hosts: TCP in place of RDMA, or copies through host memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from agent.job.candidate import PossibleCause, find_hosts, name_hosts, name_ranks
from agent.job.catalogue import ENDING
from agent.job.causes.generic import find_generic
from agent.job.evidence import Evidence, LineEvent
from agent.job.settings import judge_value

_NO_DEVICES = {
    "no-libibverbs": "the image has no libibverbs",
    "no-rdma-device": "no active RDMA port is left for NCCL",
}


def find_transport(evidence: Evidence, events: dict[str, list[LineEvent]]) -> Iterator[PossibleCause]:
    """A slow way between hosts: TCP in place of RDMA, or copies through host memory."""
    facts = evidence.nccl.result()
    if (facts.nodes or len(evidence.ranks.hosts())) < 2:
        missing = events.get("no-libibverbs") if facts.nodes is None and facts.network == "Socket" else None
        if missing:
            text = f"{_NO_DEVICES['no-libibverbs']}: where the job has several hosts, NCCL uses TCP between them"
            note = PossibleCause("sockets", "note", "setting", text, "medium")
            note.next = ["install libibverbs (rdma-core) in the image, and `ls /dev/infiniband` inside the job"]
            note.show(evidence, missing[0].line)
            yield note
        return
    mixed = _find_mixed(evidence, events)
    if mixed is not None:
        yield mixed
        return
    yield from _find_settings_of_few(evidence)
    if facts.network == "Socket" or "NET/Socket" in facts.transports:
        yield from _find_sockets(evidence, events)
        return
    yield from _find_far_pairs(evidence)
    copying = list(_find_copying_hosts(evidence))
    yield from copying
    ways = {way: count for way, count in facts.transports.items() if way.startswith("NET/IB")}
    copied = sum(count for way, count in ways.items() if "GDRDMA" not in way)
    if ways and copied == sum(ways.values()) and not copying:
        off = bool(facts.gpudirect_off)
        why = "neither peer memory nor DMA-BUF of the NIC works" if off else "GPUDirect RDMA is not in use"
        text = f"all {copied} network channels copy through host memory: {why}"
        candidate = PossibleCause("gpudirect-off", "slow", "setting", text, "high" if off else "medium")
        candidate.next = [
            "`lsmod | grep peermem` and the open GPU modules (DMA-BUF) on all hosts: `fabricscope scan` names "
            "what is missing"
        ]
        yield candidate


def _find_mixed(evidence: Evidence, events: dict[str, list[LineEvent]]) -> PossibleCause | None:
    """Hosts on which NCCL found no RDMA device, beside hosts that use theirs."""
    lines = [event.line for name in _NO_DEVICES for event in events.get(name, ())]
    networks = _find_networks(evidence)
    used = {host: None for host, devices in evidence.ranks.devices.items() if host and devices}
    used |= {host: None for host, name in networks.items() if name != "Socket"}
    lines += evidence.settings.get("NCCL_IB_DISABLE", {}).get("1", {}).values()
    without = {host: line for line in lines if (host := evidence.host_of(line)) is not None and host not in used}
    few = [*without, *(host for host, name in networks.items() if name == "Socket" and host not in without)]
    if not few or not used or evidence.ended_well:
        return None
    values = evidence.settings.get("NCCL_IB_DISABLE", {}).values()
    disabled = any(evidence.host_of(line) in few for places in values for line in places.values())
    names, many = name_hosts(few), name_hosts(list(used))
    text = (
        f"NCCL uses no RDMA device on {names}{' (NCCL_IB_DISABLE is set there)' if disabled else ''}, and {many} "
        f"{'uses' if len(used) == 1 else 'use'} theirs: ranks of different networks cannot connect, and the job hangs "
        "or fails at its first collective; where all of a job are such hosts it is slow"
    )
    has_failed = any(event.role in ENDING or event.role == "connect" for event in evidence.events.values())
    role = "error" if has_failed else "slow"
    candidate = PossibleCause("networks-differ", role, "setting", text, "high" if disabled else "medium")
    candidate.blame(hosts=few)
    candidate.show(evidence, *list(without.values())[:2])
    for text, name, number in _list_plugin_lines(evidence, few)[:2]:
        candidate.show_text(text, name, number)
    candidate.next = [
        f"unset NCCL_IB_DISABLE on {names}"
        if disabled
        else f"`ls /dev/infiniband` and `ibstat` inside the job on {names}: its container, ports that are not active; "
        "the libraries of its network plugin (`ldd`, LD_LIBRARY_PATH); `fabricscope scan` there",
        "the same settings and devices on all hosts",
    ]
    return candidate


_NETWORK, _SOCKETS = "Using network ", "NET/Socket : Using"


def _find_networks(evidence: Evidence) -> dict[str, str]:
    """The network that NCCL uses on each host, where all of its processes print one."""
    networks: dict[str, set[str]] = defaultdict(set)
    for text, form in evidence.forms.forms.items():
        name = "Socket" if text.startswith(_SOCKETS) else ""
        name = text.removeprefix(_NETWORK) if text.startswith(_NETWORK) else name
        for writer in form.rows if name else ():
            networks[writer.host or ""].add(name)
    return {host: names.pop() for host, names in networks.items() if host and len(names) == 1}


def _list_plugin_lines(evidence: Evidence, hosts: Sequence[str]) -> list[tuple[str, str, int]]:
    """What NCCL prints of a network plugin that it cannot load on these hosts: text, file and line."""
    return [
        (form.write(form.rows[writer][0]), evidence.names[place.file], place.number)
        for text, form in evidence.forms.forms.items()
        if text.startswith("NET/Plugin") and "dlerror" in text
        for writer, place in form.first.items()
        if writer.host in hosts
    ]


def _find_settings_of_few(evidence: Evidence) -> Iterator[PossibleCause]:
    """A setting that makes a job slow, and that some hosts have and the others have not."""
    seen = {host for host, _ in evidence.ranks.processes}
    for name, values in sorted(evidence.settings.items()):
        for value, places in sorted(values.items()):
            lines = {host: line for line in places.values() if line.level and (host := evidence.host_of(line))}
            verdict = judge_value(name, value, None)
            if verdict is None or verdict[0] != "risky" or not 0 < len(lines) <= len(seen - lines.keys()):
                continue
            who = name_hosts(sorted(lines))
            text = f"{who} alone {'has' if len(lines) == 1 else 'have'} {name}={value} in the environment: {verdict[1]}"
            role = "note" if evidence.ended_well else "slow"
            candidate = PossibleCause("setting-of-few", role, "setting", text, "medium")
            candidate.blame(hosts=lines)
            candidate.show(evidence, *list(lines.values())[:2])
            candidate.next = [f"unset {name} on {who}: its shell's start files, container, job script, /etc/nccl.conf"]
            yield candidate


def _find_copying_hosts(evidence: Evidence) -> Iterator[PossibleCause]:
    """Hosts on which NCCL switches GPUDirect RDMA off for all of their NICs, while others of the job use it."""
    kinds: dict[str, dict[str, LineEvent]] = defaultdict(dict)
    for event in evidence.find_events("gpudirect-pair"):
        if "nic" in event.groups and (host := evidence.host_of(event.line)) is not None:
            kinds[host].setdefault(event.groups["kind"], event)
    off = {host: rows["Disabled"] for host, rows in kinds.items() if list(rows) == ["Disabled"]}
    on = [host for host, rows in kinds.items() if list(rows) == ["Enabled"]]
    if not off or not on:
        return
    names, verb = name_hosts(list(off)), "goes" if len(off) == 1 else "go"
    text = (
        f"{names} {verb} without GPUDirect RDMA, through host memory, and {name_hosts(on)} "
        f"{'has' if len(on) == 1 else 'have'} it: the whole job is as slow as that"
    )
    candidate = PossibleCause("gpudirect-off", "slow", "setting", text, "high")
    candidate.blame(hosts=off)
    candidate.show(evidence, *(event.line for event in list(off.values())[:3]))
    candidate.next = [
        f"`lsmod | grep peermem` and the open GPU modules (DMA-BUF) on {names} and on {on[0]}: `fabricscope scan` "
        "names what is missing",
        f"NCCL_NET_GDR_LEVEL and NCCL_DMABUF_ENABLE in the environment of {names}",
    ]
    yield candidate


def _find_far_pairs(evidence: Evidence) -> Iterator[PossibleCause]:
    """A GPU and NIC that GPUDirect RDMA leaves out on one host, while the same pair of another host has it."""
    pairs = [event for event in evidence.find_events("gpudirect-pair") if "seq" in event.groups]
    pairs = [event for event in pairs if evidence.host_of(event.line)]
    enabled = {event.groups["number"]: event.groups["seq"] for event in pairs if event.groups["kind"] == "Enabled"}
    far = [event for event in pairs if event.groups["kind"] == "Disabled" and event.groups["number"] in enabled]
    if not far or len(far) * 2 > len(pairs):
        return
    names = ", ".join(dict.fromkeys(f"GPU {event.groups['number']}" for event in far[:4]))
    hosts = list(dict.fromkeys(host for event in far if (host := evidence.host_of(event.line))))
    first = far[0].groups
    text = (
        f"{names} of {name_hosts(hosts)} goes without GPUDirect RDMA, through host memory: distance {first['seq']}, "
        f"and {enabled[first['number']]} on the other hosts"
    )
    candidate = PossibleCause("gpudirect-pair-far", "slow", "hardware", text, "medium")
    candidate.blame(hosts=hosts)
    candidate.add_events(evidence, far)
    candidate.next = [
        f"`nvidia-smi topo -m` on {name_hosts(hosts)} and on another host: the slot or PCIe switch of this NIC; "
        "`fabricscope scan` on both and `fabricscope diff`",
        "firmware settings of the PCIe switch (ACS) and of NPS or sub-NUMA clustering that differ between the hosts",
    ]
    yield candidate


def _find_sockets(evidence: Evidence, events: dict[str, list[LineEvent]]) -> Iterator[PossibleCause]:
    disabled = [
        key for key in ("NCCL_IB_DISABLE", "NCCL_NET") if {"1", "Socket"} & evidence.settings.get(key, {}).keys()
    ]
    missing = [text for name, text in _NO_DEVICES.items() if events.get(name)]
    reasons = [f"{key} is set" for key in disabled] or missing
    if not reasons or events.get("efa-not-found"):
        return  # nothing shows that there is RDMA; or libfabric's lines have the reason
    text = f"NCCL uses TCP sockets between hosts: {'; '.join(reasons)}"
    candidate = PossibleCause("sockets", "slow", "setting", text, "high" if disabled else "medium")
    candidate.blame(hosts=list(evidence.ranks.hosts())[:64])
    for name in ("no-rdma-device", "no-libibverbs"):
        candidate.show(evidence, *(event.line for event in events.get(name, [])[:2]))
    candidate.next = [
        f"unset {' and '.join(disabled)}"
        if disabled
        else "`ls /dev/infiniband` and `ibstat` inside the job: the devices of the container, ports that are active"
    ]
    yield candidate


def find_no_efa(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """libfabric without a device, and what NCCL uses in its place."""
    has_failed = bool(evidence.find_events("efa-plugin-failed"))
    for candidate in find_generic(evidence, events):
        if has_failed:
            candidate.role = "hard"  # the plugin goes on without a device only where it does not fail
        if evidence.nccl.facts.get("network") == "Socket":
            provider = next((event.groups["provider"] for event in events if event.groups.get("provider")), "efa")
            hosts = name_hosts(list(candidate.hosts)) or "the hosts"
            candidate.summary = (
                f"NCCL uses TCP sockets instead of {provider.upper()}: libfabric finds no "
                f"device of provider {provider} on {hosts}"
            )
        yield candidate


def find_efa_plugin(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """The plugin of EFA does not start: libfabric's warning before it has the reason, and NCCL may go on with TCP."""
    warnings = evidence.find_events("libfabric-warning")
    for candidate in find_generic(evidence, events):
        file, number = candidate.first_line or (0, 0)
        before = [
            event for event in warnings if event.line.file == file and 0 < number - event.line.number <= _REASON_LINES
        ]
        reasons = list(dict.fromkeys(event.groups["text"] for event in before))
        if reasons:
            candidate.summary += f"; libfabric before it: {'; '.join(reasons[:2])}"
            candidate.show(evidence, before[0].line)
            candidate.next = candidate.next[1:]
        if any("Cannot allocate memory" in reason for reason in reasons):
            candidate.fault = "setting"
            candidate.next.insert(
                0,
                "`ulimit -l` inside the job: unlimited (docker: --ulimit memlock=-1); as many EFA devices in the "
                "container as the instance has, and no process of an earlier job that still holds them",
            )
        if evidence.nccl.facts.get("network") == "Socket":
            candidate.summary += "; NCCL then uses TCP sockets between hosts, which are much slower"
        yield candidate


_REASON_LINES = 12


def find_unusable(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """RDMA devices that verbs cannot open; where others are in use, the job goes on without them."""
    facts = evidence.nccl.result()
    goes_on = facts.network not in (None, "Socket") or any(way.startswith("NET/IB") for way in facts.transports)
    for candidate in find_generic(evidence, events):
        if goes_on:
            candidate.role = "slow"
            candidate.summary += "; NCCL goes on with the others, and with peers that have it may hang"
        yield candidate


def find_device_counts(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """A host with fewer NICs than the others: the one whose ranks list fewer."""
    listed = evidence.find_events("local-net-devices")
    counts = {int(event.groups["number"]): int(event.groups["count"]) for event in listed}
    most = max(counts.values(), default=0)
    few = sorted(rank for rank, count in counts.items() if count < most)
    for candidate in find_generic(evidence, events):
        if few:
            candidate.ranks, candidate.hosts = dict.fromkeys(few), dict.fromkeys(find_hosts(evidence, few))
            who = name_hosts(list(candidate.hosts)) or name_ranks(evidence, few, [])
            candidate.summary = f"{who} has fewer NICs than the others: {counts[few[0]]} of {most}"
            candidate.next = [f"`ibstat` on {who}: a port that is down, or a NIC that the container does not have"]
        yield candidate


def find_host_copies(evidence: Evidence) -> Iterator[PossibleCause]:
    """GPUs of one host that exchange data through host memory: a note, as some machines have no other way."""
    ways = evidence.nccl.result().transports
    copied = sum(count for way, count in ways.items() if way.startswith(("SHM", "direct")))
    direct = sum(count for way, count in ways.items() if way.startswith("P2P"))
    if not copied:
        return
    names = [name for name in ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL") if name in evidence.settings]
    why = f"; {' and '.join(names)} is set" if names else ""
    text = f"{copied} of {copied + direct} channels between GPUs of one host go through host memory (SHM){why}"
    note = PossibleCause("host-copies", "note", "setting" if names else "unknown", text)
    note.next = ["`nvidia-smi topo -p2p r` on the host: ACS, IOMMU, containers without a common IPC namespace"]
    yield note
