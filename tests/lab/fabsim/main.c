// SPDX-License-Identifier: GPL-2.0
/*
 * fabsim: a GPU node made of software for a real Linux kernel. For tests only; it is never installed anywhere else.
 *
 * PCI host bridges whose functions' config spaces are memory, netdevs with real dcbnl and ethtool operations, and RDMA
 * devices of either link layer. All sysfs, netlink and uevents come from the kernel's own PCI, ethtool, DCB and RDMA
 * code. Commands are lines written to /proc/fabsim; ADDRESS is a PCI address (dddd:bb:dd.f). The lines that each part
 * knows stand above its table of commands. `clear` takes everything away again.
 */
#include <linux/module.h>
#include <linux/proc_fs.h>
#include "fabsim.h"

static DEFINE_MUTEX(lock);

static int clear(char *words)
{
	fabsim_rdma_clear();
	fabsim_net_clear();
	fabsim_pci_clear();
	return 0;
}

/* A line of the kernel's log: what a driver of real hardware prints. */
static int say(char *words)
{
	pr_info("%s\n", words);
	return 0;
}

/* clear; log TEXT */
static const struct fabsim_command main_commands[] = {{"clear", clear}, {"log", say}, {}};

static int run(char *line)
{
	const struct fabsim_command *const tables[] = {main_commands, fabsim_pci_commands, fabsim_net_commands,
						       fabsim_rdma_commands};
	const struct fabsim_command *each;
	char *word = strsep(&line, " ");
	int i;

	if (!*word || *word == '#')
		return 0;
	for (i = 0; i < ARRAY_SIZE(tables); i++)
		for (each = tables[i]; each->word; each++)
			if (!strcmp(word, each->word))
				return each->run(line ?: "");
	return -EINVAL;
}

static ssize_t written(struct file *file, const char __user *from, size_t size, loff_t *offset)
{
	char *text, *rest, *line, shown[64];
	int error = 0;

	if (size > 1 << 22)
		return -E2BIG;
	text = memdup_user_nul(from, size);
	if (IS_ERR(text))
		return PTR_ERR(text);
	mutex_lock(&lock);
	for (rest = text; !error && (line = strsep(&rest, "\n"));) {
		strscpy(shown, line, sizeof(shown));
		error = run(line);
		if (error)
			pr_err("fabsim: %d: %s\n", error, shown);
	}
	mutex_unlock(&lock);
	kfree(text);
	return error ? error : size;
}

static const struct proc_ops operations = {.proc_write = written};

static int __init start(void)
{
	int error = fabsim_pci_start();

	if (error)
		return error;
	return proc_create("fabsim", 0200, NULL, &operations) ? 0 : -ENOMEM;
}
module_init(start); /* no exit: it lives as long as the guest */
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("a GPU node made of software, for tests");
