"""The lspci probe and its parser: every field of a sample, pciutils' generations, and damage of every kind."""

from __future__ import annotations

import random
import re

import pytest

from probes.catalogue import probe
from probes.pci.facts import Acs, PciFunction, build_functions
from probes.pci.lspci import HEX, TEXT, parse_lspci
from probes.probe import Outcome, Status, outcome_of
from probes.text import ParseError
from tests.probes.pci.lspci_sample import SAMPLE, hex_rows
from tests.probes.pci.pci_machine import PciHost, express

# The lspci parser: every field of a sample, the variants of pciutils' generations, and damage of every kind.


REDIRECT = frozenset({"RR", "CR", "UF"})


def parsed(text: str) -> dict[str, PciFunction]:
    return {function.address: function for function in build_functions(parse_lspci(text).drafts)}


def one(text: str) -> PciFunction:
    return next(iter(parsed(text).values()))


def test_a_root_port() -> None:
    """Link, retrain bits, ACS, and a place that the kind of port tells."""
    port = parsed(SAMPLE)["0000:15:01.0"]

    assert (None, "0000:15", "root_port", "pcieport") == (port.parent, port.root_bus, port.port_type, port.driver)
    assert ("0x060400", "0x8086", "0x352a", "0x04", None) == (
        port.class_code,
        port.vendor,
        port.device,
        port.revision,
        port.name,
    )
    assert (16.0, 16, 32.0, 16, 32.0) == (
        port.current_link_speed_gt_s,
        port.current_link_width,
        port.max_link_speed_gt_s,
        port.max_link_width,
        port.target_link_speed_gt_s,
    )
    assert (True, False, False, "off") == (
        port.bandwidth_management_status,
        port.autonomous_bandwidth_status,
        port.link_disabled,
        port.aspm,
    )
    assert Acs(frozenset({"SV", "TB", *REDIRECT}), frozenset({"SV"})) == port.acs
    assert (0, 3, True) == (port.numa_node, port.iommu_group, port.acs_known)


def test_a_gpu() -> None:
    """Its own regions only, its serial, its settings; a driver that is not there is known not to be."""
    gpu = parsed(SAMPLE)["0000:16:00.0"]

    assert ("0000:15:01.0", "0000:15", "", "7-1") == (gpu.parent, gpu.root_bus, gpu.driver, gpu.slot)
    assert ("NVIDIA Corporation", "GH100 [H100 PCIe]", "0x10de", "0x2331") == (
        gpu.vendor_name,
        gpu.name,
        gpu.vendor,
        gpu.device,
    )
    assert ("0x10de", "0x1626", "D3hot") == (gpu.subsystem_vendor, gpu.subsystem_device, gpu.power_state)
    assert {"0": 16 << 20, "2": 128 << 30} == gpu.bars_bytes
    assert (256, 256, 4096, False, True) == (
        gpu.max_payload_bytes,
        gpu.max_payload_supported_bytes,
        gpu.max_read_request_bytes,
        gpu.relaxed_ordering,
        gpu.extended_tags,
    )
    assert (16.0, 8, 16.0, "L0s L1", None) == (
        gpu.current_link_speed_gt_s,
        gpu.current_link_width,
        gpu.target_link_speed_gt_s,
        gpu.aspm,
        gpu.bandwidth_management_status,
    )
    assert ("98-51-03-00-00-77-8c-48", True, None, True) == (gpu.serial, gpu.ats, gpu.acs, gpu.acs_known)
    assert (0, 32) == (gpu.virtual_functions, gpu.virtual_functions_supported)


