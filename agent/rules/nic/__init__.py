"""NICs of any link layer: firmware, driver stacks, transceivers and cables.

What belongs to one link layer is in `infiniband` or `roce`.
"""
