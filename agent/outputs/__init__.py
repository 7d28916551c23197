"""Pure functions from one report to text: the terminal page, the HTML page, exports, check results, inventory.

Nothing here reads a host, evaluates a rule or compares nodes.
"""
