"""The JSON Schema of the report, generated from the model; `fabricscope schema` prints it."""

from __future__ import annotations

import msgspec

from agent.model.report import SCHEMA, SCHEMA_MINOR, Report


def schema_text() -> str:
    """JSON Schema, draft 2020-12, indented, a newline at the end."""
    (whole,), parts = msgspec.json.schema_components([Report], ref_template="#/$defs/{name}")
    made = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{SCHEMA.replace('/', ':')}.{SCHEMA_MINOR}",
        "title": SCHEMA,
        **whole,
        "$defs": parts,
    }
    return msgspec.json.format(msgspec.json.encode(made), indent=2).decode() + "\n"
