"""Confirm and Fix of a finding: every page has both, they fit the part, and nothing known is left to fill in."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from agent.model.finding import STEP_COSTS, FarEnd, Location, Step
from agent.model.gpu import NvSwitch
from agent.model.nic import FabricNeighbor
from agent.model.node import Service
from agent.model.report import Report
from agent.rules import instructions
from agent.rules.catalogue import every_rule
from agent.rules.context import RuleContext
from agent.rules.host.driver_findings import MEANINGS
from agent.rules.host.service_sentences import SERVICE_MEANINGS
from agent.rules.host.tool_findings import MEANINGS as TOOL_MEANINGS
from agent.rules.instructions import CHOICE, build_confirm, build_steps, describe_steps, find_form_factor, find_values
from agent.rules.location import NOUNS, find_location
from agent.rules.pages import PROCEDURE, family_names, read_procedures, read_sections, read_text
from agent.rules.resets import describe_reset
from agent.rules.rule import Fail
from tests.agent.rules.build import (
    changed_gpu,
    changed_netdev,
    changed_nic,
    changed_port,
    function,
    gpu_id,
    instinct,
    nic_id,
    server,
    software,
    topology,
    virtual,
)
from tests.agent.rules.machines import npus
from tests.machines import FAULTS, HOSTS, scan_machine
from tests.texts import PLACEHOLDER, list_devices, list_texts

SITUATIONS = {
    "alone", "lost", "polling", "disabled", "training", "linkup", "all-rails", "set-down", "no-module", "no-light",
    "upstream", "maybe-set-down",
    "not-known", "other-class", "target-link-speed", "unsupported-request", "other", "by-design", "own-way",
    "reordered", "outage", "gpu-hot", "gpu-power", "capped-outside", "clocks-unexplained", "sram-errors",
    "memory-errors", "ecc-off", "past-errors", "hidden-switches", "new-kernel",
    "flat", "every-link", "same-ports", "setting", "uneven", "integrity", "one-port", "paused", "lanes",
    "nvswitch", "harmless", "reset", "shares", "too-old", "by-dmabuf", "xid", "xid-lost", "xid-memory", "xid-reset",
    "malformed", "acs", "poison", "completion", "inside", "injected", "external", "replace", "maintenance",
    "correctable", "power-cycle", "init", "reboot", "memory", "over", "peer", "software",
    "board", "count", "power-reading", "vf-guid", "vf-policy", "vf-physical", "fec-off", "not-needed",
    "state", "stated-label", "gpu-setting", "gpu-width", "port-setting", "addresses", "guids", "network", "gpu-link",
    "no-memory", "gpu-absent",
    "other-model", "mismatch", "no-gpu", "not-loaded", "not-built", "speed", "mtu", "log",
    "amd-block", "amd-page-fault", "amd-power-controller", "amd-ring-timeout",
    "failed", "api-mismatch", "bar-missing", "closed-modules", "driver-too-old", "firmware-missing",
    "gsp-firmware-missing", "gsp-not-started", "held", "inaccessible", "iommu-fault", "legacy-gpu", "limits",
    "module-kernel", "module-symbols", "module-unsigned", "module-versions", "no-atomics", "no-interrupt",
    "access", "device", "diagnostic", "driver", "error", "errors", "fan", "filtered", "hidden", "image", "library",
    "link", "node", "not-stated", "npu", "plugin", "silent", "runtime", "unloaded", "slurm", "counted",
    "gres", "selectors", "path", "nhc", "xgmi", "bond", "storm",
    "silent-gpu", "module", "memlock", "manager", "fec", "metric", "reporter", "again", "dpu-start",
    "region-taken", "reserved-memory", "nouveau", "rdma-probe", "module-refused", "interface-probe",
    "no-mkey", "open-modules", "power-cable", "probe-failed", "rdma-port", "registers-taken", "safe-mode",
    "unsupported-gpu", "all", "imex", "bus", "unlisted", "recovering", "marking", "nccl", "switch", "peers",
    "wire", "closed", "gaudi", "matrix", "port", "registration", "slowdown", "bmc", "bmc-host", "bmc-sensor",
    "cmdline", "numa", "odd-file",
    "redirected", "listed", "unplugged", "unexplained", "ibdiagnet", "cuda-hardware", "cuda-versions", "cuda-hidden",
    "measured", "nvsm", *(meaning.steps for meaning in TOOL_MEANINGS.values()),
}  # fmt: skip
RULES = [rule.name for rule in every_rule()]
SECTIONS = {name: family for family, names in family_names().items() for name in names}
_CARD = r"\bslot|reseat the (card|GPU|NIC)|\briser|MCIO|\b(the|a) card\b"
WRONG_WORDS = {
    **dict.fromkeys(("sxm", "oam", "superchip", "onboard-nic", "nvswitch"), _CARD),
    **dict.fromkeys(("onboard-switch", "root-port"), r"\b(the|a) card\b|another slot"),
    "virtual": r"\bslot|[Rr]eseat|\briser|MCIO|\b(the|a) card\b|BIOS|BMC|[Pp]ower (cycle|off)|service case|baseboard|"
    r"setpci|mlxconfig|mlxfwreset|[Uu]nplug",
}
SERVER = server()
ON_THE_HOST = {("gdr-ats-vm", "virtual")}  # its steps are for the host of the guest
HARDWARE = [name for name in RULES if re.search(PROCEDURE, read_sections(name)["How to fix"])]


def fail(subject: str, **changes: object) -> Fail:
    """A fault of that subject."""
    return replace(Fail(subject, "GPU0", "s", "i", "Do this."), **changes)


def steps_of(rule: str, form: str, **changes: object) -> list[Step]:
    """The steps of a rule for a GPU that is built in that way."""
    return build_steps(SERVER, rule, fail(f"gpu:{gpu_id(0)}", **changes), Location(part="GPU", form_factor=form))


def list_keys(section: str) -> set[str]:
    """Form factors and situations that a section has steps for, also those of a situation in a guest."""
    return {key.removeprefix("virtual-") for text in CHOICE.findall(section) for key in text.split(", ")}


@pytest.mark.parametrize("rule", RULES)
def test_every_page_has_commands_and_steps(rule: str) -> None:
    """A known key for each choice, a procedure for each name, and at least one step for every form factor."""
    sections = read_sections(rule)
    keys, shown = (list_keys(sections[name]) for name in ("How to fix", "How to confirm"))

    assert re.search(r"^- `[^`]+`", sections["How to confirm"], re.MULTILINE)
    assert keys | shown <= SITUATIONS | MEANINGS.keys() | SERVICE_MEANINGS.keys() | set(NOUNS)
    assert set(re.findall(PROCEDURE, sections["How to fix"])) <= read_procedures().keys()
    for form, situation in itertools.product(
        (*NOUNS, None), keys & (SITUATIONS | MEANINGS.keys() | SERVICE_MEANINGS.keys()) or {""}
    ):
        fault = fail("node", situation=situation)  # no value of a device is known
        steps = build_steps(SERVER, rule, fault, Location(part="GPU", form_factor=form))
        assert steps, (form, situation)
        assert all(step.do for step in steps), (form, situation)
    assert not re.search(PROCEDURE, read_text(rule))  # a reader of the page sees the steps


@pytest.mark.parametrize("rule", RULES)
def test_no_part_gets_the_advice_of_another(rule: str) -> None:
    """A module, a superchip and a soldered NIC or switch have no slot; a guest has no hardware to work on."""
    of_gpus = SECTIONS[rule] in ("gpu", "nvlink")
    for form, wrong in WRONG_WORDS.items():
        if of_gpus and form in ("onboard-nic", "onboard-switch", "nvswitch", "root-port"):
            continue
        for step in () if (rule, form) in ON_THE_HOST else steps_of(rule, form):
            for text in (step.do, *step.outcomes):
                assert not re.search(wrong, text), (form, text)


RANKS = {cost: rank for rank, cost in enumerate(STEP_COSTS)}
REMOTE = {cost for cost in RANKS if cost not in ("on_site", "part")}
LOSES = {"reset", "restart", "reboot", "power_cycle"}  # what was not saved before
# What the words of a step cost, the dearest first; the pages state the same
STATED = (
    ("part", r"pen a service case|\(RMA\)|[Ss]ervice exchanges|^Replace the card|replace the expander"),
    ("on_site", r"^On site|, on site|on site\.$|[Rr]eseat|[Uu]nplug"),
    ("power_cycle", r"ower cycle (it|the|completely)"),
    ("restart", r"[Ss]top and start (it|the)"),
    ("reboot", r"\breboot( it| the node|\.$|[,:;]| and| or )|^Reboot"),
    ("reset", r"[Rr]eset (the|all|both|these)\b|reload (the|`)|rmmod|modprobe -r|load the driver again"),
    ("drain", r"[Dd]rain (the|it|its)\b|drained|Let the jobs"),
)
FREE = r"Save what|Report|Ask|Compare|Read|Look|Check|Find"  # whatever a step of these words names besides
SAVE = "Save what"
SENT_AWAY = r"service case|\bRMA\b|exchanged|[Rr]eplace (the|that|it)\b"
# What follows a step that costs something and costs nothing itself: a look at what came of it, or what makes it last
AFTERWARDS = r"Look|Expect|If|To keep|Put|Make|Check|Configure|Do the same|Leave"


def list_ladders(rule: str) -> Iterator[list[Step]]:
    """The steps of a page for every situation and form factor."""
    keys = list_keys(read_sections(rule)["How to fix"])
    for form, situation in itertools.product(
        (*NOUNS, None), keys & (SITUATIONS | MEANINGS.keys() | SERVICE_MEANINGS.keys()) or {""}
    ):
        fault = fail("node", situation=situation, remedy="If it comes back, look again.")
        yield build_steps(SERVER, rule, fault, Location(part="GPU", form_factor=form))


@pytest.mark.parametrize("rule", RULES)
def test_steps_are_in_order_and_explained(rule: str) -> None:
    """Of a page, for every situation and form factor."""
    texts: dict[str, list[Step]] = {}
    for steps in list_ladders(rule):
        texts.setdefault(repr(steps), steps)  # most form factors have the same
    for steps in texts.values():
        failures = {check.__doc__: list(check(steps)) for check in CHECKS}
        assert {} == {check: broken for check, broken in failures.items() if broken}, steps


def find_no_condition(steps: list[Step]) -> Iterator[object]:
    """What follows from a step is a sentence with if: "If the fault follows the card, replace it."."""
    for step in steps:
        yield from (text for text in step.outcomes if not re.match(r"If .*, |In a virtual machine, ", text))


def find_unexplained_repair(steps: list[Step]) -> Iterator[object]:
    """After each power cycle and work on site: what it means that the fault goes or stays."""
    for step, after in itertools.pairwise([*steps, Step(do="")]):
        if step.cost in ("power_cycle", "on_site") and not step.outcomes and not after.do.startswith("If"):
            yield step


def find_unstated_cost(steps: list[Step]) -> Iterator[object]:
    """A step costs the dearest thing that its words name, or more; and nothing that its words do not name."""
    for step in steps:
        stated = next((code for code, words in STATED if re.search(words, step.do)), None)
        comes_back = "If it comes back" in step.do
        if step.cost is None:
            is_right = stated is None or bool(re.match(FREE, step.do)) or step.do.startswith("If it comes back")
        else:
            is_right = stated is not None or comes_back or step.cost in ("traffic", "reset")
            is_right = is_right and (stated is None or RANKS[step.cost] >= RANKS["drain"])
        if not is_right:
            yield step.cost, stated, step.do


def find_dearer_before_cheaper(steps: list[Step]) -> Iterator[object]:
    """What costs nothing first, then drains, resets and power cycles, then work on site, then parts."""
    dearest = -1
    for step in steps:
        rank = RANKS[step.cost] if step.cost else -1
        is_look = step.cost is None and dearest >= RANKS["drain"] and SAVE not in step.do
        if (step.cost in REMOTE and rank < dearest) or (is_look and not re.match(AFTERWARDS, step.do)):
            yield dearest, step.do
        dearest = max(dearest, rank)


def find_needless_drain(steps: list[Step]) -> Iterator[object]:
    """What a drained node waits for is the next step, and not a look that was possible before."""
    for step, after in itertools.pairwise([*steps, Step(do="")]):
        if re.fullmatch(r"Drain the \w+\.", step.do) and not after.cost:
            yield step.do


def find_lost_evidence(steps: list[Step]) -> Iterator[object]:
    """Evidence is saved where a part may go to service after a reset, reboot or power cycle; a provider has its own."""
    losing = next((number for number, step in enumerate(steps) if step.cost in LOSES), len(steps))
    sent = [text for step in steps[losing:] for text in (step.do, *step.outcomes) if re.search(SENT_AWAY, text)]
    of_provider = any("instance" in step.do or "guest" in step.do for step in steps)
    if sent and not of_provider and not any(SAVE in step.do for step in steps[:losing]):
        yield steps[losing].do, sent


def find_evidence_saved_twice(steps: list[Step]) -> Iterator[object]:
    """Of two procedures that follow each other the second asks for nothing that the first saved."""
    yield from [step.do for step in steps if step.do.startswith(SAVE)][1:]


def find_update_before_evidence(steps: list[Step]) -> Iterator[object]:
    """What an update loses is saved before it, as what a power cycle loses is: the next step saves it."""
    for step, after in itertools.pairwise(steps):
        if after.do.startswith(SAVE):
            yield from (text for text in step.outcomes if "drain the node" in text and "next step first" not in text)


def find_part_sent_away_for_a_repetition(steps: list[Step]) -> Iterator[object]:
    """A fault that comes back is looked into: diagnostics and service decide, a second time does not."""
    again = (
        r"(comes? back|come again|returns|is back|again)[^.;]*(have|has) [^.;]*(exchanged|replaced)|"
        r"(comes? back|come again|returns|is back)[^.;]*: (replace|exchange) |is a hardware fault|a repeat is"
    )
    yield from (text for step in steps for text in (step.do, *step.outcomes) if re.search(again, text))


RESET = Step(do="Reset the GPU.", cost="reset")


@pytest.mark.parametrize(
    ("find", "steps"),
    [
        (find_no_condition, [Step(do="Swap.", outcomes=["The fault follows the card: replace it."])]),
        (find_unexplained_repair, [Step(do="Power cycle it.", cost="power_cycle"), Step(do="Look again.")]),
        (find_unstated_cost, [Step(do="Reboot the node.")]),
        (find_unstated_cost, [Step(do="Look again.", cost="reboot")]),
        (find_unstated_cost, [Step(do="Reset the GPU.", cost="traffic")]),
        (find_dearer_before_cheaper, [Step(do="Reboot.", cost="reboot"), RESET]),
        (find_dearer_before_cheaper, [RESET, Step(do="Drain the node.")]),
        (find_needless_drain, [Step(do="Drain the node.", cost="drain"), Step(do="Look.")]),
        (find_lost_evidence, [RESET, Step(do="Open a service case.", cost="part")]),
        (find_evidence_saved_twice, [Step(do=f"{SAVE} the log has."), RESET, Step(do=f"{SAVE} the log has.")]),
        (
            find_update_before_evidence,
            [
                Step(do="Compare.", outcomes=["If it differs, drain the node and update it."]),
                Step(do=f"{SAVE} it has."),
            ],
        ),
        (find_part_sent_away_for_a_repetition, [Step(do="Wait.", outcomes=["If it comes back: replace the card."])]),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_steps_that_are_wrong_are_found(find: Callable[[list[Step]], Iterator[object]], steps: list[Step]) -> None:
    """By the check of what is wrong with them."""
    assert list(find(steps))


CHECKS = (
    find_no_condition,
    find_unexplained_repair,
    find_unstated_cost,
    find_dearer_before_cheaper,
    find_needless_drain,
    find_lost_evidence,
    find_evidence_saved_twice,
    find_update_before_evidence,
    find_part_sent_away_for_a_repetition,
)


@pytest.mark.parametrize("rule", HARDWARE)
def test_what_disturbs_comes_after_the_drain(rule: str) -> None:
    """On every form factor: no reset, power cycle, reseat or exchange before the node or guest is drained."""
    for form in (*NOUNS, "other"):
        drained = False
        for step in steps_of(rule, form):
            drained = drained or bool(re.search(r"rain the|[Dd]rain it|power (it )?off", step.do))
            disturbs = step.cost in (*LOSES, "on_site") and "plug" not in step.do  # what is not there carries no job
            assert drained or not disturbs, (form, step.do)


COMMAND = re.compile(r"`((?:sudo )?[a-z][\w.-]* [^`]+)`")
PLACE = re.compile(r"<[^<>\n]*>|\[[^\]\n]*\]|\.\.\.|\{[^}\n]*\}")  # what a person fills in


def test_commands_can_be_typed(real_commands: None) -> None:
    """A shell reads each; a backslash in quotes is written once."""
    pages = [
        f"{read_sections(rule)['How to confirm']}{read_text(rule).partition('## How to fix')[2]}" for rule in RULES
    ]
    commands = [command.replace("\n", " ") for page in pages for command in COMMAND.findall(page)]
    script = "\n".join(PLACE.sub("x", command) for command in commands)
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)

    assert len(commands) > 500
    assert "" == done.stderr
    assert [] == [command for command in commands if "\\\\" in command]


def test_steps_by_form_factor() -> None:
    """The same fault on a module, on a card and on a switch."""
    width = "pcie-width-downgraded"

    assert any(
        "If service exchanges the module" in outcome for step in steps_of(width, "sxm") for outcome in step.outcomes
    )
    assert "If the fault follows the card, replace the card (RMA)." in steps_of(width, "pcie-card")[-1].outcomes
    assert "MCIO" in describe_steps(steps_of(width, "onboard-switch"))
    assert "provider" in describe_steps(steps_of(width, "virtual"))


@pytest.mark.parametrize(
    ("situation", "first"),
    [
        ("disabled", "Find out who disabled it"),
        ("training", "The signal is poor."),
        ("linkup", "Read the state of leaf-1 port 7"),
        ("all-rails", "Check power and state of the leaf switches"),
        ("vf-guid", "On the host that has the physical function, give it its GUIDs"),
        ("vf-policy", "On the host that has the physical function, read the link policy"),
        ("vf-physical", "On the host that has the physical function, check that port"),
        ("polling", "Check that leaf-1 port 7 is enabled and has power, and that a cable is plugged in"),
        ("", "Check that leaf-1 port 7 is enabled"),
    ],
)
def test_steps_by_state(situation: str, first: str) -> None:
    """Of a port that is down, with the far end that is known."""
    location = Location(part="NIC", form_factor="pcie-card", far_end=FarEnd(system="leaf-1", port="7"))
    steps = build_steps(server(), "ib-port-down", fail(f"port:{nic_id(0)}/1", situation=situation), location)

    assert steps[0].do.startswith(first)


def test_the_rule_of_the_code_stands_where_the_page_says_so() -> None:
    """REMEDY is the rule's own sentence, with its words filled in."""
    fault = fail(f"gpu:{gpu_id(0)}", remedy="Look at ADDRESS.")

    assert f"Look at {gpu_id(0)}." == build_steps(server(), "gpu-xid", fault, None)[0].do


