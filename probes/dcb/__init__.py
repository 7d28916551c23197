"""Data center bridging of Ethernet interfaces: PFC, ETS, DSCP maps, buffers; by DCB netlink, or from `dcb` and
`mlnx_qos`.

What a switch advertises over LLDP is in `netdev/lldp.py`.
"""
