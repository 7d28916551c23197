"""Every reader of outside bytes, in one table: what it is called with, how it may refuse, and what its seeds are.

A function that reads text or bytes of a host and is not here fails `test_readers.py`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from agent.config import ConfigurationError
from agent.reports import ReportError
from agent.rules.catalogue import every_rule
from probes.dcb_tool import OBJECTS
from probes.host.door import BadSource, Failed
from probes.kernel_log_lines import lines
from probes.text import Unparsable
from tests.fuzz import ethernet, mutations, seeds
from tests.probes import nvidia_smi_texts as smi
from tests.probes import (
    test_dcb_tool,
    test_ibdev2netdev,
    test_ibstat,
    test_ibstatus,
    test_ibv_devinfo,
    test_lldp,
    test_mlnx_qos,
    test_rdma_link,
    test_show_gids,
)
from tests.probes.lspci_sample import SAMPLE
from tests.probes.readers import fabric_texts

ADDRESS, LINES = "0000:1a:00.0", "a b\nc: d\n"


class Reader(NamedTuple):
    """One way in. `refuses`: the only errors that it may end with; none: it has an answer for everything."""

    function: str  # "probes.cpu:parse_cpuinfo"
    seeds: Callable[[], Sequence[bytes]]
    refuses: tuple[type[Exception], ...] = ()
    adapt: Callable[[Callable[..., Any]], Callable[[bytes], Any]] = lambda read: lambda data: read(data)
    mend: Callable[[bytes], bytes] | None = None  # makes a checksum true again, else damage gets no further

    @property
    def name(self) -> str:
        """The function's dotted name."""
        return self.function.replace(":", ".")

    def call(self) -> Callable[[bytes], Any]:
        """What to call with the bytes; what it yields is taken to the end."""
        module, _, name = self.function.partition(":")
        read = self.adapt(getattr(importlib.import_module(module), name))

        def whole(data: bytes) -> None:
            said = read(data)
            if isinstance(said, Iterator):
                for _ in said:
                    pass

        return whole


def _text(read: Callable[..., Any]) -> Callable[[bytes], Any]:
    return lambda data: read(data.decode("utf-8", "replace"))


def _then(*more: Any) -> Callable[[Callable[..., Any]], Callable[[bytes], Any]]:
    """Text, and arguments behind it."""
    return lambda read: lambda data: read(data.decode("utf-8", "replace"), *more)


def _file(*more: Any) -> Callable[[Callable[..., Any]], Callable[[bytes], Any]]:
    """The path of a file that holds the bytes."""

    def adapted(read: Callable[..., Any]) -> Callable[[bytes], Any]:
        def call(data: bytes) -> Any:
            path = os.path.join(_folder().name, "input")
            with open(path, "wb") as file:
                file.write(data)
            return read(path, *more)

        return call

    return adapted


def _or_refused(read: Callable[..., Any], about: str, data: bytes) -> Any:
    """Each object's text is refused by the readers of the others."""
    with contextlib.suppress(Unparsable):
        return read(about, data.decode("utf-8", "replace"))


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fabricscope-fuzz-")


def parser(function: str, *said: str) -> Reader:
    """A parser of text that refuses by the one declared error."""
    return Reader(function, seeds.texts(*said), (Unparsable,), _text)


def lenient(function: str, *said: str) -> Reader:
    """A parser of text that has an answer for everything."""
    return Reader(function, seeds.texts(*said), (), _text)


