"""Saved outputs of Ethernet switches, parsed: SONiC, Cumulus (NVUE), and normalized JSON lines for all others.

Nothing here logs in to a switch or judges one; what a host reports of its own ports is in `dcb/` and `netdev/`.
"""
