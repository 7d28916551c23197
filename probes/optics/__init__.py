"""Cables and optical modules: which bytes of a module's EEPROM are read, and what CMIS, SFF-8636 and SFF-8472 state in
them.

The interfaces they are plugged into are in `netdev/`, FEC and link modes in `ethtool/`.
"""