def test_commands_are_filled_in() -> None:
    """With the device of the finding; a command whose value is not known is left out."""
    confirm = build_confirm(server(), "ib-port-down", fail(f"port:{nic_id(0)}/1"))
    assert confirm is not None
    assert "ibstat mlx5_0 1" in confirm

    unnamed = changed_nic(server(), 0, rdma_device=None)
    assert None is build_confirm(unnamed, "ib-port-down", fail(f"port:{nic_id(0)}/1"))


def test_commands_of_a_finding_about_the_node() -> None:
    """Few devices: one command each. Many: the first stands for all. None: nothing."""
    one = build_confirm(server(), "numa-unknown", fail("node", ids=frozenset({gpu_id(0), gpu_id(1)})))
    many = build_confirm(server(8), "numa-unknown", fail("node", ids=frozenset(gpu_id(n) for n in range(8))))

    assert [f"cat /sys/bus/pci/devices/{gpu_id(n)}/numa_node" for n in (0, 1)] == one
    assert [f"cat /sys/bus/pci/devices/{gpu_id(0)}/numa_node"] == many
    assert None is build_confirm(server(), "numa-unknown", fail("node"))


def test_a_vendors_tool_is_for_its_parts_alone() -> None:
    """A GPU of AMD is not looked at with nvidia-smi, nor is a node that has no other."""
    own = fail(f"gpu:{gpu_id(0)}", ids=frozenset({gpu_id(0)}))
    lspci = f"lspci -vvv -s {gpu_id(0)}"

    assert ["nvidia-smi -q -i 0", lspci] == build_confirm(server(), "peer-differs", own)
    assert [f"amd-smi static -g {gpu_id(0)}", lspci] == build_confirm(instinct(), "peer-differs", own)
    assert None is build_confirm(server(), "peer-differs", fail("node"))
    assert None is build_confirm(instinct(), "peer-differs", fail("node"))


