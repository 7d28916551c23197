// SPDX-License-Identifier: GPL-2.0
/*
 * A stand-in that bears the driver's name: it binds to the lab's GPUs and shows its version. Its nodes open, until the
 * parameter `silent` is set: then opening one waits until it is not, as in a driver that waits for its GPU.
 */
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pm_runtime.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/wait.h>

#define MAJOR_NUMBER 195

static char *version = "570.124.06";
module_param(version, charp, 0444);

static bool silent;
static DECLARE_WAIT_QUEUE_HEAD(answered);

static int set_silent(const char *value, const struct kernel_param *parameter)
{
	int error = param_set_bool(value, parameter);

	wake_up_all(&answered);
	return error;
}

static const struct kernel_param_ops silent_operations = {.set = set_silent, .get = param_get_bool};
module_param_cb(silent, &silent_operations, &silent, 0644);

static int open(struct inode *inode, struct file *file)
{
	wait_event(answered, !READ_ONCE(silent)); /* nothing ends it */
	return 0;
}

static const struct file_operations nodes = {.owner = THIS_MODULE, .open = open};

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
	if (register_chrdev(MAJOR_NUMBER, "nvidia", &nodes))
		return -EBUSY;
	return pci_register_driver(&driver);
}
module_init(start);
MODULE_VERSION("570.124.06");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("lab stand-in");
