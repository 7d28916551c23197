"""Nodes that there should be, by a list, a scheduler or NetBox, beside those that report."""
