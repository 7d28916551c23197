-- `fleet duplicates`: identifiers that must be unique and are on several nodes.

-- name: nodes
-- How many nodes there are, and of how many table identity has all numbers.
SELECT count(*) AS nodes, count(identities) AS numbered
FROM host

-- name: shared_numbers
-- Numbers that are there more than once, one time less often: sorting takes two thirds of what grouping does.
SELECT number
FROM (SELECT number, lead(number) OVER (ORDER BY number) AS following FROM identity) AS sorted
WHERE number = following
LIMIT $most

-- name: nodes_of_numbers
SELECT identity.node
FROM identity
SEMI JOIN wanted ON identity.number = wanted.number

-- name: address_count
SELECT count(*) AS addresses
FROM address

-- name: bare_address
-- Without its prefix length, which two nodes may have set to different values.
regexp_replace(thing.address, '/.*', '')

-- name: rows_of_nodes
SELECT {columns}
FROM {table} AS thing
SEMI JOIN wanted ON {matching}

-- name: rows_of_shared_values
-- All rows whose value is on several nodes.
SELECT {columns}
FROM {table} AS thing
SEMI JOIN (
  SELECT {value} AS shared_value
  FROM {table} AS thing
  WHERE {known}
  GROUP BY {keys}
  HAVING min(thing.node) < max(thing.node)
) AS shared ON {value} = shared.shared_value

-- name: any_known
{value} IS NOT NULL

-- name: known_address
-- Not those within a host or a link: NOWHERE_ELSE in agent/fleet/known_duplicates.py (a test compares).
thing.address IS NOT NULL
  AND NOT starts_with(thing.address, '127.')
  AND NOT starts_with(thing.address, '169.254.')
  AND NOT starts_with(thing.address, 'fe8')
  AND NOT starts_with(thing.address, 'fe9')
  AND NOT starts_with(thing.address, 'fea')
  AND NOT starts_with(thing.address, 'feb')
  AND NOT starts_with(thing.address, '0.')
  AND NOT starts_with(thing.address, '::1/')

-- name: changing_names
-- Names under which more than one machine has reported.
SELECT node
FROM history_host
GROUP BY node
HAVING count(DISTINCT serial) > 1
  OR (count(serial) = 0 AND count(DISTINCT machine_id) > 1)

-- name: machines_of_names
SELECT thing.node, thing.observed_at, thing.serial, thing.machine_id
FROM history_host AS thing
SEMI JOIN wanted ON {matching}

-- name: infiniband_ports
-- Ports with a unicast LID (below 0xC000). A virtual function has the LID of its physical one, which another guest may
-- have, too; what a board has within itself (auxiliary) is no part of the fabric.
SELECT
  port.node AS node,
  port.label AS label,
  port.rail AS rail,
  port.hardware_class AS hardware_class,
  port.subnet AS subnet,
  port.sm_lid AS sm_lid,
  port.lid AS lid,
  host.cluster AS cluster
FROM port
LEFT JOIN host ON host.node = port.node
WHERE port.link_layer = 'InfiniBand'
  AND port.lid > 0
  AND port.lid < 49152
  AND port.sm_lid > 0
  AND NOT coalesce(port.virtual_function, FALSE)
  AND coalesce(port.role, '') <> 'auxiliary'

-- name: subnets
-- Of every subnet: its ports, how many of them have a LID that is there twice, and these LIDs.
WITH infiniband AS (
  {infiniband_ports}
),
lids AS (
  SELECT {level}, lid, count(*) AS ports, {shared} AS shared
  FROM infiniband AS thing
  GROUP BY {level}, lid
)
SELECT
  {level},
  CAST(sum(ports) AS BIGINT) AS all_ports,
  CAST(sum(CASE WHEN shared THEN ports ELSE 0 END) AS BIGINT) AS shared_ports,
  list(lid) FILTER (WHERE shared) AS shared_lids
FROM lids AS thing
GROUP BY {level}

-- name: on_several_ports
count(*) > 1

-- name: on_several_nodes
min(node) < max(node)

-- name: ports_of_lids
WITH infiniband AS (
  {infiniband_ports}
)
SELECT {level}, thing.lid, thing.node, thing.label
FROM infiniband AS thing
SEMI JOIN wanted ON {matching}
