"""What switches of several makers print of their ports, written for these tests in the forms of their manuals."""

from __future__ import annotations

STATUS = """\
spine4#show interfaces status
Port       Name                   Status       Vlan        Duplex  Speed Type
Et1/1      node-a rail0           connected    300         full    400G  400GBASE-DR4
Et2/1      node-b rail0           connected    300         full    400G  400GBASE-DR4
Et3/1      node-c rail0           {state:12} 300         full    400G  400GBASE-DR4
Et4/1                             notconnect   1           full    400G  Not Present
Et5/1                             disabled     1           full    400G  400GBASE-DR4
"""
ERRORS = """\
edge-3# show interface counters errors
--------------------------------------------------------------------------------
Port          Align-Err    FCS-Err   Xmit-Err    Rcv-Err  UnderSize OutDiscards
--------------------------------------------------------------------------------
mgmt0                --         --         --         --         --          --
Eth1/5                0          0          0          0          0           0
Eth1/6                0      51873          0      51873          0           0
"""
BRIEF = """\
edge-3# show interface brief
--------------------------------------------------------------------------------
Ethernet        VLAN    Type Mode   Status  Reason                 Speed     Port
Interface                                                                    Ch #
--------------------------------------------------------------------------------
Eth1/1          300     eth  access up      none                    400G(D)  --
Eth1/2          300     eth  access up      none                    400G(D)  --
Eth1/3          300     eth  access down    {reason:22}  400G(D)  --
Eth1/4          1       eth  access down    XCVR not inserted       auto(D)  --
"""
INTERFACE = """\
<tor-9>display interface 100GE 1/0/21
100GE1/0/21 current state : {state} (ifindex: 44)
Line protocol current state : {state}
Description: node-q rail5
Speed:                     100000, Loopback:                   NONE
    Input:  5512233412 packets, 78812331223312 bytes
    Discard:                       0,   Pause:                       0
    Total Error:             {errors:8}
    CRC:                     {errors:8},   Giants:                      0
"""
HEADED = """\
HundredGigE1/0/7
Current state: UP
Input (total):  90274398 packets, 24384580165 bytes
Input:  {errors} input errors, 0 runts, 0 giants, 0 throttles
        {errors} CRC, 0 frame, - overruns, 0 aborts
Output: 0 output errors, - underruns, - buffer failures
"""
EXTENSIVE = """\
ops@core-2> show interfaces et-0/0/9 extensive
Physical interface: et-0/0/9, Enabled, Physical link is {state}
  Link-level type: Ethernet, MTU: 9216, LAN-PHY mode, Speed: 400Gbps, BPDU Error: None,
  Input errors:
    Errors: 0, Drops: 0, Framing errors: 0, Runts: 0, Policed discards: 0, L3 incompletes: 0,
  Output errors:
    Carrier transitions: 7, Errors: 9000, Drops: 0, Collisions: 0, Aged packets: 0, FIFO errors: 0,
  Ethernet FEC statistics              Errors
    FEC Corrected Errors            770122331
    FEC Uncorrected Errors       {lost:12}
"""
INFINIBAND = """\
quantum [standalone: master] > show interfaces ib 1/22/1
IB1/22/1 state:
  Logical port state          : Active
  Speed                       : ndr
RX:
  packets                     : 81231
  errors                      : 0
  Symbol errors               : {errors}
TX:
  errors                      : 4000
"""
NVUE_DIAGNOSIS = """\
cumulus@tor-2:mgmt:~$ nv show interface swp9 link phy-diag
                              operational
----------------------------  ------------
phy-raw-errors-lane0          881233
raw-ber                       3E-6
effective-ber                 {rate}
"""
FLAPS = """\
admin@tor-4:~$ show interfaces flap
Interface      Flap Count  Admin    Oper    Link Down TimeStamp(UTC)    Link UP TimeStamp(UTC)
-----------  ------------  -------  ------  --------------------------  ------------------------
Ethernet0               2  Up       Up      Never                       Never
Ethernet8    {count:12}  Up       Up      2026-01-04 11:12:13         Never
Ethernet16              1  Up       Up      Never                       Never
"""
WATCHDOG = """\
spine4#show priority-flow-control counters watchdog
Port       TxQ     Total times            Total times
                   stuck                  recovered
---------- ------- ---------------------- --------------------
Et8/1      UC3     {stuck:22} {stuck}
"""
PFC = """\
edge-3# show interface priority-flow-control
Port               Mode Oper(VL bmap)  RxPPP      TxPPP
Ethernet1/1        On   On  (8)        81121      9921
Ethernet1/2        On   {state:8}       90011      9912
Ethernet1/3        On   On  (8)        87001      8812
Ethernet1/4        On   On  (8)        87712      9013
"""
SPEEDS = """\
OS10# show interface status
Port            Description     Status   Speed    Duplex   Mode Vlan Tagged-Vlans
Eth 1/1/1       node-d          up       400G     full     A    300  -
Eth 1/1/2       node-e          up       {speed}     full     A    300  -
Eth 1/1/3       node-f          up       400G     full     A    300  -
Eth 1/1/4                       down     0        full     A    1    -
"""
QUEUE = """\
Physical interface: et-0/0/3, up, Physical link is Up
Queue: 3, Forwarding classes: lossless
  Transmitted:
    Packets              :              81102001               1023 pps
    Tail-dropped packets : {dropped:21}                 12 pps
"""
MARKED = """\
Ethernet1/12
    transceiver is present
    type is QSFP-100G-SR4
  Temperature   40.20 C        75.00 C     -5.00 C     70.00 C        0.00 C
  Rx Power     -17.02 dBm {mark:2}    5.39 dBm  -14.31 dBm   2.39 dBm    -10.31 dBm
  Note: ++  high-alarm; +  high-warning; --  low-alarm; -  low-warning
"""
MARKED_ROWS = """\
                         High Alarm  High Warn   Low Alarm   Low Warn
           Rx Power      Threshold   Threshold   Threshold   Threshold
Port       (dBm)         (dBm)       (dBm)       (dBm)       (dBm)
-------    ------------  ----------  ----------  ----------  ----------
Et9/1      -13.90  {mark:2}    5.00        4.00        -10.40      -8.40
Et9/2      -1.02         5.00        4.00        -10.40      -8.40
"""
LISTED = """\
 100GE1/0/12 transceiver information:
-------------------------------------------------------------------
 Alarm information:
   {alarm}
-------------------------------------------------------------------
 Diagnostic information:
   Temperature (Celsius)                 :41.02
"""
FLAGGED = """\
Physical interface: et-0/0/11
    Module temperature high alarm             :  Off
  Lane 2
    Laser receiver power low alarm            :  {state}
    Tx laser disabled alarm                   :  Off
"""
MEMBERS = """\
                 Flags
------------------------ ---------------------------- -------------------------
  a - LACP Active          p - LACP Passive           * - static fallback
  U - In Use               D - Down
  + - In-Sync              - - Out-of-Sync            i - incompatible with agg
  P - bundled in Po        s - suspended              G - Aggregable
Port-Channel Protocol  Ports
------------ --------- --------------------------------------------------------
Po3(U)       LACP(a)    Et21/1({one}) Et22/1({other})
Po4(D)       LACP(a)    Et23/1(G-)
"""
UNSELECTED = """\
Eth-Trunk8's state information is:
ActorPortName          Status   PortType PortPri PortNo PortKey PortState Weight
100GE1/0/41            Selected 100GE    32768   9      305     10111100  1
100GE1/0/42            {state:8} 100GE    32768   10     305     10100010  1
"""
DETACHED = """\
Aggregated interface: ae9
    LACP state:       Role   Exp   Def  Dist  Col  Syn  Aggr  Timeout  Activity
      et-0/0/40      Actor    No    No   Yes  Yes  Yes   Yes     Fast    Active
    LACP protocol:        Receive State  Transmit State          Mux State
      et-0/0/40                 Current   Fast periodic Collecting distributing
      et-0/0/41               Defaulted   Fast periodic           Detached
"""
PAIR = """\
MLAG Status:
state                              :              Active
negotiation status                 :           Connected
peer-link status                   :  {state:>18}
local-int status                   :                  Up
"""
CONSISTENCY = """\
vPC domain id                     : 4
Peer status                       : peer adjacency formed ok
vPC keep-alive status             : peer is alive
Configuration consistency status  : {state}
"""
DISCARDS = """\
spine4#show interfaces counters discards
Port              InDiscards        OutDiscards
Et1/1                      0                  3
Et2/1                      0         {count:10}
Et3/1                      0                  1
"""
DEADLOCK = """\
Interface             Queue  Received(Frames)  ReceivedRate(pps)  DeadlockNum  RecoveryNum
                             Transmitted(Frames) TransmittedRate(pps)
-----------------------------------------------------------------------------
100GE1/0/30           3      81233122          221                {count:2}           19
"""
LIGHT = """\
Port          Status    Temp.(C)  RxPower(dBm)  TxPower(dBm)  Voltage(V)  Current(mA)
100GE1/0/1    normal    43.1      -0.82         0.78          3.29        70.2
100GE1/0/2    normal    45.2      -1.00         0.71          3.28        70.0
100GE1/0/3    {state:8}  44.9      {light}        0.80          3.29        71.1
"""
DEADLOCK_MODES = """\
Interface      Queue  TriggerMode Threshold  Status
------------------------------------------------------
100GE1/0/6         5  ErrorDown          30  LinkUp
"""
RATED = """\
switch-7#show interfaces FourHundredGigabitEthernet 0/3 transceiver diagnosis
Temp(Celsius)   Voltage(V)      Bias(mA)            RX power(dBm)       TX power(dBm)
45(OK)          3.28(OK)        71.20(OK)           -23.02({state})[AP]   0.71(OK)
"""
ERRORS_JSON = """\
{"interfaceErrorCounters": {"Ethernet3/1": {"inErrors": 0, "fcsErrors": 0},
 "Ethernet4/1": {"inErrors": COUNT, "fcsErrors": COUNT, "symbolErrors": 0}}}
"""
NXOS_JSON = """\
{"TABLE_interface": {"ROW_interface": [{"interface": "Ethernet1/8", "state": "up", "eth_inpkts": "91233122",
 "eth_crc": "COUNT", "eth_inerr": "COUNT"}]}}
"""
CLOSED_BY_LOG = """\
2026 Jan  9 08:11:52 edge-3 %ETHPORT-5-IF_DOWN_ERROR_DISABLED: Interface Ethernet1/29 is down (Error disabled. \
Reason:Too many link flaps)
Jan  9 08:12:11 spine4 Ebra: %ETH-4-ERRDISABLE: link-flap error detected on Ethernet5/1
"""
SHELL_FLAGS = """\
OS10# show interface phy-eth 1/1/14 transceiver
SFP1/1/14 Rx1 Power = -38.0 dBm
SFP1/1/14 Rx1 Power Low Alarm Flag = {state}
SFP1/1/14 Rx2 Power Low Alarm Flag = False
"""
WATCHDOG_STATE = """\
Interface   Queue  State      Detected  Restored
et-0/0/31   3      {state:8}   {count:8}        1
"""
INBOUND = """\
<tor-9>display counters inbound interface 100GE
Interface             Total(pkts)  Unicast(pkts)  Multicast(pkts)  Broadcast(pkts)  Error(pkts)
100GE1/0/8              712331223      712331000              223                0            0
100GE1/0/9              712331999      712331700              223                0       {errors:6}
"""
SUMMED = """\
AGG        AGG   Partner ID              Selected  Unselected  Individual  Share
Interface  Mode                          Ports     Ports       Ports       Type
--------------------------------------------------------------------------------
BAGG21     D     0x8000, 9c1d-3622-8be8  2         0           0           Shar
BAGG22     D     0x8000, 9c1d-3622-8be9  1         {out}           0           Shar
"""
DOTTED = """\
admin@tor-4:~$ show interfaces counters detailed Ethernet48
Total Packets Received Without Errors.......... 712,331,223
Total Packets Received With Errors............. {errors}
Total Packets Transmitted Successfully......... 712,331,223
"""
BARE_SLOTS = """\
Flags:  D - Down    I - member up but inactive    P - member up and active
Group Port-Channel           Type     Protocol  Member Ports
8    port-channel8   (U)     Eth      DYNAMIC   1/1/13(P) 1/1/14({state})
"""
PEER_LINKS = """\
onyx # show mlag
ID   Group         Vlan       Operational  Local                 Peer
     Port-Channel  Interface  State        IP address            IP address
1    Po2           4001       {state:4}         10.10.20.1            10.10.20.2
"""
REDFISH = """\
{"Members": [{"@odata.id": "/redfish/v1/Chassis/2/NetworkAdapters/NIC.Slot.5/Ports/1", "Id": "1",
  "LinkStatus": "LinkDown", "LinkState": "Enabled", "Status": {"State": "Enabled", "Health": "OK"}},
 {"@odata.id": "/redfish/v1/Systems/B/Processors/GPU_SXM_2", "Id": "GPU_SXM_2",
  "SystemInterface": {"PCIe": {"LanesInUse": 4, "MaxLanes": 16, "PCIeType": "Gen3", "MaxPCIeType": "Gen5"}},
  "Status": {"State": "Enabled", "Health": "Critical", "Conditions": [{"Message": "GPU lost"}]}},
 {"@odata.id": "/redfish/v1/Systems/B/PCIeDevices/D9", "Id": "D9-long", "PCIeErrors": {"FatalErrorCount": 3}}]}
"""

