"""Reports to a dataset: reading in parallel, merging buckets, committing the manifest; `run.py` is one run on a page.

Columns and rows of a report are in agent/fleet/rows and agent/fleet/tables.py.
"""
