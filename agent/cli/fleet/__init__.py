"""The sub-commands of `fleet`; their libraries (the extra `fleet`) are imported when a command runs.

Only options, output and exit codes belong here, not queries: those are in agent/fleet.
"""
