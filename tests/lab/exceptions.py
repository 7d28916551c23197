"""Where fixture and kernel differ in an attribute that a probe reads, and why: the list that `test_tree` allows."""

from __future__ import annotations

EXCEPTIONS: dict[str, str] = {}
