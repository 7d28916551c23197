"""`--redact`: identities in a recording (names, addresses, serial numbers, GUIDs) replaced by pseudonyms.

Secrets that must never leave the reading process are filtered earlier, in `probes/host/filter_secrets.py`.
"""
