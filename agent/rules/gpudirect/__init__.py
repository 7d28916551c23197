"""Whether GPUs and rails reach each other's memory, and the verdict for each pair.

Links below them are in `pcie`; NCCL's own settings are in `nccl`.
"""
