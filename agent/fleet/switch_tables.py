"""The tables of switches, their ports and the hops between ports; see tables.py.

Rows come from saved outputs of switches (`fleet lossless --store`), not from reports. Their `node` is the switch's name
behind "switch:", which no host can have, and their `hardware_class` the switches that it is compared with.
"""

from __future__ import annotations

from agent.fleet.table import Table, columns

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
