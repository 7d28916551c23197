"""Labels are compared among devices, whether a reader knows them or not; what varies by its nature is not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from probes.host.interface import BadSource
from probes.sources.open_source import open_source
from probes.sources.tree import TreeHost
from probes.tool_reports.labels import split_json, split_table, split_xml
from probes.tool_reports.unequal import compare_labels, list_unequal, varies
from probes.tool_reports.unread import has_labels
from tests.probes.tool_reports.label_texts import COUNT, FORMS

_SINGLE = tuple(name for name, form in FORMS.items() if form.is_of_each)


def scan_texts(folder: Path, texts: Mapping[str, str]) -> Report:
    """The report of a folder with these outputs."""
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
    return diagnose(open_source(str(folder), None), ScanPlan(timeout_seconds=60))[0]


@pytest.mark.parametrize("name", FORMS)
def test_each_label_of_one_device_that_is_another_is_noted(name: str, tmp_path: Path) -> None:
    """One note for each device, which names the label and both values; equal devices give none."""
    form = FORMS[name]
    equal = scan_texts(tmp_path / "equal", form.texts())
    changed = scan_texts(tmp_path / "changed", form.texts({number: number for number in range(len(form.static))}))
    notes = [finding for finding in changed.findings if finding.rule == "peer-differs"]

    assert [] == [finding.summary for finding in equal.findings]
    assert (len(form.static), {"info"}) == (len(notes), {note.severity for note in notes})
    assert all("7 other" in note.summary for note in notes), [note.summary for note in notes]


@pytest.mark.parametrize("name", _SINGLE)
def test_one_interface_alone_is_no_source(name: str, tmp_path: Path) -> None:
    """Nothing of it would be compared."""
    (file, text), *_ = FORMS[name].texts().items()

    with pytest.raises(BadSource, match="holds no source"):
        scan_texts(tmp_path / "one", {file: text})


def test_an_output_of_each_interface_is_the_source_of_its_value(tmp_path: Path) -> None:
    """A label without a value is no heading of those below it."""
    texts = {
        f"ethtool_-i_ens{n}f0np0": "driver: mlx5_core\nversion: 24.10\nexpansion-rom-version:\n"
        f"bus-info: 0000:{n}b:00.0\nsupports-statistics: {'no' if n == 2 else 'yes'}\n"
        for n in range(4)
    }
    (note,) = scan_texts(tmp_path / "x", texts).findings

    assert "supports-statistics is no (the 3 other interfaces: yes)" == note.summary
    assert [f"ethtool_-i_ens{n}f0np0 (ethtool -i ens{n}f0np0)" for n in (2, 0)] == [row.source for row in note.evidence]


def test_what_a_reader_has_a_fact_for_is_left_to_it(tmp_path: Path) -> None:
    """Its field is compared already, in words of its own."""
    text = FORMS["nvidia-smi -q"].texts()["nvidia-smi_-q.txt"]
    line = "    Persistence Mode                      : Enabled\n"
    text = text.replace("    Minor Number", f"{line}    Minor Number")
    odd = text.replace(line, line.replace("Enabled", "Disabled"), 1)
    report = scan_texts(tmp_path / "x", {"nvidia-smi_-q.txt": odd})

    assert "gpu.health.persistence" in [finding.field for finding in report.findings]
    assert not report.topology.unequal_labels


def test_labels_that_two_outputs_have_are_one_note(tmp_path: Path) -> None:
    """The text and the table state the same."""
    texts = FORMS["nvidia-smi -q"].texts({5: 0})
    rows = (
        f"{n}, 00000000:{0x10 + 0x10 * n:02x}:00.0, {'Prohibited' if n == 5 else 'Default'}\n" for n in range(COUNT)
    )
    texts["nvidia-smi_--query-gpu_x"] = "index, pci.bus_id, compute_mode\n" + "".join(rows)
    report = scan_texts(tmp_path / "x", texts)

    assert ["Compute Mode is Prohibited (the 7 other GPUs: Default)"] == [one.summary for one in report.findings]


@pytest.mark.parametrize(
    ("label", "is_varying"),
    [
        ("PCI/Bus Id", True),
        ("Serial Number", True),
        ("ECC Errors/Volatile/SRAM Correctable", True),
        ("Temperature/GPU Current Temp", True),
        ("Temperature/GPU T.Limit Temp", True),
        ("Temperature/GPU Slowdown T.Limit Temp", False),
        ("GPU Power Readings/Average Power Draw", True),
        ("GPU Power Readings/Min Power Limit", False),
        ("Clocks/SM", True),
        ("Max Clocks/SM", False),
        ("Clock Policy/Auto Boost", False),
        ("Processes", True),
        ("PROCESS_ISOLATION", False),
        ("Remapped Rows/Bank Remap Availability Histogram/Max", True),
        ("GPU Reset Status/Reset Required", False),
        ("Advanced Error Reporting/UEMsk DLP", False),
        ("clocks.current.sm", True),
        ("node_guid", True),
    ],
)
def test_what_varies_by_its_nature(label: str, is_varying: bool) -> None:
    """Identifiers, places, measurements, counts and states do; limits and settings do not."""
    assert is_varying == varies(label)


@pytest.mark.parametrize(
    "line",
    [
        "\t\tLnkSta2: Current De-emphasis Level: -6dB, EqualizationComplete{}",
        "\t\tUESta:\tDLP{}",
        "\tInterrupt: pin A routed to IRQ 3{}",
        "\tRegion 0: Memory at 21404200000{} (64-bit, prefetchable) [size=16M]",
        "\tCapabilities: [b0] MSI-X: Enable{} Count=9 Masked-",
        "\tControl: I/O- Mem+ DisINTx{}",
    ],
)
def test_states_and_places_of_functions_are_left_out(line: str, tmp_path: Path) -> None:
    """Others of the same lines are compared (above)."""
    form = FORMS["lspci -vvv"]
    odd = form.texts()["lspci_-vvv.txt"].split("\n\n")
    signs = "11111211" if " at " in line or " to " in line else "-----+--"
    text = "\n\n".join(f"{one}\n{line.format(sign)}" for one, sign in zip(odd, signs, strict=False))

    assert [] == [one.summary for one in scan_texts(tmp_path / "x", {"lspci_-vvv.txt": f"{text}\n"}).findings]


def compared(*values: str, label: str = "mode", more: str = "") -> list[tuple[str, ...]]:
    """The values of the labels that are kept, the usual one first."""
    devices = {f"GPU {n}": {label: value, **({more: "1"} if more else {})} for n, value in enumerate(values)}
    return [tuple(value for value, _ in one.values) for one in compare_labels("x", devices)]


def test_a_value_is_usual_where_three_of_four_have_it() -> None:
    """Of fewer devices, of halves and of values of its own none is odd."""
    assert [("a", "b")] == compared("a", "a", "b", "a")
    assert [("a", "b", "c")] == compared(*"aaaaaabc")
    assert [] == compared("a", "a", "b") == compared("a", "a", "b", "b") == compared(*"abcd") == compared(*"aaabb")


def test_a_number_where_most_have_none_is_a_count_beside_measured_values() -> None:
    """Among settings alone it is one; a limit is one everywhere."""
    assert [] == compared("0", "0", "7", "0", label="jobs", more="fan")
    assert [("0", "7")] == compared("0", "0", "7", "0", label="jobs")
    assert [("0 C", "7 C")] == compared("0 C", "0 C", "7 C", "0 C", label="max operating", more="fan")
    assert [("0", "on")] == compared("0", "0", "on", "0", label="jobs", more="fan")


def test_forms_with_marks_of_their_own() -> None:
    """XML, JSON and comma-separated values have the labels that their marks name."""
    xml = '<nvidia_smi_log><gpu id="0"><a><b>1</b></a><c>N/A</c></gpu></nvidia_smi_log>'

    assert {"0": {"a/b": "1", "c": "N/A"}} == split_xml(xml)
    assert {} == split_xml("<nvidia_smi_log>") == split_json("{") == split_json("7") == split_table("a, b\n")
    assert {"GPU 0": {"gpu": "0", "asic/name": "x"}} == split_json('[{"gpu": 0, "asic": {"name": "x"}}]')
    assert {"ens1": {"ifname": "ens1", "mtu": "9000"}} == split_json('[{"ifname": "ens1", "mtu": 9000}]')
    assert {"GPU 0": {"a": "x", "index": "0"}, "GPU 1": {"a": "y", "index": "1"}} == split_table(
        "a, index\nx, 0\ny, 1\n"
    )


def test_a_text_of_few_devices_is_not_recognized() -> None:
    """What is shown of three devices has no odd one; all, default and lo are no interfaces."""
    assert not has_labels("".join(f"Device #{n}:\n" for n in range(3)))
    assert not has_labels("".join(f"net.ipv4.conf.{name}.rp_filter = 0\n" for name in ("all", "default", "lo", "eth0")))


def test_a_capture_has_no_labels_that_its_host_was_not_asked_for(tmp_path: Path) -> None:
    """A live scan and the replay of its capture give the same report."""
    for name, text in FORMS["nvidia-smi -q"].texts({5: 0}).items():
        (tmp_path / name).write_text(text)
    host = open_source(str(tmp_path), None)
    assert isinstance(host, TreeHost)

    assert ["Compute Mode"] == [one.label for one in list_unequal(host)]
    host.kind = "capture"
    assert [] == list_unequal(host)