@pytest.mark.parametrize(
    ("kind", "capability", "control", "expected"),
    [
        ("Endpoint", "10BitTagComp+ 10BitTagReq- OBFF", "LTR- 10BitTagReq- OBFF Disabled,", (False, False)),
        ("Endpoint", "10BitTagComp- 10BitTagReq+ OBFF", "LTR- 10BitTagReq+ OBFF Disabled,", (True, True)),
        ("Root Port (Slot+)", "10BitTagComp+ 10BitTagReq- OBFF", "LTR- 10BitTagReq- OBFF", (True, False)),
        ("Endpoint", "10BitTagComp+, 10BitTagReq-, OBFF", "LTR-, OBFF Disabled", (False, None)),  # 3.6 did not print it
        ("Endpoint", "", "\n\t\t\t AtomicOpsCtl: ReqEn-\n\t\t\t IDOReq- LTR-\n\t\t\t 10BitTagReq+ OBFF", (None, True)),
    ],
)
def test_ten_bit_tags_in_every_form(kind: str, capability: str, control: str, expected) -> None:
    """They moved from line to line over the versions of pciutils."""
    output = (
        f"19:00.0 3D controller: NVIDIA\n\tCapabilities: [60] Express (v2) {kind}, MSI 00\n"
        f"\t\tDevCap:\tMaxPayload 256 bytes, PhantFunc 0\n\t\t\tExtTag+ RBE+\n"
        f"\t\tDevCap2: Completion Timeout: Range AB, TimeoutDis+\n\t\t\t {capability}\n"
        f"\t\tDevCtl2: Completion Timeout: 50us to 50ms, {control}\n"
    )
    (function,) = parsed(output).values()

    assert expected == (function.ten_bit_tags_supported, function.ten_bit_tags)
    assert (True, None) == (function.extended_tags_supported, function.extended_tags)


def test_a_virtual_function_is_known_by_the_routing_ids_of_its_physical_one() -> None:
    """Its link registers say nothing: unknown speed, no lanes."""
    result = parsed(SAMPLE)

    assert ("0000:1a:00.0", None, 0) == (
        result["0000:1a:00.2"].physical_function,
        result["0000:1a:00.2"].current_link_speed_gt_s,
        result["0000:1a:00.2"].current_link_width,
    )
    assert (None, 1) == (result["0000:1a:00.0"].physical_function, result["0000:1a:00.0"].virtual_functions)


def test_a_device_that_fell_off_the_bus() -> None:
    """All-ones header: gone, and nothing else is said of it."""
    gone = parsed(SAMPLE)["0000:1b:00.0"]

    assert (True, None, False) == (gone.gone, gone.current_link_width, gone.acs_known)
    assert not parsed(SAMPLE)["0000:16:00.0"].gone


def test_indentation_lost_or_shifted_or_quoted_changes_nothing() -> None:
    """Mail and web pages do that."""
    whole = parsed(SAMPLE)

    assert whole == parsed(re.sub(r"(?m)^\s+", "", SAMPLE))
    assert whole == parsed(re.sub(r"(?m)^\t", "        ", SAMPLE).replace("\n", "\r\n"))
    assert whole == parsed(re.sub(r"(?m)^", "> ", SAMPLE))


def test_lines_wrapped_by_a_mailer_change_nothing() -> None:
    """A line that opens no field goes on with the one before."""
    wrapped = SAMPLE.replace(", MaxReadReq", ",\nMaxReadReq").replace(" UpstreamFwd", "\nUpstreamFwd")
    wrapped = wrapped.replace("(downgraded), Width", "(downgraded),\nWidth").replace(" [10de:2331]", "\n[10de:2331]")

    assert parsed(SAMPLE) == parsed(wrapped)


def test_domains_are_printed_only_where_there_are_several() -> None:
    """Without one it is domain 0."""
    assert parsed(SAMPLE) == parsed(re.sub(r"(?m)^0000:", "", SAMPLE))
    assert "10000:e1:00.0" == one("10000:e1:00.0 Non-Volatile memory controller: Intel Corporation NVMe DC SSD").address


