"""How to confirm and how to fix one finding: the sections of its rule's page, chosen and filled in for its part.

A page is written once for all parts. In `How to confirm` every line `- ` begins with a command in backticks; `For KEY:`
chooses there as in `How to fix`. In
`How to fix` numbered lines are steps; lines `- ` below a step are its outcomes. A paragraph `For KEY, KEY: ..`
begins the steps for one situation of the rule or one form factor (`other`: none of the others fits;
`virtual-KEY`: that situation in a guest, where it is the guest's to repair), and
`Then follow NAME.` inserts a procedure of `procedures.md`. Words in capitals (ADDRESS, INTERFACE, ..) are filled in.
A step that costs something ends with it: `(costs a reboot)`, in the words of `STEP_COSTS`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set

import msgspec

from agent.model.finding import STEP_COSTS, Location, Step, describe_step_cost
from agent.model.labels import natural
from agent.model.nic import Nic
from agent.rules.context import RuleContext
from agent.rules.location import (
    NO_CHIP,
    find_common_form_factor,
    find_gpu,
    find_netdev,
    find_nic,
    find_npu_chip,
    find_npu_number,
    find_port,
)
from agent.rules.pages import PROCEDURE, read_procedures, read_sections
from agent.rules.resets import describe_reset
from agent.rules.rule import Fail
from agent.rules.wording import join_labels, quote_name

_DEVICES = 4  # of one finding, for which commands are written out; of more the first stands for all
_OF_DEVICE = {
    "ADDRESS": "its PCI address", "PORT_ABOVE": "the port above it", "INTERFACE": "its interface",
    "DEVICE": "its RDMA device", "PORT_NUMBER": "its port", "PHYSICAL_PORT": "its port", "GPU_INDEX": "its index",
    "NPU_INDEX": "its number", "NPU_CARD": "its card", "NPU_CHIP": "its chip",
}  # fmt: skip
_FOUND = {  # `Fail.values`
    "PRIORITY": "the priority of RoCE", "BITMAP": "the bitmap", "BUFFERS": "the buffers", "SHARES": "the shares",
    "WATTS": "its default", "SWITCH": "what the others have", "LIMITS": "the limits", "PID": "its number",
    "TRAFFIC_CLASS": "4 * DSCP + 2 of a lossless DSCP", "RAIL_MTU": "what the others have", "ACS_PORTS": "the ports",
    "LINK_TYPE": "1 (InfiniBand) or 2 (Ethernet)", "LEVEL": "the distance", "CNP_DSCP": "the DSCP of the others",
    "UNIT": "its unit", "RANK_IP": "that of the rank table", "SLURM_NODE": "its name", "REPORTER": "its name",
    "RULE": "its rule", "COMMANDS": "the outputs of its tools", "LOG_WORDS": "its words", "MEMDEV": "the device",
}  # fmt: skip
_NO_NAMES = ("COMMANDS", "LOG_WORDS")  # whole commands, and what is within quotes
_WITHOUT_VALUE = {**_OF_DEVICE, **_FOUND}
_WORDS = re.compile(rf"\b(?:{'|'.join(_WITHOUT_VALUE)})\b|(?<=_)PHYSICAL_PORT\b")  # ..: LINK_TYPE_PHYSICAL_PORT
_PHYSICAL_PORTS = {"0": "P1", "1": "P2"}  # of a NIC by PCI function, as mlxconfig names them
_VARIANTS = 16  # of the values of one finding, for which commands are written out
_PHRASES = re.compile(r"\b(FAR_END|EVIDENCE|HOLDERS|RESET_GPU)\b")
_OF_PAIRS = ("GPU_INDEX", "NPU_INDEX")
_NAMES = {  # of the other devices
    "INTERFACE": "{INTERFACE}", "DEVICE": "{DEVICE}", "GPU_INDEX": "GPU{GPU_INDEX}", "NPU_INDEX": "NPU {NPU_INDEX}",
    "NPU_CARD": "NPU {NPU_INDEX}", "ADDRESS": "{ADDRESS}",
}  # fmt: skip
_TOOLS = {
    "nvidia-smi": "NVIDIA",
    "amd-smi": "AMD",
    "hccn_tool": "Huawei",
    "npu-smi": "Huawei",
    "mlxlink": "NVIDIA NIC",
}  # a command of one serves the parts of its maker alone
_NIC_MAKERS = frozenset(("NVIDIA NIC", "other NIC"))
_OTHER_NICS = ("bnxt", "irdma", "ice", "efa", "ionic", "hns", "erdma", "mana", "qed", "cxgb", "hfi", "opa")
_THIS_BOOT, _ALL_BOOTS = re.compile(r"^dmesg(?: -T)?"), "journalctl _TRANSPORT=kernel"  # the kernel log
_COMMAND = re.compile(r"^- `([^`]+)`", re.MULTILINE)
_CODE = re.compile(r"(:\s|\s\(|,\s|\sand\s)?`([^`]*)`(\))?")  # with what leads to it
CHOICE = re.compile(r"For ([a-z0-9-]+(?:, [a-z0-9-]+)*): ")
_PARAGRAPHS = re.compile(r"\n{2,}")
_STEP, _OUTCOME = re.compile(r"^\d+\. "), re.compile(r"^ +- ")
_COST = re.compile(r"\(costs ([a-z ]{1,40})\)$")
_COST_CODES = {words: code for code, words in STEP_COSTS.items()}

Values = Mapping[str, str]


class Block(msgspec.Struct, frozen=True):
    """One paragraph of `How to fix`, and the keys that it is for; none: for all."""

    keys: tuple[str, ...]
    text: str


def build_confirm(context: RuleContext, rule: str, fault: Fail) -> list[str] | None:
    """The commands that show the fault, filled in for every device that it is about; None where there are none."""
    devices, makers = find_values(context, fault), _find_makers(context, fault)
    managed = rule.startswith("fabric-manager") or _may_have_fabric_manager(context)
    commands: dict[str, None] = {}
    keys = tuple(key for key in (fault.situation, fault.cause, "other") if key)
    text = "\n".join(choose_blocks(read_sections(rule).get("How to confirm", ""), keys))
    for command in _COMMAND.findall(text):
        if not _serves(command, makers):
            continue
        if fault.situation.startswith("vf-") and command.startswith("mlxlink"):
            continue  # a virtual function has no wire
        if "/driver/nvidia/" in command and rule == "driver-reports-failure" and not _quotes_nvidia(fault):
            continue  # another driver's line
        if not managed and "fabricmanager" in command:
            continue  # it runs on another host: of a rack, or of a guest
        for values in devices if len(devices) <= _DEVICES else devices[:1]:
            filled = _fill(_THIS_BOOT.sub(_ALL_BOOTS, command) if fault.is_before_boot else command, values)
            if not _WORDS.search(filled):
                commands[filled] = None
    return list(commands) or None


def _serves(command: str, makers: Set[str]) -> bool:
    """Whether a command is no tool of another maker than those of these GPUs or NICs."""
    maker = _TOOLS.get(command.partition(" ")[0])
    others = {other for other in makers if (other in _NIC_MAKERS) == (maker in _NIC_MAKERS)}
    return maker is None or not others or maker in others


def _quotes_nvidia(fault: Fail) -> bool:
    """Whether a line of its evidence is of NVIDIA's driver, or about its version."""
    return any(word in str(row.value) for row in fault.evidence for word in ("NVRM", "nvidia", "NVIDIA"))


