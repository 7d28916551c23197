"""The NCCL topology: what NCCL's own reader takes, what ours reads back, what is left out where it is not known.

NCCL's parser itself (`nccl_oracle.cc`, with 2.30.7 built from source) read all fixture machines and
faults when this was written, and gave every GPU-GPU and GPU-NIC pair the kind that the report gives it.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.gpu import Remote
from agent.model.nic import Nic, Port
from agent.model.pci import Link, LinkQuality
from agent.model.report import Report
from agent.outputs.export.nccl_topo import MAX_ELEMENTS, export
from probes.sources.open_source import open_source
from tests.agent.outputs.export.given import H100, MACHINES, hostile, with_gpu, with_topology
from tests.machines import HOSTS, scan_machine

SPEEDS = {f"{speed} GT/s PCIe" for speed in ("2.5", "5.0", "8.0", "16.0", "32.0", "64.0")}
# One element or comment as xmlGetNode reads it: single blanks, quoted values, no tab, no declaration
NODE = re.compile(r'</?[a-z0-9]+( [a-z_]+="[^"\n]{0,254}"){0,16}/?>|<!-- (?:(?!--).)*-->')
GPU0 = "0000:19:00.0"


def root(report: Report) -> ElementTree.Element:
    """The file as any XML parser reads it."""
    return ElementTree.fromstring(export(report))


def pci(report: Report, address: str) -> ElementTree.Element:
    """One <pci>."""
    (element,) = [element for element in root(report).iter("pci") if element.get("busid") == address]
    return element


def comments(report: Report) -> list[str]:
    return re.findall("<!-- (.*) -->", export(report))


@pytest.mark.parametrize(("host", "fault"), [*MACHINES, ("hostile", None), ("evil ids", None)])
def test_nccls_reader_takes_it(host: str, fault: str | None) -> None:
    """Its grammar and limits (src/graph/xml.h): 255 characters, 16 attributes, 640 children, 256 elements."""
    bad = host in ("hostile", "evil ids")
    report = scan_machine(H100 if bad else host, fault)
    text = export(hostile(report, host == "hostile") if bad else report)
    tree = ElementTree.fromstring(text)

    assert [] == [line for line in text.splitlines() if not NODE.fullmatch(line.strip(" "))]
    rccl = {gpu.vendor for gpu in report.topology.gpus} == {"AMD"}
    assert ("system", "2" if rccl else "1") == (tree.tag, tree.get("version"))
    assert MAX_ELEMENTS >= len(list(tree.iter()))
    assert all(len(element) <= 640 for element in tree.iter())
    assert {element.get("link_speed") for element in tree.iter("pci")} <= SPEEDS | {None}
    assert {element.get("arch") for element in tree.iter("cpu")} <= {"x86_64", "arm64", "ppc64", None}
    assert all(element.get("numaid") for element in tree.iter("cpu"))


def test_nvlinks_are_counted_by_where_they_lead():
    """One of 18 is down: 17 are counted, with the class of a switch."""
    counts = {
        fault: sum(int(element.get("count", "")) for element in root(scan_machine("", fault)).iter("nvlink"))
        for fault in ("nvlink-one-inactive", "nic-fw-mixed")
    }
    (link,) = root(scan_machine("8xb200-sxm-2s-8xcx7-ib-hidden-nvsw")).findall(".//pci[@busid='0000:1b:00.0']//nvlink")

    assert {"nvlink-one-inactive": 8 * 18 - 1, "nic-fw-mixed": 8 * 18} == counts
    assert {"target": "fffffff:ffff:ff", "count": "18", "tclass": "0x068000"} == link.attrib


def test_gpus_that_are_joined_directly_name_each_other():
    """Target and class are those of the other GPU."""
    (link,) = pci(scan_machine("4xrtx3090-1s-nvlink-pairs"), "0000:01:00.0").findall("gpu/nvlink")

    assert {"target": "0000:21:00.0", "count": "4", "tclass": "0x030000"} == link.attrib


@pytest.mark.parametrize("why", ["not known", "state", "far end", "strange far end"])
def test_links_that_are_not_known_are_left_to_nccl(why: str) -> None:
    """One <nvlink> would keep NCCL from asking the driver: there is none where one link is not known."""
    report = scan_machine(H100)
    first, *others = report.topology.gpus[0].links
    strange = Remote(kind="gpu", id="0000:ee:00.0")
    changed = {
        "not known": {"links_known": False, "links": []},
        "state": {"links": [msgspec.structs.replace(first, state="unknown"), *others]},
        "far end": {"links": [msgspec.structs.replace(first, remote=None), *others]},
        "strange far end": {"links": [msgspec.structs.replace(first, remote=strange), *others]},
    }
    result = with_gpu(report, **changed[why])

    assert [] == pci(result, GPU0).findall("gpu/nvlink")
    assert [comment for comment in comments(result) if comment.startswith("its NVLinks are left out")]
    assert 7 == len([element for element in root(result).iter("gpu") if element.findall("nvlink")])


def test_a_slower_link_is_written_as_it_runs():
    """The current width, and in a comment what it could be."""
    report = scan_machine("", "gpu-width-x8")
    slow = [element for element in root(report).iter("pci") if element.get("link_width") == "8"]

    assert [("32.0 GT/s PCIe", "8")] == [(item.get("link_speed"), item.get("link_width")) for item in slow]
    assert ["it can do 32 GT/s x16"] == [comment for comment in comments(report) if comment.startswith("it can do")]
    assert [] == [comment for comment in comments(scan_machine(H100)) if comment.startswith("it can do")]


def test_an_idle_gpu_is_written_with_what_its_link_can_do():
    """NCCL would plan with 2.5 GT/s else."""
    report = scan_machine("2xa10-2xt4-1s-idle")

    assert {"16.0 GT/s PCIe", "8.0 GT/s PCIe"} == {element.get("link_speed") for element in root(report).iter("pci")}
    assert 4 == len([comment for comment in comments(report) if comment.startswith("idle at 2.5 GT/s")])


@pytest.mark.parametrize("state", ["untrusted", "unreadable", "asleep"])
def test_a_link_that_cannot_be_believed_is_left_out(state: str) -> None:
    """NCCL reads it from the host, then."""
    report = scan_machine(H100)
    doubt = Link(
        speed_gt_s=2.5, width=1, max_speed_gt_s=2.5, max_width=1, quality=LinkQuality(state=state, reason="so")
    )
    rows = [msgspec.structs.replace(f, link=doubt) if f.id == GPU0 else f for f in report.topology.pci]
    changed = pci(with_topology(report, pci=rows), GPU0)

    assert (None, None) == (changed.get("link_speed"), changed.get("link_width"))


def test_gdr_is_what_the_rules_say():
    """Ready is 1, blocked everywhere 0, not known not there; a NIC that is no rail has none."""
    report = scan_machine(H100)

    def gdr(*verdicts: str) -> str | None:
        rows = [r for r in report.gpudirect if r.gpu != GPU0]
        one = next(r for r in report.gpudirect if r.gpu == GPU0)
        rows += [msgspec.structs.replace(one, verdict=verdict) for verdict in verdicts]
        return pci(msgspec.structs.replace(report, gpudirect=rows), GPU0).find("gpu").get("gdr")  # type: ignore[union-attr]

    assert ("1", "1", "0", None, None) == (
        gdr("ready"),
        gdr("degraded", "blocked"),
        gdr("blocked"),
        gdr("blocked", "unknown"),
        gdr(),
    )
    nets = {element.get("name"): element.get("gdr") for element in root(report).iter("net")}
    assert ("1", None) == (nets["mlx5_0"], nets["mlx5_1"])


def test_a_port_says_its_rate_in_mbit_and_its_guid_reversed():
    """As NCCL writes them: src/transport/net_ib/init.cc."""
    (net,) = pci(scan_machine(H100), "0000:1a:00.0").findall("nic/net")

    assert ("mlx5_0", "400000", "1", "0x6bf9760003d23fb8") == tuple(
        net.get(k) for k in ("name", "speed", "port", "guid")
    )


def test_a_port_that_is_down_has_no_net():
    """NCCL lists active ports; the card itself is there."""
    report = scan_machine("", "ib-port-down")
    (down,) = [n for n in report.topology.nics if n.ports and n.ports[0].state != "ACTIVE"]

    assert [] == pci(report, down.id).findall("nic")


@pytest.mark.parametrize("state", ["vfio", "no_driver", "not_open", "error"])
def test_a_gpu_that_nccl_cannot_have_is_not_there(state: str) -> None:
    """A comment says so."""
    report = with_gpu(scan_machine(H100), driver_state=state)

    assert 7 == len(list(root(report).iter("gpu")))
    assert f"GPU0 is left out: the driver does not offer it ({state})" in comments(report)
    assert GPU0 not in export(report)


def test_other_makers_gpus_are_not_nccls():
    """RCCL's files are of another version; a node with both makers' GPUs is described to NCCL."""
    report = with_gpu(scan_machine(H100), vendor="AMD")

    assert "GPU0 is left out: not an NVIDIA GPU" in comments(report)
    assert "1" == root(report).get("version")


def test_gpus_of_amd_are_rccls():
    """One <xgmi> for each other GPU of the hive, none for one that is outside."""
    whole, split = (scan_machine("8xmi300x-2s-8xcx7-roce", fault) for fault in (None, "amd-gpu-outside-hive"))
    outside = "0000:5d:00.0"
    others = {gpu.id for gpu in whole.topology.gpus} - {outside}

    assert others == {link.get("target") for link in pci(whole, outside).iter("xgmi")}
    assert {("1", "0x120000")} == {(link.get("count"), link.get("tclass")) for link in root(whole).iter("xgmi")}
    assert 56 == len(list(root(whole).iter("xgmi")))
    assert [] == list(root(whole).iter("nvlink"))
    assert [] == list(pci(split, outside).iter("xgmi"))
    assert 42 == len(list(root(split).iter("xgmi")))
    assert {"1"} == {gpu.get("gdr") for gpu in root(whole).iter("gpu")}


def test_links_of_amd_that_are_not_known_are_left_out():
    """RCCL asks the driver then."""
    report = scan_machine("8xmi300x-2s-8xcx7-roce")
    first = msgspec.structs.replace(report.topology.gpus[0], links=[], links_known=False, links_reason="denied")
    report = with_topology(report, gpus=[first, *report.topology.gpus[1:]])

    assert "its XGMI links are left out: denied" in comments(report)


def test_a_device_whose_place_is_not_known_is_left_out():
    """At a wrong place NCCL would believe it: the driver alone may have named it, or the hierarchy be unread."""
    report = scan_machine(H100)
    loose = [msgspec.structs.replace(f, root_bus=None) if f.id == GPU0 else f for f in report.topology.pci]

    for changed in (with_gpu(report, pci=None), with_topology(report, pci=loose)):
        assert 7 == len(list(root(changed).iter("gpu")))


def test_a_numa_node_that_the_firmware_does_not_tell_is_minus_one():
    """NCCL's own word; it has no processors."""
    report = {
        element.get("numaid"): element.get("affinity")
        for element in root(scan_machine("", "numa-minus-one")).iter("cpu")
    }

    assert ({"-1", "0", "1"}, None) == (set(report), report["-1"])


