"""What an Xid needs: steps for every number of NVIDIA's catalogue, for its words, and for the driver's own action."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.model.node import Event, Service
from agent.rules.context import RuleContext
from agent.rules.gpu.xid import gpu_xid, xid_root_of_many
from agent.rules.gpu.xid_catalogue import XIDS, decode_link_error
from agent.rules.instructions import build_steps
from agent.rules.rule import Fail
from tests.agent.rules.build import changed_gpu, gpu_id, node, server, software, virtual

NOW, LONG_AGO = "2026-01-15T07:00:00Z", "2026-01-13T07:00:00Z"
# Number, severity, situation, and what the steps say beside those of the situation
NUMBERS = """
79 critical power-cycle
167 critical power-cycle
143 critical init
46 error reset no reason to exchange
62 error reset no reason to exchange
109 error reset no reason to exchange
158 error reset no reason to exchange
110 error reset update the driver
119 error reset update the driver
120 error reset update the driver
155 error reset no part is at fault
136 error reset connectors, cables
74 error reset connectors, cables
144 error reset connectors, cables
145 error reset connectors, cables
146 error reset connectors, cables
147 error reset connectors, cables
148 error reset connectors, cables
149 error reset connectors, cables
150 error reset connectors, cables
169 warning reset no reason to exchange
48 error memory
64 error memory
95 error memory
140 error memory
156 error memory
171 error memory
172 error memory
157 error - No immediate action. Look at the repair of its memory
92 warning - No immediate action. Look at the repair of its memory
94 error - Poison that arrives over NVLink
54 error - checked on site
121 warning - findings about C2C
137 warning - application
151 warning - Restart the virtual machine
154 warning - names as recovery action
159 warning - another Xid of the same time
166 warning - confidential computing
168 warning - switch ECC on
170 warning - confidential computing
13 info harmless application
31 info harmless application
32 info harmless application
43 info harmless application
45 info harmless application
63 info harmless remapped row
69 info harmless application
83 info harmless application
135 info harmless application
161 info harmless Nothing by itself
999 info harmless Look it up
"""
REPLACED = ("have the GPU replaced", "have the GPU exchanged", "RMA")


def xid(code: str, **changes: object) -> Event:
    """A line about the second GPU."""
    event = Event(kind="xid", text=f"NVRM: xid {code}", source="/dev/kmsg", at=NOW, subject=gpu_id(1), code=code)
    return replace(event, **changes)


def link_error(code: str, unit: str, words: str, severity: str = "Fatal", gpu: int = 1, link: str = "03") -> Event:
    """A line of Xid 144 to 150 with its words."""
    text = f"NVRM: Xid (PCI:0000:21:00): {code}, {unit} {severity} XC0 i0 Link {link} ({words} 0x0 0x0)"
    return xid(code, text=text, subject=gpu_id(gpu), detail={"unit": unit, "severity": severity, "link": link})


def fault_of(*events: Event, context: RuleContext | None = None) -> Fail:
    """The finding of the second GPU."""
    context = replace(context or server(), events=events, observed_at="2026-01-15T08:00:00Z")
    (fault,) = (answer for answer in gpu_xid.check(context) if isinstance(answer, Fail))
    return fault


def asking() -> RuleContext:
    """The server with a driver that names no recovery action."""
    context = server()
    for number in range(4):
        context = changed_gpu(context, number, recovery_action=None)
    return context


def steps_of(fault: Fail, context: RuleContext | None = None) -> str:
    """All steps and outcomes as one text."""
    steps = build_steps(context or server(), "gpu-xid", fault, None)
    return "\n".join(text for step in steps for text in (step.do, *step.outcomes))


def test_a_start_that_the_driver_explains_is_no_xid() -> None:
    """Its own sentence is the finding: driver-reports-failure. A GPU of which it says nothing failed by itself."""
    start = xid("0x26:0x56:1482", kind="gpu_init", text="NVRM: RmInitAdapter failed! (0x26:0x56:1482)")
    sentence = Event(kind="driver", text="NVRM: open", source="/dev/kmsg", subject=gpu_id(1), code="open-modules")
    explained = replace(server(), events=[start, sentence], observed_at="2026-01-15T08:00:00Z")

    assert gpu_id(1) in fault_of(start).subject
    assert gpu_id(1) in fault_of(start, replace(sentence, subject=gpu_id(2))).subject
    assert [] == [answer for answer in gpu_xid.check(explained) if isinstance(answer, Fail)]


@pytest.mark.parametrize("line", NUMBERS.strip().splitlines())
def test_every_number_has_the_steps_of_its_action(line: str) -> None:
    """By NVIDIA's catalogue; that a number comes back sends no GPU away."""
    code, severity, situation, *words = line.split()
    fault = fault_of(xid(code))

    assert (severity, situation.strip("-")) == (fault.severity, fault.situation)
    assert " ".join(words) in steps_of(fault)
    assert bool(fault.remedy) == (situation not in ("memory", "init", "power-cycle"))  # whose pages have all steps
    assert not [text for text in REPLACED if situation == "reset" and text in steps_of(fault)]