# A device, port, priority or value that a command is for, written out
CONSTANT = re.compile(
    r"(?:-[isPcC]|mtu|--pfc|bitmap|-pl|--prio2buffer|--tcbw|--ratelimit|--cable_len|enable|vlan) \d|enable/\d|/tc/\d|"
    r"/ports/\d|_P\d\b|\d:on|echo \d\d|pci/\d|traffic_class=\d|TC=\d"
)


@pytest.mark.parametrize("rule", RULES)
def test_commands_of_pages_name_no_device_or_value(rule: str) -> None:
    """Whatever differs from finding to finding is a word that is filled in."""
    fix = read_text(rule).partition("## How to fix")[2]
    commands = [command.replace("\n", " ") for command in COMMAND.findall(fix)]

    assert [] == [command for command in commands if CONSTANT.search(" ".join(command.split()))]


@pytest.mark.parametrize(("host", "fault"), [*((host, None) for host in HOSTS), *(("", fault) for fault in FAULTS)])
def test_commands_are_for_the_devices_of_their_finding(host: str, fault: str | None) -> None:
    """Of every finding of every fixture and fault: what a command names, the finding or its evidence names."""
    report = scan_machine(host, fault)
    for finding in report.findings:
        rows = [f"{row.what} {row.value} {row.source}" for row in finding.evidence]
        own = {finding.label, finding.summary, finding.subject, *finding.devices, *finding.list_concerned(), *rows}
        known = {word for text in own for word in re.findall(r"[\w:.]*\d[\w:.]*", text)}
        known |= {word for device in finding.list_concerned() for word in _list_names(report, device)}
        assert set() == list_devices(finding) - known, finding


