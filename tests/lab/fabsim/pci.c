// SPDX-License-Identifier: GPL-2.0
/* PCI host bridges whose functions' config spaces are memory, and a driver called mlx5_core that only binds. */
#include <linux/list.h>
#include <linux/xarray.h>
#include "fabsim.h"

#define SPACE 4096

struct function {
	u8 space[SPACE], writable[SPACE]; /* writable: a mask of the bits that the kernel and setpci may change */
	bool gone;
};

struct host {
	struct list_head list;
	struct pci_sysdata sysdata;
	struct pci_bus *bus;
	struct resource buses;
};

static DEFINE_XARRAY(functions);
static LIST_HEAD(hosts);

static unsigned long key(int domain, int bus, int devfn)
{
	return (unsigned long)domain << 16 | bus << 8 | devfn;
}

static struct function *answering(struct pci_bus *bus, unsigned int devfn, int where, int size)
{
	struct function *f = xa_load(&functions, key(pci_domain_nr(bus), bus->number, devfn));

	return f && !f->gone && where + size <= SPACE ? f : NULL;
}

static int config_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	struct function *f = answering(bus, devfn, where, size);

	*value = ~0u;
	if (!f)
		return PCIBIOS_DEVICE_NOT_FOUND;
	if (size < 4)
		*value = 0;
	memcpy(value, f->space + where, size);
	return PCIBIOS_SUCCESSFUL;
}

static int config_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	struct function *f = answering(bus, devfn, where, size);
	int i;

	if (!f)
		return PCIBIOS_DEVICE_NOT_FOUND;
	for (i = 0; i < size; i++) {
		u8 mask = f->writable[where + i];

		f->space[where + i] = (f->space[where + i] & ~mask) | (value >> (8 * i) & mask);
	}
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops operations = {.read = config_read, .write = config_write};

static int place(const char *address, unsigned int *domain, unsigned int *bus, unsigned int *devfn)
{
	unsigned int device, function;

	if (sscanf(address, "%x:%x:%x.%x", domain, bus, &device, &function) != 4)
		return -EINVAL;
	*devfn = PCI_DEVFN(device, function);
	return 0;
}

struct pci_dev *fabsim_device(const char *address)
{
	unsigned int domain, bus, devfn;

	return place(address, &domain, &bus, &devfn) ? NULL : pci_get_domain_bus_and_slot(domain, bus, devfn);
}

static struct function *function_of(const char *address, bool make)
{
	unsigned int domain, bus, devfn;
	struct function *f;

	if (place(address, &domain, &bus, &devfn))
		return NULL;
	f = xa_load(&functions, key(domain, bus, devfn));
	if (f || !make)
		return f;
	f = kzalloc(sizeof(*f), GFP_KERNEL);
	if (f)
		xa_store(&functions, key(domain, bus, devfn), f, GFP_KERNEL);
	return f;
}

static int bytes(char *words, bool mask)
{
	char address[24];
	int offset, used = 0;
	struct function *f;
	u8 *to;

	if (sscanf(words, "%23s %x %n", address, &offset, &used) < 2 || !used)
		return -EINVAL;
	f = function_of(address, true);
	if (!f)
		return -EINVAL;
	to = (mask ? f->writable : f->space) + offset;
	for (words += used; words[0] && words[1] && offset < SPACE; words += 2, offset++, to++)
		if (hex2bin(to, words, 1))
			return -EINVAL;
	return 0;
}

static int poke(char *words)
{
	return bytes(words, false);
}

static int writable(char *words)
{
	return bytes(words, true);
}

static int host(char *words)
{
	unsigned int domain, first, last;
	int node;
	struct host *h;

	if (sscanf(words, "%x %x %x %d", &domain, &first, &last, &node) != 4)
		return -EINVAL;
	h = kzalloc(sizeof(*h), GFP_KERNEL);
	if (!h)
		return -ENOMEM;
	h->sysdata.domain = domain;
	h->sysdata.node = node;
	h->buses = (struct resource){.name = "fabsim", .start = first, .end = last, .flags = IORESOURCE_BUS};
	list_add_tail(&h->list, &hosts);
	return 0;
}

