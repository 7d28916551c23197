#!/bin/busybox sh
# First process of the guest, from the initrd: Debian's root (a squashfs) under a tmpfs, ours beside it, then systemd.
b=/bin/busybox
$b mount -t proc proc /proc; $b mount -t sysfs sys /sys; $b mount -t devtmpfs dev /dev
while read -r module; do $b insmod "/modules/$module" || echo "lab: insmod $module failed"; done </modules/order
$b mkdir -p /root /lower /ours /upper
$b mount -t squashfs -o ro /dev/vda /lower || exec $b sh
$b mount -t squashfs -o ro /dev/vdb /ours || exec $b sh
$b mount -t tmpfs -o mode=755 tmpfs /upper
$b mkdir /upper/up /upper/work
$b mount -t overlay -o lowerdir=/ours/overlay:/lower,upperdir=/upper/up,workdir=/upper/work overlay /root || exec $b sh
for each in proc sys dev; do $b mount --move /$each /root/$each; done
exec $b switch_root /root /lib/systemd/systemd
