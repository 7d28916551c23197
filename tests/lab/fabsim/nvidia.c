// SPDX-License-Identifier: GPL-2.0
/* A stand-in that bears the driver's name: it binds to the lab's GPUs and shows its version. It does nothing else. */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pm_runtime.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

static char *version = "570.124.06";
module_param(version, charp, 0444);

static int probe(struct pci_dev *device, const struct pci_device_id *id)
{
	pm_runtime_put_noidle(&device->dev); /* it may sleep once power/control says auto */
	return 0;
}

static void gone(struct pci_dev *device)
{
	pm_runtime_get_noresume(&device->dev);
}

static const struct pci_device_id ids[] = {{PCI_DEVICE(0x10de, PCI_ANY_ID)}, {}};
static const struct dev_pm_ops sleeps = {}; /* without any, the PCI core never suspends it */
static struct pci_driver driver = {
	.name = "nvidia", .id_table = ids, .probe = probe, .remove = gone, .driver.pm = &sleeps};

static int show(struct seq_file *file, void *data)
{
	seq_printf(file, "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build  (lab)\n",
		   version);
	seq_puts(file, "GCC version:  gcc version 12.2.0\n");
	return 0;
}

static int __init start(void)
{
	proc_mkdir("driver/nvidia", NULL);
	proc_create_single("driver/nvidia/version", 0444, NULL, show);
	return pci_register_driver(&driver);
}
module_init(start);
MODULE_VERSION("570.124.06");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("lab stand-in");
