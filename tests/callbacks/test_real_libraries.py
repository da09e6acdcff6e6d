"""The callbacks in the libraries themselves, each in a small training; skipped where one is not installed."""

import sys
import time

import numpy as np
import pytest

ROWS = 22


def rows_and_labels(torch):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(ROWS, 8, generator=generator), torch.arange(ROWS) % 2


def close_to_the_stopwatch(record, seconds):
    """All that was recorded lies within what a stopwatch around the training shows."""
    trace = record.trace()
    assert 0 < trace.step_seconds.sum() <= trace.ends[-1] - trace.start <= seconds


def test_hugging_face_trainer(record, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, "datasets", None)  # else it would take the tests of that name for it
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from trainmark.callbacks.transformers import TrainmarkCallback

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 2)

        def forward(self, x, labels):
            logits = self.layer(x)
            return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}

    rows = [{"x": x, "labels": y} for x, y in zip(*rows_and_labels(torch), strict=True)]
    arguments = transformers.TrainingArguments(
        str(tmp_path / "out"),
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        num_train_epochs=2,
        logging_steps=1,
        eval_strategy="epoch",
        save_strategy="epoch",
        report_to=[],
        use_cpu=True,
        dataloader_pin_memory=False,
    )
    trainer = transformers.Trainer(
        Classifier(), arguments, train_dataset=rows, eval_dataset=rows, callbacks=[TrainmarkCallback()]
    )
    began = time.monotonic()
    trainer.train()
    close_to_the_stopwatch(record, time.monotonic() - began)
    assert record.samples == [8, 8, 6] * 2
    assert record.order.count("eval end 0") == record.order.count("eval end 1") == 1
    assert record.order.count("checkpoint") == 2
    assert [step.loss is None for step in record.steps] == [True, False, False, False, False, False]


def test_lightning(record, tmp_path):
    torch = pytest.importorskip("torch")
    lightning = pytest.importorskip("lightning")
    from trainmark.callbacks.lightning import TrainmarkCallback

    class Classifier(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 2)

        def training_step(self, batch, index):
            x, y = batch
            return torch.nn.functional.cross_entropy(self.layer(x), y)

        validation_step = training_step

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(*rows_and_labels(torch)), batch_size=4
    )
    saving = lightning.pytorch.callbacks.ModelCheckpoint(tmp_path, every_n_train_steps=1, save_top_k=-1)
    trainer = lightning.Trainer(
        max_epochs=2,
        accumulate_grad_batches=2,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        callbacks=[TrainmarkCallback(), saving],
    )
    began = time.monotonic()
    trainer.fit(Classifier(), loader, loader)
    close_to_the_stopwatch(record, time.monotonic() - began)
    assert record.samples == [8, 8, 6] * 2
    assert record.order.count("eval end 0") == record.order.count("eval end 1") == 1
    assert "checkpoint" in record.order
    assert all(0.1 < step.loss < 3 for step in record.steps)


def test_keras(record):
    keras = pytest.importorskip("keras")
    from trainmark.callbacks.keras import TrainmarkCallback

    model = keras.Sequential([keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = np.random.default_rng(0).normal(size=(ROWS, 8)).astype("float32"), np.arange(ROWS) % 2
    began = time.monotonic()
    model.fit(
        x,
        y,
        batch_size=8,
        epochs=2,
        validation_data=(x, y),
        verbose=0,
        callbacks=[TrainmarkCallback(8, ROWS)],
    )
    close_to_the_stopwatch(record, time.monotonic() - began)
    assert record.samples == [8, 8, 6] * 2
    assert record.order.count("eval end 0") == record.order.count("eval end 1") == 1


def test_accelerate(record, tmp_path):
    torch = pytest.importorskip("torch")
    accelerate = pytest.importorskip("accelerate")
    from trainmark.callbacks.accelerate import start

    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = torch.utils.data.TensorDataset(*rows_and_labels(torch))
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    began = time.monotonic()
    run = start(accelerator)
    for _ in range(2):
        for x, y in run.batches(loader):
            with accelerator.accumulate(model):
                accelerator.backward(torch.nn.functional.cross_entropy(model(x), y))
                optimizer.step()
                optimizer.zero_grad()
    accelerator.save_state(tmp_path / "state")
    run.end()
    close_to_the_stopwatch(record, time.monotonic() - began)
    assert record.samples == [8, 8, 6] * 2


def test_the_clock_jax_follows_a_real_array(record):
    jax = pytest.importorskip("jax")
    from trainmark import probe

    step = jax.jit(lambda weights: (weights @ weights / 256, weights.sum()), donate_argnums=0)
    weights = jax.numpy.ones((256, 256))
    run = probe.start(clock="jax")
    for _ in range(5):
        weights, loss = step(weights)
        run.step(1, loss=loss)
    run.end()
    assert record.start.facts == {"clock": "jax"}
    assert [step.loss for step in record.steps] == [256.0 * 256] * 5