def test_what_an_earlier_boot_logged_is_not_reset_once_more() -> None:
    """The same error of the same GPU; of another GPU, or another number, it is the first of its kind."""
    before = [xid("119", boot="-1")]
    again = fault_of(xid("119"), context=replace(server(), earlier_events=before))

    assert "again" == again.situation
    assert again.remedy.startswith("Compare driver and firmware")
    assert "Reset the GPU" not in steps_of(again)
    for other in (replace(before[0], subject=gpu_id(2)), replace(before[0], code="62")):
        assert "reset" == fault_of(xid("119"), context=replace(server(), earlier_events=[other])).situation


@pytest.mark.parametrize(
    ("count", "first", "situation"),
    [
        (3, "2026-01-14T20:00:00Z", "memory"),
        (2, "2026-01-14T20:00:00Z", ""),
        (3, "2026-01-14T07:00:00Z", "memory"),  # a day to the second
        (3, "2025-12-14T20:00:00Z", ""),
        (3, None, ""),
    ],
)
def test_contained_errors_that_come_often_need_a_reset(count: int, first: str | None, situation: str) -> None:
    assert situation == fault_of(xid("94", count=count, first_at=first)).situation
    assert "" == fault_of(xid("54", count=count, first_at=first)).situation  # of power, not of memory


def test_what_came_again_within_a_boot_is_not_reset_once_more() -> None:
    """The log has a reset, or a new load of the driver, between both."""
    again = fault_of(xid("119", detail={"after_reset": "yes"}))

    assert "again" == again.situation
    assert "reset" == fault_of(xid("119")).situation


def test_an_error_of_a_switch_whose_severity_is_not_in_the_line() -> None:
    fault = fault_of(xid("24007", kind="sxid", detail={}))

    assert "other" == fault.situation
    assert "which states Fatal or Non-fatal" in fault.remedy


def test_the_table_has_every_number() -> None:
    """But for those that share a row of the catalogue."""
    alone = {code for code, xid in XIDS.items() if "engine error" not in xid.meaning and "commands" not in xid.meaning}

    assert alone <= {line.split()[0] for line in NUMBERS.strip().splitlines()}


@pytest.mark.parametrize(
    ("action", "code", "situation"),
    [
        ("reboot", "119", "reboot"),
        ("drain_and_reset", "94", "reset"),
        ("none", "119", "reset"),  # that the driver asks for nothing is no word against the catalogue
        ("reset", "79", "power-cycle"),  # what fell off the bus is not reset
        ("reset", "13", "harmless"),
    ],
)
def test_the_drivers_own_action_comes_first(action: str, code: str, situation: str) -> None:
    """Field 230, where the Xid is a fault."""
    assert situation == fault_of(xid(code), context=changed_gpu(server(), 1, recovery_action=action)).situation


