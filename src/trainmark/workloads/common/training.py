"""The training that the loop drives: the same few verbs in every framework's file."""

import itertools

from trainmark.workloads.common.gradient_clock import Untimed
from trainmark.workloads.common.memory_cap import process_memory_peak

SYNTHETIC_BATCHES = 4  # that a host loader hands out in turn


class Training:
    """One rank's training. A framework's file gives, beside what is defined here:

    Training(opt)                  builds model, optimizer and ranks on the device
    .host_batches(count)           synthetic batches as arrays on the host
    .place(*arrays)                a batch that `step` takes from host arrays
    .cycled(batches)               an endless stream of the host's batches in turn, copied step by step
    .feed(batches)                 such batches from those of the host loader
    .step(*batch, rate=, lam=1.0)  forward, backward and update; returns the rank's own loss, waits for
                                   nothing. `lam` is the mixing coefficient, given where the recipe has mixup
    .read(loss)                    a function that returns the loss as a number, once the device has passed it
    .evaluate(*batch)              a function that returns what this batch adds to the evaluation's counts, by
                                   the running statistics; a label of -1 is no sample
    .total(numbers)                a few floats added up over all ranks; waits for all of them
    .peak_flops()                  FLOP/s of a large matrix product in the step's precision
    .parameters()                  how many numbers are trained, as the framework counts them
    .load(tensors, momenta=None, rest=None)
                                   sets every tensor by its canonical name; without the others the momenta are
                                   zero and the rest as at the start
    .tensors()                     every tensor by its canonical name, as arrays on the host
    .momenta()                     the momentum buffer of every trained tensor, likewise
    .close()                       leaves the other ranks in order
    .device_memory()               on a GPU, the most bytes that were in use so far
    .gpu_name()                    as the framework calls it
    """

    gradient_clock = Untimed()  # tells computing from waiting for other ranks, where a framework can
    allocate = None  # `allocate(shape, dtype)`: host memory that the device copies from faster

    def batches(self):
        """Return an endless stream: one batch that stays on the device, or several copied to it in turn."""
        if self.opt.data == "synthetic":
            return itertools.repeat(self.place(*self.host_batches(1)[0]))
        return self.cycled(self.host_batches(SYNTHETIC_BATCHES))

    def clock(self):
        """Return a clock for the probe, None where a step is over when its call returns."""

    def profiler(self):
        """Return a backend of `trainmark.inside.profiler.capture`, None where the framework has none."""

    def cuda_profiler(self, framework, version):
        """Return what records the kernels of any framework with CUPTI; None on a CPU."""
        if self.opt.device != "cuda":
            return None
        from trainmark.inside.profiler.cupti.profiler import Profiler

        return Profiler(framework, version)

    def place_own(self, *batch):
        """Return a batch of the framework's own loader as one that `step` takes."""
        return batch

    def rest(self):
        """Return what else the next step depends on (the loss scale, …), as plain numbers."""
        return {}

    def start_facts(self):
        """Return what is on in this training (kernels, compiler, …), as facts for `run_start`."""
        return {}

    def fallbacks(self):
        """Return what it could not do as it should here, a sentence each."""
        return []

    def device_memory(self):
        """Return None where the framework does not tell."""

    def memory(self):
        return process_memory_peak() if self.opt.device == "cpu" else self.device_memory()

    def device_name(self):
        return "cpu" if self.opt.device == "cpu" else self.gpu_name()

    def peak_bandwidth(self):
        """Return bytes/s, read and written, of a large copy; None where it is not measured."""

    def peaks(self):
        """Return what the device does at best: in arithmetic, and in memory where that is measured."""
        peaks = {"peak_flops": self.peak_flops(), "peak_bandwidth": self.peak_bandwidth()}
        return {name: value for name, value in peaks.items() if value is not None}
