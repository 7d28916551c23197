"""One small fabric as every tool tells it: two leaf switches with a cable between them, a host with two HCAs.

The second HCA runs at 2X HDR; both of its ends support 4X NDR. Leaf 1 has a free port, and a SHARP node inside.
"""

HCA0, HCA1, LEAF1, LEAF2, SHARP = (
    "b83fd20300aa0010", "b83fd20300aa0020", "0c42a10300bb0100", "0c42a10300bb0200", "0c42a10300bb0108",
)  # fmt: skip

TOPOLOGY = f"""#
# Topology file: generated on Tue Feb  3 14:02:06 2026
#
# Initiated from node {HCA0} port {HCA0}

vendid=0x2c9
devid=0xd2f2
sysimgguid=0xc42a10300bb0100
switchguid=0xc42a10300bb0100(c42a10300bb0100)
Switch\t65 "S-{LEAF1}"\t\t# "MF0;leaf-1:MQM9700/U1" enhanced port 0 lid 11 lmc 0
[1]\t"H-{HCA0}"[1](b83fd20300aa0010) \t\t# "gpu-7 mlx5_0" lid 21 4xNDR
[33]\t"S-{LEAF2}"[33]\t\t# "MF0;leaf-2:MQM9700/U1" lid 12 4xNDR
[65]\t"H-{SHARP}"[1](c42a10300bb0108) \t\t# "Mellanox Technologies Aggregation Node" lid 31 4xNDR

vendid=0x2c9
devid=0xd2f2
sysimgguid=0xc42a10300bb0200
switchguid=0xc42a10300bb0200(c42a10300bb0200)
Switch\t65 "S-{LEAF2}"\t\t# "MF0;leaf-2:MQM9700/U1" enhanced port 0 lid 12 lmc 0
[1]\t"H-{HCA1}"[1](b83fd20300aa0020) \t\t# "gpu-7 HCA-2" lid 22 2xHDR
[33]\t"S-{LEAF1}"[33]\t\t# "MF0;leaf-1:MQM9700/U1" lid 11 4xNDR

vendid=0x2c9
devid=0xcf09
sysimgguid=0xc42a10300bb0100
caguid=0xc42a10300bb0108
Ca\t1 "H-{SHARP}"\t\t# "Mellanox Technologies Aggregation Node"
[1](c42a10300bb0108) \t"S-{LEAF1}"[65]\t\t# lid 31 lmc 0 "MF0;leaf-1:MQM9700/U1" lid 11 4xNDR

vendid=0x2c9
devid=0x1021
sysimgguid=0xb83fd20300aa0010
caguid=0xb83fd20300aa0010
Ca\t1 "H-{HCA0}"\t\t# "gpu-7 mlx5_0"
[1](b83fd20300aa0010) \t"S-{LEAF1}"[1]\t\t# lid 21 lmc 0 "MF0;leaf-1:MQM9700/U1" lid 11 4xNDR

vendid=0x2c9
devid=0x1021
sysimgguid=0xb83fd20300aa0010
caguid=0xb83fd20300aa0020
Ca\t1 "H-{HCA1}"\t\t# "gpu-7 HCA-2"
[1](b83fd20300aa0020) \t"S-{LEAF2}"[1]\t\t# lid 22 lmc 0 "MF0;leaf-2:MQM9700/U1" lid 12 2xHDR
"""

_4X_NDR = "==( 4X         106.25 Gbps Active/  LinkUp)==> "
_2X_HDR = "==( 2X         53.125 Gbps Active/  LinkUp)==> "
COULD = "(Could be 4X Could be 106.25 Gbps)"
LINKS = f"""CA: gpu-7 HCA-2:
      0x{HCA1}     22    1[  ] {_2X_HDR}     12    1[  ] "MF0;leaf-2:MQM9700/U1" {COULD}
CA: gpu-7 mlx5_0:
      0x{HCA0}     21    1[  ] {_4X_NDR}     11    1[  ] "MF0;leaf-1:MQM9700/U1" ( )
Switch: 0x{LEAF1} MF0;leaf-1:MQM9700/U1:
          11    1[  ] {_4X_NDR}     21    1[  ] "gpu-7 mlx5_0" ( )
          11    2[  ] ==(                Down/ Polling)==>             [  ] "" ( )
          11   33[  ] {_4X_NDR}     12   33[  ] "MF0;leaf-2:MQM9700/U1" ( )
          11   65[  ] {_4X_NDR}     31    1[  ] "Mellanox Technologies Aggregation Node" ( )
Switch: 0x{LEAF2} MF0;leaf-2:MQM9700/U1:
          12    1[  ] {_2X_HDR}     22    1[  ] "gpu-7 HCA-2" {COULD}
          12   33[  ] {_4X_NDR}     11   33[  ] "MF0;leaf-1:MQM9700/U1" ( )
CA: Mellanox Technologies Aggregation Node:
      0x{SHARP}     31    1[  ] {_4X_NDR}     11   65[  ] "MF0;leaf-1:MQM9700/U1" ( )
"""

