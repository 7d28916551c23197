"""What a host reports, one package per subject: text and bytes in, facts or the reason there are none out.

Nothing here judges a fact or compares it with a limit, and nothing here imports `agent`.
"""
