"""What held the memory of a real PyTorch step on the CPU, against arithmetic and against changes made."""

from __future__ import annotations

import pytest

from trainmark.explain import memory as explained
from trainmark.inside.profiler import pytorch_memory

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install 'trainmark[pytorch]'")

from torch import nn  # noqa: E402 - only where torch is

WIDTH, BATCH, FLOAT = 32, 16, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(self.up(x).relu())


class Network(nn.Module):
    def __init__(self, checkpointed=False):
        super().__init__()
        self.stem = nn.Linear(WIDTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(WIDTH, 10)
        self.checkpointed = checkpointed

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            run = torch.utils.checkpoint.checkpoint if self.checkpointed else None
            x = run(block, x, use_reentrant=False) if run else block(x)
        return self.head(x)


class Training:
    """A few steps of a small network, as any program has them."""

    def __init__(
        self, batch=BATCH, checkpointed=False, optimizer=torch.optim.AdamW, wrap=lambda network: network
    ):
        torch.manual_seed(0)
        self.network = Network(checkpointed)
        self.run = wrap(self.network)
        self.optimizer = optimizer(self.network.parameters(), lr=0.01)
        self.batch, self.labels = torch.randn(batch, WIDTH), torch.arange(batch) % 10
        self.step()

    def step(self):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.run(self.batch), self.labels)
        loss.backward()
        self.gradient = self.network.stem.weight.grad.clone()
        self.optimizer.step()
        return loss.item()

    def memory(self):
        return pytorch_memory.measure(self.step, [self.optimizer])


@pytest.fixture
def mkldnn():
    """PyTorch turns oneDNN off for good once a processor has no bf16: as before for the tests that follow."""
    before = torch.backends.mkldnn.enabled
    yield
    torch._C._set_mkldnn_enabled(before)


def weight_bytes(network):
    return sum(parameter.numel() for parameter in network.parameters()) * FLOAT


@pytest.fixture(scope="module")
def observed():
    return Training().memory()


def test_weights_and_both_moments_are_counted_to_the_byte(observed):
    weights = weight_bytes(Network())
    steps = 16 * FLOAT  # AdamW's count, one a parameter
    assert observed["parameters"] == weights
    assert observed["optimizer"] == 2 * weights + steps


def test_the_batch_is_no_activation(observed):
    assert observed["batch_bytes"] == BATCH * WIDTH * FLOAT


def test_a_block_saves_its_input_and_the_hidden_layer(observed):
    (blocks,) = observed["blocks"]
    one = BATCH * WIDTH * FLOAT + BATCH * 2 * WIDTH * FLOAT
    assert blocks == {
        "pattern": "blocks.*",
        "type": "Block",
        "count": 3,
        "bytes": 3 * one,
        "largest": one,
        "inputs": 3 * BATCH * WIDTH * FLOAT,
    }


def test_what_the_loss_saves_is_named_cross_entropy(observed):
    saved = {row["type"]: row["bytes"] for row in Training(batch=512).memory()["activations"]}
    assert saved["cross_entropy"] == pytest.approx(512 * 10 * FLOAT, abs=512 * 8 + FLOAT)


def activations(observed):
    return explained.activations(observed)


def test_checkpointing_frees_what_was_predicted():
    without, with_it = Training(512).memory(), Training(512, checkpointed=True).memory()
    assert without["phase"] == with_it["phase"] == "forward"  # the most is alive at its end
    predicted = explained.checkpointed(without["blocks"][0])
    assert activations(without) - activations(with_it) == predicted > 0


def test_half_the_batch_frees_half_of_the_activations():
    whole, half = activations(Training(1024).memory()), activations(Training(512).memory())
    assert whole - half == pytest.approx(whole / 2, rel=0.001)


def test_a_watched_step_computes_the_same_to_the_bit():
    watched, plain = Training(), Training()
    watched.memory()
    plain.step()
    assert torch.equal(watched.gradient, plain.gradient)
    assert watched.step() == plain.step()


def test_gradients_that_are_freed_before_the_forward_pass_are_not_at_a_peak_at_its_end():
    assert Training(512).memory()["gradients"] == 0


def test_gradients_are_all_there_when_the_peak_is_after_backward():
    training = Training(batch=1)
    observed = training.memory()
    assert observed["phase"] in ("backward", "update")
    assert observed["gradients"] == weight_bytes(training.network)


def test_a_compiled_network_is_one_part_and_is_not_compiled_again():
    counters = pytest.importorskip("torch._dynamo.utils").counters
    training = Training(512, wrap=lambda network: torch.compile(network, backend="aot_eager"))
    graphs = counters["stats"]["unique_graphs"]
    observed = training.memory()
    assert "compiled graph" in {row["type"] for row in observed["activations"]}
    assert counters["stats"]["unique_graphs"] == graphs


class Boxed(torch.autograd.Function):
    """Unpacks all before it runs, and clears its context, as a compiled graph does."""

    in_backward = staticmethod(lambda: None)

    @staticmethod
    def forward(ctx, values):
        ctx.save_for_backward(*(values * factor for factor in (2, 3)))
        return values * 6

    @staticmethod
    def backward(ctx, gradient):
        saved = list(ctx.saved_tensors)
        ctx.maybe_clear_saved_tensors()
        Boxed.in_backward()
        del saved[0]
        Boxed.in_backward()
        return gradient * 6


