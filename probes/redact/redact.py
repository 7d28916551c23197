"""`--redact`: a recording that names no one. What names someone is gathered first, then written again everywhere.

What is promised, and what is not, is in docs/capture.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from probes.host.interface import Completed, Refusal
from probes.host.recording import Recording
from probes.netlink import GENERIC
from probes.redact import binary
from probes.redact import fabric as redact_fabric
from probes.redact.text import Pseudonyms, TextRedactor, addresses_in
from probes.system.dmi import meaning
from probes.text import ParseError, lazy_pattern

TRIES = 32  # keys: two values may by chance get one pseudonym
SHORTEST_WORD = 4  # characters: a shorter name or serial is written again only where it is known to be one
HOSTS = ("/proc/sys/kernel/hostname", "/etc/hostname")
DOMAIN = "/proc/sys/kernel/domainname"
BOOT_TEXTS = ("/proc/cmdline", "/dev/kmsg")
SETTINGS = lazy_pattern(
    r"/proc/[^/]+/(?:environ|mounts)\Z|/[^/]*nccl[^/]*\.conf\Z"
)  # dotted numbers are addresses there
HOMES = "/home"
PAM = "/etc/security/"
SERIAL_FILES = lazy_pattern(r"/(?:\w+_serial|\w+_asset_tag|serial|serial[-_]number)\Z")
# "gpu-7 mlx5_0", as rdma-ndd writes it
NODE_DESCRIPTION = lazy_pattern(r"(\S{1,64}) (?:HCA-\d{1,4}|\w{0,32}_\d{1,4}|mlx\w{1,32})\s*\Z")
NO_HOSTS = frozenset({"localhost", "(none)", "unknown", ""})

_SERIALS = (
    re.compile(r"(?i)(?<![a-z])serial[ _]?(?:number|no\.?)[ \t]*[:=][ \t]*\"?([^\s\"<]{2,64})"),
    re.compile(r"(?i)(?<![a-z])(?:ID_SERIAL(?:_SHORT)?|asset[ _]tag)[ \t]*[:=][ \t]*\"?([^\s\"<]{2,64})"),
    re.compile(r"(?i)\bVendor SN[ \t]*:[ \t]*([^\s]{2,64})"),  # of a cable or module: ethtool -m, mlxlink -m
    re.compile(r"(?i)<(?:\w{0,40}serial\w{0,40}|\w{0,40}asset_tag)>([^<]{2,64})<"),
    re.compile(r"\b(?:PART)?UUID=([0-9A-Fa-f-]{4,35})\b"),  # those of FAT and of partitions; whole ones have a shape
    re.compile(r"(?i)\b(?:GPU PDI|PDI)[ \t]*:[ \t]*0x([0-9a-f]{16})\b"),
)
_HOSTS = (
    re.compile(r"\b(?:systemd\.)?hostname=([\w.-]+)"),
    re.compile(r"\bhostname (?:set )?to <([\w.-]+)>", re.IGNORECASE),
    re.compile(r"\bip=(?:[^:\s]{0,64}:){4}([\w.-]+)"),
    re.compile(r"^HostName: ([\w.-]+)", re.MULTILINE),
    re.compile(r"\bnfs: server ([\w.-]+)"),
)
_HOMES = lazy_pattern(r"(?<=/home/)[^/\s:;,\"'()<>\[\]\0]+")
_PAM_USERS = lazy_pattern(r"^[ \t]*([\w.-]+)(?=[ \t]+(?:soft|hard|-)[ \t])", re.MULTILINE)
_LLDP_ADDRESSES = lazy_pattern(r'"(?:mgmt-ip|id|value)"\s*:\s*(?:\[[^\]]*\]|\{[^{}]*\}|"[^"]*")')
_GUID_FIELD = lazy_pattern(r"GUID:\s+0x([0-9a-fA-F]{16})\b")


class Unredactable(Exception):
    """No key was found under which all pseudonyms differ."""


def redact_recording(recording: Recording) -> tuple[Recording, TextRedactor]:
    """The same evidence with pseudonyms, and what wrote them (which is not to be kept). Raises Unredactable."""
    for _ in range(TRIES):
        texts = TextRedactor(Pseudonyms(os.urandom(32)))
        _gather(texts, recording)
        new = _Rewriter(texts).recording(recording)
        if texts.names.is_sound():
            return new, texts
    raise Unredactable(f"two identities of this capture got one pseudonym under each of {TRIES} keys")


def _gather(texts: TextRedactor, recording: Recording) -> None:
    """Everything that names someone, from where it is known to do so."""
    hosts, serials = set[str](), set[str]()
    for path, content in recording.files.items():
        text = content.decode("latin-1")
        if path in HOSTS:
            hosts.add(text.strip())
        elif path == DOMAIN:
            hosts.add(f".{text.strip()}")
        elif SERIAL_FILES.search(path):
            serials.add(text.strip().strip("\0"))
        elif path.endswith("/node_desc") and (match := NODE_DESCRIPTION.match(text)):
            hosts.add(match[1])
        elif path.endswith("/config") and (at := binary.serial_at(content)) is not None:
            texts.learn_guid(content[at : at + binary.SERIAL_BYTES][::-1])
        if path in BOOT_TEXTS or SETTINGS.search(path):
            texts.ipv4.update(addresses_in(text))
    for (function, _), answer in recording.nvml.items():
        if "Serial" in function and isinstance(answer, str):
            serials.add(answer)
        elif isinstance(answer, dict):
            serials.update(value for name, value in answer.items() if "Serial" in name and isinstance(value, str))
    for (protocol, request), reply in recording.netlink.items():
        if isinstance(reply, bytes) and protocol == GENERIC:
            serials.add(binary.module_serial(request, reply) or "")
        elif isinstance(reply, bytes):
            _gather_netlink(texts, protocol, reply)
    for argv, answer in recording.commands.items():
        if argv[0] in ("lldpctl", "lldpcli") and isinstance(answer, Completed):
            hosts.update(_systems(answer.stdout))
            for address in _LLDP_ADDRESSES.findall(answer.stdout):
                texts.ipv4.update(addresses_in(address))
        elif argv[0] in redact_fabric.TOOLS and isinstance(answer, Completed):
            redact_fabric.learn(texts, answer.stdout)
    for text in _texts(recording):
        texts.learn(text)
        for digits in _GUID_FIELD.findall(text):
            texts.learn_guid(bytes.fromhex(digits))
        serials.update(match for pattern in _SERIALS for match in pattern.findall(text))
        hosts.update(match for pattern in _HOSTS for match in pattern.findall(text))
    texts.know(_words(texts.names, recording, hosts, serials))


def _systems(text: str) -> set[str]:
    """The names of switches."""
    from probes.netdev.lldp import parse_lldp  # a capture without neighbours does not pay for it

    try:
        return {neighbor.system for neighbor in parse_lldp(text).neighbors if neighbor.system}
    except ParseError:
        return set()


def _gather_netlink(texts: TextRedactor, protocol: int, reply: bytes) -> None:
    for raw in binary.hardware_addresses(protocol, reply):
        texts.learn_hardware(raw)
    for raw in binary.network_addresses(protocol, reply):
        texts.learn_address(raw)


def _texts(recording: Recording) -> Iterator[str]:
    """Every text of a recording in which values may stand that are known by their shape or their label."""
    for path, content in recording.files.items():
        yield path
        if not path.endswith("/config"):
            yield content.decode("latin-1")
    yield from recording.links.values()
    for argv, answer in recording.commands.items():
        yield " ".join(argv)
        yield from (answer.stdout, answer.stderr) if isinstance(answer, Completed) else (answer.reason,)
    yield from (answer for answer in recording.nvml.values() if isinstance(answer, str))


def _words(names: Pseudonyms, recording: Recording, hosts: set[str], serials: set[str]) -> dict[str, str]:
    """What is written again wherever it stands as a word: what is too short, or also a word of sysfs, is not."""
    paths = " ".join(recording.files).lower()
    words: dict[str, str] = {}
    for serial in serials:
        if len(serial) >= SHORTEST_WORD and meaning(serial) and any(c.isdigit() for c in serial):
            words[serial] = names.serial(serial)
    for host in hosts:
        label, _, domain = host.partition(".")
        if len(domain) >= SHORTEST_WORD and domain.lower() not in NO_HOSTS:
            words[domain] = names.domain(domain)
        if len(label) < SHORTEST_WORD or label.lower() in NO_HOSTS:
            continue
        is_name = any(c.isdigit() or c == "-" for c in label)
        if is_name or not re.search(rf"(?<![a-z0-9]){re.escape(label.lower())}(?![a-z0-9])", paths):
            words[label] = names.host(label)
    return words


class _Rewriter:
    """One recording, written again."""

    def __init__(self, texts: TextRedactor) -> None:
        self.texts = texts

    def text(self, text: str) -> str:
        """Names behind a label first, however short they are; then what is known, anywhere."""
        for pattern in _HOSTS:
            text = pattern.sub(self.labelled, text)
        text = _HOMES.sub(lambda match: self.texts.names.user(match[0]), text)
        return self.texts.text(text)

    def labelled(self, match: re.Match[str]) -> str:
        name = match[1]
        start, end = match.start(1) - match.start(), match.end(1) - match.start()
        return match[0] if name in NO_HOSTS else match[0][:start] + self.texts.names.host(name) + match[0][end:]

    def recording(self, old: Recording) -> Recording:
        text = self.text
        return Recording(
            observed_at=old.observed_at,
            links={text(path): text(target) for path, target in old.links.items()},
            files={text(path): self.file(path, content) for path, content in old.files.items()},
            directories={text(path) for path in old.directories},
            listings={text(path): self.listing(path, listed) for path, listed in old.listings.items()},
            refusals={text(path): self.refusal(why) for path, why in old.refusals.items()},
            commands=dict(self.command(argv, answer) for argv, answer in old.commands.items()),
            nvml={
                (function, text(given)): self.nvml(function, answer) for (function, given), answer in old.nvml.items()
            },
            netlink={
                (protocol, binary.rewrite_request(self.texts, protocol, request)): self.netlink(
                    protocol, request, answer
                )
                for (protocol, request), answer in old.netlink.items()
            },
            ethtool={(text(name), q): self.ethtool(q, answer) for (name, q), answer in old.ethtool.items()},
            lost={name: self.refusal(why) for name, why in old.lost.items()},
            unanswered={name: self.refusal(why) for name, why in old.unanswered.items()},
            missing=[text(line) for line in old.missing],
            source_kind=old.source_kind,
        )

    def listing(self, path: str, names: list[str]) -> list[str]:
        return sorted(map(self.texts.names.user if path == HOMES else self.text, names))

    def user(self, match: re.Match[str]) -> str:
        name = match[1]
        return match[0] if name == "root" else match[0].replace(name, self.texts.names.user(name))

    def file(self, path: str, content: bytes) -> bytes:
        if path.endswith("/config"):
            return binary.rewrite_config_space(self.texts, content)
        text = content.decode("latin-1")
        bare = text.strip().strip("\0")
        if path in HOSTS and bare not in NO_HOSTS:
            return text.replace(bare, self.texts.names.host(bare)).encode("latin-1")
        if path == DOMAIN and bare not in NO_HOSTS:
            return text.replace(bare, self.texts.names.domain(bare)).encode("latin-1")
        if SERIAL_FILES.search(path) and meaning(bare) and self.text(bare) == bare:
            return text.replace(bare, self.texts.names.serial(bare)).encode("latin-1")
        if path.startswith(PAM):
            text = _PAM_USERS.sub(self.user, text)
        if path.endswith("/node_desc"):
            text = NODE_DESCRIPTION.sub(self.labelled, text)
        return self.text(text).encode("latin-1")

    def command(
        self, argv: tuple[str, ...], answer: Completed | Refusal
    ) -> tuple[tuple[str, ...], Completed | Refusal]:
        words = tuple(self.text(word) for word in argv)
        if isinstance(answer, Refusal):
            return words, self.refusal(answer)
        stdout: str | None = (
            binary.rewrite_lspci_dumps(self.texts, answer.stdout) if argv[0] == "lspci" else answer.stdout
        )
        if argv[0] in (*redact_fabric.TOOLS, *redact_fabric.FILES):
            stdout = (
                redact_fabric.rewrite_fabric_output(self.texts, answer.stdout)
                if argv[0] in redact_fabric.TOOLS
                else None
            )
        if stdout is None:
            return words, Refusal("absent", f"{argv[0]}: left out by --redact: it holds more than is understood")
        return words, answer._replace(argv=words, stdout=self.text(stdout), stderr=self.text(answer.stderr))

    def nvml(self, function: str, answer: Any) -> Any:
        if isinstance(answer, Refusal):
            return self.refusal(answer)
        if "Serial" in function and isinstance(answer, str) and meaning(answer):
            return self.texts.names.serial(answer)
        if isinstance(answer, dict):
            return {name: self.nvml(name, part) for name, part in answer.items()}
        return self.plain(answer)

    def plain(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.plain(item) for key, item in value.items()}
        return [self.plain(item) for item in value] if isinstance(value, (list, tuple)) else value

    def ethtool(self, request: bytes, answer: bytes | Refusal) -> bytes | Refusal:
        if isinstance(answer, Refusal):
            return self.refusal(answer)
        return binary.rewrite_ioctl(self.texts, request, answer)

    def netlink(self, protocol: int, request: bytes, answer: bytes | Refusal) -> bytes | Refusal:
        if isinstance(answer, Refusal):
            return self.refusal(answer)
        if protocol == GENERIC:
            new = binary.rewrite_generic_netlink(self.texts, request, answer)
        else:
            new = binary.rewrite_netlink(self.texts, protocol, answer)
        if new is None:
            return Refusal("absent", "left out by --redact: an answer of a kind that is not understood")
        return new

    def refusal(self, why: Refusal) -> Refusal:
        return why._replace(reason=self.text(why.reason))
