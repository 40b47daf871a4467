#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a stranger does: a Debian 12 with nothing but git, a clone of this tree (as committed), and the two
# commands of the README. Needs root, mmdebstrap and the package sources; says so and skips otherwise.
# REHEARSE_CLEAN_ROOT_RUN: what to run instead of "demo".
set -u
project=$(cd "$1" && pwd)
skip() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "a clean root needs root"
command -v mmdebstrap >/dev/null || skip "mmdebstrap is not installed (./dev setup)"
sources=/etc/apt/sources.list.d/debian.sources
[ -e $sources ] || sources=/etc/apt/sources.list
[ -e $sources ] || skip "this is not a Debian with package sources"

place=$(mktemp -d)
root=$place/root
leave() {
  for mounted in dev proc; do mountpoint -q "$root/$mounted" && umount -R -l "$root/$mounted"; done
  # Never remove through a mount that could not be taken away.
  mountpoint -q "$root/dev" || mountpoint -q "$root/proc" || rm -rf "$place"
}
trap leave EXIT
trap 'exit 130' INT TERM

began=$SECONDS
step() { echo "== $((SECONDS - began)) s: $*"; }

step "a clean Debian"
mmdebstrap --quiet --variant=minbase --include=ca-certificates,git bookworm "$root" "$sources" \
  >"$place/log" 2>&1 || { cat "$place/log"; skip "mmdebstrap cannot make a Debian here"; }
cp /etc/resolv.conf "$root/etc/resolv.conf"
echo "127.0.0.1 localhost" >"$root/etc/hosts"
mkdir -p "$root/proc" "$root/dev"
mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && mount --make-rslave "$root/dev" ||
   skip "mounting is not allowed here"

step "a clone of the tree"
git -c safe.directory='*' clone --quiet --no-hardlinks "$project" "$root/rehearse" || exit 1

inside() { chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -c "cd /rehearse && $1"; }
step "./rehearse ${REHEARSE_CLEAN_ROOT_RUN:-demo}"
inside "./rehearse ${REHEARSE_CLEAN_ROOT_RUN:-demo}" || { echo "FAILED: ./rehearse in a clean Debian"; exit 1; }
step "the same again"
inside "time ./rehearse ${REHEARSE_CLEAN_ROOT_RUN:-demo} >/dev/null" || exit 1
step "./dev test"
inside "./dev test -- -L smoke" || { echo "FAILED: ./dev test in a clean Debian"; exit 1; }
step "done"
