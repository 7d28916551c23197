// SPDX-License-Identifier: GPL-2.0
/* RDMA devices as mlx5_ib shows them, of either link layer: everything in sysfs and netlink, and no traffic. */
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>
#include <rdma/ib_verbs.h>
#include "fabsim.h"

static const struct rdma_stat_desc hardware[] = {
	{"duplicate_request"},
	{"implied_nak_seq_err"},
	{"local_ack_timeout_err"},
	{"out_of_buffer"},
	{"out_of_sequence"},
	{"packet_seq_err"},
	{"req_cqe_error"},
	{"req_cqe_flush_error"},
	{"req_remote_access_errors"},
	{"req_remote_invalid_request"},
	{"resp_cqe_error"},
	{"resp_cqe_flush_error"},
	{"resp_local_length_error"},
	{"resp_remote_access_errors"},
	{"rnr_nak_retry_err"},
	{"rx_atomic_requests"},
	{"rx_dct_connect"},
	{"rx_icrc_encapsulated"},
	{"rx_read_requests"},
	{"rx_write_requests"},
	/* of Ethernet ports only: */
	{"np_cnp_sent"},
	{"np_ecn_marked_roce_packets"},
	{"roce_adp_retrans"},
	{"roce_adp_retrans_to"},
	{"roce_slow_restart"},
	{"roce_slow_restart_cnps"},
	{"roce_slow_restart_trans"},
	{"rp_cnp_handled"},
	{"rp_cnp_ignored"},
};
#define OF_BOTH 20
#define HARDWARE ARRAY_SIZE(hardware)

enum {
	SYMBOL,
	RECOVERY,
	DOWNED,
	RCV,
	RCV_REMOTE,
	RCV_RELAY,
	DISCARDS,
	XMIT_CONSTRAINT,
	RCV_CONSTRAINT,
	INTEGRITY,
	OVERRUN,
	VL15,
	WAIT,
	XMIT_DATA,
	RCV_DATA,
	XMIT_PACKETS,
	RCV_PACKETS,
	PMA
};
static const char *const pma[PMA] = {
	"symbol_error",
	"link_error_recovery",
	"link_downed",
	"port_rcv_errors",
	"port_rcv_remote_physical_errors",
	"port_rcv_switch_relay_errors",
	"port_xmit_discards",
	"port_xmit_constraint_errors",
	"port_rcv_constraint_errors",
	"local_link_integrity_errors",
	"excessive_buffer_overrun_errors",
	"VL15_dropped",
	"port_xmit_wait",
	"port_xmit_data",
	"port_rcv_data",
	"port_xmit_packets",
	"port_rcv_packets",
};

struct card {
	struct ib_device ib;
	bool ethernet, v1, silent;
	__be64 guid, image;
	u32 firmware[3];
	char type[16], board[20];
	u8 state, phys, width;
	u16 speed, lid, sm_lid;
	u64 hardware[HARDWARE], pma[PMA];
};

static struct card *cards[FABSIM_MOST];
static DECLARE_WAIT_QUEUE_HEAD(answered);

static struct card *card_of(struct ib_device *ib)
{
	return container_of(ib, struct card, ib);
}

static struct net_device *netdev_of(struct card *c)
{
	return c->ethernet ? fabsim_netdev(dev_name(c->ib.dev.parent)) : NULL;
}

static int query_device(struct ib_device *ib, struct ib_device_attr *out, struct ib_udata *data)
{
	struct card *c = card_of(ib);

	out->vendor_id = 0x2c9;
	out->vendor_part_id = 4129;
	out->max_pkeys = c->ethernet ? 1 : 128;
	out->fw_ver = (u64)c->firmware[0] << 32 | c->firmware[1] << 16 | c->firmware[2];
	out->sys_image_guid = c->image;
	return 0;
}

