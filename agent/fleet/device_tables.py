"""The tables of PCI functions and their links, GPUs, NICs, ports, interfaces and switches; see tables.py."""

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


NIC = Table(
    "nic",
    "Network functions that have, or could have, an RDMA device.",
    ("id",),
    columns("""
id text
label text
rail int 0 for the first rail in PCI order; null: no rail
role text
model text
board_id text
firmware text
driver text
rdma_device text
node_guid text
system_image_guid text
numa_node int
virtual_function bool
state text
"""),
)
PORT = Table(
    "port",
    "RDMA ports.",
    ("nic", "port"),
    columns("""
nic text id of the NIC
label text of the NIC
port int
rail int
link_layer text
state text
phys_state text
rate_gbit_s float
width text
speed text
lid int
sm_lid int
port_guid text
active_mtu int
gid_types text types of its GIDs, sorted, comma between
netdev text the first of its interfaces
neighbor_guid text the node at the far end, by a fabric file of that host
neighbor_name text
neighbor_port int
subnet text InfiniBand: prefix of its first GID, 16 hex digits; fe80000000000000 is what a subnet has by default
role text of the NIC
virtual_function bool of the NIC
roce_gid_index int of the first RoCE v2 GID of an IPv4 address, else of one that can be routed; null: none
"""),
)
NETDEV = Table(
    "netdev",
    "Network interfaces.",
    ("id",),
    columns("""
id text
label text
nic text
rail int
mac text
operstate text
speed_gbit_s float
mtu int
driver text
master text
fec text
pause_rx bool
pause_tx bool
trust text
pfc text a digit a priority: 00010000; null: not known
dscp_prio text 26:3, sorted, blank between; null: not known
tc_bandwidth text
ecn text np:00010000 rp:00010000; null: not known
module_vendor text
module_part text
module_serial text
neighbor_system text by LLDP
neighbor_chassis text
neighbor_port text
prio_tc text traffic class of each priority: 0 0 0 3 0 0 0 0; null: not known
cnp_dscp int of congestion notification packets
cnp_priority int
"""),
)
PORT_COUNTER = Table(
    "port_counter",
    "Cumulative counters of RDMA ports. History: of each day (UTC) the first report's.",
    ("nic", "port"),
    columns("""
nic text id of the NIC
label text of the NIC
port int
rail int
link_downed int~ null: the port has no such counter
link_error_recovery int~
symbol_error int~
local_link_integrity_errors int~
port_rcv_errors int~
port_xmit_discards int~
port_xmit_wait int~
port_rcv_data int~ 4 bytes each
port_xmit_data int~ 4 bytes each
out_of_sequence int~
packet_seq_err int~
local_ack_timeout_err int~
out_of_buffer int~
np_cnp_sent int~
rp_cnp_handled int~
"""),
)
PORT_COUNTERS = tuple(column.name for column in PORT_COUNTER.own[4:])
ADDRESS = Table(
    "address",
    "IP addresses.",
    ("netdev", "address"),
    columns("""
netdev text id of the interface
label text
address text with its prefix length
"""),
)


SWITCH = Table(
    "switch",
    "Switches whose saved outputs were stored.",
    (),
    columns("""
observed_at time~ when the outputs were saved: the date in them, else the time of the newest file
name text
nos text
chassis text
model text
version text
role text
roce_mode text where the switch declares one: lossless, lossy, ..
trimming bool packets are trimmed in place of being dropped
watchdog_poll_ms int
headroom_pool_bytes int shared by all ports
configuration bool~ the outputs have all of its configuration
ports int that the outputs state
dscp int~ of the RDMA packets that its hops were judged for
outputs int~ files that were read
"""),
)
SWITCH_PORT = Table(
    "switch_port",
    "Ports of switches, as saved outputs state them.",
    ("port",),
    columns("""
switch text
port text
alias text
description text~
oper text up, down
admin text
speed_gbit_s float
mtu int of IP packets
fec_set text
fec_active text
neighbor_name text
neighbor_port text
neighbor_chassis text
trust text dscp, pcp, both, none
dscp_prio text as in table netdev: "26:3 48:6"
dscp_queue text
pfc text as in table netdev: one digit per priority, "00010000" is priority 3
pfc_active text that the port uses, where pfc is what is set
pfc_asymmetric bool
pause text 802.3x: on, off
pfc_wd text PFC watchdog: on, off
wd_action text drop, forward, alert, ..
wd_detect_ms int
wd_state text~ of queues that the watchdog has stopped or watches: "3:stormed"
ecn text of each queue that has it: "3:150000-1500000@100", bytes and percent
queue_sched text "0:40 3:60 6:strict"
headroom text ingress buffer of each priority: "3:19456+660480", size and XOFF in bytes
headroom_shared bool the headroom is a pool of the switch
cable_metres_assumed int
link_retry bool
pre_fec_ber float~
peer_group text~ ports that it is compared with on other switches: what it leads to, speed, assumed cable length
"""),
)
HOP = Table(
    "hop",
    "Hops of RoCE traffic, judged: a row at one of the two switches of a trunk, at the switch of a host's cable.",
    ("port", "far_node", "far_port"),
    columns("""
switch text
port text
far_kind text host, switch, unknown: no report and no output of it
far_node text
far_port text
rail int of a host's end
verdict text proved, set, trimmed, unknown, lossy
reason text~ why the verdict is no better
settle text~ what would decide it
told_by text~ whose LLDP names it: a (the host, or the first switch by name), b, both, plan
priority int of the DSCP at this end
far_priority int
pfc text~ at this end
far_pfc text~
metres_plan float
metres_module float~
findings text~ rules, blank between
"""),
)
