"""Logs of services: each sentence with a line that it is and one that it is not, states, dates, and healthy texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pytest

from probes.host.interface import Absent
from probes.kernel.log_facts import LogEvent
from probes.kernel.sentence import Sentence
from probes.kernel.unexplained import UNEXPLAINED
from probes.services import probe as services
from probes.services.logs import ServiceLogs, list_lines, read_logs
from probes.services.sentences import SERVICE_SENTENCES
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles
from probes.sources.tree import TreeHost

FM, HOST = "nvidia-fabricmanager", "Feb 03 10:11:12 gpu7"
STATUS = """\
× nvidia-fabricmanager.service - NVIDIA fabric manager service
     Loaded: loaded (/usr/lib/systemd/system/nvidia-fabricmanager.service; enabled; preset: enabled)
     Active: failed (Result: exit-code) since Tue 2026-02-03 10:11:12 UTC; 4min ago
    Process: 2211 ExecStart=/usr/bin/nvidia-fabricmanager-start.sh (code=exited, status=1/FAILURE)
        CPU: 41ms

Feb 03 10:11:12 gpu7 nv-fabricmanager[2213]: fabric manager config file item: BIND_INTERFACE_IP has an invalid value
Feb 03 10:11:12 gpu7 systemd[1]: nvidia-fabricmanager.service: Failed with result 'exit-code'.
"""
JOURNAL = """\
Feb 03 10:11:11 gpu7 systemd[1]: Starting NVIDIA fabric manager service...
Feb 03 10:11:12 gpu7 nv-fabricmanager[2213]: fabric manager NVIDIA GPU driver interface version 570.124.06 don't match \
with driver version 570.86.15. Please update with matching NVIDIA driver package.
Feb 03 10:11:12 gpu7 systemd[1]: nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE
Feb 03 10:11:12 gpu7 systemd[1]: Failed to start NVIDIA fabric manager service.
"""
HEALTHY = """\
● nvidia-fabricmanager.service - NVIDIA fabric manager service
     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled; vendor preset: enabled)
     Active: active (running) since Mon 2026-02-02 08:00:09 UTC; 3 days ago
   Main PID: 2411 (nv-fabricmanage)
     CGroup: /system.slice/nvidia-fabricmanager.service
             └─2411 /usr/bin/nv-fabricmanager -c /usr/share/nvidia/nvswitch/fabricmanager.cfg

Feb 02 08:00:01 gpu7 systemd[1]: Starting NVIDIA fabric manager service...
Feb 02 08:00:01 gpu7 nvidia-fabricmanager-start.sh[2403]: Detected Pre-NVL5 system
Feb 02 08:00:09 gpu7 nv-fabricmanager[2411]: Connected to 1 node.
Feb 02 08:00:09 gpu7 nv-fabricmanager[2411]: Successfully configured all the available NVSwitches to route GPU NVLink \
traffic.
Feb 02 08:00:09 gpu7 systemd[1]: Started NVIDIA fabric manager service.
"""
HEALTHY_JOURNALS = """\
-- Boot 0123456789abcdef0123456789abcdef --
Feb 02 08:00:00 gpu7 systemd[1]: Starting NVIDIA Persistence Daemon...
Feb 02 08:00:00 gpu7 nvidia-persistenced[1801]: Verbose syslog connection opened
Feb 02 08:00:00 gpu7 nvidia-persistenced[1801]: Started (1801)
Feb 02 08:00:00 gpu7 nvidia-persistenced[1801]: device 0000:19:00.0 - registered
Feb 02 08:00:00 gpu7 systemd[1]: Started NVIDIA Persistence Daemon.
Feb 02 08:00:01 gpu7 systemd[1]: Starting openibd - configure Mellanox devices...
Feb 02 08:00:03 gpu7 openibd[1902]: Loading HCA driver and Access Layer:[  OK  ]
Feb 02 08:00:03 gpu7 systemd[1]: Finished openibd - configure Mellanox devices.
Feb 02 08:00:04 gpu7 OpenSM[2004]: Entering DISCOVERING state
Feb 02 08:00:04 gpu7 OpenSM[2004]: SM port is down
Feb 02 08:00:05 gpu7 OpenSM[2004]: SM port is up
Feb 02 08:00:05 gpu7 OpenSM[2004]: Entering MASTER state
Feb 02 08:00:05 gpu7 OpenSM[2004]: Errors during initialization
Feb 02 08:00:07 gpu7 OpenSM[2004]: SUBNET UP
Feb 02 08:00:08 gpu7 rshim[2100]: rshim0 attached
Feb 02 08:00:08 gpu7 /usr/sbin/irqbalance[1402]: Cannot change IRQ 71 affinity: Input/output error
Feb 02 08:00:09 gpu7 nv-hostengine[2301]: DCGM initialized
Feb 02 08:00:09 gpu7 systemd[1]: Started NVIDIA DCGM service.
"""
HEALTHY_LOG = """\
[Feb 02 2026 08:00:02] [INFO] [tid 2411] Fabric Manager version 570.86.15 is running with the following configuration \
options
[Feb 02 2026 08:00:09] [INFO] [tid 2411] Successfully configured all the available NVSwitches to route GPU NVLink\
 traffic.
