"""Accelerate: its loop is the program's own, so that the batches are drawn through the record.

run = start(accelerator)
for batch in run.batches(loader):
    with accelerator.accumulate(model):
        ...
run.end()
"""

from accelerate.utils import find_batch_size

from trainmark import probe


def start(accelerator, unit="samples", **facts):
    """Begin the record of this process, just before its first step; `facts` say what is measured."""
    device = accelerator.device
    return AccelerateRun(
        accelerator,
        probe.start(
            unit=unit,
            clock=str(device) if device.type == "cuda" else "host",
            rank=accelerator.process_index,
            world_size=accelerator.num_processes,
            source="accelerate callback",
            framework="pytorch",
            **facts,
        ),
    )


class AccelerateRun:
    """A step is one of the optimiser, with all batches that `accelerator.accumulate` put into it."""

    def __init__(self, accelerator, run):
        self._accelerator = accelerator
        self._run = run
        self._epoch = 0
        self._samples = 0
        self._saving = None
        accelerator.register_save_state_pre_hook(self._begin_saving)

    def batches(self, loader):
        """Yield the batches of one epoch; a step is over when the loop comes back for the next."""
        self._end_saving()
        self._run.mark("epoch", epoch=self._epoch, state="begin")
        for batch in loader:
            self._samples += find_batch_size(batch)
            yield batch
            self._end_step()
            self._end_saving()
        self._run.mark("epoch", epoch=self._epoch, state="end")
        self._epoch += 1

    def _end_step(self):
        if self._samples and self._accelerator.sync_gradients:
            self._run.step(self._samples)
            self._samples = 0

    def _begin_saving(self, models, weights, output_dir):
        """`accelerator.save_state` in the middle of the loop: the step is over, and this is no part of it."""
        self._end_step()
        self._saving = probe.now()

    def _end_saving(self):
        if self._saving is not None:
            self._run.mark("checkpoint", seconds=probe.now() - self._saving)
            self._saving = None

    def mark(self, kind, **facts):
        """What the loop has just come through, an `eval` say: see `probe.Run.mark`."""
        self._run.mark(kind, **facts)

    def end(self):
        self._run.end()
