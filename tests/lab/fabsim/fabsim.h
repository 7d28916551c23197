/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of fabsim share. A command's function gets its words and answers 0 or -errno. */
#ifndef FABSIM_H
#define FABSIM_H
#include <linux/netdevice.h>
#include <linux/pci.h>

#define FABSIM_MOST 64 /* netdevs, RDMA devices */

struct fabsim_command {
	const char *word;
	int (*run)(char *words);
};

extern const struct fabsim_command fabsim_pci_commands[], fabsim_net_commands[], fabsim_rdma_commands[];

struct pci_dev *fabsim_device(const char *address);    /* with a reference, or NULL */
struct net_device *fabsim_netdev(const char *address); /* the one below that PCI function, or NULL */
int fabsim_pci_start(void);
void fabsim_pci_clear(void);
void fabsim_net_clear(void);
void fabsim_rdma_clear(void);
#endif