[Feb 02 2026 09:30:11] [INFO] [tid 2499] multicast group 0 is allocated.
[Feb 02 2026 09:30:11] [INFO] [tid 2499] successfully setup multicast team for request id 8331980469606044544.
"""


class Sample(NamedTuple):
    """One line per row of the table, in its order; `unlike` has the row's literal, and is another thing."""

    code: str
    line: str
    unlike: str


SAMPLES = (
    Sample("fm-version", "fabric manager NVIDIA GPU driver interface version 570.1.2 doesn't match with driver version "
           "570.3.4.", "fabric manager NVIDIA GPU driver interface version 570.1.2 is in use"),
    Sample("fm-config", "fabric manager config file item: FABRIC_MODE has an invalid value",
           "fabric manager config file item: FABRIC_MODE is 0"),
    Sample("no-umad", 'Kernel module "ib_umad" has not been loaded, fabric manager cannot be started',
           'Kernel module "ib_umad" is loaded'),
    Sample("umad-missing", "ibwarn: [15] umad_init: can't read ABI version from /sys/class/infiniband_mad/abi_version "
           "(No such file or directory): is ib_umad module loaded?", "ABI version of ib_umad is 5"),
    Sample("no-umad", "Feb 03 10:11:12 000123 [7F2A1740] 0x01 -> osm_vendor_get_all: ERR 5415: Error opening UMAD",
           "opening UMAD device 0"),
    Sample("fm-no-switch", "request to query NVSwitch device information from NVSwitch driver failed with "
           "error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]", "ioctl returned NV_WARN_NOTHING_TO_DO"),
    Sample("fm-topology", "detected number of NVSwitches don't match with any supported system topology, aborting "
           "fabric manager", "no file for any supported system topology was read"),
    Sample("switch-fatal", "detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 "
           "physical id 3 port 33", "no NVSwitch fatal error was seen"),
    Sample("switch-error", "detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 "
           "physical id 3 port 61", "counting each NVSwitch non-fatal error"),
    Sample("multicast", "failed to find the GPU handle 5410063385821516767 in the multicast team request setup 6130.",
           "found the GPU handle 1 in the multicast team request setup 2"),
    Sample("pre-nvl5", "Detected Pre-NVL5 system", "Detected Pre-NVL5 or later"),
    Sample("imex-memory", "[Feb 03 2026 10:11:12] [ERROR] [tid 77] Failed to get new memory reference with rc: 87",
           "[Feb 03 2026 10:11:12] [INFO] [tid 77] new memory reference for node 1"),
    Sample("imex-address", "[Mar 26 2025 16:41:27] [ERROR] [tid 40] No matching network interface found for any IP "
           "addresses in the node configuration file /etc/nvidia-imex/nodes_config.cfg.",
           "[Mar 26 2025 16:41:27] [INFO] [tid 40] No matching network interface is excluded"),
    Sample("sm-second", "Perhaps another instance of OpenSM is already running", "another instance of OpenSM ended"),
    Sample("sm-no-ports", "No local ports detected!", "No local ports are excluded"),
    Sample("sm-port-down", f"{HOST} OpenSM[9]: SM port is down", f"{HOST} OpenSM[9]: NOSM port is downstream"),
    Sample("sm-errors", f"{HOST} OpenSM[9]: Errors during initialization",
           f"{HOST} OpenSM[9]: Terrors during initializations"),
    Sample("sm-key", f"{HOST} OpenSM[9]: Found remote SM (LID 4) with non-matching sm_key",
           f"{HOST} OpenSM[9]: remote SM with non-matching sm_key is allowed"),
    Sample("sm-duplicate-guid", f"{HOST} OpenSM[9]: ERR 0D01: Found duplicated node.",
           f"{HOST} OpenSM[9]: Found duplicated nodes"),
    Sample("sm-duplicate-guid", f"{HOST} OpenSM[9]: FATAL: duplicated guids or 12x lane reversal",
           f"{HOST} OpenSM[9]: no duplicated guids"),
    Sample("sm-duplicate-guid", f"{HOST} OpenSM[9]: ERR 0D15: Duplicate Port GUID 0x2c9030000! Found by the two",
           f"{HOST} OpenSM[9]: no Duplicate Port GUID"),
    Sample("sm-port-closed", f"{HOST} OpenSM[9]: osm_vendor_bind: ERR 5424: Unable to open port 0x2c9030000",
           f"{HOST} OpenSM[9]: never Unable to open port"),
    Sample("sm-port-unknown", f"{HOST} OpenSM[9]: state_mgr: ERR 3309: SM port with GUID:b83fd2030a1b2c3d is unknown",
           f"{HOST} OpenSM[9]: what listens there is unknown"),
    Sample("sm-routing", f"{HOST} OpenSM[9]: Failed to setup routing engine 'ar_updn'",
           f"{HOST} OpenSM[9]: never Failed to setup routing engine"),
    Sample("sm-routing", f"{HOST} OpenSM[9]: Fabric topology is not fat-tree - falling back to default routing",
           f"{HOST} OpenSM[9]: not falling back to default routing"),
    Sample("sm-port-removed", f"{HOST} OpenSM[9]: drop_mgr_remove_port: Removed port with GUID:0xb83fd2030a1b2c3d LID "
           "range [41, 41] of node:n7 mlx5_4", f"{HOST} OpenSM[9]: no Removed port with GUID"),
    Sample("sm-link-lost", f"{HOST} OpenSM[9]: osm_pi_rcv: Switch 0xb83fd2030a1b2c3d leaf2 port 21(n7 mlx5_4) changed "
           "state from ACTIVE to DOWN", f"{HOST} OpenSM[9]: Switch 0xb83fd2030a1b2c3d leaf2 port 21(n7 mlx5_4) changed "
           "state from INIT to ACTIVE"),
    Sample("sm-bad-key", f"{HOST} OpenSM[9]: log_trap_info: Bad P_Key:0x8012 on SL:0 from LID1:41 QP1:0x12",
           f"{HOST} OpenSM[9]: port has P_Key:0x8012"),
    Sample("sm-partition-full", f"{HOST} OpenSM[9]: ERR 0512: Failed to set PKey 0x8012 because Pkey table is full for "
           "node 0x2c9 port 1", f"{HOST} OpenSM[9]: no Pkey table is full"),
    Sample("numa-memory", f"{HOST} nvidia-persistenced[9]: device 0009:01:00.0 - NUMA: Changing node2 state to online "
           "failed", f"{HOST} nvidia-persistenced[9]: device 0009:01:00.0 - NUMA: Memory onlining completed!"),
    Sample("no-devices", f"{HOST} nvidia-persistenced[9]: Failed to query NVIDIA devices. Please ensure that the "
           "NVIDIA device files (/dev/nvidia*) exist", f"{HOST} nvidia-persistenced[9]: 8 NVIDIA devices"),
    Sample("library-missing", f"{HOST} nvidia-persistenced[9]: Failed to open libnvidia-cfg.so.1: cannot open shared "
           "object file", f"{HOST} nvidia-persistenced[9]: opened libnvidia-cfg.so.1"),
    Sample("nvml-failed", "2026-02-03 10:11:12.507 ERROR [76:76] Cannot initialize the hostengine: Error: Failed to "
           "initialize NVML [DcgmHostEngineHandler.cpp:3647]", "2026-02-03 10:11:12.507 INFO [76:76] initialize NVML"),
    Sample("dcgm-failed", "Err: Failed to start DCGM Server: -7", "ready to start DCGM Server"),
    Sample("dcgm-failed", "Error: DCGM engine failed to initialize", "DCGM engine is initialized"),
    Sample("dcgm-second", "Host engine already running with pid 4711", "nv-hostengine is already running with pid"),
    Sample("ofed-load", f"{HOST} openibd[9]: Failed loading kernel module mlx5_ib:[FAILED]",
           f"{HOST} openibd[9]: Failed loading kernel module: none"),
    Sample("ofed-modules", "Module rdma_cm belong to kernel which is not a part of MLNX_OFED, skipping...",
           "modules that belong to kernel 6.8"),
    Sample("rshim-lockdown", f"{HOST} rshim[9]: Need to enable IOMMU/VFIO for kernel lock-down",
           f"{HOST} rshim[9]: no kernel lock-down"),
    Sample("rshim-unreadable", f"{HOST} rshim[9]: rshim0 unable to read from rshim",
           f"{HOST} rshim[9]: read from rshim0"),
    Sample("rshim-unreadable", f"{HOST} rshim[9]: rshim0 failed to map RShim registers",
           f"{HOST} rshim[9]: map RShim registers"),
    Sample("rshim-taken", f"{HOST} rshim[9]: another backend already attached",
           f"{HOST} rshim[9]: another backend left"),
    Sample("vgpu-versions", f"{HOST} nvidia-vgpu-mgr[9]: error: vmiop_log: (0x0): Incompatible Guest/Host drivers: "
           "Guest VGPU version is newer than the maximum version supported by the Host. Disabling vGPU.",
           f"{HOST} nvidia-vgpu-mgr[9]: notice: vmiop_log: Guest/Host drivers are compatible"),
    Sample("vgpu-no-driver", f"{HOST} nvidia-vgpu-mgr[9]: error: vmiop_env_log: Failed to initialize RM client: 0x59",
           f"{HOST} nvidia-vgpu-mgr[9]: notice: vmiop_env_log: will initialize RM client"),
    Sample("vgpu-not-started", f"{HOST} nvidia-vgpu-mgr[9]: error: vmiop_log: (0x0): init_device_instance failed for "
           "inst 0 with error 2 (vmiop-display init failed)",
           f"{HOST} nvidia-vgpu-mgr[9]: notice: vmiop_log: no init_device_instance failed so far"),
    Sample("vgpu-not-started",
           f"{HOST} nvidia-vgpu-mgr[9]: error: vmiop_log: (0x0): Initialization: allocate_fb failed",
           f"{HOST} nvidia-vgpu-mgr[9]: notice: vmiop_log: (0x0): Initialization: allocate_fb is done"),
    Sample("vgpu-not-started", f"{HOST} nvidia-vgpu-mgr[9]: error: vmiop_env_log: vGPU failed to start",
           f"{HOST} nvidia-vgpu-mgr[9]: notice: vmiop_env_log: no guest failed to start"),
    Sample("vgpu-unlicensed", f"{HOST} nvidia-gridd[9]: Failed to acquire license from dls.example.org",
           f"{HOST} nvidia-gridd[9]: Acquired license info"),
    Sample("vgpu-unlicensed", f"{HOST} nvidia-vgpu-mgr[9]: notice: vmiop_log: (0x0): vGPU license state: Unlicensed "
           "(Restricted)", f"{HOST} nvidia-vgpu-mgr[9]: notice: vmiop_log: (0x0): vGPU license state: Licensed"),
    Sample("crashed", f"{HOST} systemd-coredump[9]: Process 98 (nv-fabricmanager) of user 0 dumped core.",
           f"{HOST} systemd-coredump[9]: Process 98 (python3) of user 0 dumped core."),
    Sample("cuda-802", "RuntimeError: Unexpected error from cudaGetDeviceCount. Error 802: system not yet initialized",
           "the file system not yet initialized"),
    Sample("sm-lids-out", "osm_lid_mgr: ERR 0307: OPENSM RAN OUT OF LIDS!!!", "it never RAN OUT OF LIDS"),
    Sample("sm-files", "osm_db_store: ERR 6107: Failed to open the db file:/var/x for writing: err:No space",
           "ERR 6103: Failed to open the db file:/var/x"),
    Sample("sm-files", "osm_sa_db: ERR 4C01: cannot open file '/var/x': No space", "ERR 4C02: Can't open sa db file"),
    Sample("sm-noisy-port", "shutup: Disabling noisy physical port 0x9403400a1b: lid 12, num 7",
           "no noisy physical port"),
    Sample("sm-noisy-port", "shutup: Marking unhealthy physical port by lid:12 num:7", "no unhealthy physical port"),
    Sample("sm-link-trap", "trap: Received Generic Notice type:1 num:129 (Local link integrity threshold reached) "
           "Producer:2 (Switch) from LID:12 Port 7 TID:0x1", "Received Generic Notice type:4 num:144 (x) from LID:12"),
    Sample("sm-prefix", "mcmr: ERR 1B41: PortGID subnet prefix 0xfec0000000 does not match configured prefix 0xfe",
           "all match configured prefix"),
    Sample("sm-key", "si_rcv: ERR 2F18: Got SM (n9 HCA-1) with sm_key 0x1 that doesn't match our local sm_key",
           "our local sm_key is set"),
    Sample("sm-key", "si_rcv: ERR 2F1A: SMInfo(GET) sender (n9) authentication failure.Ignoring SMInfo",
           "no authentication failure"),
    Sample("sm-duplicate-guid", "ni_rcv: ERR 0D13: Duplicate alias port GUID 0x1", "no duplicate port"),
    Sample("sm-port-closed", "osm_vendor_open: ERR 542C: umad_open_port() failed", "umad_open_port() is done"),
    Sample("sm-port-closed", "osm_vendor_open: ERR 5422: Unable to find requested CA guid 0x1",
           "the requested CA guid is 0x1"),
    Sample("sm-port-closed", "set_sm: ERR 5431: setting IS_SM capmask: cannot open file '/dev/infiniband/issm0'",
           "the IS_SM capmask is set"),
    Sample("sm-routing", "dfsssp: ERR AD25: Not enough VLs available (avail=1, needed=4); Stopping dfsssp routing!",
           "Not enough VLs"),
    Sample("sm-routing", "updn: disabling UPDN algorithm, no root nodes were found", "UPDN algorithm is on"),
    Sample("sm-routing", "torus: ERR 4E57: build_torus finished with errors", "torus is built"),
    Sample("sm-tables", "lft_rcv: ERR 0402: Setting forwarding table block 3 failed (IB_ERROR), Switch 0x1 sw4",
           "forwarding table block 3 is set"),
    Sample("sm-tables", "mft_rcv: ERR 0802: Setting MFT block failed (IB_ERROR), Switch 0x1", "MFT block 1 is set"),
    Sample("sm-tables", "state_mgr: ERR 331D: LFT of switch 0x1 (sw4) is not up to date", "it is not up to date"),
    Sample("sm-group-refused", "mcmr: ERR 1B26: Requested MGRP parameters are not realizable", "ERR 1B02: other"),
    Sample("sm-no-answer", "umad: ERR 5411: DR SMP Send completed with error (IB_TIMEOUT) -- dropping Method 0x1",
           "send completed with error"),
    Sample("sm-no-answer", "sm_mad: ERR 3113: MAD completed in error (IB_TIMEOUT): SubnGet(NodeInfo), attr_mod 0x0",
           "a MAD completed in error"),
    Sample("sm-no-answer", "sm_mad: ERR 3120: Timeout while getting attribute 0x11 (NodeInfo); Possible mis-set mkey?",
           "Timeout while getting attribute"),
)  # fmt: skip
ROWS = tuple(zip(SERVICE_SENTENCES, SAMPLES, strict=True))