@pytest.mark.parametrize(
    ("head", "class_code", "vendor", "device"),
    [
        ("3D controller: NVIDIA Corporation Device 2330 (rev a1)", "0x030200", "0x10de", "0x2330"),
        ("VGA compatible controller: NVIDIA Corporation AD102GL [RTX 6000] (prog-if 00)", "0x030000", "0x10de", None),
        ("Class 0604: Device 10b5:9716 (rev aa)", "0x060400", "0x10b5", "0x9716"),
        ("0604: 10b5:9716", "0x060400", "0x10b5", "0x9716"),
        ("USB controller [0c03]: Some Maker Thing [abcd:1234] (prog-if 30 [XHCI])", "0x0c0330", "0xabcd", "0x1234"),
        ("Processing accelerators: Some Maker Device d802", "0x120000", None, "0xd802"),
        ("Non-Volatile memory controller: Samsung Electronics Co Ltd Device a824", "0x010802", "0x144d", "0xa824"),
        ("Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]", "0x020700", "0x15b3", None),
        ("Bridge: NVIDIA Corporation: Unknown device 22a3", "0x068000", "0x10de", "0x22a3"),
        ("Display controller: Advanced Micro Devices, Inc. [AMD/ATI] Vega 20", "0x038000", "0x1002", None),
        ("Host bridge: Advanced Micro Devices, Inc. [AMD] Device 14a4", "0x060000", "0x1022", "0x14a4"),
        ("Gizmo: Dellwood Industries Thing", None, None, None),
        ("", None, None, None),
    ],
)
def test_head_lines(head: str, class_code: str | None, vendor: str | None, device: str | None) -> None:
    """Numbers where numbers are printed, known names elsewhere, and nothing that is guessed."""
    function = one(f"19:00.0 {head}\n")

    assert (class_code, vendor, device) == (function.class_code, function.vendor, function.device)


def test_marks_behind_values_are_not_read() -> None:
    """Generations of pciutils mark every value, some or none: the numbers are the same."""
    for marks in ("Speed 8GT/s, Width x4", "Speed 8GT/s (ok), Width x4 (ok)", "Speed 8.0GT/s (overdriven), Width x4"):
        function = one(f"19:00.0 Bridge: x\n\t\tLnkSta:\t{marks}, TrErr- Train- SlotClk+ DLActive- BWMgmt- ABWMgmt-\n")

        assert (8.0, 4) == (function.current_link_speed_gt_s, function.current_link_width)


def test_an_empty_target_speed_is_unknown() -> None:
    """lspci prints an empty LnkCtl2 as 2.5 GT/s; on a link that does run at that speed it may be true."""
    fast, slow, empty = (
        one(f"19:00.0 Bridge: x\n\tLnkSta: Speed {speed}, Width x1\n\tLnkCtl2: Target Link Speed: 2.5GT/s\n")
        for speed in ("8GT/s", "2.5GT/s", "unknown")
    )

    assert [None, 2.5, 2.5] == [function.target_link_speed_gt_s for function in (fast, slow, empty)]


def test_capabilities_that_were_denied_are_unknown() -> None:
    """lspci without privilege: nothing is off because it is not printed."""
    listing = parse_lspci(
        "19:00.0 3D controller: NVIDIA Corporation Device 2330\n\tCapabilities: <access denied>\n\n1a:00.0 Bridge: x\n"
    )
    gpu = build_functions(listing.drafts)[0]

    assert (1, False, None, None) == (listing.denied, gpu.acs_known, gpu.acs, gpu.relaxed_ordering)


def test_what_was_cut_off_is_unknown() -> None:
    """An output that ends inside a function does not say that the function lacks ACS."""
    whole = parsed(SAMPLE)["0000:16:00.0"]
    cut = parsed(SAMPLE[: SAMPLE.index("Capabilities: [140 v1] Address")])["0000:16:00.0"]

    assert (True, False) == (whole.acs_known, cut.acs_known)