def _may_have_fabric_manager(context: RuleContext) -> bool:
    """Whether it is installed here; where that is not known, any host but a guest may have it."""
    states = [service.state for service in context.software.services if service.name == "nvidia-fabricmanager"]
    return states[0] != "not_installed" if states else not context.virtual_machine


def _find_makers(context: RuleContext, fault: Fail) -> set[str]:
    """The makers of the GPUs and NICs that a fault is about; of a fault of the node those of all GPUs."""
    if any(one.subject.startswith("npu:") for one in (fault, *fault.parts)):
        return {"Huawei"}
    gpus = [gpu for place in fault.ids if (gpu := find_gpu(context, place))] or context.topology.gpus
    nics = [nic for place in fault.ids if (nic := find_nic(context, place))]
    return {gpu.vendor for gpu in gpus if gpu.vendor} | {maker for nic in nics if (maker := _find_nic_maker(nic))}


def _find_nic_maker(nic: Nic) -> str | None:
    """By its driver, or by the name that a driver gives; None for a name that states none."""
    name = nic.driver or nic.rdma_device or ""
    return "NVIDIA NIC" if name.startswith("mlx") else "other NIC" if name.startswith(_OTHER_NICS) else None


def build_steps(context: RuleContext, rule: str, fault: Fail, location: Location | None) -> list[Step]:
    """The steps that fix the fault on this part, in order."""
    form = find_form_factor(context, fault, location)
    # a guest repairs no part, whatever state it is in; what it sets itself, or its host, has steps of its own
    guest = (f"virtual-{fault.situation}", "virtual") if form == "virtual" else ()
    all_alike = "all" if fault.subject == "node" and len(fault.parts) > 1 else None
    keys = tuple(key for key in (*guest, all_alike, fault.situation, fault.cause, form, "other") if key)
    values, makers = find_values(context, fault), _find_makers(context, fault)
    phrases = {"FAR_END": _describe_far_end(location), **describe_reset(context, rule, fault, form)}
    steps: dict[str, Step] = {}  # a procedure that two others begin with is printed once, and so is what is saved
    for text in choose_blocks(read_sections(rule).get("How to fix", ""), keys):
        for line in _parse_steps(text):
            if "REMEDY" in line.do and not fault.remedy:
                continue  # the rule found nothing of its own to do
            text, cost = split_cost(line.do.replace("REMEDY", fault.remedy))
            do = _fill_step(text, values, phrases, makers)
            if do:
                outcomes = [_fill_step(outcome, values, phrases, makers) for outcome in line.outcomes]
                once = "EVIDENCE" if text.startswith("Save what") else do
                steps.setdefault(once, Step(do=do, cost=cost, outcomes=outcomes))
    return list(steps.values())


