"""Real machines: what the probes of the system say of the corpus's trees, against its index and hwloc."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from fixtures.build import build_capture
from probes.catalogue import probe, probes
from probes.kernel.modules import parse_lsmod
from probes.probe import Probe, Status, outcome_of
from probes.sources.memory import SymlinkNode
from probes.system.cpu import parse_cpulist
from tests.conftest import sample_of
from tests.probes.machine import Machine, recorded

PROBES = (probe("kernel"), probe("dmi"), probe("cpu"), probe("numa"), probe("modules"), probe("netdev"))
HWLOC_TREES = (  # those that hwloc reads whole
    "hwloc-32intel64-2p8co2t+8ve",
    "hwloc-40intel64-2g2n4c+pcilocality",
    "hwloc-40intel64-4n10c+pci-conflicts",
    "hwloc-64amd64-4s2n4ca2co",
    "hwloc-fakeheteromemtiers",
    "hwloc-fakepcilocalities",
    "hwloc-memorysidecaches",
    "hwloc-nvidia-dgx-gb10",
    "hwloc-nvidiagpunumanodes",
)
NEEDED = re.compile(
    r"^(?:\./)?(?:proc/(?!driver)|sys/devices/system/(?:node/|cpu/(?:online|possible|cpu\d+/topology/)))"
)
LOST_PACKAGES = {"hwloc-40intel64-4n10c+pci-conflicts": 1}  # lstopo drops one; cpuinfo and sysfs name four


def facts(probe: Probe, host: Machine) -> Any:
    return outcome_of(probe, host).facts


@pytest.mark.parametrize(
    "folder", ["", "proc", "sys", "sys/class", "sys/bus", "sys/devices/system", "sys/devices", "sys/kernel", "etc"]
)
def test_a_pruned_machine_is_read_without_a_broken_probe(folder: str):
    """Tools that save a machine leave folders out: an answer or a reason, never "failed"."""
    tree = build_capture("2xa10-2xt4-1s-idle").tree
    host = Machine()
    nodes = {**tree.files, **{path: SymlinkNode(target) for path, target in tree.links.items()}}
    host.put({path: node for path, node in nodes.items() if not (folder and path.startswith(f"/{folder}/"))})
    for one in probes():
        outcome = outcome_of(one, host)

        assert outcome.status in (Status.OK, Status.PARTIAL, Status.ABSENT), outcome
        assert (outcome.reason is None) == (outcome.status is Status.OK)


def test_every_tree_is_read_without_a_broken_probe(corpus: Path):
    """Whatever a tree holds or lacks: an answer or a reason, never "failed"."""
    for archive in sorted((corpus / "trees").glob("*.tar.xz")):
        host = recorded(corpus, archive.name.removesuffix(".tar.xz"))
        for one in PROBES:
            outcome = outcome_of(one, host)

            assert outcome.status in (Status.OK, Status.PARTIAL, Status.ABSENT), (archive, outcome)
            assert (outcome.reason is None) == (outcome.status is Status.OK)


@pytest.mark.slow
@pytest.mark.parametrize("name", sample_of(HWLOC_TREES))
def test_nodes_and_processors_as_hwloc_sees_them(corpus: Path, tmp_path: Path, name: str, real_commands: None):
    """NUMA nodes with their CPUs, and the packages, against lstopo on the same tree."""
    lstopo = shutil.which("lstopo-no-graphics")
    if not lstopo:
        pytest.skip("no lstopo-no-graphics (hwloc-nox)")
    result = hwloc(lstopo, corpus / "trees" / f"{name}.tar.xz", tmp_path)
    nodes = re.findall(r'type="NUMANode" os_index="(\d+)" cpuset="([^"]*)"', result)
    host = recorded(corpus, name)
    processors = facts(probe("cpu"), host)
    online = set(parse_cpulist(processors.online or ""))
    ours = {node.id: set(parse_cpulist(node.cpus)) & online for node in facts(probe("numa"), host).nodes}

    assert {int(number) for number, _ in nodes} == set(ours)
    assert result.count('type="Package"') == processors.sockets - LOST_PACKAGES.get(name, 0)
    for number, cpuset in nodes:
        cpus = ours[int(number)]
        assert not cpus or bits(cpuset) & online == cpus  # hwloc gives a node without CPUs those of its neighbours


def hwloc(lstopo: str, archive: Path, where: Path) -> str:
    """The XML of lstopo, which reads a folder: only what it needs of the tree is unpacked."""
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "tar_filter", None)  # Python before 3.11.4 has none
        tar.extractall(where, [one for one in tar if NEEDED.search(one.name)])
    environment = {**os.environ, "HWLOC_FSROOT": str(where), "HWLOC_COMPONENTS": "linux,stop"}
    environment["HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES"] = "1"
    argv = [lstopo, "--whole-system", "--no-io", "--of", "xml", "-"]
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout


def bits(cpuset: str) -> set[int]:
    """hwloc's bitmap: words of 32 bits, the highest first; an empty word is 0."""
    words = [int(word, 16) if word else 0 for word in cpuset.split(",")]
    number = sum(word << 32 * place for place, word in enumerate(reversed(words)))
    return {place for place in range(number.bit_length()) if number >> place & 1}


