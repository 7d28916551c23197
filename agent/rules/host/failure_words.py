"""What failed, as far as the words of a line show that no sentence of a table is."""

from __future__ import annotations

import re

import msgspec

from agent.rules.host.meaning import Meaning

UNEXPLAINED = "unexplained-line"
OF_VALUES = {
    "value-state": "state",
    "value-count": "count",
    "value-below": "less",
    "value-odd": "less",
}  # where no words show more
_COUNTED = ("memory", "heat", "link")  # kinds of what is counted


class FailureWords(msgspec.Struct, frozen=True):
    """A kind of failure. `title`: what it is; `pattern`: its words; `impact`: what that may mean for jobs."""

    title: str
    pattern: str
    impact: str


FAILURE_WORDS = {  # of several the first
    "gone": FailureWords(
        "the device is lost or needs a reset",
        r"GPU_IS_LOST|FULLCHIP_RESET|RESET_REQUIRED|(?i:^(?!.*(?:\bPSU|power suppl|\bfan\b)).*?(?:fall\w* off|"
        r"disappear|\blost\b(?! (?:packet|frame|carrier|its carrier|link))|\bgone\b(?! down)|no longer|wedged|"
        r"needs? (?:a )?reset|\boffline\b|\bdead\b))", "Jobs on it end, and none can start on it until it is back.",
    ),
    "memory": FailureWords(
        "memory or logic of the device has an error",
        r"\b(?:D?ECC|RAS)\b|(?i:parity|poison|uncorrect|corrupt|checksum|integrity|miscompare)|MEMORY_ERROR",
        "Jobs on it may end, or compute with wrong values where the error is not noticed.",
    ),
    "heat": FailureWords(
        "temperature, power or cooling is out of its limits",
        r"(?i:thermal|\btemps?\b|temperature|overheat|too hot|throttl|\bpower\b(?!.*dBm)|"
        r"voltage|\bfan\b|\bPSU\b|brake)",
        "The device slows down, and switches itself off where that does not help: the whole job runs at its speed.",
    ),
    "less": FailureWords(
        "a value is not the expected one",
        r"(?i:^(?!.*\bdown\b).*?(?:expect|instead of|rather than|should be|\brated\b|nominal|supposed|\bbelow\b|"
        r"\bonly \d|\bhalf\b|\bslow|worse|degrad|downgrad|less than|lower than|too low|\bwhile (?:the |all )?other))",
        "Jobs that use the part run at its speed.",
    ),
    "link": FailureWords(
        "a link between devices failed",
        r"(?i:nvlink|\bxgmi|c2c|\bhccs|fabric|inband|\blinks?\b|\blanes?\b|\btraining\b(?! (?:job|step|script|run))|"
        r"carrier|\bcables?\b|transceiver|optic|dBm|\bmodule \d|\bFEC\b|\bBER\b|CRC|symbol err|\b[Pp]olling\b|"
        r"(?<!\b\d )(?<!\b\d\d )\bdown\b|loss of si|no (?:link|signal))",
        "What uses it fails, waits, or takes a slower way around it.",
    ),
    "version": FailureWords(
        "firmware or versions do not fit",
        r"(?i:firmware|\bf/?w\b|ucode|vbios|signature|version|\bABI\b|incompatib)|\bGSP|\bFSP",
        "What is of two releases often works in part, and fails in what is new to one of them.",
    ),
    "short": FailureWords(
        "memory or another resource was not to be had",
        r"(?i:alloc|no memory|out of memory|not enough|insufficient|exhausted|too many|out of resources|memlock|"
        r"no space)|NO_MEMORY|-12\b|ENOMEM|INSUFFICIENT",
        "The program that asked for it ends, or goes on in a slower way.",
    ),
    "rights": FailureWords(
        "the program may not do what it tried",
        r"(?i:denied|not permitted|permission|unauthori|forbidden)|\bEACCES\b|\bEPERM\b",
        "The program ends, or works without the device. The device itself may be well.",
    ),
    "peer": FailureWords(
        "the other side was not reached",
        r"(?i:unreachable|refused|connect|no route|\bpeer\b|remote|handshake|resolve|\bARP\b|neighbou?r|endpoint|"
        r"\bQP\b|queue pair|\bGID\b)", "Jobs between the two sides do not start, or wait until a time limit ends them.",
    ),
    "silent": FailureWords(
        "a part of the device did not answer in time",
        r"(?i:time[d ]?-?\s?out|\bETIME|respon|hung\b|stuck\b|halt|stall|giv\w+ up|gave up|expired|heartbeat|not ready|"
        r"never )", "What waits for it goes on late, or not at all.",
    ),
    "missing": FailureWords(
        "something that it needs is not there",
        r"(?i:not found|no such|missing|not loaded|not exist|not detected|not present|not available|unavailable|"
        r"absent)", "What needs it does not start, or goes on in a slower way.",
    ),
    "setting": FailureWords(
        "a program asked for what the device or driver does not have",
        r"(?i:invalid|unsupported|not supported|mismatch|reject|misconfig|inconsistent|illegal|wrong|conflict|config|"
        r"parameter|setting|bad |violation|exceed|out of range)",
        "The setting is as before, or the part works otherwise than its neighbours.",
    ),
}  # fmt: skip
VALUE_WORDS = {  # of labels and cells that state trouble
    "state": FailureWords(
        "the state is not that of a part that works", "", "Jobs that use the part may end, wait, or run at its speed."
    ),
    "count": FailureWords(
        "errors are counted", "", "Counts of long ago are harmless. Where they grow under load, jobs run slower or end."
    ),
}


