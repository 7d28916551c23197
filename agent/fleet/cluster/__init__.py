"""Hosts, rails and switches of one cluster as one graph: what it is, and what breaks it."""
