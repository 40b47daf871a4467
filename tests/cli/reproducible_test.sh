#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# reproducible_test.sh PROJECT: a library built as for a release in two folders of different length has the same bytes, and
# the folder does not show in them.
set -u -o pipefail
project=$1
work=$(mktemp -d) || exit 74
trap 'rm -rf "$work"' EXIT
fail() { printf '%s\n' "$*" >&2; exit 1; }
for copy in "$work/a" "$work/a-much-longer-name/b"; do
  mkdir -p "$copy"
  git -C "$project" ls-files -z --cached --others --exclude-standard | (cd "$project" && xargs -0 cp -P --parents -t "$copy") ||
    fail "cannot copy the sources"
  (cd "$copy" && CCACHE_DISABLE=1 cmake --preset release >configure.log 2>&1) || fail "cannot configure"
  (cd "$copy/build/release" && CCACHE_DISABLE=1 ninja -j 1 base/librehearse_base.a) >"$copy/build.log" 2>&1 ||
    fail "cannot build: $(tail -n 5 "$copy/build.log")"
  sha256sum <"$copy/build/release/base/librehearse_base.a"
  ! grep -q "$work" "$copy/build/release/base/librehearse_base.a" || fail "the folder shows in the library"
done | sort | uniq -c | awk '{ if ($1 != 2) exit 1 }' || fail "two folders gave different bytes"