def read(text: str, mixed: bool = False) -> ServiceLogs:
    return read_logs([("journal", text, mixed)])


def codes_of(text: str, mixed: bool = False) -> list[tuple[str | None, str | None]]:
    return [(event.subject, event.code) for event in read(text, mixed).events]


def only_event(text: str) -> LogEvent:
    (event,) = read(text).events
    return event


@pytest.mark.parametrize(("row", "sample"), ROWS, ids=lambda item: item.code)
def test_each_sentence_is_read_with_its_service(row: Sentence, sample: Sample) -> None:
    assert [(row.module, sample.code)] == codes_of(sample.line)
    assert row.code == sample.code


@pytest.mark.parametrize(("row", "sample"), ROWS, ids=lambda item: item.code)
def test_a_line_with_the_same_words_is_not_that_sentence(row: Sentence, sample: Sample) -> None:
    """The literal alone finds nothing: the pattern decides."""
    assert row.needle in sample.unlike
    assert [] == [code for code in codes_of(sample.unlike) if code[1] != UNEXPLAINED]


@pytest.mark.parametrize("text", [HEALTHY, HEALTHY_JOURNALS, HEALTHY_LOG], ids=["status", "journals", "log"])
def test_a_healthy_text_states_no_fault(text: str) -> None:
    assert {"pre-nvl5"} >= {code for _, code in codes_of(text)}
    assert {"active"} >= set(read(text).states.values())