/* Addresses stay as the config spaces have them: nothing is behind them, so nothing is assigned. */
static int scan(char *words)
{
	struct host *h;

	pci_lock_rescan_remove();
	list_for_each_entry(h, &hosts, list)
	{
		LIST_HEAD(resources);

		if (h->bus)
			continue;
		pci_add_resource(&resources, &h->buses);
		h->bus = pci_create_root_bus(NULL, h->buses.start, &operations, &h->sysdata, &resources);
		if (!h->bus) {
			pci_unlock_rescan_remove();
			pci_free_resource_list(&resources);
			return -EIO;
		}
		pci_scan_child_bus(h->bus);
		pci_bus_add_devices(h->bus);
	}
	pci_unlock_rescan_remove();
	return 0;
}

static int leave(char *words, bool gone)
{
	struct function *f = function_of(words, false);

	if (!f)
		return -EINVAL;
	f->gone = gone;
	return 0;
}

static int gone(char *words)
{
	return leave(words, true);
}

static int back(char *words)
{
	return leave(words, false);
}

/* drivers/pci/pcie/aer.c keeps the counters that sysfs shows in a structure of its own; of 6.1: */
struct aer_stats {
	u64 correctable[16], fatal[32], nonfatal[32], total_correctable, total_fatal, total_nonfatal;
};

static int aer(char *words)
{
	struct pci_dev *device = fabsim_device(strsep(&words, " "));
	struct aer_stats *stats = device ? (void *)device->aer_stats : NULL;
	unsigned int bit, number;
	u64 *to, *total, sum = 0;
	char *kind, *each;

	pci_dev_put(device);
	kind = strsep(&words, " ");
	if (!stats || !kind)
		return -EINVAL;
	number = kind[0] == 'c' ? ARRAY_SIZE(stats->correctable) : ARRAY_SIZE(stats->fatal);
	to = kind[0] == 'c' ? stats->correctable : kind[0] == 'f' ? stats->fatal : stats->nonfatal;
	total = kind[0] == 'c' ? &stats->total_correctable
	      : kind[0] == 'f' ? &stats->total_fatal
			       : &stats->total_nonfatal;
	memset(to, 0, number * sizeof(*to));
	while ((each = strsep(&words, " "))) {
		if (sscanf(each, "%u:", &bit) != 1 || bit >= number || kstrtou64(strchr(each, ':') + 1, 10, to + bit))
			return -EINVAL;
		sum += to[bit];
	}
	*total = sum;
	return 0;
}

static int numa(char *words)
{
	struct pci_dev *device = fabsim_device(strsep(&words, " "));
	int node;

	pci_dev_put(device);
	if (!device || !words || kstrtoint(words, 10, &node))
		return -EINVAL;
	set_dev_node(&device->dev, node);
	return 0;
}

/*
 * host DOMAIN FIRST LAST NODE      announce a root bus (hex) of a NUMA node
 * poke ADDRESS OFFSET BYTES        bytes of a config space, also behind the kernel's back; makes the function
 * writable ADDRESS OFFSET BYTES    mask of what the kernel may change there
 * scan                             let the kernel find what was announced
 * gone ADDRESS | back ADDRESS      the function falls off the bus, and comes back
 * aer ADDRESS KIND [BIT:COUNT ..]  counters of c(orrectable), f(atal), n(onfatal) errors; others 0
 * numa ADDRESS NODE                of one function; -1: the firmware names none
 */
const struct fabsim_command fabsim_pci_commands[] = {
	{"host", host}, {"poke", poke}, {"writable", writable}, {"scan", scan}, {"gone", gone},
	{"back", back}, {"aer", aer},	{"numa", numa},		{}};

void fabsim_pci_clear(void)
{
	struct host *h, *next;
	struct function *f;
	unsigned long index;

	pci_lock_rescan_remove();
	list_for_each_entry_safe(h, next, &hosts, list)
	{
		if (h->bus) {
			pci_stop_root_bus(h->bus);
			pci_remove_root_bus(h->bus);
		}
		list_del(&h->list); /* not freed: a reader may still hold a device whose bus has its sysdata */
	}
	pci_unlock_rescan_remove();
	xa_for_each(&functions, index, f)
	{
		xa_erase(&functions, index);
		kfree(f);
	}
}

static int probe(struct pci_dev *device, const struct pci_device_id *id)
{
	return device->bus->ops == &operations ? 0 : -ENODEV;
}

static const struct pci_device_id mellanox[] = {
	{PCI_DEVICE(0x15b3, PCI_ANY_ID), .class = 0x020000, .class_mask = 0xff0000}, {}};
static struct pci_driver driver = {
	.name = "mlx5_core", .id_table = mellanox, .probe = probe, .sriov_configure = pci_sriov_configure_simple};

int fabsim_pci_start(void)
{
	return pci_register_driver(&driver);
}
