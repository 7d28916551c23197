"""Why ports have no link, or errors: mlxlink, the script of Gaudi's ports, ethtool."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from probes.text import ParseError
from probes.tool_reports.network import port_tools
from tests.machines import scan_text
from tests.probes.tool_reports.tool_texts import ETHTOOL, GAUDI_PORTS, MLXLINK, ROCM_SHORT


def mlxlink(
    state: str = "Active", opcode: str = "0", reason: str = "No issue was observed", rate: str = "15E-255"
) -> str:
    return MLXLINK.format(state=state, opcode=opcode, reason=reason, rate=rate)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (mlxlink(), []),
        (mlxlink(state="Polling"), []),
        (mlxlink(reason="N/A", state="Polling"), []),
        (mlxlink("Polling", "2", "Negotiation failure"), [("link-failure", "Negotiation failure")]),
        (mlxlink("Disable", "1", "The port is closed by command."), [("link-closed", "The port is closed by command")]),
        (mlxlink("Disable", "1", ""), [("link-closed", "closed by a command")]),
        (mlxlink("Polling", "1024", "Cable is unplugged"), [("link-unplugged", "Cable is unplugged")]),
        (mlxlink("Active", "15", "Bad signal integrity"), [("link-suspect", "Bad signal integrity")]),
        (mlxlink("Active", "1", "x"), [("link-suspect", "x")]),
        (mlxlink("Active", "1024", "x"), [("link-suspect", "x")]),
        (mlxlink(rate="2E-12"), [("link-errors", "Effective Physical BER 2e-12")]),
        (mlxlink(rate="1E-12"), []),
        (mlxlink(rate="not a number"), []),
        (mlxlink("Polling", "2", "x", rate="2E-3"), [("link-failure", "x")]),
        (mlxlink("Polling", "2", "x") + mlxlink("Polling", "3", "y"), [("link-failure", "x"), ("link-failure", "y")]),
    ],
)
def test_what_mlxlink_states(text: str, expected: list[tuple[str, str]]) -> None:
    assert expected == [(report.code, report.detail[0][1]) for report in port_tools.list_link_states(text)]


def test_each_port_has_its_device() -> None:
    text = f"$ mlxlink -d mlx5_0\n{mlxlink()}# mlxlink -d /dev/mst/mt4129_pciconf0 -m\n{mlxlink('Polling', '2', 'x')}"
    assert ["mt4129_pciconf0"] == [report.subject for report in port_tools.list_link_states(text)]


def test_json_states_the_same() -> None:
    """Printed on many lines, or on one; and of several ports."""
    text = mlxlink("Polling", "2", "Negotiation failure, check both ends") + mlxlink(rate="2E-9")
    sections: list[dict[str, dict[str, str]]] = []
    for line in (line for line in text.splitlines() if line.strip(" -")):
        name, colon, value = (part.strip() for part in line.partition(" : "))
        if name == "Operational Info":
            sections.append({})
        if not colon:
            sections[-1][name] = {}
        else:
            sections[-1][list(sections[-1])[-1]][name] = value
    documents = [{"result": {"output": section}, "status": {"code": 0}} for section in sections]

    for indent in (None, 4):
        printed = "\n".join(
            f"$ mlxlink -d mlx5_{n} --json\n{json.dumps(one, indent=indent)}" for n, one in enumerate(documents)
        )
        reports = port_tools.list_link_states(printed)
        assert port_tools.list_link_states(text) == [report._replace(subject=None) for report in reports]
        assert ["mlx5_0", "mlx5_1"] == [report.subject for report in reports]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GAUDI_PORTS, [("gaudi-ports-down", "accel1", "1 of 3 ports (port 23)")]),
        (GAUDI_PORTS.replace("1 ports down", "1 ports up"), []),
        (
            "hl0:\nport 8:\tUP\nport 22:\tDOWN\nport 23:\tDOWN\n",
            [("gaudi-ports-down", "hl0", "2 of 3 ports (port 22, port 23)")],
        ),
        ("accel0\nno interfaces were detected\n", [("gaudi-no-interface", "accel0", "")]),
        ("accel0\nno interfaces were detected\naccel1\n3 ports up\n", [("gaudi-no-interface", "accel0", "")]),
        (
            "accel0\nno interfaces were detected\naccel1\nno interfaces were detected\n",
            [("gaudi-no-interface", None, "2 cards")],
        ),
    ],
)
def test_what_the_script_of_gaudi_states(text: str, expected: list[tuple[str, str | None, str]]) -> None:
    reports = port_tools.list_gaudi_ports(text)
    assert expected == [(report.code, report.subject, dict(report.detail).get("what", "")) for report in reports]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("yes", []),
        ("no", []),
        ("no (No cable)", ["link-unplugged"]),
        ("no (Autoneg, No partner detected)", ["link-unplugged"]),
        ("no (Autoneg, Ack not received)", ["link-failure"]),
        ("no (Cable issue, Unsupported cable)", ["link-failure"]),
    ],
)
def test_why_an_interface_has_no_link(state: str, expected: list[str]) -> None:
    assert expected == [report.code for report in port_tools.list_lost_link(ETHTOOL.format(state=state))]


@pytest.mark.parametrize(
    "read",
    [port_tools.list_link_states, port_tools.list_gaudi_ports, port_tools.list_nic_ports, port_tools.list_lost_link],
)
def test_a_text_of_another_kind_is_refused(read) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ParseError):
        read("accel0\nDear all,\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Hi\n```\n# mlxlink -d mlx5_3 -m -c\n{mlxlink('Polling', '2', 'x')}```\n", ["warning mlx5_3"]),
        (f"> $ sudo mlxlink -d mlx5_3\n{mlxlink('Polling', '1024', 'x')}", ["info mlx5_3"]),
        (mlxlink("Polling", "2", "x"), ["warning node"]),
        (
            f"root@g1:~# /opt/habanalabs/qual/gaudi2/bin/manage_network_ifs.sh --status\n{GAUDI_PORTS}",
            ["warning accel1"],
        ),
        (GAUDI_PORTS, ["warning accel1"]),
        ("$ ethtool -S ens1 | grep crc\n     rx_crc_errors_phy: 41231\n", ["warning ens1"]),
        (ETHTOOL.format(state="no (Cable issue)"), ["warning ens8np0"]),
        (ETHTOOL.format(state="yes"), []),
    ],
)
def test_a_pasted_output_is_found(text: str, expected: list[str], tmp_path: Path) -> None:
    findings = scan_text(tmp_path, text).findings
    assert expected == [
        f"{f.severity} {f.label}" for f in findings if f.rule in ("tool-reports-fault", "roce-link-down", "roce-rt-crc")
    ]


def test_the_short_table_of_rocm_smi(tmp_path: Path) -> None:
    """Without a row it states that there is no GPU; a row without sensors beside others names one that is silent."""
    findings = scan_text(tmp_path, ROCM_SHORT.format(rows="")).findings
    assert ["error"] == [finding.severity for finding in findings]
    assert "finds no GPU" in findings[0].summary

    good = "0       1     0x74a1,   28851  36.0°C      140.0W    NPS1, SPX, 0        131Mhz  900Mhz  0%   auto\n"
    bad = "1       2     0x74a1,   31407  N/A         N/A       N/A, N/A, 0         None    None    0%   unknown\n"
    assert [] == scan_text(tmp_path, ROCM_SHORT.format(rows=good)).findings
    assert [] == scan_text(tmp_path, ROCM_SHORT.format(rows=bad)).findings  # a guest reads no sensor at all
    part = bad.replace("N/A, N/A, 0", "NPS1, CPX, 1")
    assert [] == scan_text(tmp_path, ROCM_SHORT.format(rows=good + part)).findings
    (finding,) = scan_text(tmp_path, ROCM_SHORT.format(rows=good + bad)).findings
    assert ("warning", "low", "GPU1") == (finding.severity, finding.confidence, finding.label)