def test_a_status_states_the_service_and_the_lines_below_it_why() -> None:
    logs = read(STATUS)

    assert {FM: "failed"} == dict(logs.states)
    assert {(FM, "failed"), (FM, "fm-config")} == set(codes_of(STATUS))
    (why,) = (event for event in logs.events if event.code == "fm-config")
    assert (("item", "BIND_INTERFACE_IP"),) == why.detail
    assert ("Feb 03 10:11:12", "journal") == (why.logged, why.source)


def test_a_journal_states_the_last_state() -> None:
    assert {FM: "failed"} == dict(read(JOURNAL).states)
    assert {FM: "active"} == dict(read(JOURNAL + HEALTHY.partition("\n\n")[2]).states)


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("Started nvidia-imex.service - NVIDIA IMEX service.", {"nvidia-imex": "active"}),
        ("Finished openibd.service - openibd - configure Mellanox devices.", {"openibd": "active"}),
        ("Stopped nvidia-imex.service - NVIDIA IMEX service.", {"nvidia-imex": "inactive"}),
        ("Stopping NVIDIA IMEX service...", {"nvidia-imex": "inactive"}),
        ("rshim.service: Deactivated successfully.", {"rshim": "inactive"}),
        ("opensm.service: Succeeded.", {"opensm": "inactive"}),
        ("nvidia-dcgm.service: Failed with result 'signal'.", {"nvidia-dcgm": "failed"}),
        ("nvidia-dcgm.service: Main process exited, code=killed, status=11/SEGV", {"nvidia-dcgm": "failed"}),
        ("nvidia-dcgm.service: Main process exited, code=exited, status=0/SUCCESS", {}),
        ("Failed to start NVIDIA Persistence Daemon.", {"nvidia-persistenced": "failed"}),
        ("Started Session 4 of User ada.", {}),
        ("Starting NVIDIA IMEX service...", {}),
    ],
)
def test_what_systemd_states_of_a_unit(line: str, state: dict[str, str]) -> None:
    assert state == dict(read(f"{HOST} systemd[1]: {line}").states)


