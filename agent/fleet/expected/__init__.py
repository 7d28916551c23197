"""Nodes that there should be, by a list, a scheduler or NetBox, beside those that report.

Not here: hardware that a node should have (agent.platforms), and what NetBox is sent (agent.netbox).
"""