@pytest.mark.parametrize(
    ("after", "situation"),
    [
        ("0x2 (Node Reboot Required)", "reboot"),
        ("0x1 (GPU Reset Required)", "reset"),
        ("0x0 (None)", "reset"),
        ("", "reset"),
    ],
)
def test_a_logged_action_counts_where_the_driver_names_none(after: str, situation: str) -> None:
    """The last Xid 154 of the same GPU."""
    logged = [xid("154", detail={"after": "0x2 (Node Reboot Required)"}), xid("154", detail={"after": after})]
    other = xid("154", detail={"after": "reboot"}, subject=gpu_id(0))
    silent = changed_gpu(server(), 1, recovery_action=None)

    assert situation == fault_of(xid("119"), *logged, context=silent).situation
    context = replace(silent, events=(xid("119"), other))
    (fault,) = (a for a in gpu_xid.check(context) if isinstance(a, Fail) and "1" in a.label)
    assert "reset" == fault.situation


@pytest.mark.parametrize(
    ("code", "unit", "words", "actions"),
    [
        ("149", "NETIR_LINK_EVT", "0x004505c6 0x0", ("RESET_GPU", "INVESTIGATE_LINK_SI")),
        ("149", "NETIR_LINK_EVT", "0x020001c6 0x0", ("RESET_GPU", "INVESTIGATE_PEER_DEVICE")),
        ("149", "NETIR_LINK_DOWN", "0x02500011 0x0", ("RESET_GPU", "INVESTIGATE_PEER_DEVICE")),  # newer words
        ("149", "NETIR_LINK_DOWN", "0x01000011 0x0", ("RESET_GPU", "INVESTIGATE_SW_USER")),
        ("149", "NETIR_LINK_DOWN", "0x02600011 0x0", ("IGNORE", "INVESTIGATE_SW_USER")),
        ("149", "NETIR_LINK_DOWN", "0x02800011 0x0", ("IGNORE", "INVESTIGATE_HOST")),
        ("149", "NETIR_LINK_DOWN", "0x00000011 0x0", ("RESET_GPU", "SYMPATHETIC")),
        ("149", "NETIR_LINK_DOWN", "0x03f00011 0x0", None),  # no such code in the sheet
        ("149", "NETIR_BER_EVENT", "0x00000013 0x1", ("IGNORE", "INVESTIGATE_LINK_SI")),
        ("149", "NETIR_MFDE_EVENT", "0x00000014 0x3", ("IGNORE", "IGNORE")),
        ("149", "NETIR_MFDE_EVENT", "0x00000014 0x1", ("RESET_GPU", "CONTACT_SUPPORT")),
        ("149", "NETIR_INT", "0x00000018 0x0", ("RESET_GPU", "SYMPATHETIC")),
        ("150", "MSE_WATCHDOG", "0x00000000 0x0", ("RESET_GPU", "CONTACT_SUPPORT")),
        ("145", "RLW_SRC_TRACK", "0x00000007 0x10", ("RESET_GPU", "CONTACT_SUPPORT")),
        ("145", "RLW_SRC_TRACK", "0x00000007 0x4", ("XID_154_EVAL", "IGNORE")),
        ("145", "RLW_REMAP", "0x00000004 0x48", ("RESET_GPU", "CONTACT_SUPPORT")),  # two bits: the graver
        ("146", "TLW_RX_PIPE1", "0x0000000b 0x1", ("IGNORE", "IGNORE")),
        ("79", "RLW_REMAP", "0x00000004 0x40", None),
        ("145", "U01", "0x1 0x2", None),
    ],
)  # fmt: skip
def test_the_words_of_a_line_are_decoded(code: str, unit: str, words: str, actions: tuple[str, str] | None) -> None:
    """As the sheet of the catalogue has them; others are left to the number."""
    assert actions == decode_link_error(link_error(code, unit, words))


def test_bits_that_are_not_in_the_sheet_are_harmless_where_the_driver_says_so() -> None:
    """And unknown where it calls them fatal, or where the line has no words."""
    assert ("IGNORE", "CONTACT_SUPPORT") == decode_link_error(link_error("147", "TREX", "0xe 0x80000000", "Nonfatal"))
    assert None is decode_link_error(link_error("147", "TREX", "0xe 0x80000000"))
    assert None is decode_link_error(link_error("147", "TREX", "none"))
    assert None is decode_link_error(link_error("147", "U01", "0xe 0x80000000", "Nonfatal"))


