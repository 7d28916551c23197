"""Outputs inside of documents of other programs, and behind what chats and collectors write before their lines."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from probes.sources.documents import extract_text
from probes.sources.identify import identify_command
from probes.sources.unwrap import unwrap
from tests.machines import scan_text

XID = "NVRM: Xid (PCI:0000:4f:00): 79, pid=31, name=train, GPU has fallen off the bus."
FOUND = {"gpu-xid": "critical"}
STATE = {"__name__": "node_infiniband_state_id", "instance": "c7:9100", "job": "node", "port": "1"}
RECORD = {"_HOSTNAME": "c7", "SYSLOG_IDENTIFIER": "kernel", "__REALTIME_TIMESTAMP": "1741597322114552"}
ROWS = [
    ["0" if row == column else "PCIE" if {row, column} == {1, 2} else "XGMI" for column in range(8)] for row in range(8)
]
LINKS = (
    f"=========== Link Type between two GPUs ===========\n       {' '.join(f'GPU{column}' for column in range(8))}\n"
    + "".join(f"GPU{row}   {' '.join(cells)}\n" for row, cells in enumerate(ROWS))
    + "=========== End of ROCm SMI Log ===========\n"
)


def answer(name: str, values: dict[str, Any], labels: dict[str, str], form: str = "value") -> str:
    rows = [{"metric": {**labels, name: key}, form: value} for key, value in values.items()]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": rows}}, indent=2)


STATES = {f"mlx5_{port}": [1.5, "1" if port == 2 else "4"] for port in range(4)}
HISTORY = {key: [[1.0, "4"], value] for key, value in STATES.items()}
EVENT = {"type": "Warning", "reason": "XIDError", "involvedObject": {"kind": "Node", "name": "c7"}, "message": XID}
GRAFANA = '"Time"' + "".join(f',"node_infiniband_state_id{{device=""mlx5_{n}"", port=""1""}}"' for n in range(4))
TABLE = "__name__,device,port,Time,Value\n" + "".join(
    f"node_infiniband_state_id,mlx5_{n},1,2025-11-03,{1 if n == 2 else 4}\n" for n in range(4)
)
DOCUMENTS = {
    "a journal": (json.dumps({**RECORD, "MESSAGE": XID}) + "\n", FOUND),
    "a journal, pretty": (json.dumps({**RECORD, "MESSAGE": XID}, indent=4) + "\n", FOUND),
    "a journal, bytes": (json.dumps({**RECORD, "MESSAGE": list(XID.encode())}) + "\n", FOUND),
    "dmesg --json": (json.dumps({"dmesg": [{"pri": 3, "time": 12.5, "msg": XID}]}), FOUND),
    "Docker's log": (json.dumps({"log": f"{XID}\n", "stream": "stdout"}) + "\n", FOUND),
    "Loki": (json.dumps({"data": {"result": [{"stream": {"host": "c7"}, "values": [["1", XID]]}]}}), FOUND),
    "events": (json.dumps({"kind": "List", "items": [EVENT, {**EVENT, "message": "Node is ready"}]}), FOUND),
    "a prompt before it": ("$ journalctl -k -o json\n" + json.dumps({**RECORD, "MESSAGE": XID}) + "\n", FOUND),
    "Prometheus": (answer("device", STATES, STATE), {"ib-port-down": "warning"}),
    "Prometheus, over time": (answer("device", HISTORY, STATE, "values"), {"ib-port-down": "warning"}),
    "Grafana": (f'{GRAFANA}\n"10:00","4","4","4","4"\n"10:01","4","4","1","4"\n', {"ib-port-down": "warning"}),
    "Grafana, a table": (TABLE, {"ib-port-down": "warning"}),
    "metrics of gpud, out of a list": (
        "".join(
            textwrap.indent(
                json.dumps({"name": "a_nvlink_enabled", "labels": {"uuid": name}, "value": value}, indent=2), "  "
            )
            + ",\n"
            for name, value in (("GPU-a", 0), ("GPU-b", 1))
        ),
        {"tool-reports-fault": "warning"},
    ),
    "a page": (
        f"<p>We see</p><pre><code><span>$ dmesg</span>\n[   12.500000] {XID}</code></pre>",
        FOUND,
    ),
    "entities": ("[   12.500000] NVRM: Xid (PCI:0000:4f:00): 79, name=&lt;unknown&gt;, fallen off the bus\n", FOUND),
    "ansible": (
        json.dumps({"hosts": {"c7": {"cmd": ["dmesg"], "stdout": f"[   12.500000] {XID}\n[   13.000000] x", "rc": 0}}}),
        FOUND,
    ),
    "lines of a task": (json.dumps({"task": {"stdout_lines": [f"[   12.500000] {XID}", "[   13.000000] y"]}}), FOUND),
}
PORT = (
    "Infiniband device 'mlx5_2' port 1 status:\n\tdefault gid:\t fe80:0000:0000:0000:946d:ae03:001a:70aa\n"
    "\tbase lid:\t 0xffff\n\tsm lid:\t\t 0x0\n\tstate:\t\t 2: INIT\n\tphys state:\t 5: LinkUp\n"
    "\trate:\t\t 200 Gb/sec (4X HDR)\n\tlink_layer:\t InfiniBand\n"
)


def before_each(margin: str) -> str:
    return "".join(f"{margin}{line}" for line in PORT.splitlines(keepends=True))


MARGINS = {
    "a chat": f"[14:02, 11/3/2025] Ann: hm\n[14:03, 11/3/2025] Bo: {PORT}[14:04, 11/3/2025] Ann: ok\n",
    "another chat": f"[11/3/25, 14:03:12] Bo: {PORT}",
    "a third chat": f"[14:03] Bo B.: {PORT}".replace("Bo B.", "Bo"),
    "IRC": before_each("14:03 <bo> "),
    "a container's log": before_each("2025-11-03T14:03:12.123456789Z stderr F "),
    "CI": before_each("2025-11-03T14:03:12.1234567Z "),
    "ts": before_each("Nov 03 14:03:12 "),
    "docker compose": before_each("check-1  | "),
    "a comparison": f"--- a/port\n+++ b/port\n@@ -1,9 +1,8 @@\n-Infiniband device 'mlx5_1' port 1 status:\n"
    f"{before_each('+')}",
    "a comparison without heads": before_each("+"),
}


def test_lines_of_a_collector_have_no_empty_lines_between_them() -> None:
    """Which tables with an empty line of their own are not read with."""
    rows = ({"log": f"{line}\n", "stream": "stdout"} for line in ("GPU 0", "  ECC: 1"))

    assert "GPU 0\n  ECC: 1\n" == extract_text("".join(f"{json.dumps(row)}\n" for row in rows), str.isspace)


@pytest.mark.parametrize(("text", "found"), DOCUMENTS.values(), ids=DOCUMENTS)
def test_what_is_in_a_document_is_read(tmp_path: Path, text: str, found: dict[str, str]) -> None:
    report = scan_text(tmp_path, text)

    assert found == {finding.rule: finding.severity for finding in report.findings}


@pytest.mark.parametrize("text", MARGINS.values(), ids=MARGINS)
def test_what_stands_before_lines_is_cut(tmp_path: Path, text: str) -> None:
    report = scan_text(tmp_path, text)

    assert {"ib-no-sm": "warning"} == {finding.rule: finding.severity for finding in report.findings}
    assert text.count("\n") == unwrap(text, lambda lines: bool(identify_command("".join(lines)))).count("\n")


def test_a_table_in_a_message_of_a_chat_is_read(tmp_path: Path) -> None:
    report = scan_text(
        tmp_path, f"[9:41 AM, 3/11/25] Jo: {'=' * 20} ROCm System Management Interface {'=' * 20}\n{LINKS}"
    )

    assert {"xgmi-pair-missing"} == {finding.rule for finding in report.findings}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([{"gpu": 0, "links": [{"gpu": 1, "link_type": "XGMI"}], "notes": "a\nb"}]),
        '{"a": 1, "b": ["x", "y"]}',
        '{"MESSAGE": ',
        "a, b\n1, 2\n",
        "GPU 0: A100 (UUID: GPU-1)\n\t Link 3: <inactive>\n",  # no HTML
        "NVRM: Xid (PCI:0000:4f:00): 31, pid='<unknown>', name=<unknown>\n",
    ],
)
def test_what_is_no_document_or_is_an_output_stays_as_it_is(text: str) -> None:
    assert extract_text(text, lambda text: bool(identify_command(text))) is None


def test_tags_of_tools_stay_in_a_page() -> None:
    page = "<div>GPU 0: A100 (UUID: GPU-1)<br>  Link 3: <inactive><br>  Link 4: &lt;inactive&gt;</div>"

    assert "GPU 0: A100 (UUID: GPU-1)\n  Link 3: <inactive>\n  Link 4: <inactive>\n" == extract_text(page, str.isspace)


def test_values_with_a_margin_are_parts_of_an_output_that_is_known() -> None:
    """Also where it is cut, so that it is no JSON as a whole."""
    text = '{ "lldp":\n  {"eth1": {"via": "LLDP"}, "message": "up for long"},\n  {"log": "a line of it"}\n'
    assert extract_text(text, lambda part: "lldp" in part) is None
    rows = '$ lldpctl -f json\n{"lldp": [\n  {"mgmt-ip": ["10.118.182.201", "10.118.182.202"]}\n]}\n'
    assert extract_text(rows, lambda part: part.startswith('{"lldp"')) is None
    assert extract_text(text, lambda part: False) is not None