BRIDGE = "00:00.0 Host bridge [0600]: Intel Corporation [8086:3258]\n"
CARD = "19:00.0 3D controller [0302]: NVIDIA Corporation GH100 [10de:2330]\n\tControl: I/O- Mem+\n"
DRIVER, MODULES = "\tKernel driver in use: nvidia\n", "\tKernel modules: nvidia_drm, nvidia\n"
ENDS, BEGINS = "it ends within a function", "it begins within a function"
TORN = "bytes of 0000:00:00.0 are missing from it"
ROWS = hex_rows(bytes(256)) + "\n"


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        (f"{BRIDGE}\n{CARD}{DRIVER}{MODULES}\n", None),
        (f"{BRIDGE}\n{CARD}{DRIVER}{MODULES}", None),  # copied without its last blank line
        (f"{BRIDGE}\n{CARD}{DRIVER}", None),
        (f"{BRIDGE}\n{CARD}\n", None),
        (f"{BRIDGE}\n{CARD}\r\n\r\n", None),
        (f"pcilib: sysfs_read_vpd: read failed: Input/output error\n$ lspci -vvv\n{BRIDGE}\n", None),
        (f"{BRIDGE}\n{CARD}{DRIVER}{MODULES}".rstrip(), None),
        (f"{BRIDGE}\n{CARD}", ENDS),
        (f"{CARD}{DRIVER}\n{BRIDGE}", ENDS),  # all but the first line of the last function is missing
        (f"{BRIDGE}\n{CARD}\t\t", ENDS),
        (f"{BRIDGE}\n{CARD}\n  ", None),
        (f"{BRIDGE}\n{CARD}\tStatus: Cap+ 66MHz- UDF-", ENDS),
        (f"{BRIDGE}\n{CARD}{DRIVER}".rstrip(), ENDS),  # "nvidia_" may have been there
        (f"{BRIDGE}\n{CARD}\tKernel modules: ", ENDS),
        (f"{DRIVER}\n{BRIDGE}\n", BEGINS),
        (f"ensations+\n\t\tLnkSta: Speed 32GT/s\n\n{BRIDGE}\n", BEGINS),
        (f"{ROWS[ROWS.index('f0: ') :]}{BRIDGE}\n", BEGINS),
        (f"{BRIDGE}{ROWS}", None),
        (f"{BRIDGE}{ROWS[: ROWS.index('40: ')]}", None),  # -x
        (f"{BRIDGE}{ROWS[: ROWS.index('50: ')]}", ENDS),
        (f"{BRIDGE}{ROWS[: ROWS.index('50: ')]}\n{BRIDGE.replace('00:', '01:', 1)}{ROWS}", TORN),
        (f"{BRIDGE}{ROWS[: ROWS.index('50: ')]}{ROWS[ROWS.index('a0: ') :]}\n{BRIDGE.replace('00:', '01:', 1)}", TORN),
        (BRIDGE, None),
        (BRIDGE.strip(), None),
        (f"{BRIDGE}19:00.0 3D controller [0302]: NVIDIA Corp", ENDS),
        (f"{BRIDGE}19:00.0 3D controller [0302]: NVIDIA Corporation GH100 [10de:2330] (rev a1)", None),
        ("00:00.0 Host bridge: Intel\n19:00.0 3D controller: NVIDIA Corp", None),  # without numbers nothing shows it
    ],
)
def test_a_list_that_is_cut_shows_it_at_its_ends(text: str, cut: str | None) -> None:
    """lspci ends every function by a blank line, which people who copy a text lose."""
    assert cut == parse_lspci(text).cut


def test_a_function_whose_text_is_cut_may_have_a_driver() -> None:
    """The line that names it comes last; of a function before it nothing more will come."""
    first = f"{BRIDGE}\n{CARD.replace('19:', '18:')}\n{CARD.replace('19:', '17:')}{DRIVER}\n"
    functions = parsed(f"{first}{CARD}")

    assert [("", "nvidia", None)] == [tuple(functions[f"0000:{bus}:00.0"].driver for bus in (18, 17, 19))]
    assert "" == parsed(f"{first}{CARD}{MODULES}\n")["0000:19:00.0"].driver


def test_a_last_function_with_its_driver_is_whole() -> None:
    """What it does not print, it does not have."""
    express_words = "\tCapabilities: [60] Express (v2) Endpoint\n\tCapabilities: [100 v1] Device Serial Number 98\n"

    assert [True, False] == [one(f"{CARD}{express_words}{end}").acs_known for end in (DRIVER, "")]


def test_what_lspci_calls_downgraded_counts_where_the_capability_is_not_printed() -> None:
    """Else both numbers are there to be compared."""
    status = "\tLnkSta:\tSpeed 16GT/s (downgraded), Width x8 (downgraded)\n"

    assert [("speed", "width"), None] == [
        one(f"{CARD}{capability}{status}").link_downgraded for capability in ("", "\tLnkCap:\tSpeed 32GT/s\n")
    ]


def test_a_cut_list_is_completed_by_a_whole_one() -> None:
    """Text that is cut, and bytes of all functions: nothing is missing. Both cut: the reason is said once."""
    cut = PciHost().says(*TEXT, stdout=f"{BRIDGE}\n{CARD}")
    whole = (
        PciHost()
        .says(*TEXT, stdout=f"{BRIDGE}\n{CARD}")
        .says(*HEX, stdout=f"{BRIDGE}{ROWS}\n{CARD.splitlines()[0]}\n{ROWS}")
    )

    assert (Status.PARTIAL, f"the list of lspci may be cut: {ENDS}") == (asked(cut).status, asked(cut).reason)
    assert (Status.OK, None) == (asked(whole).status, asked(whole).reason)


