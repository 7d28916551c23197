"""GPUs themselves: missing ones, differences within one model, Xid errors, peer access.

Links of GPUs are in `pcie` and `nvlink`.
"""
