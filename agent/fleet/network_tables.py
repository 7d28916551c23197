"""The tables of NICs, ports and interfaces; see tables.py."""

from __future__ import annotations

from agent.fleet.table import Table, columns

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