READERS: tuple[Reader, ...] = (
    # text of files
    parser("probes.cpu:parse_cpuinfo", seeds.CPUINFO),
    lenient("probes.cpu:cpuinfo_values", seeds.CPUINFO),
    parser("probes.cpu:parse_cpulist", "0-55,112-167\n", "0"),
    lenient("probes.dmi:parse_modalias", "dmi:bvnDell:bvr2.1:bd01/01/2024:svnDellInc.:pnPowerEdge:pvr:rvn:rn:\n"),
    lenient("probes.dmi:meaning", "Not Specified", "Dell Inc."),
    lenient("probes.kernel:parse_version", "Linux version 6.8.0-60-generic (buildd@x) (gcc 13) #63 SMP\n"),
    lenient("probes.kernel:parse_os_release", 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 22.04.5 LTS"\n'),
    lenient("probes.kernel:parse_gathered", LINES),
    lenient("probes.kernel:parse_uname", "Linux h1 6.8.0-60-generic #63-Ubuntu SMP x86_64 GNU/Linux\n"),
    parser("probes.kernel:parse_uptime_seconds", "864000.25 1234567.89\n"),
    Reader("probes.kernel:arch_of", seeds.texts(seeds.CPUINFO), (), _then("6.8.0")),
    lenient(
        "probes.kernel:container_of_cgroup", "0::/docker/0123456789abcdef\n", "12:pids:/kubepods/besteffort/pod1\n"
    ),
    parser("probes.modules:parse_modules", seeds.MODULES),
    parser("probes.modules:parse_lsmod", seeds.LSMOD),
    parser("probes.modules:parse_nvidia_version", seeds.VERSION),
    lenient("probes.modules:parse_params", 'EnableMSI: 1\nRmMsg: ""\n'),
    lenient("probes.modules:parse_numa_status", "1\n", "-1"),
    lenient("probes.modules:parse_information", "Model: \t NVIDIA L4\nGPU Excluded:\t No\n", "Model"),
    parser("probes.numa:parse_distances", "10 21\n"),
    parser("probes.numa:parse_memory_mib", "Node 0 MemTotal:       65843220 kB\nNode 0 MemFree: 1 kB\n"),
    parser("probes.netdev_sysfs:parse_vlans", "VLAN Dev name    | VLAN ID\nName-Type: X\nens1.100  | 100  | ens1\n"),
    lenient("probes.netdev_sysfs:place_of", "../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/net/ens1"),
    lenient("probes.netdev_sysfs:whole", "1500", "-1"),
    lenient("probes.netdev_sysfs:mac", "b8:3f:d2:00:00:01"),
    Reader(
        "probes.nccl_words:parse_conf", seeds.texts("NCCL_IB_TC = 106\n# x\nNCCL_DEBUG\n"), (), _then("file", "user")
    ),
    Reader("probes.nccl_words:parse_environ", seeds.texts("HOME=/root\0NCCL_IB_TC=106\0")),
    lenient("probes.nccl_words:parse_maps", "7f-80 r-xp 00000000 08:02 1 /usr/lib/libnccl.so.2.21.5\n"),
    lenient("probes.nccl_words:version_of", "/usr/lib/libnccl.so.2.21.5"),
    lenient("probes.nccl:parse_shared_memory", "shm /dev/shm tmpfs rw,nosuid,size=65536k 0 0\n"),
    lenient(
        "probes.limits:parse_limits", "Max locked memory         8388608              8388608              bytes \n"
    ),
    lenient("probes.limits:parse_exempt", "CapEff:\t000001ffffffffff\n"),
    lenient("probes.limits:bytes_of", "infinity", "64K"),
    Reader(
        "probes.limits:parse_unit",
        seeds.texts("[Service]\nLimitMEMLOCK=64K\n", "[Service]\nLimitMEMLOCK = infinity:infinity\n"),
        (),
        lambda read: lambda data: read([data.decode("utf-8", "replace")] * 2),
    ),
    lenient("probes.kernel_log:parse_boot_time", "cpu 1 2\nbtime 1700000000\nprocesses 5\n"),
    Reader("probes.kernel_log_lines:lines", seeds.texts(*seeds.KERNEL_LOGS), (), _then(1_700_000_000)),
    Reader(
        "probes.kernel_log_events:events",
        seeds.texts(*seeds.KERNEL_LOGS),
        (),
        lambda read: lambda data: read(lines(data.decode("utf-8", "replace"), None)),
    ),
    Reader("probes.limits:parse_pam", seeds.texts("*  soft memlock unlimited\n"), (), _then("limits.conf")),
    Reader(
        "probes.host.private:kept",
        seeds.texts("HOME=/root\0NCCL_IB_TC=106\0", "7f-80 r-xp 0 08:02 1 /usr/lib/libnccl.so.2\n"),
        (),
        lambda read: lambda data: [read(f"/proc/1/{name}", data) for name in ("environ", "maps", "mounts")],
    ),
    lenient("probes.services:parse_populated", "populated 1\nfrozen 0\n"),
    lenient("probes.fabric_daemons:parse_version", "Fabric Manager version is : 570.124.06\n"),
    lenient("probes.fabric_daemons:parse_nodes", "# nodes\n10.0.0.1\n10.0.0.2\n"),
    lenient("probes.fabric_daemons:parse_state", "READY\n"),
    lenient("probes.host.held:held_by", "PCI-DMA: x\n"),
    lenient("probes.host.udev:properties", "E:ID_NET_NAME_PATH=ens1\nN:x\n"),
    lenient("probes.host.when:instant", "Thu Jan 15 09:00:00 UTC 2026", "Thu Oct 27 08:50:11 PM -03 2022"),
    # sysfs values
    lenient("probes.pci_attributes:link_speed", "32.0 GT/s PCIe\n", "Unknown"),
    lenient("probes.pci_attributes:decimal", "16\n", "255"),
    lenient("probes.pci_attributes:identifier", "0x10de\n"),
    Reader("probes.pci_attributes:bars", seeds.files("/resource"), (), _text),
    Reader("probes.pci_attributes:aer_counters", seeds.files("/aer_dev_correctable", "/aer_dev_fatal"), (), _text),
    lenient("probes.pci_tree:is_address", ADDRESS, "10000:e1:00.0"),
    Reader(
        "probes.pci_tree:place_in_path",
        seeds.texts(f"/sys/devices/pci0000:17/0000:17:01.0/{ADDRESS}"),
        (),
        _then({ADDRESS}),
    ),
    parser("probes.gpu:normal_address", "00000000:1B:00.0"),
    lenient("probes.nvml_words:dashed_uuid", "0123456789abcdef0123456789abcdef"),
    parser("probes.rdma_rate:parse_rate", "400 Gb/sec (4X NDR)\n"),
    *(
        lenient(f"probes.rdma_words:{name}", "4: ACTIVE", "5: LinkUp", "InfiniBand", "b83f:d203:0076:f96b", "0x0102")
        for name in ("state", "physical_state", "link_layer", "guid", "gid", "number", "whole_lines")
    ),
    # binary
    Reader("probes.config_space:decode", seeds.config_spaces, (Unparsable,)),
    Reader("probes.host.redact_binary:serial_at", seeds.config_spaces),
    Reader("probes.netlink:messages", seeds.netlink, (Unparsable,)),
    Reader("probes.netlink:attributes", seeds.attributes, (Unparsable,)),
    Reader("probes.netlink:each_attribute", seeds.attributes, (Unparsable,)),
    Reader("probes.host.netlink:messages", seeds.netlink),
    Reader("probes.rtnetlink:parse_links", seeds.payloads, (Unparsable,), lambda read: lambda data: read([data, data])),
    Reader("probes.rtnetlink:parse_address", seeds.payloads, (Unparsable,)),
    Reader("probes.rtnetlink:parse_statistics", seeds.payloads, (Unparsable,)),
    Reader("probes.rtnetlink:mac_text", seeds.payloads),
    # what the kernel says by itself
    Reader("probes.events:parse_uevent", seeds.uevents, (Unparsable,)),
    Reader("probes.events:device_events", seeds.uevents, (Unparsable,)),
    Reader("probes.events:Interfaces", seeds.link_messages, (Unparsable,), lambda make: lambda data: make().told(data)),
    Reader("probes.events:Log", seeds.texts(*seeds.KERNEL_LOGS), (), lambda make: lambda data: make().told(data)),
    # ethtool, and memory of modules
    Reader("probes.ethtool_netlink:parse_family", ethernet.replies(1), (Unparsable,)),
    Reader("probes.ethtool_netlink:parse_link_modes", ethernet.replies(4), (Unparsable,)),
    Reader("probes.ethtool_netlink:parse_pause", ethernet.replies(22), (Unparsable,)),
    Reader("probes.ethtool_netlink:parse_fec", ethernet.replies(30), (Unparsable,)),
    Reader("probes.ethtool_netlink:parse_eeprom", ethernet.replies(32), (Unparsable,)),
    Reader("probes.ethtool_ioctl:parse_driver", ethernet.structs(0x03), (Unparsable,)),
    Reader("probes.ethtool_ioctl:parse_count", ethernet.structs(0x37), (Unparsable,)),
    Reader("probes.ethtool_ioctl:parse_pause", ethernet.counters, (Unparsable,)),
    Reader("probes.ethtool_ioctl:parse_fec", ethernet.counters, (Unparsable,)),
    Reader(
        "probes.ethtool_ioctl:parse_counters",
        ethernet.counters,
        (Unparsable,),
        lambda read: lambda data: read(data[:76], data[76:]),
    ),
    Reader("probes.link_modes:set_bits", ethernet.small),
    lenient("probes.ethtool_lines:pair", ethernet.SETTINGS.splitlines()[1]),
    lenient("probes.ethtool_lines:pairs", ethernet.SETTINGS),
    lenient("probes.ethtool_text:parse_settings", ethernet.SETTINGS),
    lenient("probes.ethtool_text:parse_pause", ethernet.PAUSE),
    lenient("probes.ethtool_text:parse_fec", ethernet.FEC),
    lenient("probes.ethtool_text:parse_statistics", ethernet.STATISTICS),
    lenient("probes.ethtool_text:parse_driver", ethernet.DRIVER),
    lenient("probes.optics_text:parse", ethernet.MODULE),
    Reader("probes.optics_module:text", ethernet.small),
    *(
        Reader(f"probes.optics_module:{name}", ethernet.small, (), lambda read: lambda data: read(data[:2]))
        for name in ("celsius", "volts", "milliamperes", "dbm")
    ),
    Reader("probes.optics_module:thresholds", ethernet.small, (), lambda read: lambda data: read("voltage", "v", data)),
    Reader("probes.optics_cmis:parse", ethernet.memory("osfp"), (), ethernet.cmis),
    Reader("probes.optics_cmis:is_paged", ethernet.memory("osfp"), (), ethernet.one_page),
    Reader("probes.optics_sff8636:parse", ethernet.memory("qsfp28"), (), ethernet.sff8636),
    Reader("probes.optics_sff8636:is_paged", ethernet.memory("qsfp28"), (), ethernet.one_page),
    Reader("probes.optics_sff8472:parse", ethernet.memory("qsfp28"), (), ethernet.sff8472),
    Reader("probes.optics_sff8472:has_monitors", ethernet.memory("qsfp28"), (), ethernet.one_page),
    Reader(
        "probes.host.redact_ethtool:serial",
        ethernet.replies(32),
        (),
        lambda read: lambda data: read(ethernet.QUESTION, data),
    ),
    Reader("probes.host.redact_ethtool:netlink", ethernet.replies(32), (), ethernet.redacting),
    Reader("probes.host.redact_ethtool:ioctl", ethernet.structs(0x03), (), ethernet.redacting),
    Reader("probes.dcb_netlink:parse_ieee", seeds.dcb_answers, (Unparsable,)),
    Reader("probes.dcb_netlink:parse_dcbx", seeds.dcb_answers, (Unparsable,)),
    Reader("probes.dcb_netlink:parse_cee", seeds.dcb_answers, (Unparsable,)),
    Reader(
        "probes.rdma_netlink:parse_devices", seeds.attributes, (Failed,), lambda read: lambda data: read([data, data])
    ),
    Reader(
        "probes.rdma_netlink:parse_ports", seeds.attributes, (Failed,), lambda read: lambda data: read([data, data])
    ),
    Reader("probes.asking:as_text", seeds.texts(LINES)),
    # outputs of tools
    parser("probes.lspci_text:parse_lspci", SAMPLE),
    parser("probes.lspci_blocks:blocks", SAMPLE),
    lenient("probes.lspci_names:vendor_of", "NVIDIA Corporation GH100 [H100 SXM5 80GB]"),
    Reader("probes.lspci_names:class_code", seeds.texts("3D controller"), (), _then(None, None)),
    parser("probes.nvidia_smi_query:parse", smi.QUERY),
    parser("probes.nvidia_smi_xml:parse", smi.XML),
    parser("probes.nvidia_smi_csv:parse", smi.CSV),
    parser("probes.nvidia_smi_list:parse", smi.LIST),
    parser(
        "probes.nvidia_smi_list:lost_gpus",
        "Unable to determine the device handle for GPU3: 0000:C1:00.0: Unknown Error\n",
    ),
    lenient("probes.nvidia_smi_list:refusal", "Failed to initialize NVML: Driver/library version mismatch\n"),
    parser("probes.nvidia_smi_topo:parse", smi.TOPO),
    parser("probes.nvidia_smi_p2p:parse", smi.P2P),
    Reader(
        "probes.nvidia_smi_table:parse_table", seeds.texts(smi.TOPO, smi.P2P), (Unparsable,), _then(("X", "OK", "NV1"))
    ),
    lenient("probes.nvidia_smi_words:meaning", "[N/A]", "16x"),
    lenient("probes.nvidia_smi_words:number", "81559 MiB"),
    parser("probes.nvlink_text:parse_status", smi.STATUS),
    parser("probes.nvlink_text:parse_errors", smi.ERRORS),
    parser("probes.nvlink_text:parse_remotes", smi.REMOTES),
    parser("probes.nvlink_text:parse_capabilities", smi.CAPABILITIES),
    parser("probes.ibdev2netdev:parse_ibdev2netdev", test_ibdev2netdev.TEXT),
    parser("probes.ibstat:parse_ibstat", test_ibstat.TWO_PORTS),
    parser("probes.ibstatus:parse_ibstatus", test_ibstatus.TEXT),
    parser("probes.ibv_devinfo:parse_ibv_devinfo", test_ibv_devinfo.VERBOSE),
    parser(
        "probes.ibv_devinfo:parse_ibv_devices",
        "    device\t node GUID\n    ------\t ---------\n    mlx5_0\t b83fd2030076f96b\n",
    ),
    parser("probes.rdma_link:parse_rdma_link", test_rdma_link.TEXT),
    parser("probes.show_gids:parse_show_gids", test_show_gids.TEXT),
    parser("probes.mlnx_qos:parse_mlnx_qos", test_mlnx_qos.TEXT),
    Reader(
        "probes.dcb_tool:parse_dcb",
        seeds.texts(*(text for _, text in test_dcb_tool.SAMPLES)),
        (Unparsable,),
        lambda read: lambda data: [_or_refused(read, about, data) for about in OBJECTS],
    ),
    lenient("probes.dcb_tool:dscp_of", "AF31", "26"),
    lenient("probes.dcb:traffic_class", "Global tclass=106\n"),
    lenient("probes.rdma_netlink:parse_system", "netns shared copy-on-fork on\n"),
    lenient("probes.rdma_netlink:parse_dev", "0: mlx5_0: node_type ca protocol roce fw 28.43.2026\n"),
    parser("probes.lldp:parse_lldp", json.dumps({"lldp": {"interface": {"eth0": test_lldp.ROW | test_lldp.DCBX}}})),
    # whole documents
    parser("probes.dmidecode:parse_dmidecode", seeds.DMIDECODE),
    parser("probes.ip_link:parse_ip_link", seeds.IP_LINK),
    parser("probes.readers.masks:members", "00000000,0000000f"),
    Reader("probes.readers.nccl_topo:parse", seeds.texts(seeds.NCCL), (Unparsable,)),
    Reader("probes.readers.hwloc_xml:parse", seeds.texts(seeds.HWLOC), (Unparsable,)),
    Reader("probes.readers.recognize:start_of", seeds.texts(seeds.NCCL, seeds.HWLOC, seeds.RDMA_TOPO)),
    lenient("probes.readers.fabric:fabric_format", *fabric_texts.EVERY.values()),
    Reader("probes.readers.fabric:read_fabric", seeds.texts(*fabric_texts.EVERY.values()), (), _then("f")),
    *(
        Reader(f"probes.readers.{function}", seeds.texts(fabric_texts.EVERY[name]), (), _then("f"))
        for function, name in (
            ("ibnetdiscover:parse", "ibnetdiscover"),
            ("iblinkinfo:parse", "iblinkinfo"),
            ("ib_lists:parse_ports", "ibnetdiscover -p"),
            ("ibdiagnet_net_dump:parse", "ibdiagnet net_dump"),
            ("ibdiagnet_db_csv:parse", "ibdiagnet db_csv"),
        )
    ),
    Reader("probes.readers.ib_lists:parse_nodes", seeds.texts(fabric_texts.NODES), (), _then("f")),
    lenient("probes.readers.fabric_wiring:numbered_lines", LINES),
    *(
        lenient(
            f"probes.readers.fabric_words:{name}", "MF0;leaf-1:MQM9700/U1", "gpu-7 HCA-1", "4X", "106.25 Gbps", "NDR"
        )
        for name in ("kind_in_name", "lanes", "lid_of", "speed_named", "speed_signalled")
    ),
    Reader(
        "probes.readers.recognize:facts_source",
        seeds.texts(seeds.NCCL, seeds.HWLOC, seeds.RDMA_TOPO),
        (BadSource,),
        lambda read: lambda data: read("input", data),
    ),
    Reader("probes.readers.rdma_topo:parse", seeds.texts(seeds.RDMA_TOPO), (Unparsable,)),
    Reader(
        "probes.readers.xml_tree:parse",
        seeds.texts(seeds.NCCL, smi.XML),
        (Unparsable,),
        lambda read: lambda data: read(data, "system"),
    ),
    Reader("probes.host.tar:is_tar", seeds.archives),
    Reader("probes.host.archive:load", seeds.archives, (BadSource,), _file(), mutations.with_checksums),
    Reader("probes.host.bug_report:bug_report_host", seeds.bug_reports, (BadSource,), _file()),
    Reader("probes.host.source:open_source", seeds.archives, (BadSource,), _file(), mutations.with_checksums),
    Reader("agent.reports:read", seeds.reports, (ReportError,), _file()),
    Reader("agent.reports:is_report", seeds.reports, (), _file()),
    Reader(
        "agent.config:load",
        seeds.texts('[rules]\noff = ["roce-mtu-small"]\n\n[facts]\nroce_mode = "lossy"\n'),
        (ConfigurationError,),
        _file(frozenset(rule.name for rule in every_rule())),
    ),
    Reader(
        "agent.config:load_ship",
        seeds.texts('[ship]\nto = "https://inventory.example/reports"\ntoken_file = "token"\nspool_limit = 1000000\n'),
        (ConfigurationError,),
        _file(),
    ),
)

# What takes a text or bytes and reads nothing of a host: names, paths and questions that are ours.
NOT_READERS = {
    "agent.reports.open_atomically": "a path that we write",
    "probes.catalogue.probe": "a probe's name",
    "probes.dcb_netlink.question": "an interface's name, in a request that we make",
    "probes.ethtool_netlink.unsigned": "an attribute; fuzzed as messages",
    "probes.host.ethtool.ask": "an interface's name",
    "probes.host.ethtool.check": "a request that we made",
    "probes.host.ethtool.check_netlink": "the same",
    "probes.host.folder.not_read": "a path that was opened",
    "probes.host.links.follow": "a path; fuzzed as entries of archives",
    "probes.host.links.locate": "the same",
    "probes.host.links.parent_and_name": "the same",
    "probes.host.memory.absent": "a path that was asked for",
    "probes.host.netlink.same_question": "a request that we made",
    "probes.host.nvml_calls.call": "a function's name",
    "probes.host.nvml_shapes.check_shape": "a function's name; fuzzed as nvml.json, test_evidence.py",
    "probes.host.redact_text.addresses_in": "takes out what looks like an address; every text is one",
    "probes.host.sos.is_of_sos": "a member's name; fuzzed as an archive",
    "probes.host.sos.is_read": "the same",
    "probes.host.sos.sos_host": "an archive that was opened; fuzzed through open_source",
    "probes.host.udev.record_of": "a path that we make",
    "probes.kernel_log_events.address": "an address that a pattern found",
    "probes.locks.take": "a folder of ours",
    "probes.modules.of_interest": "a name that was parsed",
    "probes.readers.fabric_words.guid16": "digits that a pattern found",
    "probes.nccl_words.is_nccl": "a path that was parsed",
    "probes.nccl_words.is_plugin": "the same",
    "probes.netdev.natural": "a sort key; tests/probes/test_netdev.py",
    "probes.pci_draft.has_link_control_2": "a word of ours",
    "probes.pci_tree.address_key": "an address that is_address accepted",
    "probes.pci_tree.bus_of": "the same",
    "probes.pci_tree.neighbour": "the same",
    "probes.pci_tree.places_from_buses": "the same",
    "probes.rdma_words.in_order": "a sort key",
    "probes.rdma_words.is_software": "a name that was parsed",
    "probes.readers.limits.is_gpu": "a class code that was parsed",
    "probes.services.is_oneshot": "a unit's name of ours",
    "agent.reports.replace_file": "writes",
    "agent.reports.write_atomically": "writes",
}
