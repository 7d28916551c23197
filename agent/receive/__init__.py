"""Getting reports in: over HTTPS from `ship` (clients, connections, the folder and its limits, HTTP), and by the user's own ssh.

Reading more of a report than its node's name does not belong here: `fleet ingest` does.
"""
