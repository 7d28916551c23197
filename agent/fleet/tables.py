"""The tables of a dataset: its interface, `fabricscope.dataset/1`. Columns are added, never renamed or removed.

Every table has the column `node` first: the host name that the report gives (its machine id, where that is no name),
with the cluster's name and a slash before it where ingest was given one. Those of devices and checks have the node's
`hardware_class` last: most questions ask within a class, and a join would be most of their cost. Null is unknown.
"""

from __future__ import annotations

from agent.fleet.device_tables import ADDRESS as ADDRESS
from agent.fleet.device_tables import GPU as GPU
from agent.fleet.device_tables import HOP as HOP
from agent.fleet.device_tables import LINK as LINK
from agent.fleet.device_tables import NETDEV as NETDEV
from agent.fleet.device_tables import NIC as NIC
from agent.fleet.device_tables import NVLINK as NVLINK
from agent.fleet.device_tables import PCI as PCI
from agent.fleet.device_tables import PORT as PORT
from agent.fleet.device_tables import PORT_COUNTER as PORT_COUNTER
from agent.fleet.device_tables import SWITCH as SWITCH
from agent.fleet.device_tables import SWITCH_PORT as SWITCH_PORT
from agent.fleet.table import BOOL as BOOL
from agent.fleet.table import CLASS as CLASS
from agent.fleet.table import FLOAT as FLOAT
from agent.fleet.table import INT as INT
from agent.fleet.table import TEXT as TEXT
from agent.fleet.table import TIME as TIME
from agent.fleet.table import Column as Column
from agent.fleet.table import Table as Table
from agent.fleet.table import columns as _columns

FORMAT = "fabricscope.dataset/1"
LONGEST_SECONDS = 1e9  # that a probe can have taken: thirty years