def test_managers_devices_and_software_are_no_nics():
    """Functions of the fabric manager, rxe."""
    report = scan_machine("8xb200-sxm-2s-8xcx7-ib-hidden-nvsw")
    limited = [n.id for n in report.topology.nics if n.limited]
    soft = Nic(id="rxe0", label="rxe0", software=True, ports=[Port(port=1, state="ACTIVE", rate_gbit_s=100.0)])
    text = export(with_topology(report, nics=[*report.topology.nics, soft]))

    assert limited
    assert [] == [item for item in (*limited, "rxe0") if item in text]


def test_virtual_functions_are_the_guests():
    """On a host with physical functions they are left out; in a guest they are all there is."""
    report = scan_machine(H100)
    rails = [msgspec.structs.replace(n, virtual_function=n.label == "mlx5_0") for n in report.topology.nics]
    names = [element.get("name") for element in root(with_topology(report, nics=rails)).iter("net")]

    assert (9, False) == (len(names), "mlx5_0" in names)
    assert 8 == len(list(root(scan_machine("8xh100-vm-kvm-8xvf-ib")).iter("net")))


def test_amds_family_is_written_as_nccl_counts():
    """15 + (10 << 4) for 25; Intel's 6 as it is."""
    amd, intel = (root(scan_machine(host)).find("cpu") for host in ("2xa10-2xt4-1s-idle", H100))

    assert amd is not None
    assert intel is not None
    assert ("175", "6") == (amd.get("familyid"), intel.get("familyid"))


