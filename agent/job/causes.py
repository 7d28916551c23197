"""What could have been the cause: one candidate for each kind of failure that the evidence shows."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from agent.job.candidate import PossibleCause, first_of, name_hosts, name_ranks
from agent.job.catalogue import load_codes
from agent.job.evidence import Evidence, LineEvent
from agent.job.flight_recorder import find_dump_hangs
from agent.job.hangs import find_watchdog_hangs
from agent.job.inspector import find_slow
from agent.job.lines import Moment
from agent.job.ras import find_ras_hangs

_GENERIC = (
    "hard",
    "dead",
    "network",
    "error",
    "crash",
    "exception",
    "connect",
    "cancel",
    "consequence",
    "slow",
    "note",
)
_TAIL = re.compile(r"localGid (?P<local>\S{1,60})|remoteGids\s?(?P<remote>\S{1,60})|\bhca (?P<nic>[\w.-]{1,60})")
_QP = re.compile(
    r"on dev (?P<nic>[\w.-]{1,60}):(?P<port>\d{1,3})|local GID index (?P<index>-?\d{1,4})|local GID "
    r"(?P<local>[\da-fA-F:.]{2,60})"
    r"|remote GID (?P<remote>[\da-fA-F:.]{2,60})"
)
_LIBRARY = {"mlx5": "mlx5", "bnxt": "bnxt"}
_NEAR_THE_END = 3  # lines
_AT_ONCE = "no collective had worked before: addresses (GID), MTU, routes or VLANs of the rails"
_LATER = "collectives had worked before: a link that flapped, loss under load, or a peer that ended"


def find_candidates(evidence: Evidence) -> list[PossibleCause]:
    """All of them, in no order."""
    events: dict[str, list[LineEvent]] = defaultdict(list)
    for event in evidence.events.values():
        events[event.row.id].append(event)
    candidates: list[PossibleCause] = []
    for name, rows in events.items():
        find = _SPECIAL.get(name, _find_generic)
        candidates += find(evidence, rows)
    candidates += find_watchdog_hangs(evidence)
    candidates += find_dump_hangs(evidence)
    candidates += find_ras_hangs(evidence)
    candidates += find_slow(evidence)
    candidates += _find_exits(evidence, events)
    candidates += _find_links(evidence)
    candidates += _find_transport(evidence, events)
    candidates += _find_unexplained(evidence)
    return candidates


def _find_generic(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """One candidate for all lines of a row and role, with the ranks that wrote them."""
    by_role: dict[str, list[LineEvent]] = defaultdict(list)
    for event in events:
        by_role[event.role].append(event)
    for role, rows in by_role.items():
        if role not in _GENERIC or rows[0].row.id == "unwinding":
            continue
        row, first = rows[0].row, first_of(rows)
        candidate = PossibleCause(row.id, role, row.fault, "", row.confidence)
        candidate.add_events(evidence, rows)
        candidate.nic = first.groups.get("nic") or None
        for event in rows:
            host = evidence.ranks.find_host(event.groups.get("peer", ""))
            if host is not None:
                candidate.peers.setdefault(host)
        words = _words(evidence, candidate, first)
        candidate.summary = fill(row.summary, words)
        candidate.next = [fill(text, words) for text in row.next]
        yield candidate


def _words(evidence: Evidence, candidate: PossibleCause, event: LineEvent) -> dict[str, str]:
    """What the placeholders of a row are filled with."""
    hosts = list(candidate.hosts)
    who = name_ranks(evidence, list(candidate.ranks), hosts)
    line = event.line.text[:200].strip()
    groups = {name: value for name, value in event.groups.items() if value}
    if "peer" in groups and (host := evidence.ranks.find_host(groups["peer"])) is not None:
        groups["peer"] = f"{groups['peer'].partition('<')[0]} ({host})" if host not in groups["peer"] else host
    return {
        "who": who,
        "where": who if len(hosts) < 2 or len(candidate.ranks) < 2 else name_hosts(hosts),
        "host": name_hosts(hosts) if hosts else "the host",
        "text": line,
        "line": line,
        **groups,
    }


def fill(template: str, words: dict[str, str]) -> str:
    """A template with its placeholders; those that the line does not have are left out."""
    return re.sub(r" ?\{(\w+)\}", lambda match: _fill_one(match, words), template).strip()


def _fill_one(match: re.Match[str], words: dict[str, str]) -> str:
    space = " " if match[0].startswith(" ") else ""
    value = words.get(match[1], "")
    return f"{space}{value}" if value else ""


def worked_before(evidence: Evidence, at: Moment | None) -> bool:
    """Whether collectives had worked before the failure."""
    if evidence.progress or evidence.ended_well:
        return True
    done = any(process.init_done for process in evidence.ranks.processes.values())
    return done and any((state.waits or 0) > 2 for state in evidence.watchdog)


def _find_completions(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """One candidate per status and NIC's name; flushed ones are consequences unless they are alone."""
    codes = load_codes()["completion"]
    by_status: dict[tuple[int, str | None], list[LineEvent]] = defaultdict(list)
    for event in events:
        status = int(event.groups.get("status", "0"), 16 if event.row.id == "ucx-completion" else 10)
        if event.row.id == "ucx-completion":
            status = {0x15: 12, 0x16: 13, 0x01: 1, 0x02: 2, 0x04: 4, 0x05: 5, 0x12: 9, 0x13: 10, 0x14: 11}.get(
                status, 21
            )
        by_status[status, _nic_of(evidence, event)].append(event)
    statuses = {status for status, _ in by_status}
    for (status, nic), rows in by_status.items():
        code: dict[str, Any] = codes.get(str(status), {})
        role = "consequence" if status == 5 and statuses != {5} else "network"
        candidate = PossibleCause(f"completion-{status}", role, code.get("fault", "unknown"), "")
        candidate.nic = nic or None
        candidate.add_events(evidence, rows)
        for event in rows:
            if (host := evidence.ranks.find_host(event.groups.get("peer", ""))) is not None:
                candidate.peers.setdefault(host)
            for match in _TAIL.finditer(event.groups.get("tail", "")):
                for name, value in match.groupdict().items():
                    if value:
                        candidate.facts.setdefault(name, value)
        words = _words(evidence, candidate, first_of(rows))
        words["peers"] = name_hosts(list(candidate.peers))
        name = f"completion status {status}" + (f" ({code['name']})" if code else "")
        who = words["who"]
        if status == 12:
            yield _unanswered(evidence, candidate, who, name)
            continue
        if status == 5 and role == "network":
            candidate.confidence = "low"
        candidate.summary = f"{who}: {name}: {code.get('means', 'no meaning is known')}"
        candidate.next = [fill(text, words) for text in code.get("next", [])]
        yield candidate