# Blocks of makers that have no row of their own: read by their forms
UP_WITHOUT_PROTOCOL = """\
Ethernet 1/1/9 is up, line protocol is {state}
Hardware is Eth, address is 3c:2c:30:11:22:33
Pluggable media present
Input statistics:
     88121203 packets, 9120033110 octets
     {errors} CRC, 0 overrun, 0 discarded
Output statistics:
     71200311 packets, 7120033110 octets
"""
NAMED_INTERFACE = """\
Interface 1/1/22 is {state}
 Admin state is up
 State information: {reason}
 Link transitions: {changes}
 Statistic                       RX                   TX                Total
 Packets                   5512003              5500121             11012124
 Errors                    {errors}                    0             {errors}
  CRC/FCS                  {errors}                  n/a             {errors}
"""
TWO_PAIRS = """\
cgei-0/2/0/3 is up, ifindex: 118
  Line protocol is up, IPv4 protocol is up
   Output         : 7120 bit/s      2 packet/s
  HardwareCounters:
  In_Packets        90012311             In_CRC_ERROR       {errors}
  E_Packets         90012399             E_CRC_ERROR        {sent}
"""
LOWER_CASE = """\
twentyfivegigaethernet1/0/17 is {state} (not connected)
  Link is {state} for 0 days, 0 hours, 12 minutes and 9 seconds
      90012311 packets input, 7120033110 bytes received
      {errors} input errors, {errors} FCS, 0 alignment
Po3 is up (connected)
      9001231100 packets input, 7120033110 bytes received
      91999 input errors, 91999 FCS, 0 alignment
"""
ROUTER = """\
FourHundredGigE0/0/0/11 is up, line protocol is up
  Interface state transitions: {changes}
     0 input errors, 0 CRC, 0 frame, 0 overrun, 0 ignored, 0 abort
     2 carrier transitions
"""
BLOCK_OF_LINES = """\
Interface port2.0.7
  Scope: both
  Link is {state}, administrative state is {admin}
  Hardware is Ethernet, address is 001a.eb00.1122
    input packets 9001231, bytes 712003311, dropped 0, multicast packets 12
Interface vlan30
  Link is DOWN, administrative state is UP
"""
BARE_ROWS = """\
Port          Admin Link Port    Cfg  Oper LAG/ Port Port Port   SFP/
Id            State      State   MTU  MTU  Bndl Mode Encp Type   MDI
-------------------------------------------------------------------------------
1/1/c1/1      Up    Yes  Up      9212 9212    - netw null xcme   100GBASE-SR4
1/1/c2/1      Up    {link}  {state}    9212 9212    - netw null xcme   100GBASE-SR4
1/1/c3/1      Down  No   Down    9212 9212    - netw null xcme   100GBASE-SR4
"""
LABELS_IN_TWO_COLUMNS = """\
Ethernet Interface
===============================================================================
Description        : to-dc2
Interface          : 2/1/c7/1                   Oper Speed       : 100 Gbps
Admin State        : up                         Config Duplex    : full
Oper State         : {state}
FCS Errors         :                {errors}  Mult Collisions  :                   0
"""
LABEL_FIRST = """\
Interface xe14
  Hardware is ETH  Current HW addr: b86a.9700.1122
  <UP,BROADCAST{running},MULTICAST>
    RX
      input packets 77342 bytes 8712331
      undersize 0 oversize 0 CRC {errors} fragments 0 jabbers 0
"""
DETAIL = """\
Interface: ethernet-1/9
  Oper state      : {state}
  Down reason     : lower-layer-down
       counter          Rx         Tx
  FCS error packets    {errors}      N/A
"""
PAUSES = """\
admin@leaf9:~$ show pfc counters
   Port {way}    PFC0    PFC3         PFC4    PFC5
----------  ------  ------  -----------  ------
 Ethernet0       0       0      {one:>7}       0
 Ethernet8       0       0      {one:>7}       0
Ethernet16       0       0  {count:>11}       0
Ethernet24       0       0      {one:>7}       0
"""
PAUSES_OF_NEXUS = """\
leaf9# show interface priority-flow-control
Port               Mode Oper(VL bmap)  RxPPP      TxPPP
Ethernet1/1        Auto On  (8)        1812       0
Ethernet1/2        Auto On  (8)        904        0
Ethernet1/3        Auto On  (8)        {count:<11}0
Ethernet1/4        Auto On  (8)        77         0
"""
NVOS_PORTS = """\
admin@ib-leaf1:~$ nv show interface
Interface  Logical State  Physical State  Speed  Width
---------  -------------  --------------  -----  -----
sw1p1      Active         LinkUp          ndr    4X
sw1p2      {state:<15}LinkUp          ndr    4X
sw2p1      Down           Polling
sw2p2      Active         LinkUp          ndr    4X
"""
