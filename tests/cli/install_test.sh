#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An installed rehearse has its man page, completions and every file and folder that libraries ask shipped() for.
set -u
root=$1 build=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cmake --install "$build" --prefix "$place" >"$place/log" 2>&1 || { cat "$place/log"; exit 1; }
share=$place/share
wanted=("$place/bin/rehearse" "$place/lib/rehearse/librehearse-capture.so" "$share/man/man1/rehearse.1" "$share/bash-completion/completions/rehearse"
  "$share/zsh/site-functions/_rehearse" "$share/fish/vendor_completions.d/rehearse.fish"
  "$share/rehearse/sim/scenarios/ddp-16.yaml")
while read -r path; do wanted+=("$share/rehearse/$path"); done < <(cd "$root" &&
  grep -rhoE --include='*.cpp' 'shipped\("[^"]+"\)' base platforms traces sim faults validation cli |
  sed 's/.*"\(.*\)".*/\1/' | sort -u)
missing=0
for path in "${wanted[@]}"; do
  [ -e "$path" ] || { echo "FAILED not installed: ${path#"$place"/}"; missing=1; }
done
cd "$place" && env -u REHEARSE_HOME "$place/bin/rehearse" platforms >/dev/null || missing=1
exit $missing