def test_too_many_nics_leave_the_rails():
    """NCCL refuses more than 256 elements: NICs that are no rails are left out, and a comment says so."""
    report = scan_machine(H100)
    first = next(n for n in report.topology.nics if n.role == "management")
    row = next(f for f in report.topology.pci if f.id == first.id)
    ids = [f"0000:{bus:02x}:{slot:02x}.0" for bus in (0xE0, 0xE1, 0xE2) for slot in range(32)]
    rows = [msgspec.structs.replace(row, id=id_) for id_ in ids]
    nics = [msgspec.structs.replace(first, id=id_, pci=id_) for id_ in ids]
    changed = with_topology(report, pci=[*report.topology.pci, *rows], nics=[*report.topology.nics, *nics])

    assert 8 == len(list(root(changed).iter("net")))
    assert comments(changed)[0].startswith("NICs that are no rails are left out")


def test_a_circle_of_bridges_ends():
    """A report from elsewhere may say anything."""
    report = scan_machine(H100)
    by_id = {f.id: f for f in report.topology.pci}
    above = by_id[GPU0].parent or ""
    rows = [msgspec.structs.replace(f, parent=above) if f.id == by_id[above].parent else f for f in by_id.values()]

    assert export(with_topology(report, pci=rows))


# The NCCL topology that we write is read by our reader, and by NCCL's, to the same devices, ports, links and ways.


