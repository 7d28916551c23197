"""Accepting reports over HTTPS into a folder, the other end of `ship`: clients, the folder and its limits, HTTP.

Reading more of a report than its node's name does not belong here: `fleet ingest` does.
"""
