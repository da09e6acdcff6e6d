"""Hugging Face Trainer: `Trainer(..., callbacks=[TrainmarkCallback()])`."""

import math

from transformers import TrainerCallback

from trainmark import probe


class TrainmarkCallback(TrainerCallback):
    """Records the first `train` of this process; a step is one of the optimiser, with all it accumulates.

    The loss and the learning rate are those that the Trainer logs, recorded with the step after.
    """

    def __init__(self, unit="samples", **facts):
        self._unit = unit
        self._facts = facts
        self._run = None
        self._batches = 0
        self._epoch_batches = 0
        self._logged = {}
        self._stopped = 0.0

    def on_train_begin(self, args, state, control, **kwargs):
        if self._run is None:
            self._run = probe.start(
                unit=self._unit,
                clock=str(args.device) if args.device.type == "cuda" else "host",
                rank=args.process_index,
                world_size=args.world_size,
                source="transformers callback",
                framework="pytorch",
                **self._facts,
            )

    def on_epoch_begin(self, args, state, control, **kwargs):
        self._epoch_batches = 0
        self._run.mark("epoch", epoch=round(state.epoch or 0), state="begin")

    def on_substep_end(self, args, state, control, **kwargs):
        self._batches += 1

    def on_step_end(self, args, state, control, train_dataloader=None, **kwargs):
        batches, self._batches = self._batches + 1, 0
        self._epoch_batches += batches
        logged, self._logged = self._logged, {}
        batch = getattr(state, "train_batch_size", None) or args.train_batch_size
        missing = self._missing(args, batch, train_dataloader)
        self._run.step(batches * batch - missing, **logged)
        self._stopped = probe.now()

    def _missing(self, args, batch, loader):
        """Samples that the last batch of an epoch lacks; with several ranks Accelerate fills it up."""
        dataset = getattr(loader, "dataset", None)
        if args.world_size > 1 or not hasattr(dataset, "__len__") or self._epoch_batches != len(loader):
            return 0
        return max(0, len(loader) * batch - len(dataset))

    def on_log(self, args, state, control, logs=None, **kwargs):
        names = {"loss": "loss", "learning_rate": "lr"}
        self._logged.update((names[name], value) for name, value in (logs or {}).items() if name in names)

    def on_evaluate(self, args, state, control, **kwargs):
        if self._run is not None:
            self._run.mark("eval", epoch=last_epoch(state), state="end")
            self._stopped = probe.now()

    def on_save(self, args, state, control, **kwargs):
        if self._run is not None:
            seconds = probe.now() - self._stopped
            self._run.mark("checkpoint", step=state.global_step, seconds=seconds)

    def on_epoch_end(self, args, state, control, **kwargs):
        self._run.mark("epoch", epoch=last_epoch(state), state="end")

    def on_train_end(self, args, state, control, **kwargs):
        self._run.end()


def last_epoch(state):
    """Return the number of the epoch that the last step was of; `state.epoch` is how many are over."""
    return max(0, math.ceil((state.epoch or 0) - 1e-6) - 1)
