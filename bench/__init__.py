"""Measurements of the cost of scans, judging and start-up, compared with other tools; `fleet` generates fleets.

Tests and anything that users run do not belong here.
"""