def test_gpu_memory_of_a_power9(corpus: Path):
    """AC922: two nodes with processors, six that are the six GPUs' memory."""
    host = recorded(corpus, "hwloc-nvidiagpunumanodes")
    nodes = facts(probe("numa"), host).nodes

    assert [0, 8] == [node.id for node in nodes if node.cpus]
    assert [250, 251, 252, 253, 254, 255] == [node.id for node in nodes if node.cpus == ""]
    assert ("ppc64le", None, True) == (
        facts(probe("kernel"), host).arch,
        facts(probe("kernel"), host).virtualization,
        facts(probe("kernel"), host).virtualization_known,
    )


def test_memory_tiers_have_no_processors(corpus: Path):
    """Sparse node numbers, four of seven nodes without CPUs."""
    nodes = facts(probe("numa"), recorded(corpus, "hwloc-fakeheteromemtiers")).nodes

    assert [0, 1, 2, 4, 6, 8, 9] == [node.id for node in nodes]
    assert [4, 6, 8, 9] == [node.id for node in nodes if node.cpus == ""]


def test_dgx_spark_is_one_arm_socket(corpus: Path):
    """GB10: 20 cores of two kinds, DMI, bare metal."""
    host = recorded(corpus, "hwloc-nvidia-dgx-gb10")
    processors, system = facts(probe("cpu"), host), facts(probe("kernel"), host)

    assert ("ARM", 1, "0-19") == (processors.vendor, processors.sockets, processors.online)
    assert "NVIDIA_DGX_Spark" == facts(probe("dmi"), host).product
    assert ("aarch64", None, True) == (system.arch, system.virtualization, system.virtualization_known)


def test_vm_is_seen_as_one(corpus: Path):
    """A CloudStack guest whose virtio interface sits on a PCI function."""
    host = recorded(corpus, "hwloc-2pa-pcidomain32bits")
    devices = {dev.name: dev for dev in facts(probe("netdev"), host).netdevs}

    assert "kvm" == facts(probe("kernel"), host).virtualization
    assert ("0000:00:03.0", "virtio_net") == (devices["ens3"].address, devices["ens3"].driver)
    assert devices["lo"].virtual


def test_dgx_a100_is_named_by_its_modalias(corpus: Path):
    """An udev export keeps only the modalias; interfaces sit below their functions."""
    host = recorded(corpus, "udev-dgx-a100")
    devices = {dev.name: dev.address for dev in facts(probe("netdev"), host).netdevs}

    assert ("NVIDIA", "DGXA100920-23687-2530-000") == (
        facts(probe("dmi"), host).vendor,
        facts(probe("dmi"), host).product,
    )
    assert ("0000:e1:00.1", "0000:0c:00.0") == (devices["enp225s0f1np1"], devices["enp12s0np0"])
    assert 10 == len(devices)


@pytest.mark.parametrize(
    ("name", "down", "ib0"),
    [
        ("gcm-learn_good", [], "0000:0c:00.0"),
        ("gcm-learn_ib_intf_operstate_down", ["ib4"], "0000:0c:00.0"),
        ("gcm-learn_ib_misbound_if", [], "0000:12:00.0"),
    ],
)
def test_ipoib_interfaces_of_a_dgx_a100(corpus: Path, name: str, down: list[str], ib0: str):
    """Eight IPoIB interfaces below their cards; the faults of the index are seen."""
    devices = facts(probe("netdev"), recorded(corpus, name)).netdevs

    assert [f"ib{number}" for number in range(8)] == [dev.name for dev in devices]
    assert ib0 == devices[0].address
    assert down == [dev.name for dev in devices if dev.operstate == "down"]
    assert {200000} == {dev.speed_mbit_s for dev in devices if dev.operstate == "up"}
    assert all(dev.type == 32 and dev.mtu == 2044 for dev in devices)


def test_qib_node_of_a_dell_r910(corpus: Path):
    """Six interfaces of an old kernel, among them QDR InfiniBand without a speed."""
    devices = {
        dev.name: dev for dev in facts(probe("netdev"), recorded(corpus, "hwloc-40intel64-2g2n4c+pcilocality")).netdevs
    }

    assert ["eth0", "eth1", "eth2", "eth3", "ib0", "lo"] == list(devices)
    assert ("ib_qib", 32, "0000:43:00.0") == (devices["ib0"].driver, devices["ib0"].type, devices["ib0"].address)
    assert (1000, None) == (devices["eth0"].speed_mbit_s, devices["ib0"].speed_mbit_s)


def test_lsmod_of_gpu_nodes(corpus: Path):
    """Real lists, one of them cut in the middle of a word: peer memory is named in each."""
    for path in sorted((corpus / "text" / "lsmod").glob("*.txt")):
        users = parse_lsmod(path.read_text())

        assert "nvidia_peermem" in users
        assert "nvidia_peermem" in users["ib_core"]
