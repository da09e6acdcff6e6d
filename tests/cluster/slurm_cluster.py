"""Slurm on the hosts of the bed: munged and slurmctld here, a slurmd on each host."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from host_network import UnavailableError, program
from hosts import Hosts
from one_host import SCRATCH, wait_until

CONF = """\
ClusterName=trainmark
SlurmctldHost=harness({address})
SlurmUser=root
SlurmdUser=root
SlurmctldPort=16817
SlurmdPort=16818
CommunicationParameters=NoCtldInAddrAny
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n.spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
MailProg=/bin/true
TaskProlog={folder}/task_prolog
# There is nothing to hold tasks to: the hosts share the cores of one machine.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
PropagateResourceLimits=NONE
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
# A failure is to be noticed while a test waits.
SlurmdTimeout=5
SlurmctldTimeout=10
MessageTimeout=3
TCPTimeout=2
KillWait=3
InactiveLimit=0
MinJobAge=300
UnkillableStepTimeout=10
ReturnToService=2
NodeName=DEFAULT CPUs=2 RealMemory=1000 State=UNKNOWN
{nodes}
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""

# It listens on the address of its own name alone, so that name must mean this machine's end of the bridge.
AS_HARNESS = 'hostname harness && mount --bind "$0" /etc/hosts && exec "$@"'


