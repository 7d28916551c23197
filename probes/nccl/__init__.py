"""NCCL on this node: configuration files, libraries, and what running jobs set.

Topology files that NCCL writes are in `topology_files/`, limits of jobs in `system/limits.py`.
"""