@pytest.mark.parametrize(
    ("active", "state"),
    [
        ("active (running) since Mon", {FM: "active"}),
        ("active (exited) since Mon", {FM: "active"}),
        ("inactive (dead)", {FM: "inactive"}),
        ("failed (Result: timeout) since Mon", {FM: "failed"}),
        ("activating (auto-restart) (Result: exit-code) since Mon", {FM: "failed"}),
        ("activating (start) since Mon", {}),
        ("deactivating (stop-sigterm) (Result: success) since Mon", {}),
    ],
)
def test_what_a_status_states_of_a_unit(active: str, state: dict[str, str]) -> None:
    head = f"* {FM}.service - NVIDIA fabric manager service\n   Loaded: loaded\n"
    assert state == dict(read(f"{head}   Active: {active}\n").states)


def test_a_status_is_newer_than_the_lines_below_it() -> None:
    text = HEALTHY.replace("Started NVIDIA fabric manager service.", f"{FM}.service: Failed with result 'exit-code'.")

    assert {FM: "active"} == dict(read(text).states)
    assert [(FM, "pre-nvl5")] == codes_of(text)


def test_the_state_belongs_to_the_unit_above_it() -> None:
    both = "● cron.service - Regular background program\n   Active: active (running)\n" + STATUS
    assert {FM: "failed"} == dict(read(both).states)
    assert {} == dict(read("   Active: failed (Result: exit-code)\n").states)