HOST = Table(
    "host",
    "One row a node.",
    (),
    _columns(
        """
observed_at time~ when the host was looked at; of a clock that is ahead the time of arrival
generated_at time~ when the report was written
cluster text the value of --cluster
hostname text
machine_id text
boot_id text~
serial text
vendor text
product text
chassis_serial text of the rack or chassis, where the product has it
chassis_slot text
chassis_tray text
hardware_class text nodes that should be alike: vendor, product, GPUs, rails
profile text the platform that the node was recognized as
bios text
kernel text
os text
arch text
cmdline text of the kernel
cmdline_common text~ without the words that are each node's own: disks, images, addresses
cpu text
sockets int
numa_nodes int
memory_mib int
virtualization text null: none, or not known
container text
driver text GPU driver's version
driver_open bool open kernel modules
cuda text
rdma_stack text inbox, ofed, unknown
rdma_stack_version text
nccl text versions of the libraries that are installed, sorted
settings text NCCL and kin that hold for the whole system: KEY=VALUE, sorted, blank between
services text NAME=STATE, sorted, blank between
gpus int
rails int
nics int
identities int~ its rows of table identity; null: ingested before there was that table
verdict text ok, warning, error, critical, unknown, nothing_to_check
critical int findings of that severity
error int
warning int
info int
unknown_rules int~ rules that could not be judged
uptime_seconds float~
duration_seconds float~
source text live, capture, tree, ..
schema_minor int
generator text version that wrote the report
report text~ first 32 hex digits of the report's SHA-256
received_at time~ when the report arrived: time of its file or archive member; of lines the node's own time
clock_skew_seconds float~ the node's clock minus the time of arrival; negative: behind, or sent late; null: not known
threads_per_core int more than 1: SMT is on
numa_memory_gib text memory of each NUMA node, in the order of their numbers, blank between; null: not known of all
pci_digest int~ of its rows of table pci, as far as questions compare them; 0: none; null: ingested before
link_digest int~ of table link
gpu_digest int~ of table gpu
nic_digest int~ of table nic
port_digest int~ of table port
netdev_digest int~ of table netdev
check_digest int~ of table check
shared_memory_mib int size of /dev/shm
limits text of locked memory, of services and users: NAME=BYTES, sorted, semicolon between; null: none is known
process_limits text~ the same of processes that used RDMA
gpu_models text "H100 SXM5 80GB"; of several models how many of which: "7x H100 SXM5 80GB, 1x H200 SXM"; null: no GPU
window_seconds float~ between the two samples of its counters that were compared; null: there is one sample
part_settings text what all GPUs, NPU ports or interfaces of rails have alike: KIND.FIELD=VALUE, sorted, blank between
""",
        of=None,
    ),
)
PATH = Table(
    "path",
    "How two devices reach each other.",
    ("a", "b"),
    _columns("""
a text
b text
a_kind text gpu, nic
b_kind text
kind text
pcie_kind text
bandwidth_gbyte_s float~
limiting text~
"""),
)
FINDING = Table(
    "finding",
    "What is wrong; also what is silenced, which no question counts.",
    ("rule", "subject", "fingerprint"),
    _columns("""
rule text
severity text
subject text
label text
summary text~
impact text~
remedy text~
evidence text~ JSON: what, value, source
confidence text
fingerprint text
cost_collective text~ what it slows, by the model of recommend; null: no figure
cost_nodes int~ of the job that it slows most
cost_gbyte_s float~ bus bandwidth that is lost
cost_percent float~ of what the node without it reaches
part text~ the physical part: "SXM module 4", "PCIe card in slot 21"
part_serial text~ its serial number
devices text~ ids of those that a finding of the whole node is about, with a blank between; null: the subject names it
silenced bool the operator of the node acknowledged it: it counts nowhere; null: it counts
silenced_reason text~ the operator's
silenced_until text~ last day of it, as the report has it
fleet_window text~ made by the fleet from two reports: their times, "FROM to UNTIL"; null: the node's own report has it
"""),
)
CHECK = Table(
    "check",
    "Every rule's answer.",
    ("rule",),
    _columns("""
rule text
state text fail, unknown, pass, not_applicable, disabled
passed int~
failed int~
unknown int~
not_applicable int~
reason text~
"""),
    history=False,  # of what cannot be judged now and can in an hour there is much; findings are kept
)
PROBE = Table(
    "probe",
    "How every probe ended.",
    ("name",),
    _columns("""
name text
status text
reason text~
duration_seconds float~
hung bool
"""),
)
EVENT = Table(
    "event",
    "Lines of the kernel's log and of services since boot, equal ones once: Xids, AER, links, firmware.",
    ("number",),
    _columns("""
number int~ its place among the node's events
kind text xid, sxid, aer, dpc, link_down, mlx5, service, ..
subject text PCI address or name of an interface; null: none is named
code text number of the Xid, word of the message
text text~ the last of them
source text
count int~
first_at time null: the log has no date
last_at time
logged text~ what the log has in place of a date
boot text null: this boot; "-1": the one before, "earlier": one of those before
times text~ when a link went down or came up: the last 32, blank between
"""),
)
COUNTER = Table(
    "counter",
    "Cumulative counters that are not zero; a counter that is missing from a table that was read is zero.",
    ("subject", "name"),
    _columns("""
subject text port:ID/1, pci:ID, ..
name text
value int~
"""),
    history=False,
)
RATE = Table(
    "rate",
    "Error counters that grew between the two samples of a node; one that is missing did not, where host has a window.",
    ("subject", "name"),
    _columns("""
subject text port:ID/1, pci:ID, ..
name text
label text
place text what it is compared with on other nodes: "rail 3", else the subject
grown int~
seconds float~ between the two samples
"""),
    history=False,
)
IDENTITY = Table(
    "identity",
    "A number of each GUID, MAC address, serial number, id and IP address: where two nodes have one, look closer.",
    ("number",),
    _columns(
        """
number int of a MAC address and of a GUID made of it the same; else of a digest
""",
        of=None,
    ),
    history=False,
)
CHANGE = Table(
    "change",
    "In history only: when a table's rows of a node became what they are. Rows of that moment are in that table.",
    ("table", "observed_at"),
    _columns(
        """
table text
observed_at time
digest text of the rows, without what is volatile
rows int 0: it has none since then
""",
        of=None,
    ),
)
SIGHTING = Table(
    "sighting",
    "In history only: every report that counts. Two of one node and moment: the one that was generated last.",
    ("observed_at",),
    _columns(
        """
observed_at time
generated_at time
report text first 16 hex digits of the report's SHA-256
""",
        of=None,
    ),
)
TABLES = {
    table.name: table
    for table in (
        HOST,
        PCI,
        LINK,
        GPU,
        NVLINK,
        NIC,
        PORT,
        NETDEV,
        ADDRESS,
        PATH,
        FINDING,
        CHECK,
        PROBE,
        COUNTER,
        IDENTITY,
        PORT_COUNTER,
        EVENT,
        RATE,
        SWITCH,
        SWITCH_PORT,
        HOP,
    )
}
HISTORY = {table.name: table for table in (*(table for table in TABLES.values() if table.history), CHANGE, SIGHTING)}
MOMENT = Column("observed_at", TIME)  # of a row of history: since then the rows of this node have been so
# Nodes whose rows of a table are equal as far as questions compare them: a digest of these is a column of table host,
# and one node of each digest is read in place of all. A column that a question compares by digest must be listed here;
# a digest that an earlier version wrote from other columns only makes nodes differ that are alike.
COMPARED: dict[str, tuple[str, ...]] = {
    "pci": (
        *("id", "class", "physical_function", "acs"),
        *("max_payload_bytes", "max_read_request_bytes", "relaxed_ordering"),
    ),
    "link": ("id", "kind", "bandwidth_gbyte_s", "quality", "conclusive_speed_gt_s", "conclusive_width"),
    "gpu": (
        *("id", "label", "name", "pci", "numa_node", "vbios", "memory_mib", "bar1_mib", "mig", "driver_state"),
        *("nvlinks", "nvlinks_active", "fabric_state", "fabric_status", "clique", "cluster_uuid", "recovery_action"),
    ),
    "nic": ("id", "label", "rail", "role", "model", "board_id", "firmware", "driver", "numa_node", "state"),
    "port": (
        *("nic", "label", "port", "rail", "link_layer", "state", "phys_state", "rate_gbit_s", "width", "speed"),
        *("active_mtu", "gid_types", "roce_gid_index"),
    ),
    "netdev": (
        *("id", "label", "nic", "rail", "speed_gbit_s", "mtu", "fec", "pause_rx", "pause_tx", "trust", "pfc"),
        *("dscp_prio", "prio_tc", "tc_bandwidth", "ecn", "cnp_dscp", "cnp_priority"),
    ),
    "check": ("rule", "state", "reason"),
}


def history_columns(table: Table) -> tuple[Column, ...]:
    """Columns of a table in history: the moment is after the node, where the table has none of its own."""
    if any(column.name == MOMENT.name for column in table.columns):
        return table.columns
    return (table.columns[0], MOMENT, *table.columns[1:])


def digest_column(table: str) -> str:
    """The column of table host that has the digests of a table's rows."""
    return f"{table}_digest"
