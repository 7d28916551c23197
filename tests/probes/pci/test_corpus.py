"""The PCI probe on real machines' trees: what the index states of them, and what lspci says of the same tree."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from probes.catalogue import probe
from probes.pci.facts import PciFunction
from probes.pci.sysfs import read_pci
from probes.probe import Status, outcome_of
from tests.probes import machine as machines

Machine = dict[str, PciFunction]

COUNTS = {
    "gcm-cache_milan_good": 27,
    "gcm-compute_samsung980pro-downgraded": 111,
    "gcm-learn_good": 111,
    "gcm-learn_ib_intf_operstate_down": 8,
    "gcm-learn_ib_misbound_if": 111,
    "ghw-accel-nvidia": 29,
    "ghw-amd64-2numa": 82,
    "hwloc-2pa-pcidomain32bits": 9,
    "hwloc-32intel64-2p8co2t+8ve": 28,
    "hwloc-40intel64-2g2n4c+pcilocality": 37,
    "hwloc-40intel64-4n10c+pci-conflicts": 3,
    "hwloc-fakepcilocalities": 30,
    "hwloc-nvidiagpunumanodes": 6,
    "lspci-xe9680-h100": 517,
    "merged-dgx-a100": 281,
    "procfs": 3,
    "udev-dell-r820": 211,
    "udev-dgx-a100": 281,
}
WITHOUT_PCI = (
    "gpud-infiniband-h100",
    "hwloc-64amd64-4s2n4ca2co",
    "hwloc-8em64t-2s2ca2c-buggynuma",
    "hwloc-fakeheteromemtiers",
    "hwloc-memorysidecaches",
    "hwloc-nvidia-dgx-gb10",
    "hwloc-offline-cpu0-node0",
)
LSPCI_READS = (  # of the others it says little or nothing: they have no `config`, `resource` or `vendor` files
    "hwloc-2pa-pcidomain32bits",
    "hwloc-32intel64-2p8co2t+8ve",
    "hwloc-40intel64-2g2n4c+pcilocality",
    "hwloc-40intel64-4n10c+pci-conflicts",
    "hwloc-fakepcilocalities",
    "lspci-xe9680-h100",
)
PCI = re.compile(r"\./sys/(?:bus/pci|class/pci_bus|devices/pci|kernel/iommu_groups)")
BELOW_A_PRUNED_BRIDGE = {"hwloc-32intel64-2p8co2t+8ve": ["0000:60:00.0", "0000:60:00.1"]}  # 5f:03.0 is not in the tree


@pytest.fixture
def host(corpus: Path) -> Callable[[str], machines.Machine]:
    """One tree as a host of files."""
    return lambda name: machines.recorded(corpus, name)


@pytest.fixture
def machine(host: Callable[[str], machines.Machine]) -> Callable[[str], Machine]:
    """The functions of one tree, by address."""
    return lambda name: {function.address: function for function in read_pci(host(name)).facts.functions}


@pytest.mark.parametrize("name", COUNTS)
def test_every_function_of_a_tree_is_listed_once(machine: Callable[[str], Machine], name: str) -> None:
    """As many as the index says; none took flight, none is taken for gone, and every parent is one of them."""
    found = machine(name)

    assert COUNTS[name] == len(found)
    assert not [function for function in found.values() if function.vanished or function.gone or function.asleep]
    assert {None, *found} >= {function.parent for function in found.values()}


@pytest.mark.parametrize("name", WITHOUT_PCI)
def test_trees_without_a_pci_bus_are_absent(host: Callable[[str], machines.Machine], name: str) -> None:
    """Nothing is claimed of a machine whose PCI bus was not captured."""
    assert Status.ABSENT is outcome_of(probe("pci"), host(name)).status


@pytest.mark.parametrize("name", LSPCI_READS)
def test_lspci_says_the_same_of_the_same_tree(
    corpus: Path, machine: Callable[[str], Machine], tmp_path: Path, real_commands: None, name: str
) -> None:
    """Functions, numbers, NUMA nodes, drivers, slots, links and ACS, and under which bridge each function is."""
    if shutil.which("lspci") is None:
        pytest.skip("no lspci on this machine (package pciutils)")
    found, folder = machine(name), tmp_path
    with tarfile.open(corpus / "trees" / f"{name}.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "tar_filter", None)  # Python before 3.11.4 has none
        archive.extractall(folder, [member for member in archive if PCI.match(member.name)])

    said = _said_by_lspci(folder)
    told = {address: _in_words_of_lspci(function, folder) for address, function in found.items()}

    bridges = {address: words.pop("secondary") for address, words in said.items() if "secondary" in words}
    assert said == told
    assert BELOW_A_PRUNED_BRIDGE.get(name, []) == [
        function.address
        for function in found.values()
        if function.parent in bridges and function.address[-7:-5] != bridges[function.parent]
    ]


def test_the_h100_server_as_the_index_states_it(machine: Callable[[str], Machine]) -> None:
    """517 functions on two sockets, 102 links, ACS on 55 functions, each GPU with a ConnectX-7 on its switch."""
    found = machine("lspci-xe9680-h100")

    gpus = [function for function in found.values() if function.device == "0x2330"]
    nics = [function for function in found.values() if (function.vendor, function.device) == ("0x15b3", "0x1021")]
    with_acs = [function.acs.control for function in found.values() if function.acs is not None]
    assert {0: 261, 1: 256} == Counter(function.numa_node for function in found.values())
    assert 102 == sum(function.current_link_width is not None for function in found.values())
    assert {frozenset(): 49, frozenset({"SV"}): 2, frozenset({"SV", "RR", "CR", "UF"}): 4} == Counter(with_acs)
    assert {"19": "1a", "3b": "3c", "4c": "4d", "5d": "5e", "9b": "9c", "bb": "bc", "cb": "cc", "db": "dc"} == {
        gpu.address[5:7]: next(nic.address[5:7] for nic in nics if _switch(found, nic) == _switch(found, gpu))
        for gpu in gpus
    }
    assert {(32.0, 16, 32.0, 16)} == {_link(function) for function in (*gpus, *nics)}


def test_the_vector_engine_server_as_the_index_states_it(machine: Callable[[str], Machine]) -> None:
    """Every function with its link, in the spelling of old kernels; the on-chip NIC runs slow and that is a fact."""
    found = machine("hwloc-32intel64-2p8co2t+8ve")

    assert {(8.0, 16, 8.0, 16): 24, (8.0, 8, 8.0, 8): 2, (2.5, 1, 8.0, 1): 2} == Counter(map(_link, found.values()))
    assert {"0000:1a:00.0", "0000:3e:00.0"} == {key for key, each in found.items() if each.vendor == "0x15b3"}
    assert {0} == {function.numa_node for function in found.values()}


def test_long_domains(machine: Callable[[str], Machine]) -> None:
    """Two functions of domain 10000, after all of domain 0."""
    assert ["10000:00:00.0", "10000:00:04.0"] == list(machine("hwloc-2pa-pcidomain32bits"))[-2:]


def test_a_tree_of_links_and_nothing_else(machine: Callable[[str], Machine]) -> None:
    """111 functions with a running link, no class, no parent: unknown, never 0 or ""."""
    found = machine("gcm-learn_good").values()

    assert {(16.0, 16): 88, (16.0, 4): 11, (8.0, 2): 6, (8.0, 4): 4, (2.5, 1): 2} == Counter(
        (function.current_link_speed_gt_s, function.current_link_width) for function in found
    )
    assert {(None, None, None, None)} == {
        (function.class_code, function.driver, function.numa_node, function.root_bus) for function in found
    }


def test_gpus_of_a_power9_machine_have_a_class_and_no_driver_that_is_known(machine: Callable[[str], Machine]) -> None:
    """The tree keeps no driver links: no driver is unknown there, not absent."""
    found = machine("hwloc-nvidiagpunumanodes").values()

    assert {("0x030000", None, None)} == {(each.class_code, each.driver, each.numa_node) for each in found}


def test_the_largest_tree_is_read_in_time(host: Callable[[str], machines.Machine]) -> None:
    """517 functions with config space in well under a second (measured: 0.14 s on two cores)."""
    tree = host("lspci-xe9680-h100")

    started = time.process_time()
    read_pci(tree)

    assert 1.0 > time.process_time() - started


def _link(function: PciFunction) -> tuple[float | None, int | None, float | None, int | None]:
    return (
        function.current_link_speed_gt_s,
        function.current_link_width,
        function.max_link_speed_gt_s,
        function.max_link_width,
    )


def _switch(found: Machine, function: PciFunction) -> str | None:
    return found[function.parent].parent if function.parent else None


def _said_by_lspci(folder: Path) -> dict[str, dict[str, str]]:
    """lspci's output read here by a few words of its own grammar, not by the parser of the project."""
    argv = ["lspci", "-A", "linux-sysfs", "-O", f"sysfs.path={folder}/sys/bus/pci", "-D", "-nn", "-vvv"]
    output = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60).stdout
    said = {}
    for block in re.split(r"\n+(?=[0-9a-f]{4,8}:[0-9a-f]{2}:)", output.strip()):
        words = {
            "ids": "".join(re.findall(r"\[[0-9a-f]{4}(?::[0-9a-f]{4})?\](?=[ :(\n]|$)", block.splitlines()[0] + "\n"))
        }
        for name, pattern in (
            ("numa", r"\tNUMA node: (\d+)"),
            ("driver", r"\tKernel driver in use: (\S+)"),
            ("slot", r"\tPhysical Slot: (\S+)"),
            ("secondary", r"\tBus: primary=.., secondary=(..)"),
            ("capability", r"\t\tLnkCap:.*Speed (\S+)GT/s, Width x(\d+)"),
            ("status", r"\t\tLnkSta:\tSpeed (\S+)GT/s.*Width x(\d+)"),
            ("acs", r"\t\tACSCtl:\t(.*)"),
        ):
            match = re.search(pattern, block)
            if match:
                words[name] = " ".join(match.groups())
        said[block.split(" ", 1)[0]] = words
    return said


def _in_words_of_lspci(function: PciFunction, folder: Path) -> dict[str, str]:
    """The same words from the facts. lspci reads links from config space only, prints no node that is not known and no
    driver whose own folder the tree lacks."""
    speed, width, max_speed, max_width = _link(function)
    words = {"ids": f"[{str(function.class_code)[2:6]}][{str(function.vendor)[2:]}:{str(function.device)[2:]}]"}
    if function.numa_node not in (None, -1):
        words["numa"] = str(function.numa_node)
    if function.driver and (folder / "sys/bus/pci/drivers" / function.driver).is_dir():
        words["driver"] = function.driver
    if function.slot:
        words["slot"] = function.slot
    if function.acs is not None:
        names = {"SV": "SrcValid", "TB": "TransBlk", "RR": "ReqRedir", "CR": "CmpltRedir", "UF": "UpstreamFwd"}
        names |= {"EC": "EgressCtrl", "DT": "DirectTrans"}
        words["acs"] = " ".join(f"{name}{'-+'[key in function.acs.control]}" for key, name in names.items())
    if function.port_type not in (None, "rciep", "rcec"):
        words["capability"] = f"{max_speed:g} {max_width}"
        words["status"] = f"{speed:g} {width}"
    return words
