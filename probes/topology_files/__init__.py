"""Topology files of other tools (NCCL, hwloc, rdma_topo), parsed straight into the facts that probes give.

Outputs that one probe reads among its sources do not belong here: they are in that probe's package.
"""
