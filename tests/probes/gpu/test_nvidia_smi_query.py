"""`nvidia-smi -q` as text, XML and CSV: the same GPU out of each, and no value that was not said."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from probes.gpu import nvidia_smi, nvidia_smi_query, nvidia_smi_values
from probes.gpu.facts import Gpu, GpuFabric, GpuFacts, GpuHealth
from probes.text import ParseError
from tests.probes.gpu.nvidia_smi_texts import ADDRESSES, CSV, LIST, NAME, QUERY, UUIDS, XML

Parser = Callable[[str], tuple[GpuFacts, str | None]]

BUSY = Gpu(
    index=1,
    address="0000:25:00.0",
    uuid=UUIDS[1],
    serial="1650320001",
    minor=2,
    name=NAME,
    architecture="Ampere",
    vbios="94.02.5C.00.02",
    memory_mib=49140,
    bar1_mib=65536,
    module_id=1,
    pstate=0,
    utilization_percent=97,
    link_generation=4,
    link_width=8,
    link_max_generation=4,
    link_max_width=16,
    replays=9,
    health=GpuHealth(persistence=True, utilization_percent=97),
    mig_current=False,
    mig_pending=True,
    virtualization="passthrough",
    fabric=GpuFabric(
        state="completed",
        status="success",
        clique=7,
        cluster_uuid="8f2b1c3d-0000-0000-0000-00000000a1b2",
        health={
            "degraded_bandwidth": "false",
            "route_recovery": "false",
            "route_unhealthy": "true",
            "access_timeout_recovery": "not_supported",
            "incorrect_configuration": "not_supported",
            "partition_assigned": "not_supported",
            "summary": "not_supported",
        },
    ),
    addressing_mode="hmm",
    recovery_action="drain_and_reset",
)


@pytest.mark.parametrize(("parse", "text"), [(nvidia_smi_query.parse_text, QUERY), (nvidia_smi_query.parse_xml, XML)])
def test_text_and_xml_say_the_same(parse: Parser, text: str) -> None:
    """Every field; the values of a MIG device below it are not the GPU's."""
    facts, missing = parse(text)

    assert missing is None
    assert ("570.211.01", "12.8", 4, ADDRESSES) == (
        facts.driver_version,
        facts.cuda_version,
        facts.attached,
        [gpu.address for gpu in facts.gpus],
    )
    assert facts.gpus[1] == BUSY
    assert (8, 1, 0) == (facts.gpus[2].pstate, facts.gpus[2].link_generation, facts.gpus[2].utilization_percent)


def test_csv_says_what_was_asked_for() -> None:
    """Bracketed and empty values are none; the rest is None."""
    facts, missing = nvidia_smi_query.parse_csv(CSV)

    assert missing is None
    assert ("570.211.01", 4) == (facts.driver_version, facts.attached)
    assert facts.gpus[1] == Gpu(
        index=1,
        address="0000:25:00.0",
        uuid=UUIDS[1],
        name=NAME,
        compute_capability="8.6",
        memory_mib=49140,
        pstate=0,
        utilization_percent=97,
        link_generation=4,
        link_width=8,
        link_max_generation=4,
        mig_current=False,
        fabric=GpuFabric(state="completed", status="success"),
    )


def test_r610_deprecates_its_own_words() -> None:
    """The notice behind a version is not part of it."""
    text = QUERY.replace("CUDA Version ", "KMD Version : 610.57.04\nCUDA UMD Version : 13.3\nCUDA Version ")

    facts, _ = nvidia_smi_query.parse_text(text)

    assert ("610.57.04", "13.3") == (facts.driver_version, facts.cuda_version)


def test_older_layouts_of_the_text() -> None:
    """R525: Module ID of its own, Utilization/Gpu."""
    older = {
        "    Platform Info\n        Chassis Serial Number             : \n        Module Id   ": "    Module ID       ",
        "        GPU                               : 97": "        Gpu                               : 97",
    }
    text = QUERY
    for new, old in older.items():
        assert new in text
        text = text.replace(new, old)

    assert BUSY == nvidia_smi_query.parse_text(text)[0].gpus[1]


@pytest.mark.parametrize(("parse", "text"), [(nvidia_smi_query.parse_text, QUERY), (nvidia_smi_query.parse_xml, XML)])
def test_a_part_of_the_gpus_has_no_index(parse: Parser, text: str) -> None:
    """`-i 2` prints one GPU of eight: which one it is, the text does not tell."""
    facts, missing = parse(
        text.replace("Attached GPUs                             : 4", "Attached GPUs : 8").replace(">4</a", ">8</a")
    )

    assert "4 of 8 attached GPUs are described" == missing
    assert facts.gpus[1] == BUSY._replace(index=None)