NAMED_TO_HARM = "$(id);`id`'"


def test_a_name_is_no_command(real_commands: None) -> None:
    """Whoever names a device names what an administrator is to type: a shell takes it as one word."""
    context = changed_nic(server(), 0, rdma_device=f"{NAMED_TO_HARM}mlx5_0")
    confirm = build_confirm(context, "ib-port-down", fail(f"port:{nic_id(0)}/1"))
    assert confirm is not None
    (command,) = [command for command in confirm if command.startswith("ibstat ")]
    done = subprocess.run(
        ["sh", "-c", f'ibstat() {{ echo "$1"; }}; {command}'], capture_output=True, text=True, check=True
    )

    assert f"{NAMED_TO_HARM}mlx5_0\n" == done.stdout


def _list_names(report: Report, device: str) -> Iterator[str]:
    """Whatever names a device, what is above it, and its ports."""
    for gpu in report.topology.gpus:
        if device in (gpu.id, gpu.pci):
            yield from (gpu.pci or "", str(gpu.index))
    for nic in report.topology.nics:
        if device in (nic.id, nic.pci):
            yield from (nic.pci or "", nic.rdma_device or "", *(name for port in nic.ports for name in port.netdevs))
    for bridge in report.topology.pci:
        if bridge.id == device:
            yield from (bridge.id, bridge.parent or "")


@pytest.mark.parametrize("rule", RULES)
def test_a_command_for_one_npu_names_that_npu(rule: str) -> None:
    """hccn_tool takes the number of the NPU, not always that of the first; `ADDRESS` is a PCI address, never an IP."""
    page = read_sections(rule)
    assert not re.search(r"hccn_tool -i (\d|GPU_INDEX)|address ADDRESS", page["How to confirm"] + page["How to fix"])


def test_commands_for_an_npu_have_its_number() -> None:
    """Of the NPU without address; also where no NPU on the bus is known to have the number."""
    report = scan_machine("", "npu-address-missing")
    (finding,) = report.findings

    assert ["grep address /etc/hccn.conf", "hccn_tool -i 3 -ip -g"] == finding.confirm
    assert "`hccn_tool -i 3 -ip -s address IP netmask NETMASK`" in finding.steps[0].do
    values = {"NPU_INDEX": "9", "NPU_CARD": "9", "NPU_CHIP": "0"}
    assert [values] == find_values(server(), fail("npu:9"))
    assert [values] == find_values(server(), fail("node", ids=frozenset({"npu-9"})))
    assert [{}] == find_values(server(), fail("node", ids=frozenset({"npu-²", "npu-99999"})))
    assert [{**values, "NPU_CARD": "4", "NPU_CHIP": "1"}] == find_values(npus("0xd803"), fail("npu:9"))  # two a module


@pytest.mark.parametrize(("device", "chip"), [("0xd802", " -c 0"), ("0xd806", "")])
def test_a_reset_of_an_ascend_950_names_the_card_alone(device: str, chip: str) -> None:
    """Its npu-smi takes no chip."""
    fault = fail("npu:3", situation="card")
    text = describe_steps(build_steps(npus(device), "npu-heartbeat-lost", fault, Location(part="NPU")))

    assert f"npu-smi set -t reset -i 3{chip} -m 1." in text


