"""The callbacks under stand-ins that call them in the order of the real libraries.

What the libraries themselves do is in test_real_libraries.py, where they are installed.
"""

import importlib
import sys
from types import ModuleType, SimpleNamespace

import pytest

torch = pytest.importorskip("torch")


def stand_in(monkeypatch, callback, **modules):
    """Import a callback over modules that hold nothing but these names."""
    for name, attributes in modules.items():
        module = ModuleType(name.replace("__", "."))
        module.__dict__.update(attributes)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    name = f"trainmark.callbacks.{callback}"
    sys.modules.pop(name, None)
    importlib.import_module(name)
    return sys.modules.pop(name)


# Hugging Face Trainer


def train_with_trainer(callback, samples, batch, accumulate, epochs=1, world_size=1):
    """Trainer's loop: every `accumulate` batches a step; an evaluation and a checkpoint after each epoch."""
    args = SimpleNamespace(
        device=torch.device("cpu"), process_index=0, world_size=world_size, train_batch_size=batch
    )
    state = SimpleNamespace(epoch=0, global_step=0, train_batch_size=batch)
    loader = torch.utils.data.DataLoader(list(range(samples)), batch_size=batch)
    arguments = {"args": args, "state": state, "control": None, "train_dataloader": loader}
    callback.on_train_begin(**arguments)
    for epoch in range(epochs):
        callback.on_epoch_begin(**arguments)
        for index in range(len(loader)):
            if (index + 1) % accumulate and index + 1 < len(loader):
                callback.on_substep_end(**arguments)
                continue
            state.global_step += 1
            state.epoch = epoch + (index + 1) / len(loader)
            callback.on_step_end(**arguments)
            callback.on_log(
                **arguments, logs={"loss": 1.0 / state.global_step, "learning_rate": 0.1, "epoch": 0.5}
            )
        callback.on_epoch_end(**arguments)
        callback.on_log(**arguments, logs={"eval_loss": 2.0})
        callback.on_evaluate(**arguments, metrics={})
        callback.on_save(**arguments)
    callback.on_train_end(**arguments)


@pytest.fixture
def trainer_callback(monkeypatch):
    return stand_in(monkeypatch, "transformers", transformers={"TrainerCallback": object}).TrainmarkCallback


def test_a_step_of_the_trainer_is_one_of_the_optimiser_with_the_samples_that_were_there(
    trainer_callback, record
):
    train_with_trainer(trainer_callback(), samples=22, batch=4, accumulate=2, epochs=2)
    assert record.samples == [8, 8, 6] * 2
    assert (record.start.unit, record.start.facts["source"]) == ("samples", "transformers callback")
    assert record.start.facts["clock"] == "host"


def test_ranks_of_the_trainer_have_full_batches(trainer_callback, record):
    train_with_trainer(trainer_callback(), samples=22, batch=4, accumulate=2, world_size=2)
    assert record.samples == [8, 8, 8]
    assert record.start.world_size == 2


def test_epochs_evaluations_and_checkpoints_of_the_trainer_are_no_part_of_a_step(trainer_callback, record):
    train_with_trainer(trainer_callback(), samples=8, batch=4, accumulate=2, epochs=2)
    of_epoch = ["epoch begin {}", "step", "epoch end {}", "eval end {}", "checkpoint"]
    assert record.order == ["start", *(each.format(n) for n in (0, 1) for each in of_epoch), "end"]
    trace = record.trace()
    assert trace.begins[1] > trace.ends[0]


def test_the_loss_that_the_trainer_logs_comes_with_the_step_after(trainer_callback, record):
    train_with_trainer(trainer_callback(), samples=8, batch=4, accumulate=1, epochs=2)
    assert [step.loss for step in record.steps] == [None, 1.0, 1 / 2, 1 / 3]
    assert [step.lr for step in record.steps] == [None, 0.1, 0.1, 0.1]


def test_an_evaluation_without_a_training_is_not_recorded(trainer_callback, record):
    trainer_callback().on_evaluate(None, SimpleNamespace(epoch=None), None, metrics={})
    assert not record._path.exists()


# Lightning


def fit_with_lightning(callback, samples, batch, accumulate, epochs=1, save_after=None):
    """Lightning's loop, its sanity check before: `global_step` rises with each step of an optimiser."""
    trainer = SimpleNamespace(
        strategy=SimpleNamespace(root_device=torch.device("cpu")),
        global_rank=0,
        world_size=1,
        global_step=0,
        current_epoch=0,
        sanity_checking=True,
        accumulate_grad_batches=accumulate,
    )
    batches = torch.arange(samples).split(batch)
    callback.on_validation_end(trainer, None)
    trainer.sanity_checking = False
    callback.on_train_start(trainer, None)
    for trainer.current_epoch in range(epochs):
        callback.on_train_epoch_start(trainer, None)
        for index, rows in enumerate(batches):
            callback.on_train_batch_start(trainer, None, rows, index)
            trainer.global_step += (index + 1) % accumulate == 0 or index + 1 == len(batches)
            callback.on_train_batch_end(trainer, None, {"loss": torch.tensor(3.0) / accumulate}, rows, index)
            if trainer.global_step == save_after:
                callback.on_save_checkpoint(trainer, None, {})
        callback.on_validation_end(trainer, None)
        callback.on_train_epoch_end(trainer, None)
    callback.on_train_end(trainer, None)


@pytest.fixture
def lightning_callback(monkeypatch):
    modules = {
        "lightning": {},
        "lightning__pytorch": {"Callback": object},
        "lightning__pytorch__utilities": {},
        "lightning__pytorch__utilities__data": {"extract_batch_size": len},
    }
    return stand_in(monkeypatch, "lightning", **modules).TrainmarkCallback


