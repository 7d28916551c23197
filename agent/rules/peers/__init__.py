"""Parts that should be alike: settings that one of them has otherwise, identifiers that two have, counts that one has.

What a value means by itself is in the family of its device: here parts of this machine are compared with each other.
"""