def _unanswered(evidence: Evidence, candidate: PossibleCause, who: str, name: str) -> PossibleCause:
    """Retries exceeded: by the addresses in the line, and by whether anything had worked before."""
    peers = f" from {name_hosts(list(candidate.peers))}" if candidate.peers else ""
    on = f" on {candidate.nic}" if candidate.nic else ""
    local, remote = candidate.facts.get("local", ""), candidate.facts.get("remote", "")
    if local.startswith("fe80") or remote.startswith("fe80"):
        candidate.id, candidate.fault = "gid-link-local", "setting"
        candidate.summary = (
            f"{who} got no answer{peers}{on} ({name}): the GIDs in use are link-local (fe80::), "
            f"which routed RoCE does not reach"
        )
        index = next(iter(evidence.settings.get("NCCL_IB_GID_INDEX", {})), None)
        if index is not None:
            candidate.facts.setdefault("index", index)
            candidate.summary += f"; NCCL_IB_GID_INDEX={index} chooses them"
        candidate.next = [
            "`show_gids` on both hosts: the index of the RoCE v2 GID with an IPv4 address",
            "NCCL_IB_GID_INDEX with that index (NCCL 2.21 and later choose it without the setting)",
        ]
        return candidate
    candidate.confidence = "medium"
    later = worked_before(evidence, candidate.at)
    candidate.summary = f"{who} got no answer{peers}{on} ({name}); {_LATER if later else _AT_ONCE}"
    hosts = name_hosts(list(candidate.hosts | candidate.peers)) or "both hosts"
    candidate.next = (
        [
            f"link flaps, drops and retransmissions of the rails on {hosts}: `fabricscope scan`, kernel log",
            "the peer's own log: whether its process ended first",
        ]
        if later
        else [
            f"`show_gids`, and active MTU of the rails on {hosts}: the same type and MTU at both ends",
            "`ping` from rail to rail with the MTU's size: `ping -M do -s 4000 -I INTERFACE PEER`",
        ]
    )
    return candidate