static int query_port(struct ib_device *ib, u32 port, struct ib_port_attr *out)
{
	struct card *c = card_of(ib);
	struct net_device *netdev = netdev_of(c);
	bool up = !netdev || (netif_running(netdev) && netif_carrier_ok(netdev));

	wait_event(answered, !READ_ONCE(c->silent)); /* as a driver waits for its firmware: nothing ends it */
	out->state = up ? c->state : IB_PORT_DOWN;
	out->phys_state = up ? c->phys : 3;
	out->active_speed = c->speed;
	out->active_width = c->width;
	out->lid = c->lid;
	out->sm_lid = c->sm_lid;
	out->max_mtu = IB_MTU_4096;
	out->active_mtu = netdev ? iboe_get_mtu(netdev->mtu) : IB_MTU_4096;
	out->gid_tbl_len = c->ethernet ? 16 : 8;
	out->pkey_tbl_len = c->ethernet ? 1 : 128;
	out->port_cap_flags = c->ethernet ? 0x04010000 : 0xa651e848;
	out->max_msg_sz = 1 << 30;
	out->ip_gids = c->ethernet;
	out->subnet_prefix = c->ethernet ? 0 : 0xfe80000000000000ull;
	return 0;
}

static int immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *out)
{
	struct card *c = card_of(ib);

	out->pkey_tbl_len = c->ethernet ? 1 : 128;
	out->gid_tbl_len = c->ethernet ? 16 : 8;
	out->core_cap_flags = c->v1	    ? RDMA_CORE_PORT_IBA_ROCE
			      : c->ethernet ? RDMA_CORE_PORT_IBA_ROCE | RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP
					    : RDMA_CORE_PORT_IBA_IB;
	out->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static int query_gid(struct ib_device *ib, u32 port, int index, union ib_gid *out)
{
	memset(out, 0, sizeof(*out));
	if (!index) {
		out->global.subnet_prefix = cpu_to_be64(0xfe80000000000000ull);
		out->global.interface_id = card_of(ib)->guid;
	}
	return 0;
}

static int query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *out)
{
	*out = index ? 0 : 0xffff;
	return 0;
}

static enum rdma_link_layer link_layer(struct ib_device *ib, u32 port)
{
	return card_of(ib)->ethernet ? IB_LINK_LAYER_ETHERNET : IB_LINK_LAYER_INFINIBAND;
}

static void firmware_text(struct ib_device *ib, char *out)
{
	u32 *v = card_of(ib)->firmware;

	snprintf(out, IB_FW_VERSION_NAME_MAX, "%u.%u.%04u", v[0], v[1], v[2]);
}

static int keep_gid(const struct ib_gid_attr *attribute, void **context)
{
	return 0;
}

static struct rdma_hw_stats *allocate(struct ib_device *ib, u32 port)
{
	return rdma_alloc_hw_stats_struct(hardware, card_of(ib)->ethernet ? HARDWARE : OF_BOTH, 12);
}

static int get_stats(struct ib_device *ib, struct rdma_hw_stats *stats, u32 port, int index)
{
	memcpy(stats->value, card_of(ib)->hardware, sizeof(u64) * stats->num_counters);
	return stats->num_counters;
}

static void port_counters(const u64 *from, struct ib_pma_portcounters *out)
{
	out->symbol_error_counter = cpu_to_be16(from[SYMBOL]);
	out->link_error_recovery_counter = from[RECOVERY];
	out->link_downed_counter = from[DOWNED];
	out->port_rcv_errors = cpu_to_be16(from[RCV]);
	out->port_rcv_remphys_errors = cpu_to_be16(from[RCV_REMOTE]);
	out->port_rcv_switch_relay_errors = cpu_to_be16(from[RCV_RELAY]);
	out->port_xmit_discards = cpu_to_be16(from[DISCARDS]);
	out->port_xmit_constraint_errors = from[XMIT_CONSTRAINT];
	out->port_rcv_constraint_errors = from[RCV_CONSTRAINT];
	out->link_overrun_errors = (from[INTEGRITY] & 15) << 4 | (from[OVERRUN] & 15);
	out->vl15_dropped = cpu_to_be16(from[VL15]);
	out->port_xmit_wait = cpu_to_be32(from[WAIT]);
}

