"""Whole InfiniBand fabrics, parsed from saved outputs of ibnetdiscover, iblinkinfo and ibdiagnet.

Nothing here asks a live fabric; the ports of this node are in `rdma/`.
"""
