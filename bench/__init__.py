"""What fabricscope costs, beside the tools that a user would run instead, and fleets of any size made for that.

Only measurements and their input belong here. Nothing of the product or of the tests' assertions does.
"""
