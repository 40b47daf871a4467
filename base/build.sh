# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2015
# What ./rehearse and ./dev share: required packages, configuring and building. Sourced, not run.
# Everything said here goes to stderr, so that stdout belongs to the program that is started.
# Wants: root (the project's folder), me (the name in messages).

assume_yes=${REHEARSE_YES:-}
sources=(CMakeLists.txt CMakePresets.json base platforms traces sim faults validation cli)

say() { printf '%s: %s\n' "$me" "$*" >&2; }

# die CODE WHAT [FIX]
die() {
  say "$2"
  [ -z "${3:-}" ] || printf '  fix: %s\n' "$3" >&2
  exit "$1"
}

# packages_of GROUP...: the packages of base/packages.txt in these groups.
packages_of() {
  local group package rest wanted=" $* "
  while read -r group package rest; do
    case $group in '' | '#'*) continue ;; esac
    [[ $wanted == *" $group "* ]] && printf '%s\n' "$package"
  done <"$root/base/packages.txt"
  return 0
}

# missing_of PACKAGE...: those that are not installed.
missing_of() {
  local package state
  declare -A installed=()
  while read -r package state; do
    [ "$state" = ii ] && installed[${package%%:*}]=1
  done < <(dpkg-query -W -f '${Package} ${db:Status-Abbrev}\n' "$@" 2>/dev/null)
  for package in "$@"; do
    [ -n "${installed[$package]:-}" ] || printf '%s\n' "$package"
  done
}

apt_install() {
  local run=("$@")
  "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    -o DPkg::Lock::Timeout=600 "${missing[@]}"
}

# require GROUP...: installs what is missing, or says exactly what to do and ends.
require() {
  command -v dpkg-query >/dev/null || return 0 # not Debian: CMake names what it does not find
  local wanted missing line log as_root=() answer
  mapfile -t wanted < <(packages_of "$@")
  mapfile -t missing < <(missing_of "${wanted[@]}")
  [ ${#missing[@]} -gt 0 ] || return 0
  line="apt-get install -y --no-install-recommends ${missing[*]}"
  say "missing packages: ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    line="sudo $line"
    as_root=(sudo)
    printf '  to install them: %s\n' "$line" >&2
    command -v sudo >/dev/null || die 66 "there is no sudo here" "as root: ${line#sudo }"
    if [ -z "$assume_yes" ]; then
      [ -t 0 ] && [ -t 2 ] || die 66 "not installed without being asked" "run that line, or give --yes"
      read -r -p "  run it now? [y/N] " answer
      [[ $answer == [yY]* ]] || die 66 "the packages are still missing" "$line"
    fi
  fi
  mkdir -p "$root/build" || die 74 "cannot write to $root/build"
  log=$root/build/apt.log
  say "installing with apt (log: build/apt.log)"
  if ! apt_install "${as_root[@]}" >"$log" 2>&1; then
    # No package lists yet, or old ones.
    { "${as_root[@]}" apt-get update -o APT::Update::Error-Mode=any -o DPkg::Lock::Timeout=600 &&
      apt_install "${as_root[@]}"; } >>"$log" 2>&1 || {
      grep -E '^(E|Err|W):' "$log" | tail -n 5 >&2
      say "apt could not install: ${missing[*]}"
      die 66 "is there a network? the packages above are needed to build" "$line"
    }
  fi
}

# Jobs: all cores, but no more than the memory bears (up to 1.4 GB each).
jobs_here() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable/ {print int($2 / 1400000)}' /proc/meminfo 2>/dev/null)
  [ -n "$memory" ] && [ "$memory" -ge 1 ] && [ "$memory" -lt "$cores" ] && cores=$memory
  printf '%s\n' "${REHEARSE_JOBS:-$cores}"
}

# configure PRESET: runs CMake when the folder is new, was copied from elsewhere, or the presets changed.
configure() {
  local preset=$1 folder=$root/build/$1 fresh=()
  local cache=$folder/CMakeCache.txt
  if [ -f "$folder/build.ninja" ] && [ -f "$cache" ] && [ ! CMakePresets.json -nt "$cache" ]; then
    grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache" && return 0
    fresh=(--fresh)
  fi
  mkdir -p "$folder" || die 74 "cannot write to $folder"
  if ! cmake "${fresh[@]}" --preset "$preset" >"$folder/configure.log" 2>&1; then
    cat "$folder/configure.log" >&2
    die 70 "CMake could not configure build/$preset"
  fi
  touch "$cache"
}

# Reads ninja's output: one moving line on a terminal, everything into the log.
follow() {
  local line log=$1 what=$2
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    if [ -t 2 ] && [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      printf '\r%s: building %s %s of %s\033[K' "$me" "$what" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" >&2
    fi
  done
  [ ! -t 2 ] || printf '\r\033[K' >&2
}

# build PRESET [TARGET...]: configures and builds; says nothing of a build that succeeds but that it began.
build() {
  local preset=$1 folder=$root/build/$1
  shift
  local log=$folder/build.log
  configure "$preset"
  : >"$log"
  if ! (cd "$folder" && NINJA_STATUS='[%f/%t] ' ninja -j "$(jobs_here)" "$@" 2>&1) |
    follow "$log" "$preset"; then
    grep -vE '^\[[0-9]+/' "$log" | head -n 200 >&2
    die 70 "the build of build/$preset failed (whole log: build/$preset/build.log)"
  fi
}

# locked COMMAND...: one build at a time in this tree; a second one waits.
locked() {
  local lock status
  mkdir -p "$root/build" || die 74 "cannot write to $root/build" "use a copy of the project you may write to"
  exec {lock}>"$root/build/.lock"
  flock -n "$lock" || { say "waiting for another build in this folder"; flock "$lock"; }
  "$@"
  status=$?
  exec {lock}>&-
  return $status
}

# up_to_date STAMP PROGRAM: nothing that is built from was touched since the last build.
up_to_date() {
  [ -x "$2" ] && [ -f "$1" ] && [ "$(<"$1")" = "$root" ] &&
    [ -z "$(find "${sources[@]}" -newer "$1" -print -quit 2>/dev/null)" ]
}
