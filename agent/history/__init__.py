"""Data of earlier runs: counters to compare with, the inventory, settings, link-down events, and the file that keeps
them.

Pure but for that file (store.py). What a change means and how it is printed do not belong here.
"""
