"""Lightning: `Trainer(..., callbacks=[TrainmarkCallback()])`."""

import torch

from trainmark import probe

try:
    from lightning.pytorch import Callback
    from lightning.pytorch.utilities.data import extract_batch_size
except ImportError:  # where it is installed under its older name
    from pytorch_lightning import Callback
    from pytorch_lightning.utilities.data import extract_batch_size


class TrainmarkCallback(Callback):
    """Records the first `fit` of this process; a step is one of the optimiser, with all it accumulates."""

    def __init__(self, unit="samples", **facts):
        self._unit = unit
        self._facts = facts
        self._run = None
        self._global_step = 0
        self._samples = 0
        self._saving = None

    def on_train_start(self, trainer, pl_module):
        device = trainer.strategy.root_device
        if self._run is None:
            self._run = probe.start(
                unit=self._unit,
                clock=str(device) if device.type == "cuda" else "host",
                rank=trainer.global_rank,
                world_size=trainer.world_size,
                source="lightning callback",
                framework="pytorch",
                **self._facts,
            )
        self._global_step, self._saving = trainer.global_step, None

    def on_train_epoch_start(self, trainer, pl_module):
        self._run.mark("epoch", epoch=trainer.current_epoch, state="begin")

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if self._saving is not None:
            step, began = self._saving
            self._run.mark("checkpoint", step=step, seconds=probe.now() - began)
            self._saving = None

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self._samples += extract_batch_size(batch)
        if trainer.global_step == self._global_step:
            return  # its gradients are accumulated
        self._global_step = trainer.global_step
        loss = outputs.get("loss") if isinstance(outputs, dict) else None
        if isinstance(loss, torch.Tensor):
            # Lightning has divided it by the batches that a step accumulates.
            loss = on_host(loss * trainer.accumulate_grad_batches)
        self._run.step(self._samples, loss=loss)
        self._samples = 0

    def on_validation_end(self, trainer, pl_module):
        if self._run is not None and not trainer.sanity_checking:
            self._run.mark("eval", epoch=trainer.current_epoch, state="end")

    def on_save_checkpoint(self, trainer, pl_module, checkpoint):
        self._saving = trainer.global_step, probe.now()

    def on_train_epoch_end(self, trainer, pl_module):
        self._run.mark("epoch", epoch=trainer.current_epoch, state="end")

    def on_train_end(self, trainer, pl_module):
        self._run.end()


def on_host(loss):
    """Return a function that gives the loss once the device has passed it, and waits for nothing else."""
    if loss.device.type != "cuda":
        return loss.item
    slot = torch.empty((), dtype=loss.dtype, pin_memory=True)
    slot.copy_(loss.detach(), non_blocking=True)
    return slot.item
