"""NetBox kept in step with what nodes are: desired objects (of reports) -> what NetBox has -> differences -> requests.

`client.py` is the only file that knows HTTP and pynetbox.
"""
