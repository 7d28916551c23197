"""The report as one HTML page that opens anywhere, and the machine as a picture: both drawn from the report alone.

The fleet's page is not here: agent/fleet/page builds it from these elements.
"""