@pytest.mark.parametrize(
    ("services", "guest", "there"),
    [
        ([("nvidia-fabricmanager", "inactive")], False, True),
        ([("nvidia-fabricmanager", "inactive")], True, True),  # a guest that has the switches, too
        ([("nvidia-fabricmanager", "not_installed")], False, False),  # a tray of a rack
        ([("nvidia-dcgm", "not_installed"), ("nvidia-fabricmanager", "inactive")], False, True),
        ([], False, True),
        ([], True, False),
    ],
)
def test_the_fabric_manager_is_looked_at_where_it_runs(
    services: list[tuple[str, str]], guest: bool, there: bool
) -> None:
    """Not on a tray of a rack, nor in a guest, whose manager runs on another host."""
    context = software(
        virtual(server()) if guest else server(), services=[Service(name=name, state=state) for name, state in services]
    )
    fault = fail(f"gpu:{gpu_id(0)}")

    for rule in ("nvlink-inactive", "fabric-incomplete"):
        commands = build_confirm(context, rule, fault) or []
        assert there == any("fabricmanager" in command for command in commands), rule
        assert any(command.startswith("nvidia-smi") for command in commands)
    assert "systemctl status nvidia-fabricmanager" in (build_confirm(context, "fabric-manager-down", fault) or [])


def test_an_applications_xid_needs_no_service() -> None:
    """Nothing of the node is broken: what comes back is the application's."""
    (step,) = steps_of("gpu-xid", "sxm", situation="harmless")
    assert [] == step.outcomes


def test_an_nvswitch_is_no_gpu() -> None:
    """The steps of an SXid: the switch is part of the baseboard, and has no serial number of its own."""
    steps = steps_of("gpu-xid", "pcie-card", situation="nvswitch")  # a log alone: nothing of the bus is known
    text = describe_steps(steps)
    assert "baseboard" in steps[-1].outcomes[0]
    assert "nvidia-smi -r." in text  # with the GPUs that it joins
    assert "GPU's serial number" not in text


def test_the_far_end_of_a_fabric_is_named() -> None:
    """Discovery names the switch and its port."""
    port = server().nics[nic_id(0)].ports[0]
    port = replace(port, neighbor=FabricNeighbor(name="leaf-1", port=7, source="ibnetdiscover"))
    location = find_location(changed_nic(server(), 0, ports=[port]), f"port:{nic_id(0)}/1")
    assert location is not None
    assert FarEnd(system="leaf-1", port="7") == location.far_end


@pytest.mark.parametrize("name", [*HOSTS, *FAULTS])
def test_nothing_known_is_left_to_fill_in(name: str) -> None:
    """Of every finding of every machine and fault; and no percentage without a reason."""
    report = scan_machine(name) if name in HOSTS else scan_machine("", name)
    for finding in report.findings:
        for text in list_texts(finding):
            assert not PLACEHOLDER.search(text), (finding.rule, text)
        assert finding.steps
        assert finding.remedy
        assert not re.search(r"\d %|(?<![\d.])(0|100)%", finding.impact), finding.impact


@pytest.mark.parametrize(
    ("context", "subject", "ids", "values"),
    [
        (server(), f"gpu:{gpu_id(0)}", (), [{"ADDRESS": gpu_id(0), "PORT_ABOVE": "0000:12:00.0", "GPU_INDEX": "0"}]),
        (
            changed_gpu(server(), 0, index=None),
            f"gpu:{gpu_id(0)}",
            (),
            [{"ADDRESS": gpu_id(0), "PORT_ABOVE": "0000:12:00.0", "GPU_INDEX": gpu_id(0)}],
        ),
        (
            changed_gpu(server(), 0, id="GPU-x", index=None, pci=None),
            "gpu:GPU-x",
            (),
            [{}],
        ),
        (changed_gpu(server(), 0, id="GPU-x", index=1, pci=None), "gpu:GPU-x", (), [{"GPU_INDEX": "1"}]),
        (
            changed_nic(server(), 0, id="n0"),
            "pci:n0",
            (),
            [{"ADDRESS": nic_id(0), "PORT_ABOVE": "0000:12:01.0", "DEVICE": "mlx5_0", "PORT_NUMBER": "1",
              "PHYSICAL_PORT": "P1"}],
        ),
        (server(), "pci:0000:10:01.0", (), [{"ADDRESS": "0000:10:01.0"}]),
        (server(), "pci:0000:ff:00.0", (), [{"ADDRESS": "0000:ff:00.0"}]),
        (server(), "x:0000:ff", (), [{}]),
        (server(), "x:0000:ff:00:1", (), [{}]),
        (server(ethernet=True), "netdev:eth0", (), [{
            "ADDRESS": nic_id(0), "PORT_ABOVE": "0000:12:01.0", "DEVICE": "mlx5_0", "PORT_NUMBER": "1",
            "PHYSICAL_PORT": "P1",
            "INTERFACE": "eth0",
        }]),
        (server(ethernet=True), f"port:{nic_id(0)}/1", (), [{
            "ADDRESS": nic_id(0), "PORT_ABOVE": "0000:12:01.0", "DEVICE": "mlx5_0", "PORT_NUMBER": "1",
            "PHYSICAL_PORT": "P1",
            "INTERFACE": "eth0",
        }]),
        (server(), f"port:{nic_id(0)}/7", (), [{
            "ADDRESS": nic_id(0), "PORT_ABOVE": "0000:12:01.0", "DEVICE": "mlx5_0", "PORT_NUMBER": "1",
            "PHYSICAL_PORT": "P1",
        }]),
        (changed_netdev(server(ethernet=True), 0, nic=None, pci=None), "netdev:eth0", (), [{"INTERFACE": "eth0"}]),
        (server(), f"pair:{gpu_id(0)}+{gpu_id(1)}", (), [
            {"ADDRESS": gpu_id(0), "PORT_ABOVE": "0000:12:00.0", "GPU_INDEX": "0"},
            {"ADDRESS": gpu_id(1), "PORT_ABOVE": "0000:22:00.0", "GPU_INDEX": "1"},
        ]),
        (changed_gpu(server(), 0, driver_state="not_open"), f"gpu:{gpu_id(0)}", (), [
            {"ADDRESS": gpu_id(0), "PORT_ABOVE": "0000:12:00.0", "GPU_INDEX": gpu_id(0)},
        ]),
        (server(), "node", (gpu_id(0), "mlx5_9", gpu_id(0)), [
            {"ADDRESS": gpu_id(0), "PORT_ABOVE": "0000:12:00.0", "GPU_INDEX": "0"},
        ]),
        (changed_netdev(server(ethernet=True), 0, nic=None, pci=None), "node", ("eth0",), [{"INTERFACE": "eth0"}]),
        (changed_gpu(server(), 0, id="GPU-x"), "gpu:GPU-x", (), [
            {"ADDRESS": gpu_id(0), "PORT_ABOVE": "0000:12:00.0", "GPU_INDEX": "0"},
        ]),
        (changed_port(server(), 0, port=2), f"port:{nic_id(0)}/2", (), [{
            "ADDRESS": nic_id(0), "PORT_ABOVE": "0000:12:01.0", "DEVICE": "mlx5_0", "PORT_NUMBER": "2",
            "PHYSICAL_PORT": "P1",
        }]),
    ],
)  # fmt: skip
def test_what_is_filled_in(
    context: RuleContext, subject: str, ids: tuple[str, ...], values: list[dict[str, str]]
) -> None:
    """Of every kind of subject; what is not known is absent."""
    assert values == find_values(context, fail(subject, ids=frozenset(ids)))


