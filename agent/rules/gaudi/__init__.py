"""Intel Gaudi: cards that their driver does not offer, and ports inside and outside the box.

Their PCIe links are in `pcie`; their ports are no NICs, so nothing of `roce` is about them.
"""
