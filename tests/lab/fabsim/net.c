// SPDX-License-Identifier: GPL-2.0
/* Netdevs as a port of an mlx5 card has them: DCB, pause, FEC, link modes and counters by the real operations. */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <net/dcbnl.h>
#include "fabsim.h"

#define COUNTERS 160

struct port {
	u32 speed;
	char firmware[32], phys[8];
	struct ethtool_pauseparam pause;
	u32 fec, fec_active;
	struct ieee_ets ets;
	struct ieee_pfc pfc;
	struct ieee_maxrate maxrate;
	struct dcbnl_buffer buffer;
	u8 dcbx;
	int counters;
	char name[COUNTERS][ETH_GSTRING_LEN];
	u64 value[COUNTERS];
};

static struct net_device *netdevs[FABSIM_MOST];

struct net_device *fabsim_netdev(const char *address)
{
	int i;

	for (i = 0; i < FABSIM_MOST; i++)
		if (netdevs[i] && !strcmp(dev_name(netdevs[i]->dev.parent), address))
			return netdevs[i];
	return NULL;
}

static netdev_tx_t transmit(struct sk_buff *packet, struct net_device *netdev)
{
	dev_kfree_skb(packet); /* there is no wire */
	return NETDEV_TX_OK;
}

static int phys_port_name(struct net_device *netdev, char *name, size_t size)
{
	struct port *p = netdev_priv(netdev);

	return p->phys[0] ? strscpy(name, p->phys, size) < 0 ? -EOVERFLOW : 0 : -EOPNOTSUPP;
}

static const struct net_device_ops operations = {
	.ndo_start_xmit = transmit, .ndo_set_mac_address = eth_mac_addr, .ndo_get_phys_port_name = phys_port_name};

static int link_settings(struct net_device *netdev, struct ethtool_link_ksettings *out)
{
	static const struct {
		u32 speed;
		int mode;
	} modes[] = {
		{100000, ETHTOOL_LINK_MODE_100000baseCR4_Full_BIT},
		{200000, ETHTOOL_LINK_MODE_200000baseCR4_Full_BIT},
		{400000, ETHTOOL_LINK_MODE_400000baseCR4_Full_BIT},
	};
	struct port *p = netdev_priv(netdev);
	int i;

	ethtool_link_ksettings_zero_link_mode(out, supported);
	ethtool_link_ksettings_add_link_mode(out, supported, Autoneg);
	ethtool_link_ksettings_add_link_mode(out, supported, FIBRE);
	ethtool_link_ksettings_add_link_mode(out, supported, FEC_NONE);
	ethtool_link_ksettings_add_link_mode(out, supported, FEC_RS);
	for (i = 0; i < ARRAY_SIZE(modes); i++)
		if (modes[i].speed <= p->speed)
			__set_bit(modes[i].mode, out->link_modes.supported);
	bitmap_copy(out->link_modes.advertising, out->link_modes.supported, __ETHTOOL_LINK_MODE_MASK_NBITS);
	out->base.speed = netif_carrier_ok(netdev) ? p->speed : SPEED_UNKNOWN;
	out->base.duplex = DUPLEX_FULL;
	out->base.port = PORT_FIBRE;
	out->base.autoneg = AUTONEG_ENABLE;
	return 0;
}

static void get_pause(struct net_device *netdev, struct ethtool_pauseparam *out)
{
	struct port *p = netdev_priv(netdev);

	out->autoneg = p->pause.autoneg;
	out->rx_pause = p->pause.rx_pause;
	out->tx_pause = p->pause.tx_pause;
}

static int set_pause(struct net_device *netdev, struct ethtool_pauseparam *in)
{
	((struct port *)netdev_priv(netdev))->pause = *in;
	return 0;
}

static int get_fec(struct net_device *netdev, struct ethtool_fecparam *out)
{
	struct port *p = netdev_priv(netdev);

	out->fec = p->fec;
	out->active_fec = p->fec_active;
	return 0;
}

static int string_count(struct net_device *netdev, int set)
{
	return set == ETH_SS_STATS ? ((struct port *)netdev_priv(netdev))->counters : -EOPNOTSUPP;
}

static void get_strings(struct net_device *netdev, u32 set, u8 *out)
{
	struct port *p = netdev_priv(netdev);

	memcpy(out, p->name, p->counters * ETH_GSTRING_LEN);
}

static void get_stats(struct net_device *netdev, struct ethtool_stats *stats, u64 *out)
{
	struct port *p = netdev_priv(netdev);

	memcpy(out, p->value, p->counters * sizeof(u64));
}

static void get_driver(struct net_device *netdev, struct ethtool_drvinfo *out)
{
	strscpy(out->driver, "mlx5_core", sizeof(out->driver));
	strscpy(out->fw_version, ((struct port *)netdev_priv(netdev))->firmware, sizeof(out->fw_version));
	strscpy(out->bus_info, dev_name(netdev->dev.parent), sizeof(out->bus_info));
}