def test_two_copies_in_one_text_are_one_machine() -> None:
    """A GPU is counted once."""
    assert ADDRESSES == [gpu.address for gpu in nvidia_smi_query.parse_text(QUERY + QUERY)[0].gpus]


def test_copies_of_the_text_say_the_same() -> None:
    """Indented, with Windows line ends, with a cut that the author marks."""
    indented = "".join(f"      {line}\n" for line in QUERY.splitlines())

    assert nvidia_smi_query.parse_text(indented) == nvidia_smi_query.parse_text(QUERY)
    assert nvidia_smi_query.parse_text(QUERY.replace("\n", "\r\n")) == nvidia_smi_query.parse_text(QUERY)
    assert "its author cut the text" == nvidia_smi_query.parse_text(QUERY + "[...]\n")[1]


@pytest.mark.parametrize(
    ("parse", "text", "by", "step"),
    [(nvidia_smi_query.parse_text, QUERY, "address", 5), (nvidia_smi_query.parse_csv, CSV, "index", 1)],
)
def test_a_cut_text_says_nothing_that_the_whole_does_not(parse: Parser, text: str, by: str, step: int) -> None:
    """Wherever it is cut: of "16x" no "1" is left, and a line without all its fields is none."""
    whole = {getattr(gpu, by): gpu for gpu in parse(text)[0].gpus}

    for end in range(0, len(text), step):
        try:
            start, _ = parse(text[:end])
        except ParseError:
            continue
        for gpu in start.gpus:
            assert [] == different(gpu, whole[getattr(gpu, by)]), end


def different(said: Gpu, known: Gpu) -> list[str]:
    """Fields that say something else. A fabric is compared by what it says."""
    names = [name for name in Gpu._fields if name not in ("fabric", "index", "health")]
    wrong = [name for name in names if getattr(said, name) not in (None, (), getattr(known, name))]
    if said.fabric and known.fabric:
        parts = [
            (getattr(said.fabric, name), getattr(known.fabric, name))
            for name in ("state", "status", "clique", "cluster_uuid")
        ]
        wrong += ["fabric" for a, b in parts if a not in (None, b)]
    if said.health and known.health:
        wrong += ["health" for a, b in zip(said.health, known.health, strict=True) if a not in (None, b)]
    return wrong


@pytest.mark.parametrize("end", [len(XML) - 30, len(XML) // 2])
def test_a_cut_xml_is_refused(end: int) -> None:
    """Half a tree is not read."""
    with pytest.raises(ParseError, match="cut short"):
        nvidia_smi_query.parse_xml(XML[:end])


def test_warnings_around_the_xml_are_left_out() -> None:
    """nvidia-smi prints them on the same stream."""
    around = "WARNING: nvml is old\n" + XML + "WARNING: infoROM is corrupted at gpu 0000:25:00.0\n"

    assert nvidia_smi_query.parse_xml(around) == nvidia_smi_query.parse_xml(XML)


def test_a_newer_document_type_is_read_as_the_newest_known_aloud() -> None:
    """A driver of tomorrow."""
    facts, missing = nvidia_smi_query.parse_xml(XML.replace("_v12.dtd", "_v14.dtd"))

    assert "document type v14 is newer than v13, and was read as that" == missing
    assert facts.gpus[1] == BUSY
    assert nvidia_smi_query.parse_xml(XML.replace("_v12.dtd", "_v13.dtd"))[1] is None


def test_the_oldest_xml_has_neither_count_nor_address_beside_a_gpu() -> None:
    """The address is a part of the GPU."""
    address = f'id="0000{ADDRESSES[1].upper()}">'
    inside = f"><pci><pci_bus_id>0000{ADDRESSES[1].upper()}</pci_bus_id></pci>"
    text = XML.replace("  <attached_gpus>4</attached_gpus>\n", "").replace(address, inside)
    facts, missing = nvidia_smi_query.parse_xml(text)

    assert inside in text
    assert (ADDRESSES, None) == ([gpu.address for gpu in facts.gpus], missing)
    assert {None} == {gpu.index for gpu in facts.gpus}


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BOMB + "<nvidia_smi_log><gpu><uuid>&b;</uuid></gpu></nvidia_smi_log>", "declares entities"),
        ("<nvidia_smi_log><!entity a></nvidia_smi_log>", "declares entities"),
        ("<nvidia_smi_log>&a;</nvidia_smi_log>", "not XML"),
        ("<nvidia_smi_log><gpu></nvidia_smi_log>", "not XML"),
        ("<nvidia_smi_log>\0</nvidia_smi_log>", "not XML"),
        ("<html></html>", "no <nvidia_smi_log>; it begins with: <html>"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "NVIDIA-SMI has failed"),
    ],
)
def test_hostile_and_other_xml_is_refused(text: str, reason: str) -> None:
    """Entities are refused before anything is parsed."""
    with pytest.raises(ParseError, match=reason):
        nvidia_smi_query.parse_xml(text)


