"""Questions to a fleet, one module each: the SQL of agent/fleet/queries with its bound values, and the answer as data.

How answers are worded is in agent/fleet/text, and how a query runs in agent/fleet/engines.
"""
