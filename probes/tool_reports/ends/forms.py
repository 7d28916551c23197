"""The forms of lines that state a fact, and how its text is read. A group is a fact by its name (`AS_2` is `AS`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern

SWITCH, HOST, DSCP_MAP = "switch", "host", "dscp_to_tc"
_IP, _VERSION = r"(?:\d{1,3}\.){3}\d{1,3}", r"\d{3}\.\d[\d.]{1,9}"
_IS = r"[\"']?[ \t:=]{1,40}"
_MODULE = rf"\bKernel Module(?: for \S{{1,20}})?\s{{1,8}}(?P<driver_version>{_VERSION})"
_DRIVER_ASKED = rf"query-gpu=driver_version.{{0,60}} => (?P<driver_version_2>{_VERSION})$"
_PFC = (
    r"(?:pfc_enable|pfc-cos|no-drop dot1p|priority-flow-control priority|pfc \S{1,30} switch-priority|cos_list"
    r"|Priority Enabled List)[ \t:=>\[\"']{1,12}(?P<PFC>[0-7](?:[, ]{1,2}[0-7]){0,7})\b"
)
_VLANS = (
    r"(?i)\b(?:allowed vlans?|vlan members|(?:access|native|untagged|pvid) vlan|bridge-(?:vids|access)"
    r"|allow-pass vlan|permit vlan)[ \t]+(?:add |\[ ?)?(?P<VLANs>\d[\d, to-]{0,200})"
)
_OTHER_NETWORKS = r"^(?!.*(?:\bvia\b|[Dd]estination|[Rr]oute|\bnetwork\b|permit|prefix-list|subnet))"


class FactForm(NamedTuple):
    """A form of lines. `side`: where the part does not show it; `below`: stands in the heading or a line above."""

    pattern: Any
    side: str | None = None
    below: str = ""


def _form(pattern: str, side: str | None = None, below: str = "") -> FactForm:
    return FactForm(lazy_pattern(pattern), side, below)


LINES = (
    _form(rf"(?i)\b(?<!ip )(?:mtu(?:bytes)?|jumboframe enable)\b{_IS}(?P<MTU>[1-9]\d{{2,4}})\b"),
    _form(rf"(?i)^(?!.*(?:\bno |active)).*\b(?:error-correction encoding|fec(?: mode| encodings?)?)\b{_IS}"
          r"(?P<FEC>[\w-]+)"),
    _form(r"^\s*Active FEC encodings?: (?!None)(?P<FEC>\w+)"),
    _form(rf"(?i)\b(?:line|port)?speed\b{_IS}(?:forced? )?(?P<speed>\d{{1,6}} ?[MG]?)(?!\d|\.?\d? ?T/s)"),
    _form(r"duplex, (?P<speed>\d{2,3}) Gb/s|\bfull\s+(?:a-)?(?P<speed_2>\d{2,3}G)\b"),
    _form(r"^\s*Ethernet\d{1,3}\s+\d[\d,]*\s+(?P<speed>\d{1,3}G)\s+(?P<MTU>\d{4,5})\s+(?P<FEC>\w{2,8})\s", SWITCH),
    _form(r"^[> \t]*enabled(?P<PFC_bits>(?:[ \t]+[01]){8})|--pfc[ =](?P<PFC_bits_2>[01](?:,[01]){7})", HOST),
    _form(r"prio-pfc(?P<PFC_on>(?: [0-7]:o(?:n|ff)){1,8})", HOST),
    _form(_PFC, SWITCH),
    _form(r"code-points? (?P<PFC_code>[01]{3})\b|(?:\bAuto|\bOn)\s+On\s+\((?P<PFC_map>[0-9a-fA-F]{1,2})\)", SWITCH),
    _form(r"^\s*\S{2,20}\s{2,}(?P<PFC>[0-7](?:,[0-7]){0,7})\s*$", SWITCH, "lossless prio"),
    _form(_VLANS, SWITCH),
    _form(r"^\s*\S{2,20}\s{2,}(?P<VLANs>\d[\d,-]{0,200})\s*$", SWITCH, "vlans allowed"),
    _form(r"\bvlan protocol 802\.1Q id (?P<VLAN>\d{1,4})\b|^\s*VLAN_ID=(?P<VLAN_2>\d{1,4})", HOST),
    _form(r"^\s+id: (?P<VLAN>\d{1,4})\s*$", HOST, "vlans:"),
    _form(r"^[ \t]*(?:\d{1,6}: )?(?:eth|en|ib|bond)\w{1,16}\.(?P<VLAN>\d{1,4})(?:@|:|\s)", HOST),
    _form(r"['\"](?P<dscp_of>\d{1,2})['\"] ?: ?['\"](?P<class_of>\d)['\"]", SWITCH, DSCP_MAP),
    _form(r"^\s*(?P<dscp_of>\d{1,2})[ \t:|>=-]{1,20}(?P<class_of>[0-7])\s*$", SWITCH, "dscp"),
    _form(
        r"(?i)\bdscp[ :=]{1,3}(?P<dscp_of>\d{1,2})\b.{0,20}?"
        r"\b(?:tc|traffic[- ]class|prio(?:rity)?|switch-prio\w*|queue)[ :=]{1,3}(?P<class_of>[0-7])\b", SWITCH,
    ),
    _form(r"^\s*switch-priority\s+(?P<PFC>[0-7](?:,[0-7]){0,7})\s", SWITCH),
    _form(r"\bqos map dscp (?P<dscp_of>\d[\d ]{0,60}) to traffic-class (?P<class_of>\d)", SWITCH),
    _form(r"(?:Global tclass=|NCCL_IB_TC=)(?P<DSCP>\d{1,3})\b", HOST),
    _form(
        r"(?:\brouter |^\s*)bgp (?P<AS>\d{1,10})|\blocal AS(?: number)? (?P<AS_2>\d{1,10})"
        r"|\bautonomous-system (?P<AS_3>\d{1,10})", "BGP",
    ),
    _form(
        rf"(?:\b(?:neighbor|peer) |^\s*)(?P<part>{_IP})(?: (?:remote-as|as-number) |, +remote AS |\s+4\s+)"
        r"(?P<AS_of_neighbor>\d{1,10})\b", "BGP",
    ),
    _form(rf"BGP neighbor is (?P<part>{_IP}), +remote AS (?P<AS_of_neighbor>\d{{1,10}})", "BGP"),
    _form(rf"{_OTHER_NETWORKS}.{{0,120}}?(?<![\d./])(?P<address>{_IP}/\d\d?)\b"),
    _form(rf"(?i)\bip address:? (?P<address>{_IP},? (?:IP subnet: [\d.]{{7,15}}/\d\d?|255\.[\d.]{{5,11}}))"),
    _form(rf"{_MODULE}|\bDriver Version\s{{0,40}}: (?P<driver_version_2>{_VERSION})", "loaded"),
    _form(
        rf"(?:\b[Ff]abric ?[Mm]anager version(?: is)? ?: |\bnvidia-fabricmanager\S{{0,30}}\s+)"
        rf"(?P<driver_version>{_VERSION})", "fabric manager",
    ),
    _form(rf"\blib(?:cuda|nvidia-ml)\.so\.(?P<driver_version>{_VERSION})", "library"),
    _form(rf"^nvidia[/,] ?(?P<driver_version>{_VERSION}), .*\binstalled", "installed"),
    _form(rf"^version:\s+(?P<driver_version>{_VERSION})", "installed", "modinfo nvidia"),
    _form(r"^(?P<part>(?:net|vm|kernel|fs)\.[\w.-]{3,60})\s?=\s?(?P<setting>\S[^\n#]{0,80}?)\s*$"),
    _form(r"^\s*options (?P<part>\w{2,40}) (?P<options>\w+=\S[^\n#]{0,300})"),
    _form(r"^(?P<part>[A-Z]\w{4,50}): (?P<setting>\d{1,10})\s*$", "in force", "driver/nvidia/params"),
    _form(r"\bGRUB_CMDLINE_LINUX(?:_DEFAULT)?=[\"'](?P<boot_options>[^\"'\n]{3,500})", "set"),
    _form(r"\bBOOT_IMAGE=\S{1,200} (?P<boot_options_booted>[^\n]{1,1500})", "in force"),
    _form(r"^FW Version:\s+(?P<firmware>\d[\d.]{4,20})", "card"),  # before the PSID, which is its part
    _form(r"^PSID:\s+(?P<PSID>\w{6,20})", "card"),
    _form(r"\bNodeName=(?P<part>\S{1,200}) (?P<node>[^\n]{3,400})|^(?P<node_2>Name=gpu [^\n]{3,300})"),
    _form(r"^GPU (?P<number_of_GPUs>\d{1,2}): "),
    _form(rf"\"device_id\": ?\"?(?P<part>\d{{1,3}})\"?, ?\"device_ip\": ?\"(?P<address_of_NPU>{_IP})\"", "table"),
    _form(rf"^(?P<part>\d{{1,3}})[ ,:]{{1,4}}(?P<address_of_NPU>{_IP})\s*$", "table", "device_ip"),
    _form(rf"^ipaddr ?: ?(?P<address_of_NPU>{_IP})", "NPU"),
    _form(r"\bNCCL_IB_GID_INDEX=(?P<GID_index>\d{1,2})\b", "job"),
    _form(
        r"^\s*(?P<part>[a-z]\w{2,20})\s+\d\s+(?P<GID_index>\d{1,2})\s+(?:[0-9a-f]{4}:){7}[0-9a-f]{4}\s.*\bv2\b",
        "RoCE v2",
    ),
    _form(r"^(?:MLNX_OFED_LINUX|OFED-internal|DOCA_Host)-(?P<maker_of_mlx5_core>\d\d\.\d\d)", "installed"),
    _form(
        r"/lib/modules/\S{1,80}?/(?P<maker_of_mlx5_core_path>kernel|extra|updates)/(?:\S{0,120}/)?mlx5_core\.ko",
        "loaded",
    ),
    _form(r"^nodebind: (?P<NUMA_nodes>\d{1,2}(?: \d{1,2}){0,15})", "bound"),
    _form(r"^\s*Priority trust state: (?P<marking_trusted>pcp|dscp)\b", "trusted"),
    _form(r"(?:Global tclass=|NCCL_IB_TC=)(?P<marking_sent>[1-9]\d{0,2})\b", "sent"),
)  # fmt: skip
BELOW_COMMANDS = (  # a bare value, behind its command
    _form(r"/sys/class/net/\S{1,32}/mtu => (?P<MTU>\d{3,5})$"),
    _form(r"(?:cma_roce_tos|default_roce_tos)\b.{0,60} => (?P<DSCP>\d{1,3})$", HOST),
    _form(r"pfc_enable\b.{0,20} => \"?(?P<PFC>[0-7](?:,[0-7]){0,7})\"?$", SWITCH),
    _form(rf"\bmodinfo -F ?version nvidia\b.{{0,20}} => (?P<driver_version>{_VERSION})$", "installed"),
    _form(rf"/sys/module/nvidia/version\b.{{0,20}} => (?P<driver_version>{_VERSION})$|{_DRIVER_ASKED}", "loaded"),
    _form(r"/sys/module/(?P<part>\w{2,40}/parameters/\w{2,60})\b.{0,20} => (?P<setting>\S{1,60})$", "in force"),
    _form(r"(?:/proc/sys/|sysctl -n )(?P<part>[\w/.-]{3,60})\b.{0,20} => (?P<setting>\S.{0,60})$", "in force"),
    _form(r"/(?P<part>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)/numa_node\b.{0,20} => (?P<NUMA_nodes>\d{1,2})$", "GPU"),
    _form(r"(?:wc -l|grep -\w{0,3}c\w{0,3})\b.{0,60} => (?P<number_of_GPUs_counted>\d{1,2})$"),
)
_FEC = {"rs": r"rs|reed|cl91|544|528|k[pr]4|91", "fc": r"fire|base|fc|cl74|74", "off": r"off|dis|none"}
_TRUE = {"y": "1", "n": "0", "yes": "1", "no": "0", "on": "1", "off": "0"}
_RATES = frozenset({1, 10, 25, 40, 50, 100, 200, 400, 800})  # Gb/s
_OF_RDMA = frozenset({"256", "512", "1024", "2048", "4096"})  # bytes
_BOOT_OWN = (
    "root=",
    "rd.",
    "console=",
    "crashkernel=",
    "$",
    "resume=",
)  # of each host, or read otherwise by the kernel
_MOST_GPUS = 64


def expand_numbers(value: str) -> set[str]:
    """
    >>> sorted(expand_numbers("110-112, 120")), sorted(expand_numbers("300 to 301"))
    (['110', '111', '112', '120'], ['300', '301'])
    """
    ranges = re.findall(r"(\d{1,4})(?:(?:-| to )(\d{1,4}))?", value)
    return {str(number) for low, high in ranges for number in range(int(low), int(high or low) + 1)}


def read_setting(value: str) -> set[str]:
    """A value as all tools print it."""
    return {" ".join(_TRUE.get(word.lower(), word) for word in value.strip("\"'").split())}


def _read_speed(value: str) -> set[str]:
    number = int(re.sub(r"\D", "", value))
    number = number // 1000 if number >= 1000 and "G" not in value else number
    return {str(number)} if number in _RATES else set()


def _read_address(value: str) -> set[str]:
    """
    >>> _read_address("10.0.4.1, IP subnet: 10.0.4.0/26"), _read_address("10.0.4.1 255.255.255.0")
    ({'10.0.4.1/26'}, {'10.0.4.1/24'})
    """
    first, *rest = re.split(r",? (?:IP subnet: )?", value)
    bits = rest[-1].rpartition("/")[2] if rest else ""
    if bits.startswith("255."):
        bits = str(sum(map(int.bit_count, map(int, filter(None, bits.split("."))))))
    return {f"{first}/{bits}" if rest else first}


_READ: dict[str, Callable[[str], set[str]]] = {  # what is not the text itself
    "MTU": lambda value: {value} - _OF_RDMA,
    "FEC": lambda value: {kind for kind, begins in _FEC.items() if re.match(begins, value.lower())},
    "speed": _read_speed,
    "PFC": lambda value: set(re.findall(r"[0-7]", value)),
    "PFC_bits": lambda value: {str(at) for at, bit in enumerate(re.findall(r"[01]", value)) if bit == "1"},
    "PFC_on": lambda value: set(re.findall(r"([0-7]):on", value)),
    "PFC_code": lambda value: {str(int(value, 2))},
    "PFC_map": lambda value: {str(at) for at in range(8) if int(value, 16) >> at & 1},
    "VLANs": expand_numbers,
    "DSCP": lambda value: {str(int(value) >> 2)},  # of the byte that also holds ECN
    "boot_options": lambda value: {word for word in value.split() if "=" in word and not word.startswith(_BOOT_OWN)},
    "boot_options_booted": lambda value: set(value.split()),
    "setting": read_setting,
    "number_of_GPUs_counted": lambda value: set(map(str, range(min(int(value), _MOST_GPUS)))),
    "address": _read_address,
    "maker_of_mlx5_core": lambda value: {"OFED"},
    "maker_of_mlx5_core_path": lambda value: {"the kernel's" if value == "kernel" else "OFED"},
    "NUMA_nodes": lambda value: set(value.split()),
    "marking_trusted": lambda value: {value.upper()},
    "marking_sent": lambda value: {"DSCP"},
}


def read_group(group: str, value: str) -> tuple[str, set[str]]:
    """The name of the fact, and its values.

    >>> read_group("PFC_bits_2", "0,0,0,1,0,0,0,0"), read_group("speed_2", "200000M"), read_group("FEC", "Reed-solomon")
    (('PFC', {'3'}), ('speed', {'200'}), ('FEC', {'rs'}))
    """
    group = re.sub(r"_\d$", "", group)
    values = _READ[group](value) if group in _READ else {value}
    return re.sub(r"^(PFC|boot_options|number_of_GPUs|maker_of_mlx5_core|marking)_.*", r"\1", group).replace(
        "_", " "
    ), values