def read_back(report: Report, folder: Path) -> Report:
    """What a scan of the file says."""
    place = folder / "topo.xml"
    place.write_text(export(report))
    again, _ = diagnose(open_source(str(place)), ScanPlan())
    return again


READ = ("NVIDIA", "AMD")  # what NCCL and RCCL read


@pytest.mark.parametrize(("host", "fault"), MACHINES)
def test_our_reader_reads_the_same_devices_back(host: str, fault: str | None, tmp_path: Path) -> None:
    """GPUs with number and capability, active ports with rate and GUID, NVLinks and way of every pair."""
    report = scan_machine(host, fault)
    usable = {g.id: g for g in report.topology.gpus if g.driver_state in ("open", "unknown") and g.vendor in READ}
    nics = {n.id: n for n in report.topology.host_nics if not n.limited and n.state != "other_namespace"}
    if not usable and not nics:
        return
    again = read_back(report, tmp_path)
    seen = {g.id: g for g in again.topology.gpus}

    assert sorted(usable) == sorted(seen)
    if report.node.arch == "x86_64":
        assert report.node.cpu.family == again.node.cpu.family
    for gpu in usable.values():
        assert (gpu.index, gpu.compute_capability) == (seen[gpu.id].index, seen[gpu.id].compute_capability)
        assert gpu.numa_node == seen[gpu.id].numa_node
    active = {
        (n.id, p.port, p.rate_gbit_s, n.system_image_guid) for n in nics.values() for p in n.ports if p.rate_gbit_s
    }
    assert active == {(n.id, p.port, p.rate_gbit_s, n.system_image_guid) for n in again.topology.nics for p in n.ports}
    assert set(nics) == {n.id for n in again.topology.nics}
    _same_ways(report, again)


