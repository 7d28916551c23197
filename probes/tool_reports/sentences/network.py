"""Sentences of tools for RDMA, InfiniBand, network interfaces and firmware of NICs.

Sources: linux-rdma/perftest src/; linux-rdma/rdma-core libibverbs/examples, librdmacm, libibmad, infiniband-diags;
ibdiagnet (its documentation and public outputs); iproute2 devlink/, dcb/, lib/libnetlink.c, tc/; ethtool ethtool.c and
netlink/; iputils ping; OpenSSH; Mellanox/mstflint flint/, mlxconfig/, mtcr_ul/, small_utils/mlxfwresetlib; mlxlink.
"""

from __future__ import annotations

from probes.tool_reports.sentences.sentence import DEVICE, ToolSentence, rows_of

_NODE = r"(?P<what>node \\?\"[^\"\n]{2,80}\"[\w ]{0,60})"
_WHY = r"(?P<what>\S[^\n]{2,100})"
_NAME = r"(?P<what>[\w.:@-]{2,60})"

VERBS: tuple[ToolSentence, ...] = (
    *rows_of(
        "ibv_devinfo",
        ("verbs-no-device", r"^IB device '?" + DEVICE + r"'? (?:wasn't|not) found"),
        ("verbs-no-device",
         r"^No RDMA devices were detected|^librdmacm: Fatal: (?:unable to open RDMA|no RDMA) device"),
        ("verbs-no-device", r"'" + DEVICE + r"' IB device can't be found"),
        ("rdma-cm-unloaded", r"^librdmacm: Warning: couldn't read ABI version"),
        ("verbs-device-gone", r"cma detected device removal"),
    ),
    *rows_of(
        "ib_write_bw",
        ("verbs-no-device", r"^Couldn't get context for(?: the device| " + DEVICE + r")"),
        ("gid-none",
         r"^(?:can't read sgid of index|Could not get local gid for gid index|Failed to query gid to port \d{1,3}, "
         r"index) (?P<what>\d{1,4})"),
        ("gid-none", r"^G(?:ID|id) index (?P<what>\d{1,4}) (?:is out of range|not found)"),
        ("mtu", r"^Invalid MTU - (?P<what>\d{1,6})|^Device doesn't support MTU|^Requested mtu is higher than active mtu"
         r"|^Requested size larger than port MTU"),
        ("perftest-gpu",
         r"^(?:Couldn't init GPU context|cuMem(?:Alloc(?:Host|Managed)?|GetHandleForAddressRange) error=|cuInit "
         r"failed|cuCtx\w{3,20}(?:\(\))? error=|hipMalloc error=|failed to export dmabuf handle|DMA-BUF is not "
         r"supported on this GPU|CUDA driver version [\d.]{3,8} does not support CU_MEM_|Failed to load CUDA library "
         r"dynamically)(?P<what>[^\n]{0,60})"),
        ("perftest-memory", r"^(?:failed to create mr|Couldn't register MR|ibv_reg_mr failed)"),
        ("perftest-queue",
         r"^(?:Couldn't create (?:a receiver )?(?:CQ|SRQ|QP|IB resources)|Couldn't create (?:recv|send) (?:CQ|QP)|"
         r"Couldn't allocate PD|ibv_(?:alloc_pd|create_cq|create_comp_channel) failed|Couldn't post send: )"),
        ("perftest-route", r"^Failed to modify (?:recv |send )?QP(?:\[\d{1,5}\])? (?:\d{1,8} )?to RT[RS]"),
        ("verbs-retries", r"^Work completion error 12\b"),
        ("completion-unknown", r"^(?:Completion with error at (?:client|server)|Work completion error )"
         r"|mlx[45]: \S{1,60}: got completion with error"),
        ("rdma-address",
         r"^rdma_resolve_(?:addr|route) failed|^Unable to (?:create RDMA_CM resources|perform rdma_client)"),
        ("rdma-refused", r"Unexpected CM event \D{0,20}(?P<what>\d{1,3})"),
        ("measured-below", r"^Error: (?P<what>(?:BW result is below bw|Msg rate is below msg_rate) limit)"),
        ("data-wrong",
         r"^VALIDATION: FAILED(?P<what>[^\n]{0,60})|ERROR: Data corruption ?: (?P<rank>rank \d{1,6})"),
        ("data-wrong", r"# Out of bounds values : (?P<out>\d{1,12}) FAILED"),
        ("perftest-peer",
         r"^(?:Unable to (?:set up|init the) socket connection|Unable to Connect the HCA's through the link|Unable "
         r"to (?:read|write) (?:to|from) socket/rdma_cm|Unable to open file descriptor for socket|Unable to connect "
         r"\(retries|Couldn't (?:read/write|read|send|send/recv) (?:remote|local) address|ethernet_read_keys: "
         r"Couldn't read remote|Failed to (?:exchange data|close connection|sync) between server and client)"),
        ("perftest-peer", r"^Couldn't connect to " + _NAME),
    ),
)  # fmt: skip

