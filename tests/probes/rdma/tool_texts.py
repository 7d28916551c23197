"""What the tools for RDMA devices print, made up of the forms that each has."""

IBSTAT = """CA 'mlx4_0'
\tCA type: MT4099
\tNumber of ports: 2
\tFirmware version: 2.42.5000
\tHardware version: 1
\tNode GUID: 0x0002c90300a10010
\tSystem image GUID: 0x0002c90300a10013
\tPort 1:
\t\tState: Down
\t\tPhysical state: Disabled
\t\tRate: 10
\t\tBase lid: 38
\t\tLMC: 0
\t\tSM lid: 13
\t\tCapability mask: 0x02594868
\t\tPort GUID: 0x0002c90300a10011
\t\tLink layer: InfiniBand
\tPort 2:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 56
\t\tBase lid: 12
\t\tLMC: 0
\t\tSM lid: 13
\t\tCapability mask: 0x02594868
\t\tPort GUID: 0x0002c90300a10012
\t\tLink layer: InfiniBand
"""

_PARAGRAPH = """Infiniband device 'mlx5_{0}' port {1} status:
\tdefault gid:\t fe80:0000:0000:0000:0002:c903:00a1:00{0}{1}
\tbase lid:\t 0x1{0}
\tsm lid:\t\t 0x1
\tstate:\t\t {2}
\tphys state:\t {3}
\trate:\t\t 100 Gb/sec (4X EDR)
\tlink_layer:\t InfiniBand

"""
IBSTATUS = _PARAGRAPH.format(0, 1, "4: ACTIVE", "5: LinkUp") + _PARAGRAPH.format(0, 2, "1: DOWN", "2: Polling")

IBV_DEVINFO = """hca_id:\tmlx5_0
\ttransport:\t\t\tInfiniBand (0)
\tfw_ver:\t\t\t\t28.41.1000
\tnode_guid:\t\t\t0002:c903:00a1:0010
\tsys_image_guid:\t\t\t0002:c903:00a1:0010
\tvendor_id:\t\t\t0x02c9
\tvendor_part_id:\t\t\t4129
\thw_ver:\t\t\t\t0x0
\tboard_id:\t\t\tMT_0000000838
\tphys_port_cnt:\t\t\t1
\tmax_mr_size:\t\t\t0xffffffffffffffff
\tdevice_cap_flags:\t\t0x21361c36
\t\t\t\t\tBAD_PKEY_CNTR
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\t4096 (5)
\t\t\tsm_lid:\t\t\t1
\t\t\tport_lid:\t\t22
\t\t\tport_lmc:\t\t0x00
\t\t\tlink_layer:\t\tEthernet
\t\t\tpkey_tbl_len:\t\t1
\t\t\tgid_tbl_len:\t\t255
\t\t\tactive_width:\t\t4X (2)
\t\t\tactive_speed:\t\t100.0 Gbps (128)
\t\t\tphys_state:\t\tLINK_UP (5)
\t\t\tGID[  0]:\t\tfe80::2:c9ff:fea1:10, RoCE v2
\t\t\tGID[  2]:\t\t0000:0000:0000:0000:0000:ffff:c0a8:0105, IB/RoCE v1
\t\t\tGID[  3]:\t\t::ffff:192.168.1.5, RoCE v2

"""

RDMA_LINK = """\
link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 133 sm_lid 49151 lmc 0 state ACTIVE physical_state LINK_UP
link roceo1/1 state DOWN physical_state DISABLED netdev eno12409
link roceo2/1 state ACTIVE physical_state LINK_UP
"""

IBDEV2NETDEV = """mlx5_0 port 1 ==> ens108np0 (Up)
mlx5_10 port 1 ==> bond0 (Up)
mlx4_0 port 1 ==> ib0 (Down)
mlx4_0 port 2 ==> ib1 (Up)
0000:84:00.0 mlx5_2 (MT4115 - MT1523X04353) CX456A - ConnectX-4 QSFP fw 12.12.0780 port 1 (ACTIVE) ==> ens785f0 (Up)
"""

SHOW_GIDS = """DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV
---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---
mlx5_0\t1\t0\tfe80:0000:0000:0000:0002:c9ff:fea1:0010\t\t\tv1\trdma0
mlx5_0\t1\t1\tfe80:0000:0000:0000:0002:c9ff:fea1:0010\t\t\tv2\trdma0
mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:c0a8:0105\t192.168.1.5  \tv2\trdma0
mlx5_1\t1\t0\tfe80:0000:0000:0000:0002:c903:00a1:0011\t\t\tv1
n_gids_found=4
"""