/* The kernel reads ports/N/counters by asking the device's own performance management agent. */
static int process_mad(struct ib_device *ib, int flags, u32 port, const struct ib_wc *wc, const struct ib_grh *grh,
		       const struct ib_mad *in, struct ib_mad *out, size_t *size, u16 *index)
{
	void *data = out->data + 40;
	u64 *from = card_of(ib)->pma;

	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT)
		return IB_MAD_RESULT_SUCCESS;
	if (in->mad_hdr.attr_id == IB_PMA_CLASS_PORT_INFO) {
		((struct ib_class_port_info *)data)->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH;
	} else if (in->mad_hdr.attr_id == IB_PMA_PORT_COUNTERS_EXT) {
		struct ib_pma_portcounters_ext *wide = data;

		wide->port_xmit_data = wide->port_unicast_xmit_packets = cpu_to_be64(from[XMIT_DATA]);
		wide->port_rcv_data = wide->port_unicast_rcv_packets = cpu_to_be64(from[RCV_DATA]);
		wide->port_multicast_xmit_packets = wide->port_xmit_packets = cpu_to_be64(from[XMIT_PACKETS]);
		wide->port_multicast_rcv_packets = wide->port_rcv_packets = cpu_to_be64(from[RCV_PACKETS]);
	} else {
		port_counters(from, data);
	}
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

/* uverbs makes its device nodes only for drivers that can open a context; opening one is refused */
struct context {
	struct ib_ucontext ib;
};

static int open_context(struct ib_ucontext *context, struct ib_udata *data)
{
	return -EOPNOTSUPP;
}

static void close_context(struct ib_ucontext *context)
{
}

static ssize_t hca_type_show(struct device *device, struct device_attribute *attribute, char *out)
{
	return sysfs_emit(out, "%s\n", container_of(device, struct card, ib.dev)->type);
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t board_id_show(struct device *device, struct device_attribute *attribute, char *out)
{
	return sysfs_emit(out, "%s\n", container_of(device, struct card, ib.dev)->board);
}
static DEVICE_ATTR_RO(board_id);

static ssize_t hw_rev_show(struct device *device, struct device_attribute *attribute, char *out)
{
	return sysfs_emit(out, "0\n");
}
static DEVICE_ATTR_RO(hw_rev);

static struct attribute *attributes[] = {&dev_attr_hca_type.attr, &dev_attr_board_id.attr, &dev_attr_hw_rev.attr, NULL};
static const struct attribute_group group = {.attrs = attributes};
static const struct ib_device_ops operations = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = 1,
	.query_device = query_device,
	.query_port = query_port,
	.get_port_immutable = immutable,
	.query_gid = query_gid,
	.query_pkey = query_pkey,
	.get_link_layer = link_layer,
	.get_dev_fw_str = firmware_text,
	.add_gid = keep_gid,
	.del_gid = keep_gid,
	.alloc_hw_port_stats = allocate,
	.get_hw_stats = get_stats,
	.process_mad = process_mad,
	.alloc_ucontext = open_context,
	.dealloc_ucontext = close_context,
	.device_group = &group,
	INIT_RDMA_OBJ_SIZE(ib_ucontext, context, ib),
};

static int slot_of(const char *address)
{
	int i;

	for (i = 0; i < FABSIM_MOST; i++)
		if (cards[i] && !strcmp(dev_name(cards[i]->ib.dev.parent), address))
			return i;
	return -1;
}

static struct card *named(char **words)
{
	int slot = slot_of(strsep(words, " "));

	if (!*words)
		*words = "";
	return slot < 0 ? NULL : cards[slot];
}

