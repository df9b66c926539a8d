#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# To be sourced. slurm_up FOLDER NODES makes a real Slurm of the distribution's packages: one slurmctld and NODES slurmd on
# this machine, each of its own name and port, munge on a socket of its own. slurm_down ends it; the caller traps it.
# Lines of $slurm_conf_more stand in slurm.conf, too. slurm_up FOLDER NODES WAIT waits for WAIT idle nodes, not for all.
# Needs root: slurmd starts its tasks by setuid.

slurm_missing() {
  local program
  for program in munged slurmctld slurmd srun salloc scontrol sinfo; do
    command -v "$program" >/dev/null || { echo "no $program here (ci/install-deps.sh --slurm)" && return 0; }
  done
  [ "$(id -u)" = 0 ] || { echo "slurmd needs root" && return 0; }
  return 1
}

slurm_conf() { # FOLDER NODES
  local host i
  host=$(hostname -s)
  cat <<CONF
ClusterName=scankit
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$1/munge.socket
SlurmctldPort=$slurm_port
StateSaveLocation=$1/state
SlurmdSpoolDir=$1/spool/%n
SlurmctldPidFile=$1/slurmctld.pid
SlurmdPidFile=$1/slurmd.%n.pid
SlurmctldLogFile=$1/log/slurmctld
SlurmdLogFile=$1/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog=$1/prolog
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=2
SlurmdTimeout=20
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=1
${slurm_conf_more:-}
CONF
  for ((i = 1; i <= $2; i++)); do
    echo "NodeName=node$i NodeAddr=127.0.0.1 NodeHostname=$host Port=$((slurm_port + i)) CPUs=2 State=UNKNOWN"
  done
  echo "PartitionName=all Nodes=node[1-$2] Default=YES MaxTime=INFINITE State=UP"
  echo "PartitionName=others Nodes=node1 AllowGroups=root State=UP"
}

# With FOLDER the node has lost the file system of that folder: something empty is mounted there, for it alone.
slurm_node_up() { # NAME [FOLDER]
  rm -rf "$slurm_folder/spool/$1"
  mkdir -p "$slurm_folder/spool/$1"
  if [ $# = 1 ]; then
    slurmd -N "$1" -f "$slurm_folder/slurm.conf"
  else
    # shellcheck disable=SC2016
    unshare --mount bash -c 'mount -t tmpfs none "$1" && shift && "$@"' bash "$2" slurmd -N "$1" -f "$slurm_folder/slurm.conf"
  fi
}

# As a machine that loses its power: the daemon, the step's shepherd and its task, none of which can say goodbye.
slurm_node_dies() { # NAME
  local task pids=()
  pids=("$(cat "$slurm_folder/slurmd.$1.pid")")
  for task in $(slurm_tasks "$1"); do pids+=("$task" "$(ps -o ppid= -p "$task" | tr -d ' ')"); done
  kill -9 "${pids[@]}" 2>/dev/null || true
}

# The `scankit fleet node` of a node: the first process of its task.
slurm_tasks() { # NAME
  local environ pid
  for environ in $(grep -lz "^SLURMD_NODENAME=$1\$" /proc/[0-9]*/environ 2>/dev/null); do
    pid=${environ#/proc/}
    pid=${pid%/environ}
    grep -qz '^node$' "/proc/$pid/cmdline" 2>/dev/null && grep -qz "$slurm_folder" "/proc/$pid/environ" && echo "$pid"
  done
}

slurm_up() { # FOLDER NODES [WAIT]
  slurm_folder=$1
  slurm_port=$((20000 + RANDOM % 20000))
  mkdir -p "$1"/{state,spool,log}
  chmod 755 "$1"
  head -c 1024 /dev/urandom >"$1/munge.key" && chmod 600 "$1/munge.key"
  [ -x "$1/prolog" ] || { printf '#!/bin/sh\n' >"$1/prolog" && chmod 755 "$1/prolog"; }
  slurm_conf "$1" "$2" >"$1/slurm.conf"
  export SLURM_CONF=$1/slurm.conf
  munged --force --key-file="$1/munge.key" --socket="$1/munge.socket" --pid-file="$1/munged.pid" \
    --log-file="$1/log/munged" --seed-file="$1/munge.seed" --num-threads=2
  slurmctld -f "$SLURM_CONF"
  local i
  for ((i = 1; i <= $2; i++)); do slurm_node_up "node$i"; done
  slurm_wait_idle "${3:-$2}"
}

slurm_wait_idle() { # NODES
  local i
  for ((i = 0; i < 300; i++)); do
    [ "$(sinfo -h -N -p all -t idle -o %N 2>/dev/null | wc -l)" -lt "$1" ] || return 0
    sleep 0.1
  done
  sinfo -N -l -p all
  tail -n 20 "$slurm_folder"/log/*
  return 1
}

slurm_down() {
  local file pid i
  for file in "$slurm_folder"/*.pid; do
    [ -s "$file" ] || continue
    pid=$(cat "$file")
    kill "$pid" 2>/dev/null || continue
    for ((i = 0; i < 50; i++)); do kill -0 "$pid" 2>/dev/null && sleep 0.1 || break; done
  done
}
