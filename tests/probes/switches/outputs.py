"""One sample of each output that is read: its form is the system's, its values are made."""

from __future__ import annotations

from typing import Any

STATUS = """\
  Interface            Lanes    Speed    MTU    FEC    Alias    Vlan    Oper    Admin             Type    Asym PFC
-----------  ---------------  -------  -----  -----  -------  ------  ------  -------  ---------------  ----------
  Ethernet0  1,2,3,4,5,6,7,8     400G   9100     rs     etp1  routed      up       up  OSFP  Pluggable         off
  Ethernet8            9,10      100G   9100    N/A     etp2  routed    down       up              N/A          on
"""
LLDP = """\
Capability codes: (R) Router, (B) Bridge, (O) Other
LocalPort    RemoteDevice    RemotePortID    Capability    RemotePortDescr
-----------  --------------  --------------  ------------  -----------------
Ethernet0    gpu01           eth0            S
Ethernet8    spine1          etp4            BR            Ethernet24
eth0         oob1            Gi0/1           B
--------------------------------------------------
Total entries displayed:  3
"""
FEC = """\
      IFACE    STATE    FEC_CORR    FEC_UNCORR    FEC_SYMBOL_ERR    FEC_PRE_BER    FLR(O)
-----------  -------  ----------  ------------  ----------------  -------------  --------
  Ethernet0        U     130,402             7                 0       1.20e-09       N/A
  Ethernet8        D         N/A           N/A               N/A            N/A       N/A
"""
BINS = """\
      IFACE           BIN0    BIN1    BIN2    BIN3    BIN4    BIN5    BIN6    BIN7    BIN8    BIN9    BIN10    BIN11    BIN12    BIN13    BIN14    BIN15
-----------  -------------  ------  ------  ------  ------  ------  ------  ------  ------  ------  -------  -------  -------  -------  -------  -------
  Ethernet0  4,374,661,575   8,069     340      12       3       0       0       0       0       1    1,200        0        0        2        0        5
  Ethernet8            N/A     N/A     N/A     N/A     N/A     N/A     N/A     N/A     N/A     N/A      N/A      N/A      N/A      N/A      N/A      N/A
"""  # noqa: E501
PFC = """\
  Port Rx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7
---------  ------  ------  ------  ------  ------  ------  ------  ------
Ethernet0       0       0       0   1,203     N/A       0       0       0

  Port Tx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7
---------  ------  ------  ------  ------  ------  ------  ------  ------
Ethernet0       0       0       0      44       0       0       0       0
"""
WATCHDOG = """\
Changed polling interval to 600ms
     PORT    ACTION    DETECTION TIME    RESTORATION TIME    HISTORY
---------  --------  ----------------  ------------------  ---------
Ethernet0     alert               502                 501    disable
"""
STORMS = """\
      QUEUE       STATUS    STORM DETECTED/RESTORED    TX OK/DROP    RX OK/DROP    TX LAST OK/DROP    RX LAST OK/DROP
-----------  -----------  -------------------------  ------------  ------------  -----------------  -----------------
Ethernet0:3      stormed                        1/0       100/300         50/20              0/200              0/200
Ethernet8:3          N/A                        2/2       100/100       100/100                0/0                0/0
"""
DROPS = """\
Ingress PG dropped packets:
     Port    PG0    PG1    PG2    PG3    PG4    PG5    PG6    PG7
---------  -----  -----  -----  -----  -----  -----  -----  -----
Ethernet0      0      0      0    803      0      0      0      0
"""
POOL = """\
Headroom pool maximum occupancy:
                 Pool    Bytes
---------------------  -------
ingress_lossless_pool   95,000
   egress_lossy_pool      N/A
"""
FLAPS = """\
  Interface    Flap Count    Admin    Oper    Link Down TimeStamp(UTC)    Link Up TimeStamp(UTC)
-----------  ------------  -------  ------  --------------------------  ------------------------
  Ethernet0             5       Up      Up    Sat Feb 21 11:00:39 2026  Sat Feb 21 11:00:41 2026
"""
FEC_STATUS = """\
  Interface    FEC Oper    FEC Admin
-----------  ----------  -----------
  Ethernet0         N/A           rs
  Ethernet8          rs         auto
"""
QUEUES = {
    "Ethernet0": {
        "UC3": {"totalpacket": "9", "totalbytes": "1,000", "droppacket": "2", "dropbytes": "N/A"},
        "MC13": {"totalpacket": "1", "totalbytes": "1", "droppacket": "1", "dropbytes": "1"},
        "time": "2026-02-21T11:00:41",
    }
}
MARKS = {"Ethernet0": {"UC3": {"ecnmarkedpacket": "77", "ecnmarkedbytes": "N/A", "wreddroppacket": "N/A"}}}
CONFIG = {
    "DEVICE_METADATA": {"localhost": {"hostname": "leaf1", "hwsku": "SKU", "mac": "02:00:00:00:00:01"}},
    "PORT": {"Ethernet0": {"alias": "etp1", "speed": "400000", "mtu": "9100", "fec": "rs", "admin_status": "up"}},
}
NVUE = [{"header": {"model": "SN5600"}}, {"set": {"system": {"hostname": "leaf1"}, "qos": {}, "interface": {}}}]
NVUE_PORTS = {
    "swp1": {
        "link": {"mtu": 9216, "speed": "400G", "fec": "rs", "state": {"up": {}}},
        "lldp": {"neighbor": {"gpu01": {"port": {"name": "eth0"}, "chassis": {"system-name": "gpu01"}}}},
    },
    "eth0": {"link": {"mtu": 1500}},
}
NVUE_COUNTERS = {
    "pfc-stats": {"switch-priority": {"3": {"rx-pause-frames": 5, "tx-pause-frames": 6}}},
    "egress-queue-stats": {"traffic-class": {"3": {"tx-bytes": 10, "tx-frames": 1, "tx-uc-buffer-discards": 2}}},
    "ingress-buffer-stats": {"priority-group": {"3": {"rx-frames": 1, "rx-buffer-discards": 4}}},
}
NVUE_WATCHDOG = {"state": "enabled", "status": {"3": {"status": "DEADLOCK", "deadlock-count": 2}}}
# By the name of the output, and the suffix where an output has two forms
OUTPUTS: dict[tuple[str, str], Any] = {
    ("date", ""): "2026-02-21T11:00:41Z\n",
    ("config_db.json", ""): CONFIG,
    ("show lldp table", "txt"): LLDP,
    ("show interfaces status", "txt"): STATUS,
    ("show interfaces fec status", "txt"): FEC_STATUS,
    ("show interfaces counters fec-stats", "txt"): FEC,
    ("portstat -fh", "txt"): BINS,
    ("show headroom-pool watermark", "txt"): POOL,
    ("show interfaces flap", "txt"): FLAPS,
    ("show pfc counters", "txt"): PFC,
    ("show pfcwd config", "txt"): WATCHDOG,
    ("show pfcwd stats", "txt"): STORMS,
    ("show priority-group drop counters", "txt"): DROPS,
    ("show queue counters", "json"): QUEUES,
    ("show queue wredcounters", "json"): MARKS,
    ("nv config show", ""): NVUE,
    ("nv show interface", ""): NVUE_PORTS,
    ("nv show interface counters qos", ""): NVUE_COUNTERS,
    ("nv show interface qos pfc-watchdog", ""): NVUE_WATCHDOG,
}
