-- Rows that have to do with the cluster's cables; of most fleets most have not.

-- name: adapters
-- All rows of the adapters that have such a port: one of several is called otherwise than the only one.
SELECT {columns}
FROM {table} AS thing
SEMI JOIN (SELECT node, nic FROM port WHERE {which}) AS cabled
  ON thing.node = cabled.node
  AND {adapter} = cabled.nic

-- name: infiniband
link_layer = 'InfiniBand'

-- name: known_neighbor
neighbor_guid IS NOT NULL

-- name: interfaces
-- Those that heard a neighbour by LLDP.
SELECT {columns}
FROM netdev AS thing
WHERE thing.neighbor_port IS NOT NULL

-- name: gpus
-- Those in an NVLink domain that leaves its node.
SELECT {columns}
FROM gpu AS thing
WHERE thing.cluster_uuid <> '00000000-0000-0000-0000-000000000000'
