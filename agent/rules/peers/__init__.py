"""Parts that should be alike: a setting in which one differs, an identifier of two, a count of one alone.

What a value means by itself is in the family of its device: here parts of this machine are compared with each other.
"""