INFINIBAND: tuple[ToolSentence, ...] = rows_of(
    "ibping",
    ("ib-duplicate",
     r"-E- (?P<what>(?:Duplicated? (?:\w{1,20} )?GUIDs?|Lid 0x[0-9a-f]{1,8} is duplicated)[^\n]{0,100})"),
    ("ib-several-managers", r"-E- More th[ae]n one master SM"),
    ("ib-credit-loop", r"-E- Credit [Ll]oops?\b"),
    ("ib-bad-link",
     r"-[EW]- (?P<what>[^\n]{2,120}?(?:BER exceeds the threshold|BER \S{2,16} is above the threshold|\"\w{4,60}\" is "
     r"above the threshold))"),
    ("ib-bad-link", r"-[EW]- (?P<what>Bad Link - [^\n]{4,100})"),
    ("ib-firmware-differs", r"-W- (?P<what>\S{2,80} - Node has FW version [\d.]{5,20})"),
    ("sm-silent", r"-E- (?:Missing master SM|Zero LID for active port (?P<what>\S{2,80}))"),
    ("ib-local-link", r"-E- Local link \((?P<what>port \d{1,3} in device [\w.-]{2,40})\) in state Down"),
    ("ib-route",
     r"find_route: (?:Bad (?:out )?port state|Bad forwarding table entry)? ?(?:found: )?(?:at: )?" + _NODE),
    ("ib-route",
     r"find_route: (?P<what>no route found|can't reach)|can't find a (?:multicast )?route|-E- [^\n]{0,80}?no path "
     r"from (?P<lids>lid \d{1,6} to lid \d{1,6})|Bad forwarding table entry found"),
    ("sm-silent",
     r"ib_path_query_via: sa call|No SM/SA found on port (?P<what>[\w.:-]{2,40})|Failed to bind to the SA|^Query SA "
     r"failed: |resolve_sm_portid: sm_lid 0"),
    ("mad-no-port",
     r"iberror: failed: Failed to open '\(null\)' port|can't open MAD port \(\(null\):|client_register for mgmt "
     r"\d{1,3} failed"),
    ("umad-closed",
     r"iberror: failed: Failed to (?:re)?open '?(?P<what>[\w.-]{2,40}'? port|port)|can't init UMAD library|[Cc]an't "
     r"open (?:SMI |GSI )?UMAD port|-E- Failed to open port, Fatal Error"),
    ("mad-unanswered",
     r"_do_madrpc: send failed|iberror: failed: can't resolve (?:self|source|destination) |iberror: failed: "
     r"(?P<what>perfquery|perfextquery|operation [\w ]{3,40}|smp (?:query|set) [\w ]{3,40}|discover failed|node info "
     r"query|port info query|classportinfo query|vendstat)"),
    ("mad-unanswered", r"\b(?:mad|umad) \((?P<what>[^)\n]{4,100})\) bad status \d{1,5}; Connection timed out"),
    ("mad-unanswered",
     r"-E- (?P<what>Discovery at local link failed|\S{2,80} - \w{3,40} MAD failed)|umad_(?:recv|send) failed"),
)  # fmt: skip

_SHARP = r"\[[\w.-]{1,64}:\d{1,6}[^\]\n]{0,60}\](?:\[[\d :.-]{8,30}\])? ERROR "  # as each process prints it
COLLECTIVES: tuple[ToolSentence, ...] = rows_of(
    "sharp",
    ("sharp-manager",
     r"FabricProvider must bind to port with master SM \((?P<what>SM LID:\d{1,5} local LID:\d{1,5})"),
    ("sharp-failed",
     _SHARP + r"collect_ports_data: (?P<what>device \S{2,40} port \d{1,3} is not valid[^\n]{0,60})"),
    ("sharp-failed", _SHARP + r"(?P<what>Failed to lock SAT tree[^\n]{0,40})"),
    ("sharp-failed", r"Begin job id: \d{1,20} failed with status: (?P<what>[A-Z][\w ]{3,40})"),
    ("sharp-failed", r"(?:^|\] )sharp_coll: (?P<what>error in \w{3,40}: [^\n]{2,100})"),
    ("sharp-failed",
     r"\bsharp_am\b.{0,80}?\bjob (?P<what>\S{1,24} (?:refused|rejected|denied)\b[^\n]{0,100})"),
    ("sharp-failed", _SHARP + r"(?P<what>(?:AM connection failed|sharp_\w{3,40}|Job error)[^\n]{2,100})"),
)  # fmt: skip

