"""The names of the facts of an environment and of a case, as people read them."""

from __future__ import annotations

from trainmark.view.message import _, joined

# Products and programs (CUDA, NCCL, Python, git's words for itself) have the same name in all languages.
NAMES = (
    *(_("address"), _("architecture"), _("board"), _("branch"), _("changes"), _("command"), _("commit")),
    *(_("compiler"), _("compute capability"), _("container"), _("cores"), _("count"), _("cpu")),
    *(_("cpus"), _("cuda driver"), _("cuda toolkit"), _("cudnn"), _("data"), _("dataset"), _("device")),
    *(_("devices"), _("dirty"), _("driver"), _("ecc"), _("fabric"), _("firmware"), _("framework")),
    *(_("framework version"), _("frameworks"), _("git"), _("governor"), _("gpu"), _("gpus"), _("host")),
    *(_("hostname"), _("image"), _("implementation"), _("index"), _("infiniband"), _("interface")),
    *(_("interfaces"), _("kernel"), _("kind"), _("layout"), _("libraries"), _("link layer"), _("loader")),
    *(_("loss scale"), _("max memory clock mhz"), _("max sm clock mhz"), _("memory"), _("mig")),
    *(_("missing"), _("model"), _("mpi"), _("mtu"), _("name"), _("nccl"), _("node"), _("numa")),
    *(_("packages"), _("pci bus"), _("pcie"), _("persistence"), _("physical"), _("physical state")),
    *(_("port"), _("power limit watts"), _("precision"), _("processor"), _("product"), _("python")),
    *(_("rate"), _("recipe"), _("sockets"), _("software"), _("source"), _("speed mbps"), _("state")),
    *(_("steps"), _("system"), _("target"), _("threads"), _("topology"), _("turbo"), _("uuid")),
    *(_("variables"), _("variant"), _("version"), _("virtualisation"), _("warmup steps"), _("workload")),
)
KNOWN = {str(name): name for name in NAMES}


def fact_name(name: str) -> str:
    """Return the name of a fact; sizes are shown in GiB and lose the word for their unit."""
    english = name.replace("_", " ").removesuffix(" bytes")
    return KNOWN.get(english, english)


def fact_title(name: str) -> str:
    """Return the name of a fact in a reader's words, part by part: `packages.numpy`, `cpu.governor`."""
    head, dot, tail = name.partition(".")
    return joined([fact_name(head), dot + tail], "") if dot else fact_name(head)