def _nic_of(evidence: Evidence, event: LineEvent) -> str | None:
    """The NIC that a line names, else the only one that its rank uses."""
    match = re.search(r"\bhca ([\w.-]{1,60})", event.groups.get("tail", ""))
    if match is not None or event.groups.get("nic"):
        return match[1] if match is not None else event.groups["nic"]
    return None


def _find_queue_pairs(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Failures to connect, with the addresses that later versions print."""
    for candidate in _find_generic(evidence, events):
        for event in events:
            for match in _QP.finditer(event.groups.get("tail", "")):
                for name, value in match.groupdict().items():
                    if value:
                        candidate.facts.setdefault(name, value)
        candidate.nic = candidate.facts.get("nic")
        index = next(iter(evidence.settings.get("NCCL_IB_GID_INDEX", {})), None)
        if index is not None:
            candidate.facts.setdefault("index", index)
            candidate.next.insert(0, f"NCCL_IB_GID_INDEX={index}: whether that GID is RoCE v2 with a routable address")
        if candidate.facts.get("local", "").startswith("fe80"):
            candidate.id, candidate.fault = "gid-link-local", "setting"
            candidate.summary += "; the local GID is link-local (fe80::)"
        yield candidate


def _find_async(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """A port that went down: one candidate per host and port, with its return."""
    codes = load_codes()["async"]
    groups: dict[tuple[str | None, str | None, str], list[LineEvent]] = defaultdict(list)
    for event in events:
        text = event.groups.get("event", "").strip().lower()
        name = next((key for key in codes if key.lower() in text), None)
        if name is not None:
            groups[evidence.host_of(event.line), event.groups.get("nic"), name].append(event)
    for (host, nic, name), rows in groups.items():
        code = codes[name]
        if code["role"] == "fact":
            continue
        candidate = PossibleCause(
            "port-down" if code["role"] == "port" else "device-event", code["role"], code["fault"], ""
        )
        candidate.add_events(evidence, rows)
        candidate.nic, port = nic, rows[0].groups.get("port")
        candidate.port = int(port) if port else None
        part = f"port {candidate.port or 1} of {nic}" if nic else "a port of an RDMA device"
        on = f" on {host}" if host else ""
        ranks = f" ({_ranks(candidate)})" if candidate.ranks else ""
        back = _came_back(groups.get((host, nic, "port active"), []), candidate.at) if name == "port error" else ""
        candidate.summary = f"{part}{on}{ranks} {code['means']}{back}"
        candidate.next = (
            [
                f"cable, optic and switch port of {nic or 'the NIC'}{on}: `fabricscope scan` there, link_downed "
                f"counter, kernel log",
                "clean or replace the cable or optic where it happens again",
            ]
            if code["role"] == "port"
            else [f"the kernel log of {host or 'the host'}: the NIC's driver and AER"]
        )
        for event in groups.get((host, nic, "port active"), [])[:1]:
            candidate.show(evidence, event.line)
        yield candidate


def _ranks(candidate: PossibleCause) -> str:
    ranks = sorted(candidate.ranks)
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"{len(ranks)} ranks"


def _came_back(events: list[LineEvent], at: Moment | None) -> str:
    if not events:
        return ""
    back = first_of(events).line.at
    if back is None or at is None or back.seconds < at.seconds:
        return ", and came up again"
    return f", and came up again after {back.seconds - at.seconds:.0f} s"


def _find_xids(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """One candidate per GPU, by its gravest Xid."""
    codes = load_codes()["xid"]
    by_gpu: dict[tuple[str | None, str], list[LineEvent]] = defaultdict(list)
    for event in events:
        by_gpu[evidence.host_of(event.line), event.groups["bus"].lower()].append(event)
    order = ("hard", "error", "note", "consequence")
    for (host, bus), rows in by_gpu.items():
        known = [
            (codes.get(event.groups["number"], {"role": "note", "means": "see NVIDIA's list of Xids"}), event)
            for event in rows
        ]
        known.sort(key=lambda pair: order.index(pair[0]["role"]))
        code, worst = known[0]
        candidate = PossibleCause("xid", code["role"], "hardware" if code["role"] == "hard" else "software", "")
        candidate.add_events(evidence, [worst, *(event for event in rows if event is not worst)])
        candidate.ranks.clear()
        candidate.bus = _normal_bus(bus)
        for process in evidence.ranks.processes.values():
            if process.bus == candidate.bus and process.rank is not None and host in (None, process.host):
                candidate.ranks.setdefault(process.rank)
                candidate.hosts.setdefault(process.host)
        who = (
            name_ranks(evidence, list(candidate.ranks), list(candidate.hosts))
            if candidate.ranks
            else f"on {host}"
            if host
            else ""
        )
        candidate.summary = (
            f"Xid {worst.groups['number']} of the GPU at {candidate.bus} {who}: {code['means']}".replace("  ", " ")
        )
        candidate.next = [
            f"`nvidia-smi -q` and the kernel log of {host or 'its host'}; `fabricscope scan` there names the "
            f"repair of this Xid"
        ]
        yield candidate


def _normal_bus(bus: str) -> str:
    parts = bus.split(":")
    parts = ["0000", *parts] if len(parts) == 2 else parts
    last = parts[-1] if "." in parts[-1] else f"{parts[-1]}.0"
    return ":".join([parts[0][-4:], *parts[1:-1], last])


def _find_cuda(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """One candidate per error; the number decides, else the text."""
    codes = load_codes()["cuda"]
    texts = {str(entry["text"]).lower(): number for number, entry in codes.items()}
    groups: dict[str, list[LineEvent]] = defaultdict(list)
    for event in events:
        text = event.groups.get("text", "").strip().lower()
        number = event.groups.get("number") or next(
            (found for known, found in texts.items() if text.startswith(known)), None
        )
        groups[number or f"'{event.groups.get('text', '')[:80]}'"].append(event)
    for number, rows in groups.items():
        code: dict[str, Any] = codes.get(number, {})
        role = code.get("role", "error")
        if role in ("noise", "consequence"):
            continue
        candidate = PossibleCause(
            f"cuda-{number}" if number.isdigit() else "cuda-error", role, code.get("fault", "software"), ""
        )
        candidate.confidence = "high" if role == "hard" else "medium"
        candidate.add_events(evidence, rows)
        words = _words(evidence, candidate, first_of(rows))
        means = f": {code['means']}" if code else ""
        name = f"CUDA error {number} ({code['text']})" if code else f"CUDA error {number}"
        candidate.summary = f"{words['who']}: {name}{means}"
        candidate.next = [
            fill(text, words) for text in code.get("next", ["`nvidia-smi` and the kernel log of {host} for Xids"])
        ]
        yield candidate


def _find_efa(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    codes = load_codes()["efa"]
    for candidate in _find_generic(evidence, events):
        status = first_of(events).groups.get("status")
        code = codes.get(status or "", {})
        if code:
            candidate.summary = (
                f"{name_ranks(evidence, list(candidate.ranks), list(candidate.hosts))}: EFA "
                f"status {status} ({code['name']}): {code['means']}"
            )
            candidate.fault = code["fault"]
            candidate.next = [
                "the security group of all hosts: all traffic from and to itself, inbound and outbound"
                if code["fault"] == "fabric"
                else "the peer's own log: whether its process ended first"
            ]
        yield candidate


def _find_link_timeouts(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Lines beside HCCL's table of links, which has the ranks: then they say nothing more."""
    for candidate in _find_generic(evidence, events):
        candidate.role = "consequence" if evidence.links else candidate.role
        candidate.next = ["the table LINK_ERROR_INFO of the plogs of all ranks: addresses, ranks and TLS status"]
        yield candidate


def _find_hccl_codes(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    codes = load_codes()["hccl"]
    groups: dict[str, list[LineEvent]] = defaultdict(list)
    for event in events:
        groups[event.groups["code"]].append(event)
    for name, rows in groups.items():
        row = rows[0].row
        candidate = PossibleCause(f"hccl-{name.lower()}", "error", row.fault, "")
        candidate.add_events(evidence, rows)
        words = _words(evidence, candidate, first_of(rows)) | {
            "meaning": codes[name]["means"],
            "check": codes[name]["check"],
        }
        candidate.summary = fill(row.summary, words)
        candidate.next = [fill(text, words) for text in row.next]
        yield candidate


def _find_links(evidence: Evidence) -> Iterator[PossibleCause]:
    """HCCL's table of links that did not come up: TLS that differs, else the rank that most others miss."""
    if not evidence.links:
        return
    tls: dict[int, str] = {link.rank: link.tls for link in evidence.links if link.tls in ("ENABLE", "DISABLE")}
    states = sorted(set(tls.values()), key=lambda state: sum(value == state for value in tls.values()))
    accused: dict[int, set[int]] = defaultdict(set)
    for link in evidence.links:
        accused[link.peer].add(link.rank)
    most = max(accused, key=lambda rank: (len(accused[rank]), -rank))
    if len(states) == 2:
        odd = sorted(rank for rank, state in tls.items() if state == states[0])
        hosts = _hosts_of(evidence, odd)
        who = _name_npus(evidence, odd, hosts)
        on = "on" if states[0] == "ENABLE" else "off"
        candidate = PossibleCause(
            "tls-differs",
            "hard",
            "setting",
            f"TLS is {on} for {who} and {'off' if on == 'on' else 'on'} for the others: links between them never "
            f"come up",
        )
        candidate.next = [
            "`hccn_tool -i N -tls -g` on all NPUs, then the same value everywhere (`hccn_tool -i N -tls -s "
            "enable 0` or 1)"
        ]
        ranks = odd
    else:
        hosts = _hosts_of(evidence, [most])
        who = _name_npus(evidence, [most], hosts)
        candidate = PossibleCause(
            "link-not-established",
            "missing" if len(accused[most]) > 1 else "network",
            "peer",
            f"no link to {who} was established: {len(accused[most])} rank{'s' if len(accused[most]) > 1 else ''} "
            f"waited for it",
            "medium",
        )
        candidate.next = [
            f"the log of rank {most}: whether its process is there, and its own first error",
            "`hccn_tool -i N -link -g` and `-net_health -g` of that NPU, and its address",
        ]
        ranks = [most]
    candidate.ranks |= dict.fromkeys(ranks)
    candidate.hosts |= dict.fromkeys(hosts)
    lines = [link for link in evidence.links if link.rank in ranks] + [
        link for link in evidence.links if link.peer in ranks
    ]
    for link in lines[:4]:
        candidate.show(evidence, link.line)
        candidate.at = candidate.at or link.line.at
    candidate.count = len(evidence.links)
    yield candidate


def _hosts_of(evidence: Evidence, ranks: Sequence[int]) -> list[str]:
    return list(dict.fromkeys(host for rank in ranks if (host := evidence.ranks.host(rank)) is not None))


def _name_npus(evidence: Evidence, ranks: Sequence[int], hosts: Sequence[str]) -> str:
    if len(ranks) != 1:
        return name_ranks(evidence, ranks, hosts)
    local = evidence.ranks.local(ranks[0])
    device = f"device {local} of " if local is not None and hosts else ""
    return f"rank {ranks[0]} ({device}{hosts[0]})" if hosts else f"rank {ranks[0]}"


def _find_exits(evidence: Evidence, events: dict[str, list[LineEvent]]) -> Iterator[PossibleCause]:
    """The process that ended first, by launchers; those that were terminated afterwards are victims."""
    rows: list[tuple[int, str, str | None, list[int], LineEvent | None, int | None]] = []
    for exited in events.get("task-exit", []) + events.get("mpi-exit", []):
        how = exited.groups.get("how") or (f"signal {exited.groups['signal']}" if exited.groups.get("signal") else "")
        tasks = read_numbers(exited.groups.get("tasks") or exited.groups.get("task") or "")
        rows.append((exited.line.number, how, exited.groups.get("hosts"), tasks, exited, None))
    rows += [
        (row.line.number, f"code {row.code}", row.host, [row.rank] if row.rank is not None else [], None, row.pid)
        for row in evidence.exits
    ]
    own = [row for row in rows if not _is_victim(row[1])]
    killed = events.get("oom-kill")
    if not own:
        return
    _, how, hosts, tasks, event, pid = own[0]
    host = hosts.partition(".")[0] if hosts and "[" not in hosts and "," not in hosts else None
    key, role, fault, text = _read_how(how)
    if killed and key in ("killed", "oom-kill"):
        return  # that candidate takes these ranks
    candidate = PossibleCause(key, role, fault, "", "medium")
    candidate.ranks |= dict.fromkeys(tasks[:1] if len(tasks) == 1 else tasks)
    if host:
        candidate.hosts.setdefault(host)
    candidate.hosts |= dict.fromkeys(_hosts_of(evidence, tasks))
    who = name_ranks(evidence, list(candidate.ranks), list(candidate.hosts))
    candidate.summary = f"{who} {text}"
    line = event.line if event is not None else next(row.line for row in evidence.exits if row.pid == pid)
    candidate.show(evidence, line)
    candidate.at = line.at
    where = next(iter(candidate.hosts), "its host")
    candidate.next = [
        f"the kernel log of {where} at that time: out of memory, Xids, segfaults"
        if fault != "setting"
        else f"`df /dev/shm` on {where}",
        f"the last lines of the log of {who}",
    ]
    yield candidate


def _is_victim(how: str) -> bool:
    """Ended by the launcher because another had ended."""
    return bool(re.search(r"Terminated|code -15\b|signal 15\b|Broken pipe", how))


def _read_how(how: str) -> tuple[str, str, str, str]:
    """id, role, fault and text of an exit."""
    for form, answer in _HOW:
        if re.search(form, how):
            return answer
    return "exit-code", "exit", "software", f"ended first, with {how}"


_HOW = (
    (r"Out Of Memory", ("oom-kill", "hard", "software", "was killed: out of host memory")),
    (
        r"code -9\b|Killed|signal 9\b",
        ("killed", "exit", "rank", "was killed (SIGKILL): by the out-of-memory killer, a limit, or a person"),
    ),
    (
        r"code -7\b|Bus error|signal 7\b",
        ("bus-error", "exit", "setting", "ended with a bus error: /dev/shm is full, or a mapped file was cut"),
    ),
    (r"code -11\b|Segmentation fault|signal 11\b", ("crash", "exit", "software", "crashed (segmentation fault)")),
    (r"code -6\b|Aborted|signal 6\b", ("aborted", "exit", "software", "aborted: its watchdog or an assertion")),
)


def read_numbers(text: str) -> list[int]:
    """Task numbers of "8-10,12".

    >>> read_numbers("8-10,12")
    [8, 9, 10, 12]
    """
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if first.isdigit() and (last.isdigit() or not dash):
            numbers += range(int(first), min(int(last or first), int(first) + 100_000) + 1)
    return numbers


def _find_oom(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Who was killed: by the process number, or by the launcher's line about the task."""
    candidate = PossibleCause("oom-kill", "hard", "software", "")
    candidate.add_events(evidence, events)
    candidate.ranks.clear()
    for event in events:
        pid = event.groups.get("pid")
        for process in evidence.ranks.processes.values():
            if pid and process.pid == int(pid) and process.rank is not None:
                candidate.ranks.setdefault(process.rank)
                candidate.hosts.setdefault(process.host)
    for event in evidence.events.values():
        if event.row.id == "task-exit" and re.search(r"Out Of Memory|Killed", event.groups.get("how", "")):
            tasks, hosts = read_numbers(event.groups["tasks"]), event.groups["hosts"]
            if len(tasks) <= 8 and not candidate.ranks:
                candidate.ranks |= dict.fromkeys(tasks)
                candidate.hosts |= {hosts: None} if "[" not in hosts and "," not in hosts else {}
            candidate.show(evidence, event.line)
    for row in evidence.exits:
        if row.code == -9 and not candidate.ranks and row.rank is not None:
            candidate.ranks.setdefault(row.rank)
            candidate.hosts |= {row.host: None} if row.host else {}
            candidate.show(evidence, row.line)
    if candidate.ranks:
        candidate.hosts = dict.fromkeys(_hosts_of(evidence, list(candidate.ranks))) or candidate.hosts
    words = _words(evidence, candidate, events[0])
    candidate.summary = fill(events[0].row.summary, words)
    candidate.next = [fill(text, words) for text in events[0].row.next]
    yield candidate


def _find_missing(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Ranks that a line names as missing."""
    ranks = [
        number
        for event in events
        for number in read_numbers(event.groups.get("missing", "").replace(" ", "").strip(","))
    ]
    row, first = events[0].row, first_of(events)
    candidate = PossibleCause(row.id, "missing" if ranks else "network", row.fault, "")
    candidate.ranks |= dict.fromkeys(sorted(set(ranks)))
    candidate.hosts |= dict.fromkeys(_hosts_of(evidence, ranks))
    who = name_ranks(evidence, list(candidate.ranks), list(candidate.hosts)) if ranks else "a rank"
    candidate.summary = (
        f"{who} did not come to the barrier" if row.id == "monitored-barrier" else f"{who} never came to the root"
    )
    candidate.next = list(row.next)
    candidate.show(evidence, first.line)
    candidate.at = first.line.at
    yield candidate


def _find_dead(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """The first that was declared dead."""
    first = first_of(events)
    row = first.row
    candidate = PossibleCause(row.id, "dead", row.fault, "")
    place = first.groups.get("peer") or first.groups.get("where", "").partition("/")[0]
    host = evidence.ranks.find_host(place) or place.partition("<")[0]
    candidate.hosts.setdefault(host)
    device = first.groups.get("where", "").partition("/")[2]
    ranks = [
        rank
        for rank in evidence.ranks.ranks()
        if evidence.ranks.host(rank) == host and str(evidence.ranks.local(rank)) == device
    ]
    candidate.ranks |= dict.fromkeys(ranks)
    what = first.groups.get("kind")
    name = f"{host}, device {device}" if device else host
    candidate.summary = (
        f"{name}: {what} (all ranks of HCCL name the root this way)"
        if what
        else f"a process on {host} died: RAS of NCCL declared it dead first"
    )
    candidate.next = [f"the log of {name}: what it wrote last", f"the kernel log of {host}"]
    candidate.show(evidence, first.line)
    candidate.at = first.line.at
    yield candidate


def _find_transport(evidence: Evidence, events: dict[str, list[LineEvent]]) -> Iterator[PossibleCause]:
    """A slow way between hosts: TCP in place of RDMA, or copies through host memory."""
    facts = evidence.nccl.result()
    hosts = list(evidence.ranks.hosts())
    nodes = facts.nodes or len(hosts)
    if nodes < 2:
        return
    sockets = facts.network == "Socket" or "NET/Socket" in facts.transports
    if sockets:
        reasons = [
            text
            for name, text in (
                ("no-libibverbs", "the image has no libibverbs"),
                ("no-rdma-device", "no active RDMA port is left for NCCL"),
            )
            if events.get(name)
        ]
        disabled = [
            key for key in ("NCCL_IB_DISABLE", "NCCL_NET") if set(evidence.settings.get(key, {})) & {"1", "Socket"}
        ]
        reasons = [f"{key} is set" for key in disabled] or reasons
        if not reasons or events.get("efa-not-found"):
            return  # nothing shows that there is RDMA; or libfabric's lines have the reason
        candidate = PossibleCause(
            "sockets", "slow", "setting", f"NCCL goes over TCP sockets between hosts: {'; '.join(reasons)}", "medium"
        )
        candidate.hosts |= dict.fromkeys(hosts[:64])
        for name in ("no-rdma-device", "no-libibverbs"):
            for event in events.get(name, [])[:2]:
                candidate.show(evidence, event.line)
        candidate.next = [
            "`ls /dev/infiniband` and `ibstat` inside the job: the devices of the container, ports that are active"
        ]
        if disabled:
            candidate.confidence = "high"
            candidate.next = [f"unset {' and '.join(disabled)}"]
        yield candidate
        return
    ways = {way: count for way, count in facts.transports.items() if way.startswith("NET/IB")}
    copied = sum(count for way, count in ways.items() if "GDRDMA" not in way)
    if ways and copied == sum(ways.values()):
        why = (
            "neither peer memory nor DMA-BUF of the NIC works"
            if facts.gpudirect_off
            else "GPUDirect RDMA is not in use"
        )
        candidate = PossibleCause(
            "gpudirect-off",
            "slow",
            "setting",
            f"all {copied} network channels copy through host memory: {why}",
            "high" if facts.gpudirect_off else "medium",
        )
        candidate.next = [
            "`lsmod | grep peermem` and the open GPU modules (DMA-BUF) on all hosts: `fabricscope scan` names "
            "what is missing"
        ]
        yield candidate


def _find_unexplained(evidence: Evidence) -> Iterator[PossibleCause]:
    """Warnings that no row is for, and a log that ends in an error: never silent, and never sure."""
    if evidence.unexplained:
        events = list(evidence.unexplained.values())
        first = first_of(events)
        candidate = PossibleCause("unexplained", "unexplained", "unknown", "", "low")
        candidate.add_events(evidence, events)
        who = name_ranks(evidence, list(candidate.ranks), list(candidate.hosts))
        text = first.line.text[:160]
        candidate.summary = f"{who}: NCCL warns of what is not in the table of failures: {text}"
        candidate.next = ["the source of NCCL at the line's file and number; the lines around it"]
        yield candidate
    for file, line in sorted(evidence.last_errors.items()):
        tail = evidence.tails.get(file)
        if tail is not None and tail.number - line.number <= _NEAR_THE_END:
            candidate = PossibleCause("ends-in-error", "unexplained", "unknown", "", "low")
            candidate.add(evidence, line)
            name = evidence.names[file]
            candidate.summary = (
                f"{name} ends in an error that is not in the table of failures: {line.text.strip()[:160]}"
            )
            candidate.next = ["the lines before it"]
            yield candidate
            return


def _find_no_efa(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """libfabric without a device, and what NCCL uses in its place."""
    for candidate in _find_generic(evidence, events):
        if evidence.nccl.facts.get("network") == "Socket":
            provider = next((event.groups["provider"] for event in events if event.groups.get("provider")), "efa")
            hosts = name_hosts(list(candidate.hosts)) or "the hosts"
            candidate.summary = (
                f"NCCL goes over TCP sockets in place of {provider.upper()}: libfabric finds no "
                f"device of provider {provider} on {hosts}"
            )
        yield candidate


def _find_waiting_npus(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Ranks of HCCL that waited until their time-out; one of few that did not is the suspect."""
    waited = {int(event.groups["number"]) for event in events if event.groups.get("number")}
    world = evidence.ranks.world
    rest = [rank for rank in range(world) if rank not in waited] if world <= 100_000 else []
    row = events[0].row
    if waited and rest and len(rest) <= max(1, world // 4):
        hosts = _hosts_of(evidence, rest)
        who = name_ranks(evidence, rest, hosts)
        candidate = PossibleCause(
            "rank-silent",
            "missing",
            "rank",
            f"{who} did not wait: {len(waited)} ranks waited for it until their time-out",
            "medium",
        )
        candidate.ranks |= dict.fromkeys(rest)
        candidate.hosts |= dict.fromkeys(hosts)
        candidate.next = [f"the log of rank {rest[0]}: its own first error, or what it was doing"]
        for event in events[:2]:
            candidate.show(evidence, event.line)
    else:
        candidate = PossibleCause(
            "collective-stuck",
            "hang",
            "unknown",
            "ranks waited for others until their time-out (HCCL_EXEC_TIMEOUT)",
            "low",
        )
        candidate.add_events(evidence, events)
        candidate.waits_for_all = True
        candidate.next = [
            "the logs of all ranks: the one that did not wait is the suspect; compare tag, index and count"
        ]
    candidate.id = candidate.id if candidate.role == "missing" else row.id
    candidate.at = first_of(events).line.at
    yield candidate


def _none(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    yield from ()


_SPECIAL = {
    "completion-error": _find_completions,
    "ucx-completion": _find_completions,
    "hccl-completion": _find_generic,
    "hccl-link-timeout": _find_link_timeouts,
    "qp-address-unresolved": _find_queue_pairs,
    "qp-invalid": _find_queue_pairs,
    "qp-no-route": _find_queue_pairs,
    "qp-failed": _find_queue_pairs,
    "async-event": _find_async,
    "xid": _find_xids,
    "cuda-error": _find_cuda,
    "efa-completion-error": _find_efa,
    "hccl-fault-code": _find_hccl_codes,
    "oom-kill": _find_oom,
    "monitored-barrier": _find_missing,
    "hccl-root-timeout": _find_missing,
    "ras-dead-peer": _find_dead,
    "hccl-heartbeat": _find_dead,
    "task-exit": _none,
    "mpi-exit": _none,
    "efa-not-found": _find_no_efa,
    "hccl-notify-timeout": _find_waiting_npus,
}