def test_bytes_go_to_the_decoder() -> None:
    """-xxxx says what the text does not, and rows after a gap are left out."""
    data = express(link=(0x0105, 0, 0x1105), target=5, extended={0x0D: bytes.fromhex("1f001d00")})
    rows = hex_rows(data)
    holed = rows.replace(rows.splitlines()[20] + "\n", "")

    whole, part = (one(f"19:00.0 3D controller: NVIDIA Corporation Device 2330\n{text}\n") for text in (rows, holed))

    assert (4096, 32.0, 32.0, 16, True) == (
        whole.config_bytes,
        whole.max_link_speed_gt_s,
        whole.target_link_speed_gt_s,
        whole.current_link_width,
        whole.acs_known,
    )
    assert whole.acs is not None
    assert REDIRECT <= whole.acs.control
    assert 320 == part.config_bytes


def test_two_listings_in_one_file_complete_each_other() -> None:
    """A short one behind a long one takes nothing away."""
    short = "16:00.0 3D controller [0302]: NVIDIA Corporation GH100 [10de:2331]\n17:00.0 Bridge [0680]: x [10de:22a3]\n"

    result = parsed(SAMPLE + "\n" + short)

    assert parsed(SAMPLE)["0000:16:00.0"] == result["0000:16:00.0"]
    assert "0x22a3" == result["0000:17:00.0"].device


def test_endless_lines_cost_no_more_than_their_length() -> None:
    """A million lines that open no field are read in linear time."""
    assert "0x030200" == one("16:00.0 3D controller: x\n\tNUMA node: 1\n" + "y\n" * 1_000_000).class_code


def test_a_text_without_functions_is_unparsable() -> None:
    """Other commands' outputs, trees, nothing."""
    for text in ("", "\n\n", "-+-[0000:00]-+-00.0  Intel Corporation Device 09a2\n", "GPU0\tX\tNV18\n", "19:00.0: x"):
        with pytest.raises(ParseError):
            parse_lspci(text)


def test_damaged_samples_have_an_answer() -> None:
    """2,000 mutations, each of some kind that files suffer: bits, cuts, doubled and lost lines, joined lines."""
    chance = random.Random(19)
    mixed = SAMPLE + "\n" + SAMPLE.splitlines()[0] + "\n" + hex_rows(express(extended={0x0D: b"\x1f\0\x1d\0"})[:512])

    for _ in range(2000):
        text = _damaged(mixed, chance)
        try:
            result = parsed(text)
        except ParseError:
            continue

        assert all(function.parent in (None, *result) for function in result.values())


def _damaged(text: str, chance: random.Random) -> str:
    for _ in range(chance.randint(1, 4)):
        at, kind = chance.randrange(len(text)), chance.randrange(5)
        lines = text.splitlines(keepends=True)
        line = chance.randrange(len(lines))
        if kind == 0:
            text = text[:at] + chr(chance.choice([0, 10, 32, 43, 45, 48, 57, 91, 102, 255, 0x2028])) + text[at + 1 :]
        elif kind == 1:
            text = text[: max(at, 20)]
        elif kind == 2:
            text = "".join([*lines[:line], lines[line], *lines[line:]])
        elif kind == 3:
            text = "".join([*lines[:line], *lines[line + chance.randint(1, 9) :]]) or text
        else:
            text = text.replace("\n", " ", chance.randint(1, 3)) if at % 2 else text[at:] + text[:at]
    return text


# The lspci probe: which outputs it asks for, and how text and bytes complete each other.


PROBE = probe("lspci")


def asked(host: PciHost) -> Outcome:
    return outcome_of(PROBE, host)  # type: ignore[arg-type]  # a stand-in host for tests


def test_a_live_host_is_asked_once() -> None:
    """One command, and the reason where there is no such tool."""
    host = PciHost(live=True).says(*TEXT, stdout=SAMPLE).says(*HEX, stdout="not asked for")

    outcome = asked(host)

    assert (Status.OK, 5) == (outcome.status, len(outcome.facts.functions))
    assert ["lspci -D -nn -vvv"] == host.asked
    assert (Status.ABSENT, "no saved output of lspci -D -nn -vvv") == (
        asked(PciHost(live=True)).status,
        asked(PciHost(live=True)).reason,
    )