def test_a_unit_that_is_not_there() -> None:
    assert {FM: "not_installed"} == dict(read(f"Unit {FM}.service could not be found.").states)
    assert {} == dict(read("Unit foo.service could not be found.").states)


def test_how_a_service_failed_is_put_together() -> None:
    (event,) = (event for event in read(STATUS).events if event.code == "failed")
    assert (("result", "exit-code"),) == event.detail
    (event,) = (event for event in read(JOURNAL).events if event.code == "failed")
    assert (("result", "exited"), ("status", "1")) == event.detail
    assert 2 == event.count


def test_a_start_that_worked_ends_the_failure_before_it() -> None:
    started = f"{HOST} systemd[1]: Started NVIDIA fabric manager service.\n"
    assert [(FM, "fm-version")] == codes_of(JOURNAL + started)
    configured = f"{HOST} nv-fabricmanager[9]: Successfully configured all the available NVSwitches\n"
    assert [] == codes_of(JOURNAL + configured + started)


@pytest.mark.parametrize(
    "begun",
    [
        "-- Reboot --",
        "-- Boot 0123456789abcdef0123456789abcdef --",
        "Feb 04 00:00:01 gpu7 kernel: Linux version 6.8.0-60-generic (buildd@x)",
        "[Feb 04 2026 00:00:01] [INFO] [tid 1] Fabric Manager version 570.86.15 is running with the following "
        "configuration options",
    ],
)
def test_what_was_before_the_last_start_is_over(begun: str) -> None:
    logs = read(f"{JOURNAL}{begun}\n")

    assert {} == dict(logs.states)
    assert {"earlier"} == {event.boot for event in logs.events}
    assert None in {event.boot for event in read(f"{JOURNAL}{begun}\n{JOURNAL}").events}


