"""Which GPUs and NICs are near to each other and to which NUMA node.

Whether GPUDirect works on a pair is in `gpudirect`.
"""
