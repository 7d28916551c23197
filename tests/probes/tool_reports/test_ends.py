"""Both ends of a link, and two sources about one thing: what must agree, and what is healthy beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.sources.host_table import may_have_sides
from probes.text import ParseError
from probes.tool_reports.ends.agree import list_disagreements
from tests.agent.rules.test_fragments import scan_text

_PORT = "leaf3# show run interface e1/7\ninterface Ethernet1/7\n  description n7 ens7np0\n{}\n\n"
_LINK = "root@n7:~# ip link\n4: ens7np0: <BROADCAST,UP,LOWER_UP> mtu {} qdisc mq state UP\n"
_FEC = "[root@n7 ~]# ethtool --show-fec ens7np0\nFEC parameters for ens7np0:\nConfigured FEC encodings: {}\n"
_QOS = "root@n7:~# mlnx_qos -i ens7np0\nPFC configuration:\n\tpriority    0 1 2 3 4 5 6 7\n\tenabled     {}\n"
_VLAN = "n7:~ # ip -d link show ens7np0.{0}\n8: ens7np0.{0}@ens7np0: <UP> mtu 9000\n  vlan protocol 802.1Q id {0} <X>\n"
_PFC_TABLE = (
    "admin@sonic-1:~$ show pfc priority\nInterface    Lossless priorities\n-----------  ----\nEthernet24   {}\n"
)
_STATUS = "tor1# show interfaces status\n  Ethernet24  1,2,3,4  100G  {}  rs  etp7  routed  up  up\n"
_BGP = (
    "spine1# show run bgp\nrouter bgp 65000\n neighbor 10.0.1.1 remote-as 65101\n neighbor 10.0.2.1 remote-as 65102\n"
    "leaf2# show run bgp\nrouter bgp {own}\n neighbor 10.0.2.0 remote-as {other}\n neighbor 10.9.0.0 remote-as 65900\n"
)
_SVI = "nexus-2# show ip interface vlan 8\n  IP address: 10.8.0.1, IP subnet: 10.8.0.0/{}\n\nroot@n7:~# ip -br a\n"
_SLURM = "# slurm.conf\nNodeName=c[1-8] CPUs=64 RealMemory=500000 Gres=gpu:a100:4 State=UNKNOWN\n"
_FOUND = "[root@c2 ~]# slurmd -C\nNodeName=c2 CPUs={} Boards=1 SocketsPerBoard=2 RealMemory={}\nUpTime=1-01:00:00\n"
_GRES = "# gres.conf\nNodeName=c[1-8] Name=gpu Type=a100 {}\n"
_MODULE = "$ cat /proc/driver/nvidia/version\nNVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar\n"
_COUNT = "$ {}\n{}\n"
_SMI, _RUN = "nvidia-smi -L | wc -l", "docker run --rm {} cuda nvidia-smi -L | wc -l"
_SYSCTL = "$ cat /etc/sysctl.d/9.conf\nnet.core.rmem_max = {}\n$ sysctl net.core.rmem_max\nnet.core.rmem_max = 212992\n"
_GRUB = "$ cat /etc/default/grub\nGRUB_CMDLINE_LINUX='{}'\n$ cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz ro iommu=pt\n"
_OPTION = "# cat /etc/modprobe.d/n.conf\noptions nvidia NVreg_DmaRemapPeerMmio={}\n$ cat /proc/driver/nvidia/params\n"
_NETPLAN = (
    "root@n7:~# cat /etc/netplan/1.yaml\n  ethernets:\n    ens7np0:\n      mtu: {}\n      addresses: [10.4.0.{}/24]\n"
    "root@{}:~# ip addr\n4: ens7np0: <UP,LOWER_UP> mtu 9000 qdisc mq\n    inet 10.4.0.7/24 scope global ens7np0\n"
)
_RANKS = "".join(f'{{"device_id": "{n}", "device_ip": "29.1.{n}.9", "rank_id": "{n}"}},\n' for n in range(4))
_NPUS = "# for i in 0 1 2 3; do echo == $i; hccn_tool -i $i -ip -g; done\n"
_FLINT = "[root@n{0} ~]# flint -d m q\nFW Version:            28.{1}.1000\nPSID:                  MT_0000000{2}\n"
_MAP = "leaf1# show run qos\nqos map dscp 24 to traffic-class 3\npriority-flow-control priority 3 no-drop\n"
_TOS = "n1:~ # cma_roce_tos -d mlx5_0\n{}\n"

_PLAN = "wiring plan\nn7 ens7np0 -> leaf3 Ethernet1/7\nn8 ens7np0 -> leaf3 Ethernet1/8\n\n"
_LLDP = "leaf3# show lldp neighbors\nn7  Eth1/{}  120  BR  ens7np0\n"
_NAMES = (
    "[root@n7 ~]# cat /etc/hosts\n127.0.0.1 localhost\n10.4.0.{} n8 n8.lab\n[root@n7 ~]# dig +short n8.lab\n10.4.0.8\n"
)
_GUIDS = "jobs=0x21, ipoib : 0xb83fd20300aa0001=full, 0xb83fd20300aa0002=full;\n"
_KEYS = "n1 0xb83fd20300aa0001 0xffff {0}\nn2 0xb83fd20300aa0002 0xffff {0}\nn3 0xb83fd20300aa0003 0xffff\n"
_ASKED = "$ cat a/gids/0\nfe80:0000:0000:0000:b83f:d203:00aa:0003\n$ cat a/pkeys/0\n0xffff\n0x0000\n"


def npus(third: str) -> str:
    return _NPUS + "".join(f"== {n}\nipaddr:{third if n == 3 else f'29.1.{n}.9'}\n" for n in range(4))


DIFFERING = {
    "MTU, by the description": (_PORT.format("  mtu 1500") + _LINK.format(9000), "ends-differ ens7np0"),
    "MTU in a table": (_STATUS.format(1500) + _LINK.format(4200), "ends-differ ens7np0"),
    "priorities": (_PFC_TABLE.format(4) + _QOS.format("0 0 0 1 0 0 0 0"), "ends-differ ens7np0"),
    "no priority at the host": (_PFC_TABLE.format("3") + _QOS.format("0 0 0 0 0 0 0 0"), "ends-differ ens7np0"),
    "FEC": (_PORT.format("  error-correction encoding fire-code") + _FEC.format("RS"), "ends-differ ens7np0"),
    "a cable in another port": (_PLAN + _LLDP.format(9), "cable-differs ens7np0"),
    "a name in two files": (_NAMES.format(80), "name-differs n8"),
    "no member of a partition": (_GUIDS + _KEYS.format("0x8021"), "partition-differs None"),
    "a partition that the job asks for": (_GUIDS + _ASKED + "UCX_IB_PKEY=0x21\n", "partition-differs None"),
    "speed": (
        _PORT.format("  speed 100g") + "[root@n7 ~]# ethtool ens7np0\n\tSpeed: 200000Mb/s\n", "ends-differ ens7np0"
    ),
    "a VLAN": (_PORT.format("  switchport trunk allowed vlan 10,20-30") + _VLAN.format(40), "ends-differ ens7np0"),
    "an AS": (_BGP.format(own=65120, other=65000), "ends-differ 10.0.2.1"),
    "an AS that is expected": (_BGP.format(own=65102, other=65001), "ends-differ 10.0.2.0"),
    "a mask, the address outside": (_SVI.format(26) + "ens7np0 UP 10.8.0.77/24\n", "ends-differ ens7np0"),
    "a mask": (_SVI.format(26) + "ens7np0 UP 10.8.0.7/24\n", "ends-may-differ ens7np0"),
    "a class of traffic": (_MAP + _TOS.format(104), "ends-may-differ None"),
    "memory of a node": (_SLURM + _FOUND.format(64, 450000), "sources-differ c2"),
    "CPUs of a node": (_SLURM + _FOUND.format(32, 510000), "sources-differ c2"),
    "devices of a node": (_SLURM + _GRES.format("File=/dev/nvidia[0-2]"), "sources-differ c[1-8]"),
    "a count of devices": (_SLURM + _GRES.format("Count=2"), "sources-differ c[1-8]"),
    "a module": (_MODULE + _COUNT.format("modinfo -F version nvidia", "550.90.07"), "sources-differ None"),
    "a library": (_MODULE + "$ ls /usr/lib64\nlibcuda.so.560.35.03\n", "sources-differ None"),
    "GPUs in a container": (
        _COUNT.format(_SMI, 8) + _COUNT.format(_RUN.format("--gpus all"), 7), "sources-differ None"
    ),
    "GPUs on the bus": (
        _COUNT.format(_SMI, 7) + _COUNT.format("lspci | grep -c '3D contr'", 8), "sources-differ None"
    ),
    "a setting": (_SYSCTL.format(268435456), "sources-may-differ net.core.rmem_max"),
    "an option": (_OPTION.format(1) + "DmaRemapPeerMmio: 0\n", "sources-may-differ DmaRemapPeerMmio"),
    "the command line": (_GRUB.format("iommu=pt pci=realloc"), "sources-may-differ None"),
    "the MTU of a file": (_NETPLAN.format(1500, 7, "n7"), "sources-may-differ ens7np0"),
    "the address of a file": (_NETPLAN.format(9000, 70, "n7"), "sources-differ ens7np0"),
    "a rank table": (_RANKS + npus("29.1.3.90"), "sources-differ 3"),
    "firmware": (_FLINT.format(1, 41, 838) + _FLINT.format(2, 36, 838), "sources-may-differ MT_0000000838"),
    "a rank twice": (_RANKS.replace('rank_id": "3', 'rank_id": "2'), "number-twice None"),
    "GPUs that a node finds": (
        "NodeName=gn[1-3,7] CPUs=8 Gres=gpu:h100:8(S:0-1)\nNodeName=gn7 CPUs=8 SocketsPerBoard=1 Gres=gpu:h100:7\n",
        "sources-differ gn7",
    ),
    "a rank of two commands": (
        "".join(f"h{n}$ torchrun --nnodes 8 --node_rank {1 if n == 3 else n - 1} a.py\n" for n in range(1, 9)),
        "number-twice h3",
    ),
    "an address twice": (
        "".join(f"| n{n} | 10.2.0.{n} | 10.3.0.{n - (n == 14)} |\n" for n in range(11, 17)), "number-twice n14"
    ),
}  # fmt: skip
AGREEING = {
    "a larger MTU at the switch": _PORT.format("  mtu 9216") + _LINK.format(9000),
    "another port": _PORT.format("  mtu 1500").replace("ens7np0", "ens9np0") + _LINK.format(9000),
    "automatic FEC": _PORT.format("  error-correction encoding reed-solomon") + _FEC.format("Auto"),
    "the same priorities": _PFC_TABLE.format("3,4") + _QOS.format("0 0 0 1 1 0 0 0"),
    "a VLAN of the trunk": _PORT.format("  switchport trunk allowed vlan 10,20-30") + _VLAN.format(25),
    "neighbors": _BGP.format(own=65102, other=65000),
    "one network": _SVI.format(24) + "ens7np0 UP 10.8.0.77/24\n",
    "a class without loss": _MAP + _TOS.format(96),
    "a node with more memory": _SLURM + _FOUND.format(64, 515000) + _GRES.format("File=/dev/nvidia[0-3]"),
    "shards beside GPUs": (_SLURM + _GRES.format("File=/dev/nvidia[0-3]")).replace("a100:4", "a100:4,shard:16"),
    "cables as planned": _PLAN + _LLDP.format(7),
    "a cable of another host": _PLAN.replace("n8", "n9") + _LLDP.format(8).replace("n7", "n8"),
    "one address": _NAMES.format(8),
    "a name in another network": _NAMES.replace("10.4.0.{}", "10.5.0.8"),
    "partitions that no port has": _GUIDS + _KEYS.format(""),
    "a port outside a partition": _GUIDS + _ASKED,
    "one version": _MODULE + _COUNT.format("modinfo -F version nvidia", "550.54.15"),
    "chosen GPUs": _COUNT.format(_SMI, 8) + _COUNT.format(_RUN.format("--gpus 4"), 4),
    "NVSwitches on the bus": _COUNT.format(_SMI, 8) + _COUNT.format("lspci -d 10de: | grep -c NVIDIA", 12),
    "a setting in force": _SYSCTL.format(212992),
    "the command line in force": _GRUB.format("quiet iommu=pt"),
    "a file in force": _NETPLAN.format(9000, 7, "n7"),
    "the file of another host": _NETPLAN.format(9000, 8, "n8"),
    "a rank table": _RANKS + npus("29.1.3.9"),
    "cards of two kinds": _FLINT.format(1, 41, 838) + _FLINT.format(2, 36, 359),
    "a gateway": "".join(f"| n{n} | 10.2.0.{n} | 10.2.0.254 |\n" for n in range(11, 17)),
    "GPUs in turn": "".join(f"rank {n} -> gpu {n % 4}\n" for n in range(8)),
    "a log of retries": "".join(f"12:00:0{n} n{n} 10.0.0.{n - (n == 4)} alive\n" for n in range(1, 6)),
}


@pytest.mark.parametrize("name", DIFFERING)
def test_two_sides_that_must_agree_are_compared(name: str, tmp_path: Path) -> None:
    text, expected = DIFFERING[name]
    reports = list_disagreements(text)
    assert [f"{report.code} {report.subject}" for report in reports] == [expected]
    assert may_have_sides(text)
    what = reports[0].detail[0][1]
    assert any(what in finding.summary for finding in scan_text(tmp_path, text, "issue.txt").findings)


@pytest.mark.parametrize("name", AGREEING)
def test_what_fits_or_cannot_be_joined_is_none(name: str) -> None:
    with pytest.raises(ParseError):
        list_disagreements(AGREEING[name])