def split_cost(text: str) -> tuple[str, str | None]:
    """A step of a page, and the code of what it costs.

    >>> split_cost("Drain the node and reboot it. (costs a reboot)"), split_cost("Read the log.")
    (('Drain the node and reboot it.', 'reboot'), ('Read the log.', None))
    """
    match = _COST.search(text)
    return (text[: match.start()].rstrip(), _COST_CODES[match[1]]) if match else (text, None)


def find_form_factor(context: RuleContext, fault: Fail, location: Location | None) -> str | None:
    """How the part is built in; a GPU that is gone was built in as the others are. None where it is not known."""
    if context.virtual_machine:
        return "virtual"
    devices = context.gpus if fault.subject.startswith("gpu:") else ()
    return (
        (location.form_factor if location else None)
        or find_common_form_factor(context, fault.ids)
        or find_common_form_factor(context, devices)
    )


def describe_steps(steps: Sequence[Step]) -> str:
    """The steps as one text, without markup, each with its cost; several are numbered.

    What comes of one begins a new sentence.

    >>> describe_steps([Step(do="Read the log."), Step(do="Reboot", cost="reboot", outcomes=["If it stays, call."])])
    '1. Read the log. 2. Reboot. (costs a reboot) If it stays, call.'
    """
    texts = []
    for step in steps:
        do = end_sentence(step.do) if step.outcomes else step.do
        texts.append(" ".join(filter(None, (do, describe_step_cost(step), *step.outcomes))))
    numbered = [f"{number}. {text}" for number, text in enumerate(texts, 1)] if len(texts) > 1 else texts
    return " ".join(numbered).replace("`", "")


def end_sentence(text: str) -> str:
    """With a full stop, where it has no end: after a command, or where one was left out.

    >>> end_sentence("Reset it: `nvidia-smi -r`"), end_sentence("Drain the node.")
    ('Reset it: `nvidia-smi -r`.', 'Drain the node.')
    """
    return text if text.endswith((".", ":", ";", "?", "!")) else f"{text}."


def find_values(context: RuleContext, fault: Fail) -> list[dict[str, str]]:
    """What the words in capitals stand for, for each device that a finding is about; at least one row."""
    if fault.parts and any(part.values for part in fault.parts):
        return [row for part in fault.parts for row in find_values(context, part)]
    return [{**row, **dict(fault.values)} for row in _list_device_values(context, fault)]


def _list_device_values(context: RuleContext, fault: Fail) -> list[dict[str, str]]:
    kind, _, rest = fault.subject.partition(":")
    if kind == "pair":
        ends = [_device_values(context, end) for end in rest.split("+", 1)]
        if any(all(word in end for end in ends) for word in _OF_PAIRS):  # two of a kind: a command for each
            return ends
        return [{word: value for end in ends for word, value in end.items()}]
    device = f"npu-{rest}" if kind == "npu" else rest
    own = _interface_values(context, rest) if kind == "netdev" else _device_values(context, device)
    if own:
        return [own]
    rows = [_device_values(context, place) for place in sorted(fault.ids)]
    rows += [_interface_values(context, place) for place in sorted(fault.ids)]
    unique = {tuple(sorted(row.items())): row for row in rows if row}
    return list(unique.values()) or [{}]


def _device_values(context: RuleContext, device: str) -> dict[str, str]:
    device, _, number = device.partition("/")
    gpu, nic = find_gpu(context, device), find_nic(context, device)
    address = (gpu.pci if gpu else None) or (nic.pci if nic else None) or (device if device.count(":") == 2 else None)
    function = context.functions.get(address or "")
    values = {"ADDRESS": address, "PORT_ABOVE": function.parent if function else None}
    npu = find_npu_number(context, device)
    if npu is not None:
        values["NPU_INDEX"] = npu
        values["NPU_CARD"], values["NPU_CHIP"] = find_npu_chip(context, npu)
    if gpu:
        values["GPU_INDEX"] = (
            str(gpu.index) if gpu.index is not None and gpu.driver_state != "not_open" else address
        )  # a number that the driver gave may be another GPU's by now
    if nic:
        port = find_port(nic, number)
        netdev = find_netdev(context, nic, port)
        values |= {
            "DEVICE": nic.rdma_device,
            "PORT_NUMBER": str(port.port) if port else "1",
            "PHYSICAL_PORT": _PHYSICAL_PORTS.get((nic.pci or "").rpartition(".")[2]),
            "INTERFACE": netdev.label if netdev else None,
        }
    return {word: value for word, value in values.items() if value}