def _same_ways(report: Report, again: Report) -> None:
    """Of pairs that both know: PHB and NODE are one in the file."""
    ways = {(p.a, p.b): p for p in again.topology.paths}
    links_known = {g.id for g in report.topology.gpus if g.links_known}
    nowhere = {f.id for f in report.topology.pci if f.numa_node is None}
    for path in report.topology.paths:
        there = ways.get((path.a, path.b))
        if there is None or path.pcie_kind is None:
            continue
        if there.pcie_kind is None:  # of two devices on no NUMA node, the file does not tell
            assert path.a in nowhere or path.b in nowhere
            continue
        assert path.pcie_kind.replace("PHB", "NODE") == there.pcie_kind
        if {path.a, path.b} <= links_known and (path.kind or "").startswith("NV"):
            assert path.kind == there.kind


@pytest.mark.parametrize("host", HOSTS)
def test_what_is_read_back_gives_the_same_file(host: str, tmp_path: Path) -> None:
    """The tree survives: the second export names the same devices below the same switches."""
    report = scan_machine(host)
    if not any(gpu.vendor in READ for gpu in report.topology.gpus):
        return
    again = read_back(report, tmp_path)
    below = [
        {
            (up.get("busid"), match.get("busid"))
            for up in ElementTree.fromstring(export(one)).iter()
            for match in up.findall("pci")
        }
        for one in (report, again)
    ]

    assert below[0] == below[1]


ORACLE = os.environ.get("FABRICSCOPE_NCCL_ORACLE")
WAYS = {"PIX": "PIX", "PXB": "PXB", "PHB": "PHB", "NODE": "PHB", "SYS": "SYS"}  # NCCL's PHB: one NUMA node


@pytest.mark.skipif(
    ORACLE is None, reason="FABRICSCOPE_NCCL_ORACLE names no program that is built of nccl_oracle.cc and NCCL's source"
)
@pytest.mark.parametrize(("host", "fault"), MACHINES)
def test_nccl_sees_the_same_ways(host: str, fault: str | None, tmp_path: Path, real_commands: None) -> None:
    """PIX, PXB, PHB, SYS or NVLink of every GPU with every GPU and every active port."""
    report = scan_machine(host, fault)
    place = tmp_path / "topo.xml"
    place.write_text(export(report))
    nets = {
        f"net-{net.get('dev')}": pci.get("busid", "")
        for pci in ElementTree.fromstring(place.read_text()).iter("pci")
        for net in pci.findall("nic/net")
    }
    if "<gpu" not in place.read_text():
        return
    done = subprocess.run([str(ORACLE), str(place)], capture_output=True, text=True, timeout=60)
    ways = {frozenset((p.a, p.b)): p for p in report.topology.paths}
    ids = {g.id for g in report.topology.gpus if g.links_known}
    nowhere = {f.id for f in report.topology.pci if f.numa_node is None}

    assert (0, "") == (done.returncode, done.stderr)
    for a, b, kind in (line.split(" ") for line in done.stdout.splitlines()):
        path = ways[frozenset((a, nets.get(b, b)))]
        if path.pcie_kind is None and nowhere:
            continue  # firmware that names no NUMA node: NCCL guesses, we do not
        linked = {a, b} <= ids and (path.kind or "").startswith("NV")
        assert kind == ("NVL" if linked else WAYS[str(path.pcie_kind)])
