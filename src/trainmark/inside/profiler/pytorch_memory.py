"""What holds the memory of a PyTorch step at its peak: weights, gradients, optimizer state, activations.

One step is looked at, after everything that is timed. On a GPU the allocator's own count tells when the peak
is, and what is alive then is added up; on a CPU the count is of the tensors that are known.
"""

import collections
import sys

from trainmark.inside.profiler import heap, pytorch_names
from trainmark.inside.profiler.pytorch_saved import SavedTensors, prefixed, storage_of, tensors_in

MOST_OWNERS = 200


def measure(run_step, optimizers=(), models=()):
    """Run one step and return what held its memory, or {"error": sentence}; `run_step` fails as it would."""
    watch = MemoryWatch(optimizers, models)
    watch.start()
    try:
        run_step()
    finally:
        result = watch.finish()
    return result


class MemoryWatch:
    """Looks at what happens between `start` and `finish`: one step of a program whose loop is not ours.

    `optimizers` may be any objects that have the state in their attributes. Without `models` those are taken
    that run. Nothing is raised.
    """

    def __init__(self, optimizers=(), models=()):
        self.optimizers, self.models = tuple(optimizers), tuple(models)
        self.torch = sys.modules["torch"]
        self.peak, self.at_peak = -1, None
        self.gradients, self.in_forward = 0, False
        self.update_began = False
        self.error = None

    def start(self):
        try:
            self._start()
        except Exception as error:  # noqa: BLE001  whatever it is, the program goes on
            self._fail(error)

    def finish(self):
        """Return the manifest's `memory`."""
        try:
            if self.error is None:
                self.saved.finish()
                self.changed("update")
                if self.saved.error:
                    raise RuntimeError(self.saved.error)
                return self._result()
        except Exception as error:  # noqa: BLE001  likewise
            self._fail(error)
        return {"error": self.error}

    def _fail(self, error):
        self.error = "The memory of a step could not be looked at: {}.".format(str(error).rstrip("."))

    def _start(self):
        self.trained = [
            parameter
            for optimizer in self.optimizers
            for group in getattr(optimizer, "param_groups", ())
            for parameter in group["params"]
        ]
        self.trained += [parameter for model in self.models for parameter in model.parameters()]
        on_gpu = [parameter.device for parameter in self.trained if parameter.is_cuda]
        self.device = on_gpu[0] if on_gpu else None
        if self.device is None and not self.trained and self.torch.cuda.is_initialized():
            self.device = self.torch.device("cuda", self.torch.cuda.current_device())
        if self.device is not None:
            self.torch.cuda.synchronize(self.device)
            self.torch.cuda.reset_peak_memory_stats(self.device)
        self.weights = self._storages(self.trained)
        self.weights.update(self._storages(part for model in self.models for part in model.buffers()))
        self.most_gradients = sum(self.weights.values())
        self.saved = SavedTensors(self.torch, self._is_here, self._is_state, self.changed)
        self.states = self._states()
        self.saved.start()

    def _is_state(self, key):
        return key in self.weights or key in self.states

    def changed(self, phase):
        """See whether there is a new peak, and what is alive at it."""
        if phase == "update" and not self.saved.closed:
            self._backward_ended()
        if self._most_level() <= self.peak:
            return
        if not self.saved.closed:  # a step that has ended may have freed them
            self._know_gradients(phase)
        level = self._most_level() if self.device is not None else self.saved.total + self.gradients
        if level > self.peak:
            self.peak = level
            self.at_peak = (phase, self.gradients, dict(self.saved.by_owner))

    def _most_level(self):
        """Return the allocator's peak, or on a CPU the most that the known tensors can take now."""
        if self.device is not None:
            return self.torch.cuda.max_memory_allocated(self.device)
        return self.saved.total + self.most_gradients

    def _know_gradients(self, phase):
        """Add the gradients up; while a forward pass lasts they are what the backward pass before it left."""
        if phase != "forward" or not self.in_forward:
            self.gradients = self._gradients()
        self.in_forward = phase == "forward"

    def _backward_ended(self):
        """Begin to look for the update's own peak, which may be the next one when activations shrink."""
        self._know_gradients("update")
        if self.device is not None:
            level = self._most_level()
            if level > self.peak:
                self.peak, self.at_peak = level, ("backward", self.gradients, dict(self.saved.by_owner))
            self.update_began = True
            self.torch.cuda.reset_peak_memory_stats(self.device)

    def _gradients(self):
        parameters = self.trained or [part for root in self.saved.roots for part in root.parameters()]
        gradients = (parameter.grad for parameter in parameters)
        return sum(self._storages(part for part in gradients if part is not None).values())

    def _storages(self, tensors):
        return dict(storage_of(tensor) for tensor in tensors if self._is_here(tensor))

    def _is_here(self, tensor):
        """Whether it is in the memory that is looked at: an optimizer may leave its state on the host."""
        return tensor.is_cuda == (self.device is not None)

    def _states(self):
        tensors = tensors_in(self.torch, list(self.optimizers))
        gradients = (parameter.grad for parameter in self.trained)
        known = self._storages(part for part in gradients if part is not None)
        states = self._storages(tensors)
        return {key: size for key, size in states.items() if key not in self.weights and key not in known}

    def _result(self):
        phase, gradients, owners = self.at_peak
        models = self.models or tuple(self.saved.roots)
        parameters = list(self.trained) + [part for model in models for part in model.parameters()]
        weights = self._storages(parameters)
        buffers = self._storages(part for model in models for part in model.buffers())
        optimizer = {
            key: size
            for key, size in self._states().items()
            if key not in buffers and key not in weights and key not in self.saved.batch
        }
        casts = owners.pop(None, 0)
        prefixes = pytorch_names.prefixes(self.saved.roots, sys._getframe(1))
        result = {
            "device": str(self.device or "cpu"),
            "phase": phase,
            "parameters": sum(weights.values()),
            "buffers": sum(size for key, size in buffers.items() if key not in weights),
            "gradients": gradients,
            "gradients_in_full": sum(
                self._storages(part for part in parameters if part.requires_grad).values()
            ),
            "optimizer": sum(optimizer.values()),
            "buckets": sum(map(bucket_bytes, self.saved.roots)),
            "weight_casts": casts,
            "batch_bytes": sum(self.saved.batch.values()),
            "saved_tensors": self.saved.count,
            "activations": activation_rows(owners, prefixes),
            "blocks": self.saved.blocks.rows(prefixes),
        }
        return dict(result, **(process_peak() if self.device is None else self._allocator()))

    def _allocator(self):
        stats = self.torch.cuda.memory_stats(self.device)
        pools = graph_pools(self.torch.cuda.memory_snapshot(), self.device.index)
        # A graph's pool belongs to it between replays too, whatever the allocator counts as free in it.
        return {
            "peak": self.peak + pools,
            "update_peak": stats["allocated_bytes.all.peak"] + pools if self.update_began else None,
            "reserved": stats["reserved_bytes.all.peak"],
            "graph_pools": pools,
        }