def test_a_step_of_lightning_is_one_of_the_optimiser_with_the_samples_that_were_there(
    lightning_callback, record
):
    fit_with_lightning(lightning_callback(unit="rows"), samples=22, batch=4, accumulate=2, epochs=2)
    assert record.samples == [8, 8, 6] * 2
    assert (record.start.unit, record.start.facts["source"]) == ("rows", "lightning callback")


def test_the_loss_of_lightning_is_that_of_a_batch_not_its_share_of_a_step(lightning_callback, record):
    fit_with_lightning(lightning_callback(), samples=8, batch=4, accumulate=2)
    assert [step.loss for step in record.steps] == [3.0]


def test_a_checkpoint_of_lightning_is_no_part_of_the_next_step(lightning_callback, record):
    fit_with_lightning(lightning_callback(), samples=12, batch=4, accumulate=1, save_after=1)
    assert record.order == [
        *("start", "epoch begin 0", "step", "checkpoint", "step", "step"),
        *("eval end 0", "epoch end 0", "end"),
    ]
    trace = record.trace()
    assert trace.begins[1] > trace.ends[0]


# Keras


def fit_with_keras(callback, batches, steps_per_execution=1, epochs=1, order=None):
    """Keras's loop: its threads call `on_train_batch_end`, in this `order` of the executions."""
    callback.on_train_begin()
    for epoch in range(epochs):
        callback.on_epoch_begin(epoch)
        begins = list(range(0, batches, steps_per_execution))
        ends = [min(begin + steps_per_execution, batches) - 1 for begin in begins]
        if order is None:
            for begin, end in zip(begins, ends, strict=True):
                callback.on_train_batch_begin(begin)
                callback.on_train_batch_end(end, {"loss": 2.0})
        else:
            for begin in begins:
                callback.on_train_batch_begin(begin)
            for index in order:
                callback.on_train_batch_end(ends[index], {"loss": float(index)})
        callback.on_test_begin()
        callback.on_test_end()
        callback.on_epoch_end(epoch)
    callback.on_train_end()


@pytest.fixture
def keras_callback(monkeypatch):
    def imported(backend):
        parts = {
            "backend": SimpleNamespace(backend=lambda: backend),
            "callbacks": SimpleNamespace(Callback=object),
        }
        return stand_in(monkeypatch, "keras", keras=parts).TrainmarkCallback

    return imported


@pytest.mark.parametrize(("backend", "clock"), [("jax", "jax"), ("tensorflow", "loss"), ("torch", "host")])
def test_every_backend_of_keras_has_its_clock_and_the_same_steps(
    backend, clock, keras_callback, record, monkeypatch
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    fit_with_keras(keras_callback(backend)(32, epoch_samples=70), batches=3, epochs=2)
    assert record.samples == [32, 32, 6] * 2
    assert (record.start.facts["clock"], record.start.facts["source"]) == (clock, "keras callback")
    of_epoch = ["epoch begin {}", "step", "step", "step", "eval end {}", "epoch end {}"]
    assert record.order == ["start", *(each.format(n) for n in (0, 1) for each in of_epoch), "end"]


def test_threads_of_keras_that_come_out_of_order_leave_the_steps_in_order(keras_callback, record):
    fit_with_keras(keras_callback("jax")(32), batches=4, order=[1, 0, 3, 2])
    assert [step.loss for step in record.steps] == [0.0, 1.0, 2.0, 3.0]


def test_an_execution_of_several_batches_is_one_step(keras_callback, record):
    fit_with_keras(keras_callback("jax")(32), batches=5, steps_per_execution=2)
    assert record.samples == [64, 64, 32]


def test_keras_is_asked_to_call_from_its_threads_and_so_never_waits_for_a_step(keras_callback):
    assert keras_callback("jax").async_safe is True


# Accelerate


class Accelerator:
    """Gradients are synchronised every so many batches, and after the last."""

    device = torch.device("cpu")
    process_index = 0
    num_processes = 1
    sync_gradients = True

    def register_save_state_pre_hook(self, hook):
        self.save_state = lambda: hook([], [], "folder")


@pytest.fixture
def accelerate(monkeypatch):
    modules = {"accelerate": {}, "accelerate__utils": {"find_batch_size": len}}
    return stand_in(monkeypatch, "accelerate", **modules)


def train_with_accelerate(run, accelerator, batches, accumulate=1, save_after=None):
    for index, _ in enumerate(run.batches(batches)):
        accelerator.sync_gradients = (index + 1) % accumulate == 0 or index + 1 == len(batches)
        if index == save_after:
            accelerator.save_state()


def test_a_step_of_accelerate_is_all_that_it_accumulates(accelerate, record):
    accelerator = Accelerator()
    run = accelerate.start(accelerator, model="tiny")
    for _ in range(2):
        train_with_accelerate(run, accelerator, torch.arange(22).split(4), accumulate=2)
        run.mark("eval", state="end")
    run.end()
    assert record.samples == [8, 8, 6] * 2
    assert record.start.facts == {
        "source": "accelerate callback", "framework": "pytorch", "model": "tiny", "clock": "host"
    }  # fmt: skip
    assert record.order[-3:] == ["epoch end 1", "eval end", "end"]


def test_a_state_saved_in_the_loop_is_no_part_of_a_step(accelerate, record):
    accelerator = Accelerator()
    run = accelerate.start(accelerator)
    train_with_accelerate(run, accelerator, torch.arange(12).split(4), save_after=1)
    run.end()
    order = ["start", "epoch begin 0", "step", "step", "checkpoint", "step", "epoch end 0", "end"]
    assert record.order == order
    assert record.samples == [4, 4, 4]
