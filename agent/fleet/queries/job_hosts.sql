-- `job --dataset`: the hosts of a job, as they are or as they were at a moment.

-- name: now
SELECT thing.node, {columns}
FROM {table} AS thing
SEMI JOIN wanted ON thing.node = wanted.node

-- name: then
-- The newest rows that are not later than the moment.
SELECT thing.node, {columns}
FROM {history} AS thing
JOIN (
  SELECT change.node AS node, max(change.observed_at) AS last_change
  FROM history_change AS change
  SEMI JOIN wanted ON change.node = wanted.node
  WHERE change."table" = $table AND change.observed_at <= $moment
  GROUP BY change.node
) AS latest ON thing.node = latest.node AND thing.observed_at = latest.last_change

-- name: looked_at
-- When each node was last looked at, and not after the moment.
SELECT thing.node, max(thing.observed_at) AS last_look
FROM history_sighting AS thing
SEMI JOIN wanted ON thing.node = wanted.node
WHERE thing.observed_at <= $moment
GROUP BY thing.node

-- name: events_near
-- Of all states: a report from after the moment has the lines of that moment.
SELECT DISTINCT thing.node, {columns}
FROM history_event AS thing
SEMI JOIN wanted ON thing.node = wanted.node
WHERE thing.last_at >= $moment AND thing.first_at <= $until
