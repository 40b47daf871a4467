#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The launchers on a project of one file: ./rehearse and base/build.sh are the real ones, apt is not.
set -u
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset REHEARSE_YES REHEARSE_HOME
failures=0
check() { # WHAT CONDITION...
  local what=$1
  shift
  if "$@"; then echo "ok     $what"; else echo "FAILED $what"; failures=$((failures + 1)); fi
}
has() { grep -qF -- "$1" "$2"; }

project=$work/project
mkdir -p "$project"/{base,platforms,traces,sim,faults,validation,cli,bin}
cp "$root/rehearse" "$root/dev" "$project"
cp "$root/base/build.sh" "$root/base/packages.txt" "$project/base"
cat >"$project/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES CXX)
add_subdirectory(cli)
EOF
echo 'add_executable(rehearse main.cpp)' >"$project/cli/CMakeLists.txt"
cat >"$project/CMakePresets.json" <<'EOF'
{"version": 6, "configurePresets": [
  {"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build/release"}]}
EOF
program() { # GREETING
  cat >"$project/cli/main.cpp" <<EOF
#include <cstdio>
#include <unistd.h>
int main(int argc, char** argv) {
  char folder[4096];
  std::printf("$1 %d %s %s\n", argc - 1, argc > 1 ? argv[argc - 1] : "", getcwd(folder, sizeof folder));
  return argc - 1;
}
EOF
}

# Debian as the launcher sees it: what is installed is in the file `installed`.
cat >"$project/bin/dpkg-query" <<'EOF'
#!/bin/sh
sed 's/$/ ii /' "$FAKE/installed"
EOF
cat >"$project/bin/apt-get" <<'EOF'
#!/bin/sh
echo "apt-get $*" >>"$FAKE/apt-calls"
echo "E: Unable to reach the mirror"
[ -e "$FAKE/network" ] || exit 100
[ "$1" = update ] || awk '$1 != "" && $1 !~ /^#/ {print $2}' "$FAKE/../base/packages.txt" >"$FAKE/installed"
EOF
cat >"$project/bin/id" <<'EOF'
#!/bin/sh
cat "$FAKE/uid"
EOF
cat >"$project/bin/sudo" <<'EOF'
#!/bin/sh
echo "sudo $*" >>"$FAKE/apt-calls"
exec "$@"
EOF
chmod +x "$project"/bin/*
export FAKE=$project/bin PATH=$project/bin:$PATH
everything() { awk '$1 != "" && $1 !~ /^#/ {print $2}' "$project/base/packages.txt" >"$FAKE/installed"; }

launch() { # WORD...: output in out, err; status in rc
  "$project/rehearse" "$@" >"$work/out" 2>"$work/err" </dev/null
  rc=$?
}

program hello
everything
sed -i '/libfmt-dev/d; /^cmake$/d' "$FAKE/installed"
echo 1000 >"$FAKE/uid"
launch
check "without being root nothing is installed unasked" test $rc -eq 66
check "the missing packages are named" has "missing packages: cmake libfmt-dev" "$work/err"
check "the exact line is printed" \
  has "sudo apt-get install -y --no-install-recommends cmake libfmt-dev" "$work/err"
check "apt was not called" test ! -e "$FAKE/apt-calls"

launch --yes
check "without network it ends with 66" test $rc -eq 66
check "without network the packages are named" has "apt could not install: cmake libfmt-dev" "$work/err"
check "--yes uses sudo" has "sudo " "$FAKE/apt-calls"

echo 0 >"$FAKE/uid"
touch "$FAKE/network"
rm "$FAKE/apt-calls"
launch one two
check "root installs at once" has "apt-get install -y --no-install-recommends" "$FAKE/apt-calls"
check "the first use builds and runs" test "$(cat "$work/out")" = "hello 2 two $PWD"
check "the exit code is the program's" test $rc -eq 2
check "the first use says that it builds" has "building" "$work/err"

stat -c %Y.%y "$project/build/release/build.log" >"$work/before"
launch
check "the second use says nothing" test ! -s "$work/err"
check "the second use does not build" \
  test "$(stat -c %Y.%y "$project/build/release/build.log")" = "$(cat "$work/before")"

ln -s "$project/rehearse" "$work/link"
(cd "$work" && ./link --yes >"$work/out")
check "through a link from another folder, --yes is not passed on" \
  test "$(cat "$work/out")" = "hello 0  $work"
(cd "$work" && ./link x -- --yes >"$work/out")
check "after -- everything is passed on" test "$(cat "$work/out")" = "hello 3 --yes $work"

sleep 0.05
program changed
launch & launch_a=$!
"$project/rehearse" >"$work/out2" 2>"$work/err2" &
wait $launch_a $!
check "two launches at once both run the new program" \
  test "$(cut -d' ' -f1 "$work/out" "$work/out2" | sort -u)" = changed

cp -a "$project" "$work/copy"
"$work/copy/rehearse" >"$work/out" 2>"$work/err"
check "a copied tree builds its own program" \
  has "$work/copy" "$work/copy/build/release/CMakeCache.txt"
check "a copied tree runs" has "changed 0" "$work/out"

echo 'int main() { return wrong; }' >"$project/cli/main.cpp"
launch
check "a build that fails ends with 70" test $rc -eq 70
check "and shows the compiler's words" has "wrong" "$work/err"
check "and nothing on stdout" test ! -s "$work/out"
launch
check "a build that failed is tried again" test $rc -eq 70

"$project/dev" nonsense >"$work/out" 2>"$work/err"
check "an unknown verb of dev is a usage error" test $? -eq 2
for verb in setup build test bench fuzz soak format lint approve coverage clean; do
  "$project/dev" $verb --help >"$work/out" 2>"$work/err"
  check "dev $verb --help" has "usage: ./dev $verb" "$work/out"
done
[ $failures -eq 0 ]