def test_every_gpu_value_of_a_lost_gpu_is_its_error() -> None:
    """No value is made of the words."""
    lost = nvidia_smi_values.gpu(
        {"address": "00000000:25:00.0", "pstate": "[GPU is lost]", "memory_mib": "GPU is lost"}
    )

    assert Gpu(address="0000:25:00.0", error="GPU_IS_LOST") == lost


@pytest.mark.parametrize(
    "text", ["", "index, uuid\n", "0, GPU-1, 81559 MiB\n", 'name, uuid\n"a, b\n', "Field is not valid\n"]
)
def test_a_csv_without_heading_or_lines_is_refused(text: str) -> None:
    """`noheader` leaves values that nobody can name."""
    with pytest.raises(ParseError):
        nvidia_smi_query.parse_csv(text)


def test_a_csv_line_of_another_length_is_said() -> None:
    """The others stay."""
    facts, missing = nvidia_smi_query.parse_csv(CSV + "cut here, 1\n")

    assert (4, "1 lines do not have the fields of the heading") == (len(facts.gpus), missing)


def test_a_list_names_gpus_and_their_mig_instances() -> None:
    """An instance belongs to the GPU above it."""
    gpus = nvidia_smi.parse_list(LIST)

    assert [(index, NAME, uuid) for index, uuid in enumerate(UUIDS)] == [
        (gpu.index, gpu.name, gpu.uuid) for gpu in gpus
    ]
    assert [(), (), (), ("MIG-6b8c26a5-286a-f440-4f76-3af4cf4108f1",)] == [gpu.mig_instances for gpu in gpus]


TWO_SLICES = """    MIG Device
        Index                             : 0
        GPU Instance ID                   : 2
        Compute Instance ID               : 0
        Device Attributes
            Shared
                Copy Engine count         : 3
    MIG Device
        Index                             : 1
        GPU Instance ID                   : 9
        Compute Instance ID               : 1
    MIG Device
        Index                             : 2
        GPU Instance ID                   : N/A
    Serial Number"""
SLICES_OF_XML = """<mig_devices>
    <mig_device><gpu_instance_id>2</gpu_instance_id><compute_instance_id>0</compute_instance_id></mig_device>
    <mig_device><gpu_instance_id>9</gpu_instance_id><compute_instance_id>1</compute_instance_id></mig_device>
    <mig_device><gpu_instance_id>N/A</gpu_instance_id></mig_device>"""


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (nvidia_smi_query.parse_text, QUERY.replace("    Serial Number", TWO_SLICES, 1)),
        (nvidia_smi_query.parse_xml, XML.replace("<mig_devices>", SLICES_OF_XML, 1)),
    ],
)
def test_mig_devices_without_uuids_are_named_by_their_numbers(parse: Parser, text: str) -> None:
    """Each of them, on its own GPU; one whose numbers are not said is not named."""
    first, second, *_ = parse(text)[0].gpus

    assert (f"MIG-{UUIDS[0]}/2/0", f"MIG-{UUIDS[0]}/9/1") == first.mig_instances
    assert () == second.mig_instances
    assert second == BUSY


def test_mig_devices_of_a_gpu_without_uuid_have_no_name() -> None:
    """Numbers alone are the same on every GPU."""
    text = QUERY.replace("    Serial Number", TWO_SLICES, 1)

    for other in (text.replace("GPU UUID ", "Other "), text.replace(UUIDS[0], "N/A")):
        assert () == nvidia_smi_query.parse_text(other)[0].gpus[0].mig_instances


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("GPU0000:CB:00.0: Unknown Error", Gpu(address="0000:cb:00.0", error="Unknown Error")),
        ("GPU 00000000:CB:00.0: GPU is lost.", Gpu(address="0000:cb:00.0", error="GPU is lost.")),
        ("gpu 0000:01:00.0: Not Found", Gpu(address="0000:01:00.0", error="Not Found")),
        ("GPU1: 0000:34:00.0: Unknown Error", Gpu(index=1, address="0000:34:00.0", error="Unknown Error")),
        ("GPU1: Unknown Error", Gpu(index=1, error="Unknown Error")),
        ("GPU 10: Unknown Error", Gpu(index=10, error="Unknown Error")),
    ],
)
def test_gpus_that_could_not_be_opened(text: str, lost: Gpu) -> None:
    """Every spelling of the drivers."""
    assert (lost,) == nvidia_smi.lost_gpus(f"\nUnable to determine the device handle for {text}\n")


