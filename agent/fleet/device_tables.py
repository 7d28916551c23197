"""The tables of PCI functions, their links, GPUs and NVLinks; see tables.py."""

from __future__ import annotations

from agent.fleet.table import Table, columns, columns_of
from agent.model.pci import PciFunction

PCI = Table(
    "pci",
    "PCI functions.",
    ("id",),
    columns_of(PciFunction, after={"power_state": "serial"}),
)
LINK = Table(
    "link",
    "PCIe links, by the function at their lower end.",
    ("id",),
    columns("""
id text
parent text the port above
kind text gpu, nic, nvswitch, switch, other: what is at the lower end
speed_gt_s float~
width int~
max_speed_gt_s float
max_width int
bandwidth_gbyte_s float~
quality text~ conclusive, idle, untrusted, asleep, unreadable
conclusive_speed_gt_s float~ speed where the quality is conclusive
conclusive_width int~ width where the quality is conclusive
below text what it has less than the device could, where that is certain: "x8 of x16", "16 of 32 GT/s"
"""),
)
GPU = Table(
    "gpu",
    "GPUs.",
    ("id",),
    columns("""
id text
label text
index int
uuid text
serial text
name text
vendor text
pci text
numa_node int
module_id int
vbios text
memory_mib int
bar1_mib int
mig bool
driver_state text
nvlinks int null: not known
nvlinks_active int active or asleep; null: not known
fabric_state text
fabric_status text
clique int
cluster_uuid text
recovery_action text
pstate text~
"""),
)
NVLINK = Table(
    "nvlink",
    "Links of GPUs: NVLink, XGMI, HCCS.",
    ("gpu", "link"),
    columns("""
gpu text id of the GPU
link int
protocol text
state text~
version text
signal_gbyte_s float
remote_kind text
remote_id text
remote_link int
up bool active or asleep
"""),
)
