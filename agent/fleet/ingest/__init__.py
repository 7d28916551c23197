"""Reports -> a dataset. `run.py` is a run on one page."""
