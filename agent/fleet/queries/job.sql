-- `recommend --dataset`: what bounds a job on these nodes.

-- name: links
-- PCIe links, as they are and as they could be.
SELECT node, id, parent, speed_gt_s, width, max_speed_gt_s, max_width, quality
FROM link

-- name: nvlinks
-- Direct links of each GPU, counted: those that are alike are one row.
SELECT node, gpu, protocol, state, signal_gbyte_s, remote_kind, count(*) AS links
FROM nvlink
GROUP BY node, gpu, protocol, state, signal_gbyte_s, remote_kind

-- name: paths
-- Paths of pairs in which there is a GPU.
SELECT node, a, b, kind, bandwidth_gbyte_s, limiting
FROM path
WHERE a_kind = 'gpu' OR b_kind = 'gpu'

-- name: faults
-- What findings are about: a link below its maximum without one is as its slot is.
SELECT node, rule, subject, summary
FROM finding
WHERE severity <> 'info' AND NOT coalesce(silenced, FALSE)

-- name: costs
-- Findings that cost bandwidth by the model.
SELECT node, rule, label, cost_collective, cost_nodes, cost_gbyte_s, cost_percent
FROM finding
WHERE cost_percent IS NOT NULL AND NOT coalesce(silenced, FALSE)

-- name: leaves_by_port
-- The switch of each node's first rail, as the fabric's own discovery says.
SELECT DISTINCT node, neighbor_name
FROM port
WHERE rail = 0 AND neighbor_name IS NOT NULL

-- name: leaves_by_interface
-- The same as LLDP says.
SELECT DISTINCT node, neighbor_system
FROM netdev
WHERE rail = 0 AND neighbor_system IS NOT NULL
