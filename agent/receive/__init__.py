"""Getting reports in: over HTTPS from `ship` (clients, connections, the folder with its limits), and by ssh.

A check or a reading of reports of its own does not belong here: what `fleet.reading` refuses is refused.
"""