_OF_DIMMS = "ipmitool sel elist; dmidecode -t memory; grep . /sys/devices/system/edac/mc/mc*/*count"
_COMMANDS = (  # what shows the part that a line names, by the form of its name
    (r"\w{4,8}:\w\w:\w\w\.\d", "lspci -vvv -s {part}; dmesg -T | grep {part}"),
    (r"NVIDIA (?P<number>\d+)", "nvidia-smi -q -i {number}; nvidia-smi nvlink -s -i {number}; dmesg -T | grep NVRM"),
    (r"AMD (?P<number>\d+)", "amd-smi static -g {number}; amd-smi metric -g {number}; dmesg -T | grep amdgpu"),
    (r"(?i:NPU) ?(?P<number>\d+)", "npu-smi info -t health -i {number}; hccn_tool -i {number} -link -g; dmesg -T"),
    (r"(?i:HPU) ?\d+|hl\d+", "hl-smi -q; dmesg -T | grep habanalabs"),
    (r"neuron\d+", "neuron-ls; dmesg -T | grep neuron"),
    (r"nvme\d+(?:n\d)?", "nvme list; dmesg -T | grep {part}; lspci -vvv"),
    (r"(?i:NVLink|NVSwitch).*", "nvidia-smi nvlink -s; nvidia-smi nvlink -e; nvidia-smi -q | grep -A8 Fabric"),
    (r"GPU-[0-9a-f-]+", "nvidia-smi -q -i {part}; nvidia-smi nvlink -s -i {part}; dmesg -T | grep NVRM"),
    (r"(?i:slot|tray).*", "ipmitool sel elist; lspci -vvv; dmidecode -t slot"),
    (r"(?i:PSU|fan).*", "ipmitool sel elist; ipmitool sdr elist"),
    (r".*DIMM.*", _OF_DIMMS),
    (
        r"(?:Eth|swp|\w*GigE|\d{2,3}GE|xe-|et-|[Pp]ort-?[Cc]).*",
        "show interface {part}; show interface {part} transceiver",
    ),
    (r"(?:eth|en|bond|hsn|roce\d|ib\d|ibs)\w*", "ip -d -s link show {part}; ethtool {part}; ethtool -S {part}"),
    (
        r"(?:mlx|bnxt|irdma|ionic|efa|erdma|hns|hfi|qedr|mana|rxe|siw|rocep|rdmap|ibp|cxi)\w*",
        "ibstat {part}; rdma link show {part}/1; grep . /sys/class/infiniband/{part}/ports/1/*counters/*",
    ),
)
_OF_THEME = (  # what shows a part whose name has no such form, by the words of its line: of several the first
    (r"\bosd\b|\bosd\.\d|ceph", "ceph health detail; ceph osd tree; dmesg -T"),
    (r"lustre|\bost[-_ ]?\w{0,4}\d|\boss\d|\bmd[ts]\d", "lfs check servers; lfs df -h; lctl dl; dmesg -T"),
    (r"\braid\d?\b|\bmd\d", "cat /proc/mdstat; lsblk; dmesg -T"),
    (r"\bdimms?\b|\bmemory speed\b|\bmc\d|\bMT/s", _OF_DIMMS),
    (
        r"nvme|\bdis[ck]s?\b|\bdrives?\b|\bsd[a-z]\b|\bmedia\b|realloc|pending|iops|\b(?:read|write)\b|\bmount|storage",
        "nvme list; lsblk; cat /proc/mdstat; dmesg -T",
    ),
    (
        r"\brpm\b|\bfans?\b|\bpumps?\b|\bcool|\bflow\b|\bleak|\bpsu|\bpower\b(?!.*\bdbm)|\bvolt|\bamps?\b|breaker|\bpdu\b|\binlet",
        "ipmitool sdr elist; ipmitool sel elist; ipmitool dcmi power reading",
    ),
    (r"\boffset\b|\bptp\b|\bntp\b", "chronyc tracking; chronyc sources; timedatectl"),
    (r"\b(?:x?gmi|amdgpu|rocm|mi[23]\d\d)", "amd-smi static; amd-smi metric; amd-smi xgmi; dmesg -T"),
    (
        r"gpu|t?flops|nvlink|\bxids?\b|\bhbm\b|\bsm\b|\btemp|throttl|\becc\b|nvswitch",
        "nvidia-smi -q; nvidia-smi nvlink -s; nvidia-smi topo -m; dmesg -T",
    ),
    (
        r"busbw|\b[gm]b(?:it)?/s|gbps|\bib\d?\b|\brails?\b|\broce|\brdma|\bhcas?\b|\bnics?\b|\blinks?\b|\bports?\b|\bdbm\b",
        "ibstat; rdma link; ip -d link; lspci -vvv; dmesg -T",
    ),
)
_OF_ALL = "dmesg -T; ibstat; rdma link; ip -d link; lspci -vvv; nvidia-smi -q"