static const struct ethtool_ops ethtool = {
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = link_settings,
	.get_pauseparam = get_pause,
	.set_pauseparam = set_pause,
	.get_fecparam = get_fec,
	.get_sset_count = string_count,
	.get_strings = get_strings,
	.get_ethtool_stats = get_stats,
	.get_drvinfo = get_driver,
};

#define GET_AND_SET(name, type)                                                                                        \
	static int get_##name(struct net_device *netdev, struct type *out)                                             \
	{                                                                                                              \
		*out = ((struct port *)netdev_priv(netdev))->name;                                                     \
		return 0;                                                                                              \
	}                                                                                                              \
	static int set_##name(struct net_device *netdev, struct type *in)                                              \
	{                                                                                                              \
		((struct port *)netdev_priv(netdev))->name = *in;                                                      \
		return 0;                                                                                              \
	}
GET_AND_SET(ets, ieee_ets)
GET_AND_SET(pfc, ieee_pfc)
GET_AND_SET(maxrate, ieee_maxrate)
GET_AND_SET(buffer, dcbnl_buffer)

static u8 get_dcbx(struct net_device *netdev)
{
	return ((struct port *)netdev_priv(netdev))->dcbx;
}

static u8 set_dcbx(struct net_device *netdev, u8 mode)
{
	((struct port *)netdev_priv(netdev))->dcbx = mode;
	return 0;
}

static int set_app(struct net_device *netdev, struct dcb_app *entry)
{
	return dcb_ieee_setapp(netdev, entry);
}

static int del_app(struct net_device *netdev, struct dcb_app *entry)
{
	return dcb_ieee_delapp(netdev, entry);
}

static const struct dcbnl_rtnl_ops dcb = {
	.ieee_getets = get_ets,
	.ieee_setets = set_ets,
	.ieee_getpfc = get_pfc,
	.ieee_setpfc = set_pfc,
	.ieee_getmaxrate = get_maxrate,
	.ieee_setmaxrate = set_maxrate,
	.dcbnl_getbuffer = get_buffer,
	.dcbnl_setbuffer = set_buffer,
	.getdcbx = get_dcbx,
	.setdcbx = set_dcbx,
	.ieee_setapp = set_app,
	.ieee_delapp = del_app,
};

static void as_the_factory_sets_it(struct port *p)
{
	static const u8 traffic_class[8] = {1, 0, 2, 3, 4, 5, 6, 7};
	int i;

	p->fec = ETHTOOL_FEC_AUTO;
	p->fec_active = ETHTOOL_FEC_RS;
	p->dcbx = DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE;
	p->ets.ets_cap = p->pfc.pfc_cap = 8;
	p->pfc.delay = 7;
	memcpy(p->ets.prio_tc, traffic_class, sizeof(traffic_class));
	for (i = 0; i < 8; i++) {
		p->ets.tc_tsa[i] = IEEE_8021QAZ_TSA_VENDOR;
		p->ets.tc_tx_bw[i] = 100;
	}
	p->buffer.buffer_size[0] = 156096;
	p->buffer.buffer_size[1] = 262272;
	p->buffer.total_size = 418368;
}

static int net(char *words)
{
	char address[24], phys[8] = "";
	u8 mac[ETH_ALEN];
	struct net_device *netdev;
	struct pci_dev *device;
	struct port *p;
	int slot, error;
	u32 speed;

	for (slot = 0; slot < FABSIM_MOST && netdevs[slot]; slot++)
		;
	if (slot == FABSIM_MOST || sscanf(words, "%23s %u %hhx:%hhx:%hhx:%hhx:%hhx:%hhx %7s", address, &speed, mac,
					  mac + 1, mac + 2, mac + 3, mac + 4, mac + 5, phys) < 8)
		return -EINVAL;
	device = fabsim_device(address);
	if (!device)
		return -ENODEV;
	netdev = alloc_netdev(sizeof(*p), "eth%d", NET_NAME_ENUM, ether_setup);
	if (!netdev) {
		pci_dev_put(device);
		return -ENOMEM;
	}
	p = netdev_priv(netdev);
	p->speed = speed;
	strscpy(p->phys, phys, sizeof(p->phys));
	as_the_factory_sets_it(p);
	netdev->netdev_ops = &operations;
	netdev->ethtool_ops = &ethtool;
	netdev->dcbnl_ops = &dcb;
	netdev->max_mtu = 9978;
	eth_hw_addr_set(netdev, mac);
	SET_NETDEV_DEV(netdev, &device->dev);
	netif_carrier_off(netdev); /* so that the first carrier is an event and operstate follows */
	error = register_netdev(netdev);
	pci_dev_put(device);
	if (error) {
		free_netdev(netdev);
		return error;
	}
	netif_carrier_on(netdev);
	netdevs[slot] = netdev;
	return 0;
}

