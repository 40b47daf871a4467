#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A study as a job array on a real Slurm of two nodes on this host; one node is killed in mid-run. The merged bytes are
# those of a run without Slurm. Ends only what it started. Skipped (77) where Slurm can be neither found nor installed.
set -u
program=$1
place=$(mktemp -d)
started=()
stop_all() {
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null; done
  for _ in $(seq 50); do kill -0 "${started[@]}" 2>/dev/null || break; sleep 0.1; done
  for pid in "${started[@]}"; do kill -9 "$pid" 2>/dev/null; done
  [ -z "${sweep:-}" ] || kill "$sweep" 2>/dev/null
  rm -rf "$place"
}
trap stop_all EXIT
skip() { echo "skipped: $1"; exit 77; }
fail() { echo "FAILED $1"; tail -n 5 "$place"/log/* 2>/dev/null; exit 1; }

[ "$(id -u)" -eq 0 ] || skip "Slurm on one host needs root"
if ! command -v slurmctld >/dev/null || ! command -v munged >/dev/null; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends slurm-wlm munge >"$place/apt" 2>&1 ||
    skip "apt could not install slurm-wlm and munge"
fi
mkdir -p "$place"/{state,spool,run,log}
if ! munge -n 2>/dev/null | unmunge >/dev/null 2>&1; then
  install -d -o munge -g munge /run/munge
  runuser -u munge -- /usr/sbin/munged || skip "munged does not start"
  sleep 1
  started+=("$(cat /run/munge/munged.pid)")
fi
munge -n | unmunge >/dev/null 2>&1 || skip "munge does not answer"
host=$(hostname -s)
cat >"$place/slurm.conf" <<CONF
ClusterName=rehearse
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
SlurmctldPort=16817
SlurmdTimeout=10
StateSaveLocation=$place/state
SlurmdSpoolDir=$place/spool/%n
SlurmctldPidFile=$place/run/slurmctld.pid
SlurmdPidFile=$place/run/slurmd.%n.pid
SlurmctldLogFile=$place/log/slurmctld.log
SlurmdLogFile=$place/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
MpiDefault=none
ReturnToService=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=n[1-2] NodeHostname=$host NodeAddr=127.0.0.1 Port=[16901-16902] CPUs=1 RealMemory=1000 State=UNKNOWN
PartitionName=sweep Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$place/slurm.conf
pid_of() { # FILE: the number in it, once it is there
  for _ in $(seq 50); do [ -s "$1" ] && { cat "$1"; return; }; sleep 0.1; done
}
slurmctld -f "$SLURM_CONF" || fail "slurmctld"
started+=("$(pid_of "$place/run/slurmctld.pid")")
for node in n1 n2; do
  slurmd -N $node -f "$SLURM_CONF" || fail "slurmd $node"
  started+=("$(pid_of "$place/run/slurmd.$node.pid")")
done
for _ in $(seq 30); do sinfo --noheader -o '%t %D' | grep -q 'idle 2' && break; sleep 1; done
sinfo --noheader -o '%t %D' | grep -q 'idle 2' || fail "the nodes do not come up: $(sinfo)"

cat >"$place/study.yaml" <<'YAML'
base: gpt-32
axes:
  - {name: speed, set: "platform.nodes[*].nics[*].bandwidth", values: [50Gbps, 100Gbps, 200Gbps, 400Gbps]}
  - name: steps
    patches: [{label: "12", patches: [{steps: 4}]}, {label: "24", patches: [{steps: 8}]}]
  - seed: [1, 2, 3, 4, 5]
YAML
"$program" sweep "$place/study.yaml" -o "$place/local" >/dev/null || fail "the local run"
"$program" sweep "$place/study.yaml" -o "$place/array" --submit slurm --points-per-task 2 --jobs 1 >"$place/out" 2>&1 &
sweep=$!
for _ in $(seq 300); do
  [ "$(find "$place/array/points" -name '*.json' 2>/dev/null | wc -l)" -ge 4 ] && break
  sleep 0.1
done
done_before=$(find "$place/array/points" -name '*.json' | wc -l)
# n1 is lost: its tasks are queued again, and what ran there may come to its end as well, so that points are computed twice.
kill -9 "${started[-2]}"
scontrol update NodeName=n1 State=DOWN Reason=test
wait $sweep || { cat "$place/out"; fail "the sweep ended with $?"; }
cmp "$place/local/results.csv" "$place/array/results.csv" || fail "other bytes than without Slurm"
cmp "$place/local/results.jsonl" "$place/array/results.jsonl" || fail "other lines than without Slurm"
echo "40 points; n1 was killed after $done_before; the same bytes as without Slurm"
