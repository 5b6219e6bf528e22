#!/bin/sh
# test-disk.sh DIRECTORY: a disk of its own for the tests at DIRECTORY, in a file that is gone as soon as it is unmounted.
# Where we may not mount one, DIRECTORY stays as it is: the tests are the same, and take longer.
#
# They make and remove some hundred thousand small files. A filesystem that tells its disk of every file that is removed
# (the option discard), or that has no journal (it then seems to look for inodes that were not in use a moment ago), can
# take a millisecond for each. This one has a journal and does not wait for the disk: no test takes its power away.
set -u
directory=$1
image=$directory.img
# As much as the tests may have at once; what they do not write takes no room.
readonly SIZE=16G
PATH="$PATH:/usr/sbin:/sbin"

[ "$(id -u)" -eq 0 ] && command -v mkfs.ext4 >/dev/null || exit 0
trap 'rm -f "$image"' EXIT
truncate -s "$SIZE" "$image" && mkfs.ext4 -q -F "$image" && mount -o loop,nobarrier,noinit_itable "$image" "$directory" || exit 0
# What is left in the directory is the tests'.
rmdir "$directory/lost+found"