def test_a_rack_and_rollovers_of_replays() -> None:
    """Slot and tray mean something beside a chassis only."""
    text = QUERY.replace("Replays Since Reset ", "Replay Number Rollovers : 2\n        Replays Since Reset ")
    place = "Chassis Serial Number : 1824125002\n        Slot Number : 24\n        Tray Index : 15\n        X :"
    rack, _ = nvidia_smi_query.parse_text(text.replace("Chassis Serial Number ", place))
    none, _ = nvidia_smi_query.parse_text(text.replace("Chassis Serial Number ", "Slot Number : 24\n        X "))
    xml = XML.replace("<chassis_serial_number>", "<slot_number>24</slot_number><chassis_serial_number>1824125002")
    xml = xml.replace("<replay_counter>", "<replay_rollover_counter>2</replay_rollover_counter><replay_counter>")
    other, _ = nvidia_smi_query.parse_xml(xml)

    assert ("1824125002", "24", "15") == (rack.gpus[1].chassis_serial, rack.gpus[1].slot, rack.gpus[1].tray)
    assert (None, None) == (none.gpus[1].chassis_serial, none.gpus[1].slot)
    assert ("1824125002", "24") == (other.gpus[1].chassis_serial, other.gpus[1].slot)
    assert {"replay_rollovers": 2} == rack.gpus[1].pcie_counters == other.gpus[1].pcie_counters


def _log(date: str, attached: int, **values: str) -> str:
    """A log of `nvidia-smi -q` whose GPUs have these bus numbers and performance states."""
    gpus = "".join(
        f"GPU 00000000:{bus[1:]}:00.0\n    Product Name                  : NVIDIA H100\n"
        f"    Performance State             : {state}\n"
        for bus, state in values.items()
    )
    stamp = f"Timestamp                                 : {date}\n" if date else ""
    return f"\n==============NVSMI LOG==============\n\n{stamp}Attached GPUs               : {attached}\n{gpus}"


EARLY, LATE = "Tue Jul  7 08:12:38 2026", "Tue Jul 14 08:12:38 2026"


@pytest.mark.parametrize(
    ("logs", "states", "note"),
    [
        ((_log(EARLY, 1, b19="P8"), _log(LATE, 1, b19="P0")), [0], "2 logs; of what several state, that of 2026-07-14"),
        ((_log(LATE, 1, b19="P0"), _log(EARLY, 1, b19="P8")), [0], "2 logs; "),
        ((_log("", 1, b19="P8"), _log(EARLY, 1, b19="P0"), _log(LATE, 1, b19="P2")), [2], "2 logs; "),
        ((_log(EARLY, 1, b19="P8"), _log("", 1, b19="P0")), [8], None),
        ((_log("Tue Xyz 14 08:12:38 2026", 1, b19="P8"), _log(LATE, 1, b19="P0")), [8], None),
        ((_log(EARLY, 2, b19="P8", b3b="P8"), _log(LATE, 1, b19="P0")), [0], "GPU 00000000:3b:00.0 is in an earlier"),
        ((_log(EARLY, 2, b19="P8"), _log(LATE, 2, b3b="P0")), [0, 8], "2 logs; "),
    ],
)  # fmt: skip
def test_of_several_logs_the_latest_is_used(logs: tuple[str, ...], states: list[int], note: str | None) -> None:
    """By its own date, wherever it stands; what only an earlier one describes is added where the latest is a part."""
    facts, missing = nvidia_smi_query.parse_text("".join(logs))

    assert states == [gpu.pstate for gpu in facts.gpus]
    assert (note or "") in (missing or "")
    assert (missing is None) == (note is None)


def test_a_value_that_is_cut_at_the_end_of_the_first_log_is_left_out() -> None:
    """The text ends in an earlier log: its last line may be half of a value."""
    facts, _ = nvidia_smi_query.parse_text(
        _log(LATE, 1, b19="P0") + _log(EARLY, 1, b19="P8") + "    Serial Number    : 16"
    )

    assert [(0, None)] == [(gpu.pstate, gpu.serial) for gpu in facts.gpus]