@pytest.mark.parametrize(("devices", "commands"), [(4, 4), (5, 1)])
def test_commands_are_written_out_for_four_devices(devices: int, commands: int) -> None:
    """Of more the first stands for all."""
    fault = fail("node", ids=frozenset(gpu_id(n) for n in range(devices)))

    assert commands == len(build_confirm(server(8), "numa-unknown", fault) or ())


@pytest.mark.parametrize(
    ("remedy", "subject", "ids", "do"),
    [
        ("Look: `ip link show INTERFACE`", f"port:{nic_id(0)}/1", (), "Look: `ip link show eth0`"),
        ("Look (`ip link show INTERFACE`) at INTERFACE.", f"gpu:{gpu_id(0)}", (), "Look at its interface."),
        ("Look at FAR_END.", f"gpu:{gpu_id(0)}", (), "Look at the switch port at the other end."),
        (
            "Set INTERFACE.", "node", (nic_id(0), nic_id(1), nic_id(2)),
            "Set eth0. The same for eth1, eth2.",
        ),
        ("Set INTERFACE.", "node", (gpu_id(0), nic_id(1)), "Set eth1."),
        ("Set it.", "node", (nic_id(0), nic_id(1)), "Set it."),
        (
            "Reset: `nvidia-smi -r -i GPU_INDEX`", "node", (gpu_id(0), gpu_id(1)),
            "Reset: `nvidia-smi -r -i 0`. The same for GPU1.",
        ),
    ],
)  # fmt: skip
def test_a_step_is_filled_in(remedy: str, subject: str, ids: tuple[str, ...], do: str) -> None:
    """With the first device that has all values; a command without its value is left out."""
    fault = fail(subject, remedy=remedy, ids=frozenset(ids))

    assert do == build_steps(server(ethernet=True), "gpu-xid", fault, None)[0].do


def test_the_form_factor_of_a_finding_about_the_node() -> None:
    """Is that of its devices."""
    fault = fail("node", ids=frozenset({gpu_id(0), gpu_id(1)}))
    location = Location(part="GPU", form_factor="sxm")

    assert build_steps(server(), "pcie-width-downgraded", fault, None) == build_steps(
        server(), "pcie-width-downgraded", fault, location
    )


def test_a_tool_is_for_the_maker_of_the_very_gpu() -> None:
    """Also where the node has GPUs of another maker."""
    mixed = changed_gpu(server(), 1, vendor="AMD")
    for number, output in ((0, True), (1, False)):
        fault = fail(f"gpu:{gpu_id(number)}", ids=frozenset({gpu_id(number)}), situation="gpu-setting")
        step = build_steps(mixed, "peer-differs", fault, None)[0].do
        assert output == (f"nvidia-smi -q -i {number}" in (build_confirm(mixed, "peer-differs", fault) or ()))
        assert output == ("nvidia-smi" in step)
        assert step.startswith("Compare this value with the other GPUs")


@pytest.mark.parametrize(
    ("names", "has_tool"),
    [
        ({}, True),
        ({"driver": None}, True),
        ({"driver": None, "rdma_device": "rocep59s0f1"}, True),  # a name that states no maker
        ({"driver": None, "rdma_device": "bnxt_re0"}, False),
        ({"driver": "ice", "rdma_device": "rocep59s0f1"}, False),
    ],
)
def test_a_tool_of_a_maker_of_nics_is_for_its_nics_alone(names: dict[str, str | None], has_tool: bool) -> None:
    """What serves NICs of all makers stays."""
    context = changed_nic(server(), 0, **names)
    fault = fail(f"port:{nic_id(0)}/1", ids=frozenset({nic_id(0)}))
    commands = build_confirm(context, "ib-port-down", fault) or []

    assert any(command.startswith("grep . /sys/class/infiniband/") for command in commands)
    assert has_tool == any(command.startswith("mlxlink ") for command in commands)


def test_the_log_of_an_earlier_boot_is_searched_where_the_fault_is_there() -> None:
    """The kernel's own buffer begins with this boot."""
    now = fail(f"gpu:{gpu_id(0)}", ids=frozenset({gpu_id(0)}))

    assert (build_confirm(server(), "gpu-xid", now) or ())[0] == "dmesg -T | grep -iE 'xid|fallen off'"
    before = build_confirm(server(), "gpu-xid", replace(now, is_before_boot=True)) or ()
    assert before[0] == "journalctl _TRANSPORT=kernel | grep -iE 'xid|fallen off'"


def test_interfaces_that_have_nothing_else_are_all_named() -> None:
    """A step that needs no more than an interface is for every one of them."""
    context = server(ethernet=True)
    for number in (0, 1):
        context = changed_netdev(context, number, nic=None, pci=None)
    fault = fail("node", remedy="Set INTERFACE.", ids=frozenset({"eth0", "eth1"}))

    assert "Set eth0. The same for eth1." == build_steps(context, "gpu-xid", fault, None)[0].do


def part(npu: int, **values: str) -> Fail:
    """A fault of one NPU with what the rule found there."""
    return fail(f"npu:{npu}", label=f"NPU {npu}", values=tuple(values.items()))


def test_a_command_has_what_the_rule_found_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """One command for devices with one value, another for those with another; what is not known drops the command."""
    with_page(monkeypatch, "1. Set it: `hccn_tool -i NPU_INDEX -pfc -s bitmap BITMAP`")
    parts = [part(0, BITMAP="1,0"), part(2, BITMAP="0,1"), part(10, BITMAP="1,0"), part(9, BITMAP="1,0")]
    whole = fail("node", parts=tuple(parts))

    def do(fault: Fail) -> str:
        return build_steps(server(), "gpu-xid", fault, None)[0].do

    assert "Set it: `hccn_tool -i 0 -pfc -s bitmap 1,0`" == do(parts[0])
    assert (
        "Set it: `hccn_tool -i 0 -pfc -s bitmap 1,0`. The same for NPU 9, NPU 10. "
        "For NPU 2: `hccn_tool -i 2 -pfc -s bitmap 0,1`."
    ) == do(whole)
    assert "Set it" == do(part(0))
    many = fail("node", parts=tuple(part(n, BITMAP=str(n)) for n in range(17)))
    assert do(many).endswith("The others likewise, each with its own values.")
    assert "hccn_tool -i 15 " in do(many)
    assert "hccn_tool -i 16 " not in do(many)


