"""NetBox kept in step with what nodes are: desired objects (of reports) -> what NetBox has -> differences -> requests.

`client.py` is the only module that uses HTTP and pynetbox. What an inventory should hold of a node is not decided
here: that is agent/outputs/inventory.
"""