_AN = '"Mellanox Technologies Aggregation Node"'
LINES = f"""0x{HCA1} "                   gpu-7 HCA-2"     22    1[  ] {_2X_HDR} 0x{LEAF2}     12    1[  ] "MF0;leaf-2:MQM9700/U1" {COULD}
0x{HCA0} "                  gpu-7 mlx5_0"     21    1[  ] {_4X_NDR} 0x{LEAF1}     11    1[  ] "MF0;leaf-1:MQM9700/U1" ( )
0x{LEAF1} "         MF0;leaf-1:MQM9700/U1"     11    1[  ] {_4X_NDR} 0x{HCA0}     21    1[  ] "gpu-7 mlx5_0" ( )
0x{LEAF1} "         MF0;leaf-1:MQM9700/U1"     11    2[  ] ==(                Down/ Polling)==>             [  ] "" ( )
0x{LEAF1} "         MF0;leaf-1:MQM9700/U1"     11   33[  ] {_4X_NDR} 0x{LEAF2}     12   33[  ] "MF0;leaf-2:MQM9700/U1" ( )
0x{LEAF1} "         MF0;leaf-1:MQM9700/U1"     11   65[  ] {_4X_NDR} 0x{SHARP}     31    1[  ] {_AN} ( )
0x{LEAF2} "         MF0;leaf-2:MQM9700/U1"     12    1[  ] {_2X_HDR} 0x{HCA1}     22    1[  ] "gpu-7 HCA-2" {COULD}
0x{LEAF2} "         MF0;leaf-2:MQM9700/U1"     12   33[  ] {_4X_NDR} 0x{LEAF1}     11   33[  ] "MF0;leaf-1:MQM9700/U1" ( )
0x{SHARP} {_AN}     31    1[  ] {_4X_NDR} 0x{LEAF1}     11   65[  ] "MF0;leaf-1:MQM9700/U1" ( )
"""  # noqa: E501 - lines as the tool writes them

PORTS = f"""CA    22  1 0x{HCA1} 2x HDR - SW    12  1 0x{LEAF2} ( 'gpu-7 HCA-2' - 'MF0;leaf-2:MQM9700/U1' )
CA    21  1 0x{HCA0} 4x NDR - SW    11  1 0x{LEAF1} ( 'gpu-7 mlx5_0' - 'MF0;leaf-1:MQM9700/U1' )
SW    11 65 0x{LEAF1} 4x NDR - CA    31  1 0x{SHARP} ( 'MF0;leaf-1:MQM9700/U1' - {_AN.replace('"', "'")} )
SW    11 33 0x{LEAF1} 4x NDR - SW    12 33 0x{LEAF2} ( 'MF0;leaf-1:MQM9700/U1' - 'MF0;leaf-2:MQM9700/U1' )
SW    11  2 0x{LEAF1} 4x SDR{" " * 36}'MF0;leaf-1:MQM9700/U1'
SW    11  1 0x{LEAF1} 4x NDR - CA    21  1 0x{HCA0} ( 'MF0;leaf-1:MQM9700/U1' - 'gpu-7 mlx5_0' )
SW    12 33 0x{LEAF2} 4x NDR - SW    11 33 0x{LEAF1} ( 'MF0;leaf-2:MQM9700/U1' - 'MF0;leaf-1:MQM9700/U1' )
SW    12  1 0x{LEAF2} 2x HDR - CA    22  1 0x{HCA1} ( 'MF0;leaf-2:MQM9700/U1' - 'gpu-7 HCA-2' )
"""

NODES = f"""Ca\t: 0x{HCA0} ports 1 "gpu-7 mlx5_0"
Ca\t : 0x{HCA1} ports 1 devid 0x1021 vendid 0x2c9 "gpu-7 HCA-2"
Switch\t: 0x{LEAF1} ports 65 "MF0;leaf-1:MQM9700/U1" enhanced port 0 lid 11 lmc 0
"""