def test_equal_lines_are_one_event() -> None:
    line = (
        "[Oct 31 2025 21:11:{}] [ERROR] [tid 5] failed to find the GPU handle {} in the multicast team request setup 1."
    )
    event = only_event("\n".join(line.format(20 + number, 4711 + number) for number in range(3)))

    assert (3, "Oct 31 2025 21:11:22") == (event.count, event.logged)


@pytest.mark.parametrize(
    ("date", "at", "logged"),
    [
        ("2026-02-03T10:11:12+0100", "2026-02-03T09:11:12Z", None),
        ("2026-02-03T10:11:12.123456+01:00", "2026-02-03T09:11:12Z", None),
        ("Feb  3 10:11:12", None, "Feb  3 10:11:12"),
        ("11月 15 14:15:47", None, "11月 15 14:15:47"),
    ],
)
def test_dates_of_the_journal(date: str, at: str | None, logged: str | None) -> None:
    event = only_event(f"{date} gpu7 nv-fabricmanager[9]: {SAMPLES[6].line}")
    assert (at, logged) == (event.at, event.logged)


@pytest.mark.parametrize(
    "line",
    [
        f"{HOST} nvlsm[9]: {SAMPLES[3].line}",
        f"10.0.0.101: nvlsm: {SAMPLES[3].line}",
        f"{HOST} nvidia-fabricmanager-start.sh[9]: {SAMPLES[2].line}",
        f"{HOST} /usr/bin/nv-fabricmanager[9]: {SAMPLES[2].line}",
    ],
)
def test_the_program_of_a_line_is_of_its_service(line: str) -> None:
    assert [FM] == [service for service, _ in codes_of(line)]


def test_the_address_of_a_switch_is_that_of_the_pci_list() -> None:
    assert (("pci", "0000:86:00.0"), ("port", "33"), ("sxid", "20034")) == only_event(SAMPLES[7].line).detail


def test_of_a_log_of_many_programs_only_lines_of_services_count() -> None:
    other = f"{HOST} sudo[9]: ada : COMMAND=/bin/grep '{SAMPLES[6].line}'"
    bare = SAMPLES[6].line

    assert [] == codes_of(other) == codes_of(f"{other}\n{bare}", mixed=True)
    assert [(FM, "fm-topology")] == codes_of(f"{HOST} nv-fabricmanager[9]: {bare}", mixed=True)


def test_lines_of_services_in_a_long_log() -> None:
    noise = "Feb 03 10:11:12 gpu7 CRON[1]: (root) CMD (true)\n"
    kernel = "Feb 03 10:11:12 gpu7 kernel: Linux version 6.8\n"

    assert kernel + JOURNAL == list_lines(f"{noise}{kernel}{noise}{JOURNAL}{noise}")
    assert "" == list_lines(noise)
    assert JOURNAL == list_lines(JOURNAL.rstrip("\n"))


