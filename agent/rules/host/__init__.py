"""The node as a whole: probes, the inventory of earlier runs, the profile of the platform.

What is wrong with one device is in the family of its kind.
"""
