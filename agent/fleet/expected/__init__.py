"""Nodes that there should be, by a list, a scheduler or NetBox, beside those that report.

<<<<<<< HEAD
Not here: what these nodes should have (agent.platforms), and what NetBox is sent (agent.netbox).
=======
Hardware that a node should have is not here: see agent/platforms.
>>>>>>> main
"""
