// SPDX-License-Identifier: GPL-2.0
/* Only a name in /proc/modules and /sys/module; built once for every name in the Makefile. */
#include <linux/module.h>
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("lab stand-in");