class SlurmCluster:
    """A controller that listens on the bed's network alone, so that two clusters do not meet."""

    def __init__(self, hosts: Hosts) -> None:
        for name, package in (("munged", "munge"), ("slurmctld", "slurm-wlm"), ("slurmd", "slurm-wlm")):
            program(name, package)
        self.hosts = hosts
        self.folder = hosts.folder / "slurm"
        self.conf = self.folder / "slurm.conf"
        self.environment = {"SLURM_CONF": str(self.conf)}
        self.daemons: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> SlurmCluster:
        try:
            self._write()
            self._start_munged()
            self.start_slurmctld()
            self.hosts.belongs_to_the_bed(_is_slurmd)
            # Slurm's own: on a node that was cut off it waits for TCP to give up, long after its task.
            self.hosts.belongs_to_the_bed(_is_slurmstepd)
            for name in self.hosts.names:
                self._launch_slurmd(name)
            if not wait_until(lambda: set(self.states().values()) == {"idle"}, 30):
                raise UnavailableError(f"Slurm does not come up: {self.states()}, {self._complaints()}")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for name in self.hosts.names:
            self.kill_slurmd(name)
            self.hosts.hosts[name].kill_all(_is_slurmstepd)
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.daemons.clear()

    def run(self, *argv: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        """One of Slurm's commands, such as `run("srun", "-N4", "hostname")`."""
        options = {"capture_output": True, "text": True, "timeout": 60, **options}
        options["env"] = self.variables(options.get("env"))
        return subprocess.run([str(part) for part in argv], **options)

    def variables(self, more: dict[str, str] | None = None) -> dict[str, str]:
        return {**os.environ, **self.environment, **(more or {})}

    def srun(self, *argv: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        return self.run("srun", *argv, **options)

    def sbatch(self, *argv: str | Path, **options: Any) -> int:
        """The number of the job."""
        return int(self.run("sbatch", "--parsable", *argv, check=True, **options).stdout.split(";")[0])

    def salloc(self, *argv: str | Path) -> int:
        """The number of an allocation in which nothing runs yet."""
        message = self.run("salloc", "--no-shell", *argv, check=True).stderr
        return int(message.split("Granted job allocation ")[1].split()[0])

    def scancel(self, *argv: str | Path | int) -> None:
        self.run("scancel", *map(str, argv), check=True)

    def jobs(self) -> dict[int, str]:
        """Those that have not ended, and their states."""
        listed = self.run("squeue", "--noheader", "--format", "%i %T", check=True).stdout
        return {int(job): state for job, state in (line.split() for line in listed.splitlines())}

    def states(self) -> dict[str, str]:
        """What Slurm thinks of each node: idle, mixed, allocated, down; with * where it does not answer."""
        listed = self.run("sinfo", "--Node", "--noheader", "--format", "%N %T").stdout
        return dict(line.split() for line in listed.splitlines())

    def start_slurmd(self, name: str) -> None:
        self._launch_slurmd(name)
        if not wait_until(lambda: self.states().get(name) in ("idle", "mixed", "allocated"), 30):
            raise RuntimeError(f"{name} does not come back: {self.states()}, {self._complaints()}")

    def stop_slurmd(self, name: str) -> None:
        """It says goodbye; what it started goes on."""
        for process in self._slurmds(name):
            self.hosts.kill(name, process, signal.SIGTERM)
        wait_until(lambda: not self._slurmds(name), 10)

    def kill_slurmd(self, name: str) -> None:
        self.hosts.hosts[name].kill_all(_is_slurmd)

    def heal(self) -> None:
        """No jobs, and every node idle."""
        self.run("scancel", "--user", "root")
        wait_until(lambda: not self.jobs(), 3)
        for name in self.hosts.names:
            self.hosts.hosts[name].kill_all(_is_slurmstepd)
            if not self._slurmds(name):
                self._launch_slurmd(name)
            if self.states()[name].startswith("drain"):
                self.run("scontrol", "update", f"NodeName={name}", "State=RESUME")
        if not wait_until(lambda: set(self.states().values()) == {"idle"}, 60):
            raise RuntimeError(f"Slurm does not recover: {self.states()}, {self._complaints()}")

    def start_slurmctld(self) -> None:
        slurmctld = [program("slurmctld", "slurm-wlm"), "-D", "-i", "-f", self.conf]
        self._daemon("unshare", "--mount", "--uts", "sh", "-c", AS_HARNESS, self.hosts.names_file, *slurmctld)
        if not wait_until(lambda: self.run("scontrol", "ping").returncode == 0, 20):
            raise UnavailableError(f"slurmctld does not start: {self._complaints()}")

    def _slurmds(self, name: str) -> list[int]:
        return self.hosts.hosts[name].pids(_is_slurmd)

    def _launch_slurmd(self, name: str) -> None:
        slurmd = program("slurmd", "slurm-wlm")
        argv = [slurmd, "-D", "-N", name, "-f", str(self.conf)]
        self.hosts.hosts[name].start(argv, self.folder / f"{name}.out")

    def _start_munged(self) -> None:
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        places = [f"--{what}-file={self.folder}/munged.{what}" for what in ("log", "pid", "seed")]
        socket_ = self.folder / "munge.socket"
        munged = program("munged", "munge")
        self._daemon(munged, "--foreground", "--force", f"--key-file={key}", f"--socket={socket_}", *places)
        if not wait_until(socket_.exists, 10):
            raise UnavailableError(f"munged does not start: {self._complaints()}")

    def _write(self) -> None:
        self.folder.mkdir()
        (self.folder / "state").mkdir()
        prolog = self.folder / "task_prolog"
        prolog.write_text(
            f"#!/bin/sh\necho export TRAINMARK_SCRATCH={SCRATCH}\necho export TRAINMARK_HOME={SCRATCH}/home\n"
        )
        prolog.chmod(0o755)
        nodes = [f"NodeName={name} NodeAddr={address}" for name, address in self.hosts.addresses.items()]
        names = {"address": self.hosts.harness_address, "folder": self.folder, "nodes": "\n".join(nodes)}
        self.conf.write_text(CONF.format(**names))

    def _daemon(self, *argv: str | Path) -> None:
        with (self.folder / "daemons.out").open("ab") as output:
            command = ["setpriv", "--pdeathsig", "KILL", "--", *map(str, argv)]
            daemon = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=self.variables()
            )
        self.daemons.append(daemon)

    def _complaints(self) -> str:
        """The last line of each log, for the one who has to find out why."""
        logs = self.folder.glob("*.out")
        last = {log.name: log.read_text(errors="replace").strip().splitlines()[-1:] for log in logs}
        return "; ".join(f"{name}: {lines[0]}" for name, lines in last.items() if lines)


# Debian calls the files slurmd-wlm and slurmstepd-wlm.
def _is_slurmd(executable: str, _: str) -> bool:
    return Path(executable).name.removesuffix("-wlm") == "slurmd"


def _is_slurmstepd(executable: str, _: str) -> bool:
    return Path(executable).name.removesuffix("-wlm") == "slurmstepd"