_COLUMNS = "#       : IB# : Sta  : PhysSta : MTU : LWA : LSA : FEC mode : Retran : Neighbor Guid : N# : NLID : "
_COLUMNS += "Neighbor Description"
_RUN = "ACT : LINK UP : 5 : 4x : 100 : MLNX_RS_271_257_PLR : NO-RTR"
_SLOW = "ACT : LINK UP : 5 : 2x : 50 : MLNX_RS_271_257_PLR : NO-RTR"
NET_DUMP = f"""# Running version   : "IBDIAGNET 2.13.0","IBDIAG 2.1.1"
"MF0;leaf-1:MQM9700/U1", Mellanox, 0x{LEAF1}, LID 11
{_COLUMNS}
1/1/1 : 1 : {_RUN} : 0x{HCA0} : 1 : 21 : "gpu-7 mlx5_0"
1/1/2 : 2 : DOWN : POLL : N/A : N/A : N/A : N/A : N/A :  :  :  :
1/17/1 : 33 : {_RUN} : 0x{LEAF2} : 1/17/1 : 12 : "MF0;leaf-2:MQM9700/U1"
65 : 65 : {_RUN} : 0x{SHARP} : 1 : 31 : "Mellanox Technologies Aggregation Node"
"MF0;leaf-2:MQM9700/U1", Mellanox, 0x{LEAF2}, LID 12
{_COLUMNS}
1/1/1 : 1 : {_SLOW} : 0x{HCA1} : 1 : 22 : "gpu-7 HCA-2"
1/17/1 : 33 : {_RUN} : 0x{LEAF1} : 1/17/1 : 11 : "MF0;leaf-1:MQM9700/U1"
"""

DB_CSV = f"""# This database file was automatically generated by IBDIAG
START_INDEX_TABLE
INDEX_NAME, INDEX_OFFSET, INDEX_LINE, INDEX_ROWS
NODES, 100, 5, 5
END_INDEX_TABLE

START_NODES
NodeDesc,NumPorts,NodeType,ClassVersion,BaseVersion,SystemImageGUID,NodeGUID,PortGUID,DeviceID,PartitionCap,revision,VendorID,LocalPortNum
"gpu-7 mlx5_0",1,1,1,1,0x{HCA0},0x{HCA0},0x{HCA0},4129,128,0,713,1
"gpu-7 HCA-2",1,1,1,1,0x{HCA0},0x{HCA1},0x{HCA1},4129,128,0,713,1
"MF0;leaf-1:MQM9700/U1",65,2,1,1,0x{LEAF1},0x{LEAF1},0x{LEAF1},54002,8,160,713,1
"MF0;leaf-2:MQM9700/U1",65,2,1,1,0x{LEAF2},0x{LEAF2},0x{LEAF2},54002,8,160,713,1
{_AN},1,1,1,1,0x{LEAF1},0x{SHARP},0x{SHARP},53001,128,0,713,1
END_NODES

START_PORTS
NodeGuid,PortGuid,PortNum,LID,LinkWidthActv,LinkWidthSup,LinkSpeedActv,LinkSpeedSup,PortPhyState,PortState
0x{HCA0},0x{HCA0},1,21,2,19,2048,3841,5,4
0x{HCA1},0x{HCA1},1,22,16,19,1024,3841,5,4
0x{SHARP},0x{SHARP},1,31,2,2,2048,2048,5,4
0x{LEAF1},0x{LEAF1},0,11,0,0,0,0,0,0
0x{LEAF1},0x{LEAF1},1,0,2,19,2048,3841,5,4
0x{LEAF1},0x{LEAF1},2,0,2,19,1,3841,2,1
0x{LEAF1},0x{LEAF1},33,0,2,19,2048,3841,5,4
0x{LEAF1},0x{LEAF1},65,0,2,2,2048,2048,5,4
0x{LEAF2},0x{LEAF2},0,12,0,0,0,0,0,0
0x{LEAF2},0x{LEAF2},1,0,16,19,1024,3841,5,4
0x{LEAF2},0x{LEAF2},33,0,2,19,2048,3841,5,4
END_PORTS

START_LINKS
NodeGuid1,PortNum1,NodeGuid2,PortNum2
0x{LEAF1},1,0x{HCA0},1
0x{LEAF2},1,0x{HCA1},1
0x{LEAF1},33,0x{LEAF2},33
0x{LEAF1},65,0x{SHARP},1
END_LINKS
"""

EVERY = {
    "ibnetdiscover": TOPOLOGY,
    "iblinkinfo": LINKS,
    "iblinkinfo -l": LINES,
    "ibnetdiscover -p": PORTS,
    "ibdiagnet net_dump": NET_DUMP,
    "ibdiagnet db_csv": DB_CSV,
}
