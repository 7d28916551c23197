"""`neuron-ls` in its forms: text, JSON, elided and hostile ones; and the described instance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.outputs.text.page import render_page
from probes.catalogue import probe
from probes.gpu.facts import GpuFacts
from probes.neuron.probe import parse_neuron_ls
from probes.probe import Status, outcome_of
from probes.sources.open_source import open_source
from probes.text import ParseError
from tests.machines import machine, scan_machine

SHAPE = "trn1-16xtrainium"
TABLE = """\
$ neuron-ls
instance-type: trn1.2xlarge
+--------+--------+--------+-----------+---------+------+
| NEURON | NEURON | NEURON | CONNECTED |   PCI   | NUMA |
| DEVICE | CORES  | MEMORY |  DEVICES  |   BDF   | NODE |
+--------+--------+--------+-----------+---------+------+
| 0      | 2      | 32 GB  | 1         | 10:1c.0 | 0    |
|        |        |        |           |         |      |
| 1      | 2      | 512 MB | 0         | a0:1d.0 | -1   |
+--------+--------+--------+-----------+---------+------+
"""
JSON = json.dumps(
    [
        {"neuron_device": 0, "bdf": "cc:00.0", "connected_to": [1], "memory_size": 103_079_215_104, "numa_node": "1"},
        {"neuron_device": 1, "bdf": "0000:b5:00.0", "connected_to": [0, 7], "numa_node": "-1"},
    ]
)


def rows(read: GpuFacts) -> list[tuple[object, ...]]:
    """What the report takes of each."""
    return [
        (g.index, g.address, g.memory_mib, g.numa_node, [link.remote_address for link in g.nvlinks]) for g in read.gpus
    ]


def test_the_table_and_its_json() -> None:
    """Short addresses are in domain 0; -1 is no node; a device beyond this instance has no address."""
    assert [
        (0, "0000:10:1c.0", 32_768, 0, ["0000:a0:1d.0"]),
        (1, "0000:a0:1d.0", 512, None, ["0000:10:1c.0"]),
    ] == rows(parse_neuron_ls(TABLE))
    assert [
        (0, "0000:cc:00.0", 98_304, 1, ["0000:b5:00.0"]),
        (1, "0000:b5:00.0", None, None, ["0000:cc:00.0", None]),
    ] == rows(parse_neuron_ls(JSON))


def test_a_link_that_one_end_states_is_no_pair() -> None:
    """Both ends must."""
    one = json.dumps([{"neuron_device": n, "bdf": f"cc:0{n}.0", "connected_to": [1] if n == 0 else []} for n in (0, 1)])
    read = parse_neuron_ls(one)

    assert ((), "neuron-ls states no connected device") == (read.pairs, read.gpus[1].nvlink_reason)
    assert [("0000:b5:00.0", "0000:cc:00.0")] == [
        tuple(sorted((cell.a, cell.b))) for cell in parse_neuron_ls(JSON).pairs
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no device"),
        ("[{]", "no JSON"),
        ('[{"neuron_device": 0}, ...', "no JSON"),
        ('[7, {"neuron_device": true, "bdf": "cc:00.0"}, {"neuron_device": 0, "bdf": 7}]', "no device"),
        ('[{"neuron_device": 0, "bdf": "cc:00.0", "connected_to": ["1"]}]', "no device"),
        ('[{"neuron_device": 0, "bdf": "somewhere"}]', "not a PCI address"),
        (TABLE.replace("a0:1d.0", "10:1c.0"), "one number or one address"),
        (TABLE.replace("| 1 ", "| 0 "), "one number or one address"),
        ("| NEURON |", "no device"),
    ],
)
def test_what_is_none_is_refused(text: str, why: str) -> None:
    """In one line."""
    with pytest.raises(ParseError, match=why):
        parse_neuron_ls(text)


def test_real_outputs(corpus: Path) -> None:
    """Two instances of 16 in a torus of 4 by 4, one device alone, and an elided output that is refused."""
    folder = corpus / "accelerators" / "other"

    for name in ("neuron-ls-trn1.32xlarge.txt", "neuron-ls-trn2n.48xlarge.txt", "neuron-ls-topology-trn2n.txt"):
        read = outcome_of(probe("neuron"), open_source(str(folder / name), None)).facts  # type: ignore[arg-type]
        assert (16, 32) == (len(read.gpus), len(read.pairs))
        assert {4} == {len(gpu.nvlinks) for gpu in read.gpus}
    alone = outcome_of(probe("neuron"), open_source(str(folder / "neuron-ls-1device-numa-minus1.txt"), None)).facts  # type: ignore[arg-type]
    assert [(0, "0000:00:1e.0", 32_768, None, [])] == rows(alone)
    elided = outcome_of(probe("neuron"), open_source(str(folder / "neuron-ls-trn2n-elided.json.txt"), None))  # type: ignore[arg-type]
    assert Status.FAILED is elided.status
    assert "cut or elided" in (elided.reason or "")


def test_the_described_instance() -> None:
    """Numbers are those of the tool, not of the bus; the matrix shows neighbors and the distance of the others."""
    report = scan_machine(SHAPE)
    gpus = {gpu.id: gpu for gpu in report.topology.gpus}

    assert (0, "Trainium", "open", 4) == (
        gpus["0000:10:1c.0"].index, gpus["0000:10:1c.0"].name, gpus["0000:10:1c.0"].driver_state,
        len(gpus["0000:10:1c.0"].links),
    )  # fmt: skip
    assert 32 == sum(path.kind == "NEURON" for path in report.topology.paths)
    assert "trn1.32xlarge" == report.platform.profile
    assert "NEURON" in "".join(part for line in render_page(report, 100) for part, _ in line)
    assert Status.OK is outcome_of(probe("neuron"), machine(SHAPE)).status
