"""The topology of a cluster as one graph of hosts, rails and switches: its kind, its units, its cabling faults.

Here are the exports of that graph (Slurm, topograph, SVG). Rows of a dataset are read in from_dataset.py and never elsewhere.
"""
