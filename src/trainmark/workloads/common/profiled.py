"""The steps that a program takes for a profile, after those that are measured."""

from trainmark.inside.profiler import capture
from trainmark.workloads.common import run

is_requested = capture.is_requested
QUEUED_BATCHES = 8  # that a loader makes ahead, and one to copy
HEATING_SECONDS = 2.0  # until a GPU is as hot, and its clocks as low, as in a long training


def take_steps(opt, training, stream, has_loader):
    """Go on with the training under the profiler of its framework."""
    settling = QUEUED_BATCHES if has_loader else capture.SETTLING_STEPS
    heating = HEATING_SECONDS if opt.device == "cuda" else 0.0
    profile = capture.Capture(
        training.profiler, training.clock(), opt.rank, opt.world_size, settling, heating
    )
    profile.samples_per_step = opt.step_samples
    profile.begin()
    step = opt.steps
    while profile.running:
        with profile.data():
            batch = next(stream)
        run.train(opt, training, batch, step, opt.epoch_samples)
        profile.step_ended()
        step += 1
