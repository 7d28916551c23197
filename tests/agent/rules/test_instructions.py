"""Confirm and Fix of a finding: every page has both, they fit the part, and nothing known is left to fill in."""

from __future__ import annotations

import re

import msgspec
import pytest

from agent.model.finding import FarEnd, Location, Step
from agent.model.nic import FabricNeighbor
from agent.rules.catalogue import every_rule
from agent.rules.context import RuleContext
from agent.rules.instructions import CHOICE, build_confirm, build_steps, describe_steps, find_values
from agent.rules.location import FORM_FACTORS, find_location
from agent.rules.pages import PROCEDURE, family_names, read_procedures, read_sections, read_text
from agent.rules.rule import Fail
from tests.agent.rules.build import (
    changed_gpu,
    changed_netdev,
    changed_nic,
    gpu_id,
    instinct,
    nic_id,
    server,
)
from tests.machines import FAULTS, HOSTS, scan_machine
from tests.texts import PLACEHOLDER, list_texts

SITUATIONS = {
    "lost", "polling", "disabled", "training", "linkup", "all-rails", "set-down", "no-module", "no-light", "upstream",
    "not-known", "other-class", "target-link-speed", "unsupported-request", "other", "by-design", "own-way",
    "reordered", "outage", "gpu-hot", "gpu-power", "capped-outside", "clocks-unexplained", "sram-errors",
    "memory-errors", "ecc-off", "past-errors", "hidden-switches", "new-kernel",
    "setting", "uneven", "integrity", "one-port", "paused",
    "board", "other-model", "mismatch", "no-gpu", "not-loaded", "not-built",
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
ON_THE_HOST = {("gdr-ats-vm", "virtual")}  # its steps are for the host of the guest
HARDWARE = [name for name in RULES if PROCEDURE.search(read_sections(name)["How to fix"])]


def fail(subject: str, **changes: object) -> Fail:
    """A fault of that subject."""
    return Fail(subject, "GPU0", "s", "i", "Do this.")._replace(**changes)


def steps_of(rule: str, form: str, **changes: object) -> list[Step]:
    """The steps of a rule for a GPU that is built in that way."""
    return build_steps(server(), rule, fail(f"gpu:{gpu_id(0)}", **changes), Location(part="GPU", form_factor=form))


@pytest.mark.parametrize("rule", RULES)
def test_every_page_has_commands_and_steps(rule: str) -> None:
    """A known key for each choice, a procedure for each name, and at least one step for every form factor."""
    sections = read_sections(rule)
    keys = {key for text in CHOICE.findall(sections["How to fix"]) for key in text.split(", ")}

    assert re.search(r"^- `[^`]+`", sections["How to confirm"], re.MULTILINE)
    assert keys <= SITUATIONS | set(FORM_FACTORS)
    assert set(PROCEDURE.findall(sections["How to fix"])) <= read_procedures().keys()
    for form in FORM_FACTORS:
        assert all(step.do for step in steps_of(rule, form))
    assert not PROCEDURE.search(read_text(rule))  # a reader of the page sees the steps


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


@pytest.mark.parametrize("rule", HARDWARE)
def test_the_result_of_a_repair_is_explained(rule: str) -> None:
    """Of each reseat, exchange and power cycle, on every form factor: what it means that the fault goes or stays."""
    for form in (*FORM_FACTORS, "other"):
        for step in steps_of(rule, form):
            assert step.outcomes or not re.match(r"Reseat|Exchange|Power|Unplug|Service exchanges", step.do), (
                form,
                step,
            )


@pytest.mark.parametrize("rule", HARDWARE)
def test_what_disturbs_comes_after_the_drain(rule: str) -> None:
    """On every form factor: no reset, power cycle, reseat or exchange before the node or guest is drained."""
    for form in (*FORM_FACTORS, "other"):
        drained = False
        for step in steps_of(rule, form):
            drained = drained or "rain the" in step.do
            disturbs = re.search(r"^(Power cycle|Power off|Unplug|Exchange|Reset|Reseat)", step.do)
            assert drained or not disturbs, (form, step.do)


def test_steps_by_form_factor() -> None:
    """The same fault on a module, on a card and on a switch."""
    width = "pcie-width-downgraded"

    assert any(
        "Service exchanges the module" in outcome for step in steps_of(width, "sxm") for outcome in step.outcomes
    )
    assert "The fault follows the card: replace the card (RMA)." in steps_of(width, "pcie-card")[1].outcomes
    assert "MCIO" in describe_steps(steps_of(width, "onboard-switch"))
    assert "provider" in describe_steps(steps_of(width, "virtual"))


@pytest.mark.parametrize(
    ("situation", "first"),
    [
        ("disabled", "Find out who disabled it"),
        ("training", "The signal is poor."),
        ("linkup", "Read the state of leaf-1 port 7"),
        ("all-rails", "Check power and state of the leaf switches"),
        ("polling", "Check that a cable is plugged in at both ends and that leaf-1 port 7 is enabled"),
        ("", "Check that a cable is plugged in"),
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
    one = build_confirm(server(), "numa-unknown", fail("node", places=frozenset({gpu_id(0), gpu_id(1)})))
    many = build_confirm(server(8), "numa-unknown", fail("node", places=frozenset(gpu_id(n) for n in range(8))))

    assert [f"cat /sys/bus/pci/devices/{gpu_id(n)}/numa_node" for n in (0, 1)] == one
    assert [f"cat /sys/bus/pci/devices/{gpu_id(0)}/numa_node"] == many
    assert None is build_confirm(server(), "numa-unknown", fail("node"))


def test_a_vendors_tool_is_for_its_parts_alone() -> None:
    """A GPU of AMD is not looked at with nvidia-smi, nor is a node that has no other."""
    own = fail(f"gpu:{gpu_id(0)}", places=frozenset({gpu_id(0)}))
    lspci = f"lspci -nnv -s {gpu_id(0)}"
    query = "nvidia-smi --query-gpu=index,vbios_version,pci.sub_device_id --format=csv"

    assert [query, lspci] == build_confirm(server(), "gpu-siblings-differ", own)
    assert [lspci] == build_confirm(instinct(), "gpu-siblings-differ", own)
    assert [query] == build_confirm(server(), "gpu-siblings-differ", fail("node"))
    assert None is build_confirm(instinct(), "gpu-siblings-differ", fail("node"))


def test_the_far_end_of_a_fabric_is_named() -> None:
    """Discovery names the switch and its port."""
    port = server().nics[nic_id(0)].ports[0]
    port = msgspec.structs.replace(port, neighbor=FabricNeighbor(name="leaf-1", port=7, source="ibnetdiscover"))
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
    ("case", "subject", "places", "values"),
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
            [{"ADDRESS": nic_id(0), "PORT_ABOVE": "0000:12:01.0", "DEVICE": "mlx5_0", "PORT_NUMBER": "1"}],
        ),
        (server(), "pci:0000:10:01.0", (), [{"ADDRESS": "0000:10:01.0"}]),
        (server(), "pci:0000:ff:00.0", (), [{"ADDRESS": "0000:ff:00.0"}]),
        (server(), "x:0000:ff", (), [{}]),
        (server(), "x:0000:ff:00:1", (), [{}]),
        (server(ethernet=True), "netdev:eth0", (), [{
            "ADDRESS": nic_id(0), "PORT_ABOVE": "0000:12:01.0", "DEVICE": "mlx5_0", "PORT_NUMBER": "1",
            "INTERFACE": "eth0",
        }]),
        (server(ethernet=True), f"port:{nic_id(0)}/1", (), [{
            "ADDRESS": nic_id(0), "PORT_ABOVE": "0000:12:01.0", "DEVICE": "mlx5_0", "PORT_NUMBER": "1",
            "INTERFACE": "eth0",
        }]),
        (server(), f"port:{nic_id(0)}/7", (), [{
            "ADDRESS": nic_id(0), "PORT_ABOVE": "0000:12:01.0", "DEVICE": "mlx5_0", "PORT_NUMBER": "1",
        }]),
        (changed_netdev(server(ethernet=True), 0, nic=None, pci=None), "netdev:eth0", (), [{"INTERFACE": "eth0"}]),
        (server(), f"pair:{gpu_id(0)}+{gpu_id(1)}", (), [
            {"ADDRESS": gpu_id(1), "PORT_ABOVE": "0000:22:00.0", "GPU_INDEX": "1"},
        ]),
        (server(), "node", (gpu_id(0), "mlx5_9", gpu_id(0)), [
            {"ADDRESS": gpu_id(0), "PORT_ABOVE": "0000:12:00.0", "GPU_INDEX": "0"},
        ]),
        (changed_netdev(server(ethernet=True), 0, nic=None, pci=None), "node", ("eth0",), [{"INTERFACE": "eth0"}]),
    ],
)  # fmt: skip
def test_what_is_filled_in(
    case: RuleContext, subject: str, places: tuple[str, ...], values: list[dict[str, str]]
) -> None:
    """Of every kind of subject; what is not known is absent."""
    assert values == find_values(case, fail(subject, places=frozenset(places)))