def test_what_a_compiled_graph_unpacks_is_held_until_it_is_freed(monkeypatch):
    weight = nn.Parameter(torch.ones(1000))
    watch = pytorch_memory.MemoryWatch([torch.optim.SGD([weight])])
    levels = []
    monkeypatch.setattr(Boxed, "in_backward", lambda: levels.append(watch.saved.total))
    watch.start()
    Boxed.apply(weight).sum().backward()
    levels.append(watch.saved.total)
    watch.finish()
    assert levels == [2 * 1000 * FLOAT, 1000 * FLOAT, 0]


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # on a CPU without bfloat16 products
def test_autocasts_copies_of_weights_are_no_activations(mkldnn):
    training = Training(64)
    network, step = training.network, training.step

    def in_half():
        with torch.autocast("cpu", torch.bfloat16):
            return step()

    observed = pytorch_memory.measure(in_half, [training.optimizer])
    matrices = sum(parameter.numel() for parameter in network.parameters() if parameter.ndim == 2)
    needed = matrices - network.stem.weight.numel()  # nobody asks for the gradient of the batch
    assert observed["weight_casts"] == needed * 2


@pytest.fixture
def one_rank():
    distributed = pytest.importorskip("torch.distributed")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.parametrize("views", [True, False])
def test_ddp_has_buckets_beside_the_gradients_unless_those_are_views(one_rank, views):
    training = Training(
        wrap=lambda network: nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=views)
    )
    weights = weight_bytes(training.network)
    observed = training.memory()
    assert observed["buckets"] == (0 if views else weights)
    assert observed["parameters"] == weights
    assert observed["blocks"][0]["pattern"] == "blocks.*"  # without DDP's own `module.`


def test_weights_gathered_by_fsdp_are_no_activations(one_rank):
    fsdp = pytest.importorskip("torch.distributed.fsdp")

    def sharded(network):
        for block in network.blocks:
            fsdp.fully_shard(block)
        return fsdp.fully_shard(network)

    plain, observed = Training(512).memory(), Training(512, wrap=sharded).memory()
    assert activations(observed) == activations(plain)


def test_a_step_that_allows_no_hooks_runs_and_is_said_not_to_be_looked_at():
    training = Training()
    gradients = []

    def functional_step():
        gradients.append(
            torch.func.grad(lambda weight: (weight * weight).sum())(training.network.head.weight)
        )
        training.step()

    observed = pytorch_memory.measure(functional_step, [training.optimizer])
    assert "allows no hooks on saved tensors" in observed["error"]
    assert len(gradients) == 1


def test_the_errors_of_a_step_are_its_own_and_leave_no_hook_behind():
    training = Training()

    def broken():
        training.step()
        raise KeyError("of the program")

    with pytest.raises(KeyError, match="of the program"):
        pytorch_memory.measure(broken, [training.optimizer])
    with torch.autograd.graph.disable_saved_tensors_hooks("refused where one is left"):
        training.step()


def saved_modules(models, criterion=nn.functional.cross_entropy):
    """Which modules hold activations as the forward pass ends, and which lists; each model feeds the next."""

    def step():
        x = torch.ones(512, WIDTH)
        for model in models:
            x = model(x)
        criterion(x, torch.zeros(512).long()).backward()

    parameters = [parameter for model in models for parameter in model.parameters()]
    observed = pytorch_memory.measure(step, [torch.optim.SGD(parameters)])
    assert observed["phase"] == "forward"
    return set(explained.modules(observed)), {row["pattern"] for row in observed["blocks"]}


class Trainer:
    """Two networks of one type, whose parts have the same names."""

    def __init__(self):
        self.generator, self.critic = stack(), stack()


def stack():
    return nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(2)))


def test_models_of_one_type_are_told_apart_by_the_variables_that_hold_them():
    trainer = Trainer()
    modules, patterns = saved_modules([trainer.generator, trainer.critic, stack()])
    models = {"trainer.generator", "trainer.critic", "Sequential #3"}
    assert patterns == {f"{model}.*" for model in models}
    assert {f"{model}.{part}" for model in models for part in (0, 1)} < modules


def test_models_of_several_types_are_told_apart_by_those():
    modules, patterns = saved_modules([Network(), nn.Sequential(nn.Linear(10, 10), nn.Linear(10, 10))])
    assert patterns == {"Network.blocks.*"}
    assert {"Network.blocks.0", "Network.head", "Sequential.1"} < modules


def test_a_sole_model_and_its_loss_need_no_names():
    modules, patterns = saved_modules([Network()], nn.CrossEntropyLoss())
    assert patterns == {"blocks.*"}
    assert {"blocks.0", "head", "cross_entropy"} < modules


class Recomputed(Network):
    def forward(self, x):
        for block in self.blocks:
            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=True)
        return x


def test_a_part_that_is_computed_again_belongs_to_the_model_that_was_called():
    model, x = Recomputed(), torch.ones(512, WIDTH, requires_grad=True)
    observed = pytorch_memory.measure(lambda: model(x).sum().backward(), [torch.optim.SGD([x])])
    assert observed["phase"] == "backward"
    assert "blocks.2" in explained.modules(observed)


def test_what_a_graphs_pool_has_free_counts_as_the_graphs():
    segments = [
        {"device": 0, "segment_pool_id": (0, 0), "total_size": 100, "allocated_size": 40},
        {"device": 0, "segment_pool_id": (0, 1), "total_size": 70, "allocated_size": 20},
        {"device": 1, "segment_pool_id": (0, 1), "total_size": 70, "allocated_size": 0},
    ]
    assert pytorch_memory.graph_pools(segments, 0) == 50