/* The port that the first word names, and what stands after it. */
static struct net_device *named(char **words)
{
	char *address = strsep(words, " ");

	if (!*words)
		*words = "";
	return fabsim_netdev(address);
}

static int stat(char *words)
{
	struct net_device *netdev = named(&words);
	struct port *p = netdev ? netdev_priv(netdev) : NULL;
	char name[ETH_GSTRING_LEN];
	u64 value;
	int i;

	if (!p || sscanf(words, "%31s %llu", name, &value) != 2)
		return -EINVAL;
	for (i = 0; i < p->counters && strcmp(p->name[i], name); i++)
		;
	if (i == COUNTERS)
		return -ENOSPC;
	if (i == p->counters)
		strscpy(p->name[p->counters++], name, ETH_GSTRING_LEN);
	p->value[i] = value;
	return 0;
}

static int carrier(char *words)
{
	struct net_device *netdev = named(&words);

	if (!netdev)
		return -EINVAL;
	if (words[0] == '1')
		netif_carrier_on(netdev);
	else
		netif_carrier_off(netdev);
	return 0;
}

static int set_speed(char *words)
{
	struct net_device *netdev = named(&words);

	return netdev ? kstrtou32(words, 10, &((struct port *)netdev_priv(netdev))->speed) : -EINVAL;
}

static int pause(char *words)
{
	struct net_device *netdev = named(&words);
	struct port *p = netdev ? netdev_priv(netdev) : NULL;

	if (!p || sscanf(words, "%u %u", &p->pause.rx_pause, &p->pause.tx_pause) != 2)
		return -EINVAL;
	return 0;
}

static int pfc(char *words)
{
	struct net_device *netdev = named(&words);
	struct port *p = netdev ? netdev_priv(netdev) : NULL;
	int i;

	if (!p || kstrtou8(words, 16, &p->pfc.pfc_en))
		return -EINVAL;
	for (i = 0; i < 8; i++)
		p->buffer.prio2buffer[i] = p->pfc.pfc_en >> i & 1;
	return 0;
}

static void forget(struct net_device *netdev, struct dcb_app *entry)
{
	u32 mask = dcb_ieee_getapp_mask(netdev, entry);

	for (entry->priority = 0; entry->priority < 8; entry->priority++)
		if (mask & 1 << entry->priority)
			dcb_ieee_delapp(netdev, entry);
}

static int dscp(char *words)
{
	struct net_device *netdev = named(&words);
	struct dcb_app entry = {.selector = IEEE_8021QAZ_APP_SEL_DSCP};
	unsigned int value, priority;

	if (!netdev || sscanf(words, "%u %u", &value, &priority) != 2 || value > 63 || priority > 7)
		return -EINVAL;
	entry.protocol = value;
	forget(netdev, &entry);
	entry.priority = priority;
	return dcb_ieee_setapp(netdev, &entry);
}

static int trust(char *words)
{
	struct net_device *netdev = named(&words);
	int value;

	if (!netdev)
		return -EINVAL;
	for (value = 0; value < 64; value++) {
		struct dcb_app entry = {.selector = IEEE_8021QAZ_APP_SEL_DSCP, .protocol = value};

		forget(netdev, &entry);
		entry.priority = value >> 3;
		if (words[0] == 'd')
			dcb_ieee_setapp(netdev, &entry);
	}
	return 0;
}

static int firmware(char *words)
{
	struct net_device *netdev = named(&words);

	if (!netdev)
		return -EINVAL;
	strscpy(((struct port *)netdev_priv(netdev))->firmware, words, sizeof(((struct port *)0)->firmware));
	return 0;
}

/*
 * net ADDRESS SPEED MAC [PORTNAME]      a netdev below that function; speed in Mb/s
 * stat ADDRESS COUNTER VALUE            ethtool -S, in the order in which they were first told
 * carrier ADDRESS 0|1
 * speed ADDRESS SPEED
 * pause ADDRESS RX TX                   ethtool -a
 * pfc ADDRESS HEXMASK                   PFC's priorities, and buffer 1 for them
 * trust ADDRESS dscp|pcp                all 64 DSCP entries (priority = DSCP / 8, as mlx5 has them), or none
 * dscp ADDRESS DSCP PRIORITY            one entry that differs
 * firmware ADDRESS TEXT
 */
const struct fabsim_command fabsim_net_commands[] = {
	{"net", net}, {"stat", stat},	{"carrier", carrier}, {"speed", set_speed},   {"pause", pause},
	{"pfc", pfc}, {"trust", trust}, {"dscp", dscp},	      {"firmware", firmware}, {}};

void fabsim_net_clear(void)
{
	int i;

	for (i = 0; i < FABSIM_MOST; i++)
		if (netdevs[i]) {
			unregister_netdev(netdevs[i]);
			free_netdev(netdevs[i]);
			netdevs[i] = NULL;
		}
}