def test_a_source_without_outputs_is_absent() -> None:
    """Recorded sources have the output or not; asking them starts nothing."""
    assert Status.ABSENT is asked(PciHost()).status
    assert not PROBE.evidence(PciHost())


def test_text_and_bytes_of_one_function_become_one() -> None:
    """The text's numbers stay, the bytes add what it hides; functions of either are listed."""
    text = "0000:16:00.0 3D controller [0302]: NVIDIA Corporation GH100 [10de:2331]\n"
    text += "\tNUMA node: 1\n\tCapabilities: <access denied>\n\n"
    rows = hex_rows(express(link=(0x0105, 0, 0x1105)))
    bytes_ = f"0000:16:00.0 3D controller [0302]: x [10de:2331]\n{rows}\n\n0000:17:00.0 Bridge [0680]: y [10de:22a3]\n"

    both = asked(PciHost().says(*TEXT, stdout=text).says(*HEX, stdout=bytes_))
    alone = asked(PciHost().says(*TEXT, stdout=text))

    gpu = both.facts.functions[0]
    assert (Status.OK, 2, 1, "GH100", 32.0, 4096, True) == (
        both.status,
        len(both.facts.functions),
        gpu.numa_node,
        gpu.name,
        gpu.current_link_speed_gt_s,
        gpu.config_bytes,
        gpu.acs_known,
    )
    assert (Status.PARTIAL, "lspci hid capabilities: it needs CAP_SYS_ADMIN (1 of 1 functions)") == (
        alone.status,
        alone.reason,
    )


def test_an_output_that_is_none_is_a_failure_with_its_words() -> None:
    """What the tool said on stderr is the reason."""
    host = PciHost().says(
        *TEXT,
        stdout="",
        stderr="pcilib: Cannot open /proc/bus/pci\nlspci: Cannot find any working access method.\n",
        returncode=1,
    )

    outcome = asked(host)

    assert Status.FAILED is outcome.status
    assert "lspci -D -nn -vvv: pcilib: Cannot open /proc/bus/pci (exit 1)" == outcome.reason


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(("PwrCtrl-", "LLActRep+", "PresDet+", "DLActive-"), (True, True, False), id="no link to its card"),
        pytest.param(("PwrCtrl-", "LLActRep+", "PresDet-", "DLActive+"), (False, True, True), id="the opposite"),
        pytest.param(("PwrCtrl+", "LLActRep-", "PresDet+", "DLActive-"), (True, None, None), id="not to be known"),
    ],
)
def test_a_slot_and_its_card(words: tuple[str, ...], expected: tuple[bool | None, ...]) -> None:
    """PresDet stands three times; what counts is the state, not whether it changed or is announced."""
    control, reports, present, active = words
    other = "PresDet-" if present == "PresDet+" else "PresDet+"
    text = (
        "19:00.0 PCI bridge: x\n\tCapabilities: [68] Express (v2) Downstream Port (Slot+), MSI 00\n"
        f"\t\tLnkCap:\tPort #1, Speed 32GT/s, Width x16\n\t\t\tClockPM- Surprise+ {reports} BwNot+\n"
        f"\t\tLnkSta:\tSpeed 2.5GT/s, Width x0\n\t\t\tTrErr- Train- SlotClk- {active} BWMgmt- ABWMgmt-\n"
        f"\t\tSltCap:\tAttnBtn- {control} MRL- AttnInd- PwrInd- HotPlug- Surprise-\n"
        f"\t\tSltCtl:\tEnable: AttnBtn- PwrFlt- MRL- {other} CmdCplt- HPIrq- LinkChg-\n"
        "\t\t\tControl: AttnInd Unknown, PwrInd Unknown, Power- Interlock-\n"
        f"\t\tSltSta:\tStatus: AttnBtn- PowerFlt- MRL- CmdCplt- {present} Interlock-\n"
        f"\t\t\tChanged: MRL- {other} LinkState-\n"
    )
    function = one(text)

    assert expected == (function.slot_occupied, function.slot_powered, function.link_active)
