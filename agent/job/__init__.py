"""Why a job failed, hung or was slow: readers of what jobs leave behind, and the causes that they show.

Lines that mean a failure are data (`patterns/*.toml`). Reading a dataset and scanning a host are not done here: what
they show comes in as reports.
"""