@pytest.mark.parametrize(
    ("event", "situation", "words"),
    [
        (link_error("149", "NETIR_LINK_EVT", "0x020001c6 0x0"), "reset", "other end of the link failed first"),
        (link_error("149", "NETIR_LINK_DOWN", "0x02600011 0x0"), "", "No part is at fault"),
        (link_error("149", "NETIR_BER_EVENT", "0x13 0x1", "Nonfatal"), "harmless", "connectors, cables"),
        (link_error("145", "RLW_TAGSTATE", "0x8 0x1", "Nonfatal"), "harmless", "the link recovered"),
    ],
)
def test_steps_of_a_line_with_words(event: Event, situation: str, words: str) -> None:
    """What its code names comes before the number."""
    fault = fault_of(event)

    assert situation == fault.situation
    assert words.lower() in steps_of(fault).lower()


def test_what_the_sheet_ignores_is_not_followed_up() -> None:
    """The link recovered: no word of service; and without words the driver's own word counts."""
    ignored = link_error("145", "RLW_TAGSTATE", "0x8 0x1", "Nonfatal")

    assert "comes back" not in steps_of(fault_of(ignored))
    again = xid("149", count=2, detail={"severity": "Nonfatal", "link": "3"})
    assert ("warning", "") == (fault_of(again).severity, fault_of(again).situation)


def test_what_needs_no_reset_is_the_same_long_ago_and_in_a_guest() -> None:
    """Only what would be reset or replaced is over, or a restart of the guest."""
    context = node(changed_gpu(server(), 1, driver_state="open"), uptime_seconds=1e6)
    guest = virtual(server())

    assert "" == fault_of(xid("94", at=LONG_AGO), context=context).situation
    assert "stop and start" not in steps_of(fault_of(xid("13"), context=guest), guest)


def test_a_fatal_error_of_a_switch_in_a_guest() -> None:
    """A guest has no switch to reset."""
    context, fatal = virtual(server()), xid("24007", kind="sxid", detail={"severity": "Fatal"})

    assert "stop and start it" in steps_of(fault_of(fatal, context=context), context)
    assert "" == fault_of(fatal).remedy


def test_only_an_xid_154_is_a_recovery_action() -> None:
    """Not another line with such a word, nor an SXid of that number."""
    words = {"after": "0x2 (Node Reboot Required)"}
    context = changed_gpu(server(), 1, recovery_action=None)

    assert "reset" == fault_of(xid("119"), xid("154", kind="other", detail=words), context=context).situation
    assert "reset" == fault_of(xid("119"), xid("45", detail=words), context=context).situation


def test_an_evaluated_error_needs_nothing_where_the_driver_asks_for_nothing() -> None:
    """The sheet leaves some errors to the recovery action."""
    event = link_error("145", "RLW_REMAP", "0x4 0x1")

    assert "" == fault_of(event, context=changed_gpu(server(), 1, recovery_action="none")).situation
    assert "reset" == fault_of(event, context=changed_gpu(server(), 1, recovery_action=None)).situation


@pytest.mark.parametrize(
    ("code", "words"), [("48", "criterion"), ("119", "update the driver"), ("79", "no reason to exchange")]
)
def test_what_is_long_ago_needs_nothing_at_once(code: str, words: str) -> None:
    """Where the driver works with the GPU; what to do when it comes back is still told."""
    context = node(changed_gpu(server(), 1, driver_state="open"), uptime_seconds=1e6)
    fault = fault_of(xid(code, at=LONG_AGO), context=context)

    assert "over" == fault.situation
    assert "No immediate action" in steps_of(fault, context)
    assert words in steps_of(fault, context)