def graph_pools(segments, device):
    """Return the bytes of CUDA graphs' pools that no tensor holds: replays have their activations there."""
    return sum(
        segment["total_size"] - segment["allocated_size"]
        for segment in segments
        if segment["device"] == device and tuple(segment.get("segment_pool_id", (0, 0))) != (0, 0)
    )


def bucket_bytes(model):
    """Return the bytes of DDP's own copies of the gradients, none where those are views of its buckets."""
    if type(model).__name__ != "DistributedDataParallel" or getattr(model, "gradient_as_bucket_view", True):
        return 0
    return sum(part.numel() * part.element_size() for part in model.parameters() if part.requires_grad)


def activation_rows(owners, prefixes):
    """Return what each module holds, the largest first; beyond the first 200 in one row."""
    sizes = collections.Counter()
    for owner, size in owners.items():
        sizes[prefixed(prefixes, owner.model, owner.module), owner.type] += size
    rows = sorted(
        ((size, name) for name, size in sizes.items() if size > 0), key=lambda row: (-row[0], row[1])
    )
    named = [{"module": module, "type": kind, "bytes": size} for size, (module, kind) in rows[:MOST_OWNERS]]
    rest = sum(size for size, _ in rows[MOST_OWNERS:])
    return named + ([{"module": "other modules", "type": "", "bytes": rest}] if rest else [])


def process_peak():
    """Return the most bytes of this process that were resident, its libraries and the profiler included."""
    peak = heap.kibibytes("/proc/self/status")["VmHWM"] * 1024
    return {"peak": peak, "reserved": None, "graph_pools": 0}
