"""RDMA devices and their ports: facts, read from sysfs, RDMA netlink, or outputs of ibstat, ibv_devinfo and other
tools.

The interfaces of their ports are in `netdev/`, the fabric beyond them in `fabric/`.
"""
