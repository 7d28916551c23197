"""Saved outputs that cannot be of one host at one time: what each states of identity, where two differ, which ones
belong together, and the report that joins nothing of them."""