def _interface_values(context: RuleContext, device: str) -> dict[str, str]:
    netdev = next((n for n in context.topology.netdevs if device in (n.id, n.label)), None)
    if netdev is None:
        return {}
    values = _device_values(context, netdev.nic or netdev.pci or "")
    return {**values, "INTERFACE": netdev.label}


def _fill(text: str, values: Values) -> str:
    """A command with its values."""
    if values.get("NPU_CHIP") == NO_CHIP:
        text = text.replace(" -c NPU_CHIP", "")
    return _WORDS.sub(lambda match: _quote_value(match[0], values.get(match[0], match[0])), text)


def _quote_value(word: str, value: str) -> str:
    return value if word in _NO_NAMES else quote_name(value)


def _fill_step(text: str, devices: Sequence[Values], phrases: Values, makers: Set[str]) -> str:
    """A step with its values; a command whose values are not known, or of another maker's tool, is left out."""
    text = _PHRASES.sub(lambda match: phrases[match[0]], text)
    words = set(_WORDS.findall(text))
    fitting = [values for values in devices if words <= values.keys()]
    first = fitting[0] if fitting else devices[0]

    def fill_command(match: re.Match[str]) -> str:
        filled = _fill(match[0], first)
        return "" if _WORDS.search(filled) or not _serves(match[2], makers) else filled

    filled = _CODE.sub(fill_command, text)
    filled = _WORDS.sub(lambda match: first.get(match[0], _WITHOUT_VALUE[match[0]]), filled)
    others = list(_name_others(text, fitting))
    return " ".join([end_sentence(filled), *others]) if others else filled


def _name_others(text: str, devices: Sequence[Values]) -> Iterator[str]:
    """For which other devices a step is the same; its commands once more where the finding has other values there."""
    words = set(_WORDS.findall(text))
    named = next((word for word in _NAMES if word in words), None)
    if named is None or not devices:
        return
    alike: dict[tuple[str, ...], dict[str, Values]] = {}
    for values in devices:
        key = tuple(values[word] for word in sorted(words & _FOUND.keys()))
        alike.setdefault(key, {}).setdefault(_NAMES[named].format_map(values), values)
    groups = list(alike.values())
    for group in groups[:_VARIANTS]:
        labels = list(group)
        if group is not groups[0]:
            commands = ", ".join(f"`{_fill(code, group[labels[0]])}`" for _, code, _ in _CODE.findall(text))
            yield f"For {labels[0]}: {commands}."
        if len(labels) > 1:
            yield f"The same for {join_labels(sorted(labels[1:], key=natural))}."
    if len(groups) > _VARIANTS:
        yield "The others likewise, each with its own values."


def _describe_far_end(location: Location | None) -> str:
    far_end = location.far_end if location else None
    if far_end is None:
        return "the switch port at the other end"
    return f"{far_end.system or 'the switch'} port {far_end.port or '(not reported)'}"


def choose_blocks(section: str, keys: Sequence[str]) -> Iterator[str]:
    """The blocks for these keys, with procedures inserted; blocks without keys are for all."""
    blocks = list(_parse_blocks(section))
    every = {key for block in blocks for key in block.keys}
    chosen = next((key for key in keys if key in every), None)
    for block in blocks:
        if block.keys and chosen not in block.keys:
            continue
        procedure = re.match(PROCEDURE, block.text)
        if procedure:
            yield from choose_blocks(read_procedures()[procedure[1]], keys)
        else:
            yield block.text


def _parse_blocks(section: str) -> Iterator[Block]:
    """The paragraphs of a section; those after `For KEY:` are for that key, until the next such line."""
    keys: tuple[str, ...] = ()
    for text in _PARAGRAPHS.split(section.strip()):
        choice = CHOICE.match(text)
        if choice:
            keys = tuple(choice[1].split(", "))
        else:
            yield Block(keys, text)


def _parse_steps(text: str) -> Iterator[Step]:
    """The numbered lines of a block, each with its outcomes; other text is for readers of the page."""
    lines: list[list[str]] = []
    for line in text.split("\n"):
        if _STEP.match(line):
            lines.append([_STEP.sub("", line, count=1)])
        elif lines and _OUTCOME.match(line):
            lines[-1].append(_OUTCOME.sub("", line, count=1))
        elif lines:
            lines[-1][-1] += f" {line.strip()}"
    for do, *outcomes in lines:
        yield Step(do=do, outcomes=outcomes)