def states(**services: str) -> RuleContext:
    """The server with these services of NVIDIA, and no others."""
    rows = [Service(name=f"nvidia-{name}", state=state) for name, state in services.items()]
    return software(server(), services=rows)


@pytest.mark.parametrize(
    ("context", "held"),
    [
        (server(), "the fabric manager, DCGM, the persistence daemon, exporters"),  # it is not known what runs
        (
            states(dcgm="active", persistenced="active", imex="inactive"),
            "`systemctl stop nvidia-dcgm nvidia-persistenced`",
        ),
        (states(dcgm="inactive"), "jobs, exporters"),
    ],
)
def test_what_holds_the_gpus_is_ended_before_a_reset(context: RuleContext, held: str) -> None:
    """The services that run here; exporters and the device plugin run in containers."""
    steps = build_steps(context, "gpu-clocks-limited", fail(f"gpu:{gpu_id(0)}", situation="clocks-unexplained"), None)

    assert held in steps[1].do
    assert steps[1].do.endswith("`fuser -v /dev/nvidia*` shows what is left.")


@pytest.mark.parametrize(
    ("architecture", "switches", "command"),
    [
        ("Ampere", True, "`nvidia-smi -r`"),
        ("Hopper", True, "`nvidia-smi -r -i GPU_INDEX`"),
        ("Ampere", False, "`nvidia-smi -r -i GPU_INDEX`"),
        (None, True, "`nvidia-smi -r -i GPU_INDEX`"),
    ],
)
def test_gpus_that_are_reset_together_are_named_so(architecture: str | None, switches: bool, command: str) -> None:
    """Up to A100 those that NVSwitches join."""
    context = changed_gpu(server(), 0, architecture=architecture)
    rows = [NvSwitch(id="0000:f1:00.0", pci="0000:f1:00.0")] if switches else []
    context = replace(context, topology=replace(context.topology, nvswitches=rows))
    fault = fail(f"gpu:{gpu_id(0)}", ids=frozenset({gpu_id(0)}))

    assert describe_reset(context, "gpu-ecc", fault, None)["RESET_GPU"].endswith(command)


BUG_REPORT = "`nvidia-bug-report.sh` (as root; with `--safe-mode` where it hangs)"


@pytest.mark.parametrize(
    ("context", "subject", "form", "evidence"),
    [
        (server(), f"gpu:{gpu_id(0)}", "sxm", f"{BUG_REPORT} and the BMC's event log"),
        (server(), f"link:{gpu_id(0)}/3", "virtual", f"{BUG_REPORT} and what is on local disks"),
        (server(), f"port:{nic_id(0)}/1", None, "`devlink health dump show pci/ADDRESS reporter fw_fatal`"),
        (changed_nic(server(), 0, driver="bnxt_en"), f"port:{nic_id(0)}/1", None, "the kernel log (`dmesg -T`)"),
        (instinct(), "node", None, "the kernel log (`dmesg -T`), `amd-smi metric` and the BMC's"),
        (npus(), "node", None, "the kernel log (`dmesg -T`), the driver's `npu_log_collect.sh` and"),
        (server(), "pci:0000:10:01.0", None, "the kernel log (`dmesg -T`) and the BMC's"),
        (changed_gpu(server(), 0, vendor="AMD"), f"gpu:{gpu_id(1)}", None, "`nvidia-bug-report.sh`"),
    ],
)  # fmt: skip
def test_the_evidence_is_of_the_part(context: RuleContext, subject: str, form: str | None, evidence: str) -> None:
    """By the maker of the GPUs, of a NIC its firmware's dump; a guest has no BMC."""
    place = subject.partition(":")[2]
    fault = fail(subject, ids=frozenset({place}) if place else frozenset())

    assert describe_reset(context, "gpu-ecc", fault, form)["EVIDENCE"].startswith(evidence)


SWITCHES = [NvSwitch(id="0000:f1:00.0", pci="0000:f1:00.0")]
KERNEL_LOG = "the kernel log (`dmesg -T`) and the BMC's"


@pytest.mark.parametrize(
    ("rule", "context", "ids", "evidence"),
    [
        ("gpu-missing", server(), (), BUG_REPORT),
        ("pcie-slot-card-missing", server(), ("0000:10:01.0",), KERNEL_LOG),  # a port: not of the GPUs that are there
        ("pcie-slot-card-missing", server(), ("0000:10:01.0", gpu_id(0)), BUG_REPORT),
        ("nvswitch-missing", topology(server(), nvswitches=SWITCHES), ("0000:f1:00.0",), BUG_REPORT),
        ("gpu-missing", topology(server(), nvswitches=SWITCHES, gpus=[]), (), BUG_REPORT),
        ("gpu-missing", topology(server(), gpus=[]), (), KERNEL_LOG),
        ("gpu-xid", topology(server(), gpus=[]), (), BUG_REPORT),  # the kernel log alone
    ],
)
def test_the_evidence_of_a_node_is_of_its_devices(
    rule: str, context: RuleContext, ids: tuple[str, ...], evidence: str
) -> None:
    """Of those that a finding is about; where it names none, of the GPUs and NVSwitches that are there."""
    phrases = describe_reset(context, rule, fail("node", ids=frozenset(ids)), None)

    assert phrases["EVIDENCE"].startswith(evidence)
    assert ("/dev/nvidia" in phrases["HOLDERS"]) == (evidence == BUG_REPORT)


def test_a_nic_that_left_the_bus_is_asked_for_no_dump() -> None:
    """It answers no command."""
    context = function(server(), nic_id(0), state="gone")

    assert describe_reset(context, "pcie-device-gone", fail(f"pci:{nic_id(0)}"), None)["EVIDENCE"].startswith(
        KERNEL_LOG
    )