def test_a_long_line_and_many_kinds_of_events_are_bounded() -> None:
    fatal = SAMPLES[7].line
    many = "\n".join(fatal.replace("port 33", f"port {number}") for number in range(1000))

    assert 200 == len(read(many).events)
    assert [] == codes_of("x" * 1001 + fatal)
    assert 300 >= len(only_event(fatal + "y" * 400).text)


def host_of(files: Mapping[str, str], **outputs: str) -> TreeHost:
    """A machine with these files, and these saved outputs."""
    tree = MemoryFiles()
    for path, text in files.items():
        tree.add(path, text.encode())
    saved = SavedOutputs(MemoryFiles({f"{name}.txt": text.encode() for name, text in outputs.items()}))
    return TreeHost("tree", "x", tree, saved)


def test_a_source_without_logs_of_services_has_no_states() -> None:
    """Its kernel log, or a syslog in which no service wrote anything, is none."""
    syslog = {"/var/log/syslog": f"{HOST} kernel: Linux version 6.8\n{HOST} CRON[1]: x\n"}
    with pytest.raises(Absent):
        services.read(host_of(syslog, dmesg="[    0.000000] Linux version 6.8\n"))


def test_a_log_that_states_nothing_was_read() -> None:
    reading = services.read(host_of({"/var/log/fabricmanager.log": HEALTHY_LOG}))

    assert ((), ()) == (reading.facts.services, reading.facts.events)
    assert ("/var/log/fabricmanager.log",) == reading.sources


def test_what_a_log_states_counts_where_the_traces_leave_it_open() -> None:
    """Of a stopped service that it failed; of a running one nothing."""
    unit, folder = f"{FM}.service", "/sys/fs/cgroup/system.slice"
    stopped = {
        f"/etc/systemd/system/{unit}": "[Service]\nType=forking\n",
        f"{folder}/x.service/cgroup.events": "populated 1\n",
        "/run/systemd/system/x": "",
        "/run/systemd/units/x": "",
    }
    running = {**stopped, f"{folder}/{unit}/cgroup.events": "populated 1\n"}
    status = {f"systemctl_status_{FM}": STATUS}

    def state_of(host: TreeHost) -> str:
        return next(service.state for service in services.read(host).facts.services if service.name == FM)

    assert ["inactive", "failed", "active"] == [
        state_of(host_of(stopped)),
        state_of(host_of(stopped, **status)),
        state_of(host_of(running, **status)),
    ]


FORM = "[Nov 03 2026 10:11:12] [{}] [tid 7] {}"


@pytest.mark.parametrize(
    ("line", "service"),
    [
        (FORM.format("ERROR", "xyz of NVSwitch 3"), "nvidia-fabricmanager"),
        (FORM.format("INFO", "xyz failed"), None),
        ("Nov 03 10:11:14 123456 [A1B2C3D4] 0x01 -> xyz_cb: ERR 3113: xyz", "opensm"),
        ("Nov 03 10:11:14 123456 [A1B2C3D4] 0x02 -> xyz_cb: error", None),
        ("2026-02-03 10:11:12.507 ERROR [76:76] xyz", "nvidia-dcgm"),
        ("2026-02-03 10:11:12.507 INFO [76:76] xyz failed", None),
        (f"{HOST} nvidia-imex[9]: xyz failed", "nvidia-imex"),
        (f"{HOST} nvidia-imex[9]: xyz without errors", None),
        (f"{HOST} sshd[9]: xyz failed", None),
    ],
)
def test_an_error_that_no_row_knows_is_kept(line: str, service: str | None) -> None:
    events = read_logs([("a log", f"{line}\n", False)]).events

    assert ([service] if service else []) == [event.subject for event in events if event.code == "unexplained"]


def test_errors_of_one_form_are_one_and_few_forms_are_kept() -> None:
    lines = [FORM.format("ERROR", f"xyz of NVSwitch {number}") for number in range(9)]
    (event,) = read_logs([("a log", "\n".join(lines), False)]).events
    assert 9 == event.count

    lines = [FORM.format("ERROR", "xyz" * number) for number in range(1, 9)]
    assert 3 == len(read_logs([("a log", "\n".join(lines), False)]).events)
