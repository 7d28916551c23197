"""Values of several hosts or devices beside each other: tables, records and lines that no tool has a form for.

What a value means by itself is with its tool; here one is compared with those of its kind.
"""
