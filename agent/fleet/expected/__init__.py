"""Nodes that there should be, by a list, a scheduler or NetBox, beside those that report.

Hardware that a node should have is not here: see agent/platforms.
"""