def find_kind(*texts: str) -> str | None:
    """The kind of failure that lines state by their words."""
    rows = FAILURE_WORDS.items()
    return next((kind for kind, row in rows if any(re.search(row.pattern, text) for text in texts)), None)


def name_code(code: str, text: str, what: str) -> str:
    """The code of a line, or of a value, that no check explains, with the kind of failure that its words state.

    >>> name_code("value-count", "", "uncorrectable ECC errors: 3"), name_code("value-state", "", "Health: BAD")
    ('values-memory', 'values-state')
    >>> name_code("value-odd", "", "rail2: 200G, the others 400G"), name_code("value-below", "", "HBM temp (limit 95)")
    ('values-less', 'values-heat')
    """
    if code == UNEXPLAINED:
        kind = find_kind(text)
        return f"words-{kind}" if kind else code
    usual = OF_VALUES.get(code)
    if usual is None:
        return code
    kind = find_kind(what.replace("_", " "))
    only = {"count": _COUNTED, "less": ("heat",)}.get(usual)
    return f"values-{kind if kind and (only is None or kind in only) else usual}"


def list_commands(part: str | None, line: str = "") -> str:
    """The commands whose outputs show a part, as a tool's report names it, or what the words of its line are about.

    >>> list_commands("mlx5_3")
    'ibstat mlx5_3; rdma link show mlx5_3/1; grep . /sys/class/infiniband/mlx5_3/ports/1/*counters/*'
    >>> list_commands(None, "rack 3: pump_rpm 0, the others 3300")
    'ipmitool sdr elist; ipmitool sel elist; ipmitool dcmi power reading'
    """
    for pattern, commands in _COMMANDS:
        if match := re.fullmatch(pattern, part or ""):
            return commands.format(part=part, **match.groupdict())
    words = line.replace("_", " ")
    themes = (commands for pattern, commands in _OF_THEME if re.search(pattern, words, re.IGNORECASE))
    return next(themes, _OF_ALL)


_STATED_BY = (
    ("words", "by the words of a line that no check explains", FAILURE_WORDS),
    ("values", "by a value that no check explains", {**FAILURE_WORDS, **VALUE_WORDS}),
)
WORDS_MEANINGS = {
    f"{code}-{kind}": Meaning("info", "low", f"{stated}, {row.title}", row.impact, f"words-{kind}")
    for code, stated, rows in _STATED_BY
    for kind, row in rows.items()
}