INTERFACES: tuple[ToolSentence, ...] = rows_of(
    "ip",
    ("module-unreadable",
     r"Cannot get [Mm]odule EEPROM [\w ]{4,20}: (?P<what>Input/output error|Connection timed out|No such device or "
     r"address|Remote I/O error)|Failed to read module EEPROM|Query module eeprom by page failed"),
    ("interface-down", r"RTNETLINK answers: Network is down|^Error: Device is not up|ping: sendmsg: Network is down"),
    ("mtu", r"^Error: mtu greater than device maximum|Frag needed and DF set \((?P<what>mtu = \d{1,6})\)"
     r"|local error: message too long, (?P<size>mtu=\d{1,6})"),
    ("no-answer", r"^ssh: connect to host " + _NAME + r" port \d{1,6}: (?:No route to host|Connection timed out)"),
    ("no-answer",
     r"Time to live exceeded|[1-9]\d{0,8} packets transmitted, 0 (?:packets )?received,.{0,40}? 100% packet loss"),
    ("answers-lost",
     r"packets transmitted, [1-9]\d{0,8} (?:packets )?received,.{0,40}? "
     r"(?P<what>(?!0(?:\.0{1,6})?%)\d{1,2}(?:\.\d{1,6})?% packet loss)"),
    ("no-route",
     r"(?:RTNETLINK answers|connect|ping: connect|ping: sendmsg): (?P<what>Network is unreachable)"),
    ("interface-missing",
     r"^Cannot find device \"" + _NAME + r"\"|^Device \"(?P<device>[\w.:@-]{2,60})\" does not exist"),
    ("interface-missing",
     r"^(?:Cannot (?:get|set) [\w ]{4,60}|netlink error|RTNETLINK answers|Attribute (?:read|write)|devlink answers|"
     r"kernel answers): (?P<what>No such device)"),
    ("no-rights",
     r"^(?:Cannot (?:get|set) [\w ]{4,60}|netlink error|RTNETLINK answers|Attribute (?:read|write)|devlink answers|"
     r"kernel answers|Netlink error): (?P<what>Operation not permitted|Permission denied)"),
    ("setting-refused",
     r"^(?:Cannot (?:get|set) [\w ]{4,60}|RTNETLINK answers|Attribute (?:read|write|not found)|devlink "
     r"answers|kernel answers|[Nn]etlink error|Error: (?:mlx5_core|bnxt_en|ice|ionic)): (?!File exists)" + _WHY),
    ("address-taken",
     r"\baddress (?P<what>[\d.]{7,15})(?:/\d{1,2})? (?:conflict detected with|is (?:already )?in use\b)"),
    ("address-taken", r"(?P<what>\b[\d.]{7,15}) is already in use by [0-9a-f]{2}:"),
    ("setting-refused", r"^Error: (?P<what>Specified qdisc kind is unknown|Qdisc not supported on this device)"),
)  # fmt: skip

FIRMWARE: tuple[ToolSentence, ...] = rows_of(
    "mstflint",
    ("firmware-recovery", r"^-[EI]- [^\n]{0,160}?(?P<what>[Ll]ive-?fish)"),
    ("firmware-silent",
     r"^-E- [^\n]{0,160}?(?P<what>FW is not responding|No FW response|ICMD_NOT_READY|CMDIF_TIMEOUT|[Ff]lash gw "
     r"timeout|CMDIF_GO_BIT|0xffffffff)"),
    ("firmware-reset",
     r"^-E- (?:Firmware reset failed|Failed to reset PCI|Failed to reboot (?:device|machine))(?P<what>[^\n]{0,80})"),
    ("firmware-pending",
     r"already updated on flash, pending reset|In order to load (?:the )?new (?:configurations|FW)|To load new FW "
     r"run (?:reboot machine|mlxfwreset)"),
    ("firmware-locked",
     r"^-E- [^\n]{0,160}?(?P<what>HW access is disabled|LOCKED_DEVICE|SEM_LOCKED|Tlv is locked|write protected)"),
    ("firmware-refused",
     r"^-E- [^\n]{0,120}?(?P<what>Rejected authentication|[Dd]igest in the signature|FW file is incompatible|not "
     r"newer than the|BLOCKED_\w{3,20}_MISMATCH|Loading the FW[^\n]{0,40} failed|Burn process failed|Burning "
     r"\w{2,20} image failed|intended for: )"),
    ("firmware-silent", r"^-E- Error when trying to check if NV access registers"),
    ("firmware-refused", r"^Fail : (?P<what>[^\n]{4,100})"),  # of mlxfwmanager, below the device
    ("firmware-setting",
     r"^-E- (?P<what>Failed to set configuration[^\n]{0,80}|Device doesn't support \w{3,60} parameter|Unsupported "
     r"parameter[^\n]{0,60}|Unknown [Pp]arameter[^\n]{0,60}|Failed to apply configuration)"),
    ("module-unreadable", r"^-E- (?P<what>Module is unplugged|Failed to get cable info)"),
    ("firmware-tool",
     r"^-E- (?:Can ?not|Failed to) (?:open|identify|query) (?:the )?(?:[Dd]evice|/dev/|"
     r"[0-9a-f]{2,4}:)(?P<what>[^\n]{0,100})"),
    ("firmware-tool", r"^-[EW]- (?P<what>[^\n]{0,100}?\bMFE_\w{2,40}|Missing mst module)"),
)  # fmt: skip
