"""Getting reports in: over HTTPS from `ship` (clients, connections, the folder with its limits), and by ssh.

Reading more of a report than its node's name does not belong here: `fleet ingest` does.
"""
