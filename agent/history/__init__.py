"""What earlier runs left for this one: counters to compare with, inventory, settings, link-down events.

Pure functions of data, but for store.py, the only module that touches the state file. Rules do not belong here.
"""
