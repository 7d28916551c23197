-- `fleet drift`: the rows of a moment beside those of now. history_change has when each table of a node became what it
-- is; the rows of that moment are in the table's history.

-- name: silent_nodes
-- Nodes of which no report arrived since, whatever time their clocks have.
SELECT node
FROM host
WHERE coalesce(received_at, observed_at) <= $moment

-- name: present_nodes
-- Those of some nodes that are in the dataset: forgotten ones have a history, and nothing else.
SELECT present.node
FROM (SELECT node FROM host UNION ALL SELECT node FROM switch) AS present
SEMI JOIN wanted ON present.node = wanted.node

-- name: changes
-- Every node and table that changed since, when last, and since when it had been as before; null: it was not there.
SELECT
  node,
  "table",
  max(observed_at) AS last_change,
  max(observed_at) FILTER (WHERE observed_at <= $moment) AS before_change
FROM history_change
GROUP BY node, "table"
HAVING max(observed_at) > $moment

-- name: pairs
-- Rows then and now side by side, of nodes whose table changed, where they are not the same.
WITH earlier AS (
  SELECT thing.node AS node, {columns}, {label} AS thing_label
  FROM {history} AS thing
  SEMI JOIN wanted ON thing.node = wanted.node AND thing.observed_at = wanted.before_change
  {only}
),
later AS (
  SELECT thing.node AS node, {columns}, {label} AS thing_label
  FROM {history} AS thing
  SEMI JOIN wanted ON thing.node = wanted.node AND thing.observed_at = wanted.last_change
  {only}
)
SELECT
  coalesce(earlier.node, later.node) AS node,
  {earlier_columns},
  earlier.thing_label,
  {later_columns},
  later.thing_label
FROM earlier
FULL JOIN later ON earlier.node = later.node {same_key}
WHERE earlier.node IS NULL
  OR later.node IS NULL
  {differing}
