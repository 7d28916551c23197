"""Data of earlier runs: counters to compare with, the inventory, settings, link-down events, and the file that keeps
them. Pure but for that file (store.py); what a change means is for the rules, how it is printed for the outputs.
"""
