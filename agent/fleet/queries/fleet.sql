-- The whole fleet: what more than one question needs.
--
-- Conventions of these files: DuckDB's dialect; `-- name:` begins a statement or a fragment; $name is a bound
-- parameter; {name} is a list of identifiers or a fragment of these files, never a value; `wanted` is a bound table
-- of the keys that are looked up. In subqueries, columns of a join are named (x.a AS a): ClickHouse calls them x.a
-- otherwise. Tables are those of docs/fleet-dataset.md.

-- name: class_sizes
-- Nodes of every hardware class, and switches of theirs; null: of none.
SELECT hardware_class, count(*) AS nodes
FROM host
GROUP BY hardware_class
UNION ALL
SELECT hardware_class, count(*) AS nodes
FROM switch
GROUP BY hardware_class

-- name: clusters
-- The cluster of each node that is in one.
SELECT node, cluster
FROM host
WHERE cluster IS NOT NULL

-- name: newest
-- How many nodes there are, and when the newest report arrived.
SELECT count(*) AS nodes, max(coalesce(received_at, observed_at)) AS newest
FROM host

-- name: stale_nodes
-- Nodes whose newest report arrived earlier.
SELECT node
FROM host
WHERE coalesce(received_at, observed_at) < $moment

-- name: scope
-- What decides whether a node is one of those that are asked about.
SELECT node, cluster, hardware_class
FROM host
UNION ALL
SELECT node, NULL, hardware_class
FROM switch

-- name: names
-- Nodes and their host names; a switch has none beside its own.
SELECT node, hostname
FROM host
UNION ALL
SELECT node, NULL
FROM switch

-- name: switches
-- How many there are.
SELECT count(*) AS switches
FROM switch

-- name: kinds
-- Nodes by class and by the digests of their rows (agent/fleet/tables.py): two of them, and how many.
-- Of what no digest is known each node is alone.
SELECT
  hardware_class,
  {digests},
  min(node) AS first_node,
  max(node) AS last_node,
  count(*) AS nodes
FROM host
GROUP BY hardware_class, {digests}, CASE WHEN {digest} IS NULL THEN node END
LIMIT $most

-- name: members
-- The nodes of such a group.
SELECT thing.node, {keys}
FROM host AS thing
SEMI JOIN wanted ON {matching}

-- name: columns
-- Some columns of a table.
SELECT {columns}
FROM {table}
