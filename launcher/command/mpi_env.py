"""The environment that mpiexec gets: what MPI, ssh and Python need to start the agents, no more.

mpiexec hands its environment to whoever connects to it as one of its own processes. The ranks' own
comes with the job, once the agents have proved who they are.
Floor: launcher/command. Thread: any.
"""

from collections.abc import Mapping

NAMES = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TZ", "LANG", "LANGUAGE", "TMPDIR"),
        *("LD_LIBRARY_PATH", "LD_PRELOAD"),
        *("PYTHONHOME", "PYTHONPATH", "PYTHONSAFEPATH", "VIRTUAL_ENV", "CONDA_PREFIX"),
        *("XDG_RUNTIME_DIR", "KRB5CCNAME"),  # where ssh finds what proves who the user is
        *("JOB_ID", "PE_HOSTFILE"),  # Grid Engine
    )
)
PREFIXES = (
    "LC_",
    "SSH_",
    *("HYDRA_", "MPIR_", "MPICH_", "MPIEXEC_", "I_MPI_", "OMPI_", "PRTE_", "PMIX_", "OPAL_"),
    *("MPI4PY_", "FI_", "UCX_", "PSM2_", "PSM3_", "MLX5_", "IBV_"),
    *("SLURM_", "PBS_", "LSB_", "LSF_", "SGE_", "COBALT_", "FLUX_", "PALS_"),
)


# In a job of Slurm mpiexec starts a step of its own. It runs beside others of the job, and an agent
# has all CPUs of its host, not those of one task: the ranks inherit them. srun takes the second as
# options, each of which would cut the step down to the CPUs of its tasks.
SLURM_STEP = {"SLURM_OVERLAP": "1", "SLURM_CPU_BIND": "none"}
OF_ONE_TASK = frozenset(("SLURM_EXACT", "SLURM_CPUS_PER_TASK", "SLURM_TRES_PER_TASK"))


def mpi_environment(environ: Mapping[str, str]) -> dict[str, str]:
    env = {
        name: value
        for name, value in environ.items()
        if (name in NAMES or name.startswith(PREFIXES)) and name not in OF_ONE_TASK
    }
    return env | SLURM_STEP if "SLURM_JOB_ID" in env else env