def test_a_clean_up_alone_is_about_the_application_or_the_fabric_manager() -> None:
    """By the catalogue; with another Xid it follows that one, and without a manager there is none to restart."""
    managed = software(server(), services=[Service(name="nvidia-fabricmanager", state="active")])
    restart = "systemctl restart nvidia-fabricmanager"

    assert restart in steps_of(fault_of(xid("45"), context=managed), managed)
    assert restart not in steps_of(fault_of(xid("45"), xid("13"), context=managed), managed)
    assert restart not in steps_of(fault_of(xid("45")))
    assert restart not in steps_of(fault_of(xid("13"), context=managed), managed)
    other = software(server(), services=[Service(name="nvidia-dcgm", state="active")])
    assert restart not in steps_of(fault_of(xid("45"), context=other), other)
    stopped = software(server(), services=[Service(name="nvidia-fabricmanager", state="inactive")])
    assert restart not in steps_of(fault_of(xid("45"), context=stopped), stopped)


@pytest.mark.parametrize("code", ["79", "143", "119", "48"])
def test_a_guest_restarts(code: str) -> None:
    """It has no hardware."""
    context = virtual(server())
    steps = steps_of(fault_of(xid(code), context=context), context)

    assert "stop and start it" in steps
    assert "ower cycle" not in steps


@pytest.mark.parametrize(
    ("words", "situation", "reset"),
    [
        ("0x004505c6 0x0", "", "nvidia-smi -r -i 1`, `nvidia-smi -r -i 2"),
        ("0x020001c6 0x0", "peer", "nvidia-smi -r -i 1`, `nvidia-smi -r -i 2"),
        ("0x02600011 0x0", "software", "nvidia-smi -r -i 2"),  # this code asks for no reset
    ],
)
def test_the_root_of_many_is_what_its_code_names(words: str, situation: str, reset: str) -> None:
    """And every GPU that has to be reset is named: the others, too."""
    root = link_error("149", "NETIR_LINK_EVT", words)
    context = replace(asking(), events=(root, link_error("145", "RLW_SRC_TRACK", "0x7 0x10", gpu=2)))
    (fault,) = (answer for answer in xid_root_of_many.check(context) if isinstance(answer, Fail))
    steps = [step.do for step in build_steps(context, "xid-root-of-many", fault, None)]

    assert situation == fault.situation
    assert [step for step in steps if f": `{reset}`" in step]
    assert fault.remedy.startswith("Drain the node")
    assert "only this one" not in fault.impact


@pytest.mark.parametrize(("root", "follower"), [("reset", "none"), ("none", "reset")])
def test_one_gpu_that_asks_is_enough(root: str, follower: str) -> None:
    """And it is reset whatever its line is; a GPU without a number is named by its address."""
    context = changed_gpu(changed_gpu(server(), 1, recovery_action=root, index=None), 2, recovery_action=follower)
    events = (
        link_error("149", "NETIR_LINK_EVT", "0x02600011 0x0"),
        link_error("145", "RLW_SRC_TRACK", "0x7 0x10", gpu=2),
    )
    (fault,) = (a for a in xid_root_of_many.check(replace(context, events=events)) if isinstance(a, Fail))

    assert fault.remedy.startswith("Drain the node")
    assert (f"-i {gpu_id(1)}`" in fault.remedy) == (root == "reset")
    assert "-i 2`" in fault.remedy


@pytest.mark.parametrize(
    ("words", "follower", "remedy"),
    [
        ("0x004505c6 0x0", "0x7 0x10", "The driver asks for no reset now. Where jobs go on to fail"),
        ("0x02600011 0x0", "0x7 0x2", "Reset no GPU"),
    ],
)
def test_what_the_driver_calls_well_is_not_reset_at_once(words: str, follower: str, remedy: str) -> None:
    """Its recovery action is none; nor is what the words of all lines leave alone."""
    events = (link_error("149", "NETIR_LINK_EVT", words), link_error("145", "RLW_SRC_TRACK", follower, gpu=2))
    (fault,) = (a for a in xid_root_of_many.check(replace(server(), events=events)) if isinstance(a, Fail))

    assert fault.remedy.startswith(remedy)