@pytest.mark.parametrize(("devices", "commands"), [(4, 4), (5, 1)])
def test_commands_are_written_out_for_four_devices(devices: int, commands: int) -> None:
    """Of more the first stands for all."""
    fault = fail("node", places=frozenset(gpu_id(n) for n in range(devices)))

    assert commands == len(build_confirm(server(8), "numa-unknown", fault) or ())


@pytest.mark.parametrize(
    ("remedy", "subject", "places", "do"),
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
    ],
)  # fmt: skip
def test_a_step_is_filled_in(remedy: str, subject: str, places: tuple[str, ...], do: str) -> None:
    """With the first device that has all values; a command without its value is left out."""
    fault = fail(subject, remedy=remedy, places=frozenset(places))

    assert do == build_steps(server(ethernet=True), "gpu-xid", fault, None)[0].do


def test_the_form_factor_of_a_finding_about_the_node() -> None:
    """Is that of its devices."""
    fault = fail("node", places=frozenset({gpu_id(0), gpu_id(1)}))
    location = Location(part="GPU", form_factor="sxm")

    assert build_steps(server(), "pcie-width-downgraded", fault, None) == build_steps(
        server(), "pcie-width-downgraded", fault, location
    )


@pytest.mark.parametrize("rule", RULES)
def test_no_page_has_a_percentage_only_to_have_one(rule: str) -> None:
    """All or nothing is written in words, and half only where it is computed."""
    why = read_sections(rule)["Why it matters"]

    assert not re.search(r"\d\s%|(?<![\d.])(0|50|100)%", why), why
