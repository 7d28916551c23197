"""The topology of a cluster as one graph of hosts, rails and switches: its kind, its units, its cabling faults.

Exports of that graph (Slurm, topograph, SVG) belong here. What reads a dataset is in from_dataset.py.
"""