static int ib(char *words)
{
	char address[24], name[32], layer[8], node[64];
	struct pci_dev *device;
	struct net_device *netdev;
	struct card *c;
	int slot, error;
	u64 guid, image;

	if (sscanf(words, "%23s %31s %7s %llx %llx %63s", address, name, layer, &guid, &image, node) != 6)
		return -EINVAL;
	for (slot = 0; slot < FABSIM_MOST && cards[slot]; slot++)
		;
	device = fabsim_device(address);
	c = device && slot < FABSIM_MOST ? ib_alloc_device(card, ib) : NULL;
	pci_dev_put(device);
	if (!c)
		return -ENODEV;
	c->v1 = layer[0] == 'v';
	c->ethernet = layer[0] != 'i';
	c->guid = cpu_to_be64(guid);
	c->image = cpu_to_be64(image);
	c->ib.node_type = RDMA_NODE_IB_CA;
	c->ib.phys_port_cnt = 1;
	c->ib.num_comp_vectors = 1;
	c->ib.node_guid = c->guid;
	c->ib.dev.parent = &device->dev;
	snprintf(c->ib.node_desc, sizeof(c->ib.node_desc), "%s %s", node, name);
	ib_set_device_ops(&c->ib, &operations);
	netdev = netdev_of(c);
	error = netdev ? ib_device_set_netdev(&c->ib, netdev, 1) : 0;
	error = error ?: ib_register_device(&c->ib, name, NULL);
	if (error)
		ib_dealloc_device(&c->ib);
	else
		cards[slot] = c;
	return error;
}

static int remove(char *words)
{
	int slot = slot_of(words);

	if (slot < 0)
		return -EINVAL;
	ib_unregister_device(&cards[slot]->ib);
	ib_dealloc_device(&cards[slot]->ib);
	cards[slot] = NULL;
	return 0;
}

static int card(char *words)
{
	struct card *c = named(&words);

	if (!c ||
	    sscanf(words, "%15s %19s %u.%u.%u", c->type, c->board, c->firmware, c->firmware + 1, c->firmware + 2) != 5)
		return -EINVAL;
	return 0;
}

static int port(char *words)
{
	struct card *c = named(&words);
	struct ib_event event = {.element.port_num = 1};
	u32 state, phys, speed, width, lid, sm_lid;

	if (!c || sscanf(words, "%u %u %u %u %u %u", &state, &phys, &speed, &width, &lid, &sm_lid) != 6)
		return -EINVAL;
	c->state = state;
	c->phys = phys;
	c->speed = speed;
	c->width = width;
	c->lid = lid;
	c->sm_lid = sm_lid;
	event.device = &c->ib;
	event.event = state == IB_PORT_ACTIVE ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR;
	ib_dispatch_event(&event);
	return 0;
}

static int counter(char *words)
{
	struct card *c = named(&words);
	char name[48];
	u64 value;
	int i;

	if (!c || sscanf(words, "%47s %llu", name, &value) != 2)
		return -EINVAL;
	for (i = 0; i < PMA; i++)
		if (!strcmp(pma[i], name)) {
			c->pma[i] = value;
			return 0;
		}
	for (i = 0; i < HARDWARE; i++)
		if (!strcmp(hardware[i].name, name)) {
			c->hardware[i] = value;
			return 0;
		}
	return -ENOENT;
}

static int silent(char *words)
{
	struct card *c = named(&words);

	if (!c)
		return -EINVAL;
	WRITE_ONCE(c->silent, words[0] == '1');
	wake_up_all(&answered);
	return 0;
}

/*
 * ib ADDRESS NAME ib|eth|v1 GUID IMAGE NODE        an RDMA device with one port; v1: GIDs of RoCE v1 only
 * card ADDRESS TYPE BOARD FIRMWARE
 * port ADDRESS STATE PHYS SPEED WIDTH LID SMLID    speed and width as InfiniBand's bits
 * counter ADDRESS NAME VALUE                       of ports/1/counters or ports/1/hw_counters
 * remove ADDRESS                                   unregister it
 * silent ADDRESS 0|1                               its firmware answers no question about the port
 */
const struct fabsim_command fabsim_rdma_commands[] = {{"ib", ib},	    {"card", card},	{"port", port},
						      {"counter", counter}, {"remove", remove}, {"silent", silent}, {}};

void fabsim_rdma_clear(void)
{
	int i;

	for (i = 0; i < FABSIM_MOST; i++)
		if (cards[i]) {
			ib_unregister_device(&cards[i]->ib);
			ib_dealloc_device(&cards[i]->ib);
			cards[i] = NULL;
		}
}