@pytest.mark.parametrize(("parts", "subject", "first"), [(2, "node", "A."), (1, "node", "L."), (2, "gpu:x", "L.")])
def test_what_all_devices_have_in_common_is_the_suspect(
    monkeypatch: pytest.MonkeyPatch, parts: int, subject: str, first: str
) -> None:
    """Steps for a finding of the node that several devices make, before those of its situation."""
    with_page(monkeypatch, "For all: \n\n1. A.\n\n\nFor lost: \n\n1. L.")
    fault = fail(subject, situation="lost", parts=tuple(fail(f"gpu:{gpu_id(n)}") for n in range(parts)))

    assert first == build_steps(server(), "gpu-xid", fault, None)[0].do


def test_a_step_has_its_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of the page's line, or of what the rule writes there; a rule without words of its own has no step."""
    with_page(monkeypatch, "1. Look.\n2. Reboot.\n   (costs a reboot)\n   - Good.\n3. REMEDY\n4. Or: REMEDY")
    fault = fail("node", remedy="Reset it: `x INTERFACE` (costs a reset)")
    look, reboot = Step(do="Look."), Step(do="Reboot.", cost="reboot", outcomes=["Good."])

    steps = [look, reboot, Step(do="Reset it", cost="reset"), Step(do="Or: Reset it", cost="reset")]
    assert steps == build_steps(server(), "gpu-xid", fault, None)
    assert [look, reboot] == build_steps(server(), "gpu-xid", replace(fault, remedy=""), None)


def test_evidence_that_was_saved_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one procedure follows another."""
    with_page(
        monkeypatch, "1. Save what a reset loses: EVIDENCE\n2. Reset.\n3. Save what a power cycle loses: EVIDENCE"
    )

    assert ["Save what a reset", "Reset."] == [
        step.do.partition(" loses")[0] for step in build_steps(server(), "gpu-xid", fail("node"), None)
    ]


@pytest.mark.parametrize(
    ("remedy", "do"),
    [
        ("Set it: `a DEVICE 1` and `a INTERFACE 2`", "Set it: `a mlx5_0 1`"),
        ("Set it: `a DEVICE 1`, `a INTERFACE 2`.", "Set it: `a mlx5_0 1`."),
        ("Set `x_PHYSICAL_PORT`.", "Set `x_P1`."),
        ("Set it to TRAFFIC_CLASS.", "Set it to 4 * DSCP + 2 of a lossless DSCP."),
    ],
)
def test_a_command_goes_with_what_leads_to_it(remedy: str, do: str) -> None:
    """One of two whose value is not known."""
    assert do == build_steps(server(), "gpu-xid", fail(f"port:{nic_id(0)}/1", remedy=remedy), None)[0].do


def test_the_second_port_of_a_nic_is_named_so() -> None:
    """mlxconfig has one setting for each port; of other functions none is known."""
    for address, ports in (("0000:15:00.1", ["P2"]), ("0000:15:00.2", [])):
        context = changed_nic(server(), 0, pci=address)
        values = find_values(context, fail(f"port:{nic_id(0)}/1"))
        assert ports == [row["PHYSICAL_PORT"] for row in values if "PHYSICAL_PORT" in row]


def with_page(monkeypatch: pytest.MonkeyPatch, fix: str) -> None:
    """Every rule has this text under How to fix."""
    monkeypatch.setattr(instructions, "read_sections", lambda _: {"How to fix": fix})


def test_steps_and_outcomes_over_several_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that begins nothing goes on with what is above it; text before the first step is for readers."""
    with_page(
        monkeypatch, "Read this.\n  - Not an outcome.\n1. Do\n   it.\n   - Good:\n     done.\n   - Bad.\n2. Go on."
    )
    first = Step(do="Do it.", outcomes=["Good: done.", "Bad."])

    assert [first, Step(do="Go on.", outcomes=[])] == build_steps(server(), "gpu-xid", fail("node"), None)


def test_a_step_of_which_nothing_is_known_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one stands."""
    with_page(monkeypatch, "1. `ip link show INTERFACE`\n2. Look.")
    assert [Step(do="Look.", outcomes=[])] == build_steps(server(), "gpu-xid", fail("node"), None)


def test_a_guest_comes_before_the_situation_and_the_situation_before_the_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first key that the page has; what a guest is to set itself, it is asked for."""
    with_page(
        monkeypatch,
        "For virtual: \n\n1. V.\n\nFor set, virtual-set: \n\n1. G.\n\nFor lost: \n\n1. L.\n\nFor sxm: \n\n1. S.\n\n"
        "For other: \n\n1. O.",
    )
    location = Location(part="GPU", form_factor="sxm")

    def choose(context: RuleContext, situation: str, where: Location | None) -> str:
        return build_steps(context, "gpu-xid", fail("node", situation=situation), where)[0].do

    assert "L." == choose(server(), "lost", location)
    assert "S." == choose(server(), "", location)
    assert "O." == choose(server(), "", None)
    assert "V." == choose(virtual(server()), "lost", location)
    assert "G." == choose(virtual(server()), "set", location) == choose(server(), "set", location)


def test_how_a_part_is_built_in() -> None:
    """By its place, else by the devices of the fault, else a GPU that is gone as the others; a guest has no parts."""
    card, gone = Location(part="GPU", form_factor="pcie-card"), Location(part="GPU")

    assert "virtual" == find_form_factor(virtual(server()), fail(f"gpu:{gpu_id(0)}"), card)
    assert "pcie-card" == find_form_factor(server(), fail(f"gpu:{gpu_id(0)}"), card)
    assert "sxm" == find_form_factor(server(), fail("node", ids=frozenset({gpu_id(0)})), gone)
    assert "sxm" == find_form_factor(server(), fail("gpu:gone"), None)
    assert None is find_form_factor(server(), fail("pci:gone"), None)


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([], ""),
        ([Step(do="Do `it`.", outcomes=["Good."])], "Do it. Good."),
        ([Step(do="One."), Step(do="Two.")], "1. One. 2. Two."),
        ([Step(do="One."), Step(do="Two."), Step(do="Three.")], "1. One. 2. Two. 3. Three."),
        ([Step(do="Reset it: `x -r`", outcomes=["It works: done."])], "Reset it: x -r. It works: done."),
        ([Step(do="Reset it: `x -r`")], "Reset it: x -r"),
    ],
)
def test_steps_as_one_text(steps: list[Step], text: str) -> None:
    """Several are numbered; what comes of a step is a sentence of its own, also behind a command."""
    assert text == describe_steps(steps)


@pytest.mark.parametrize("rule", RULES)
def test_no_page_has_a_percentage_only_to_have_one(rule: str) -> None:
    """All or nothing is written in words, and half only where it is computed."""
    why = read_sections(rule)["Why it matters"]

    assert not re.search(r"\d\s%|(?<![\d.])(0|50|100)%", why), why
