"""Tensors that a PyTorch step saves for backward, by the module that saved them, as they come and go.

The module is read from the Python frames above the operation, not by forward hooks: a hook on a module would
make torch.compile compile it again.
"""

import collections
import sys
import types
import weakref

Owner = collections.namedtuple("Owner", "model module type")  # by its id, its path in that model, its type
COMPILED = "compiled graph"
CROSS_ENTROPY = "cross_entropy"
NOT_ENTERED = (type, types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType)
WRAPPERS = ("_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module", "module")


def local(tensor):
    """Return this rank's part of a sharded tensor (DTensor), any other as it is."""
    return getattr(tensor, "_local_tensor", tensor)


def storage_of(tensor):
    """Return a key of the memory that a tensor lies in, and its bytes: views of one memory share the key."""
    tensor = local(tensor)
    if tensor.layout != sys.modules["torch"].strided:
        tensor = tensor._values()  # of a sparse gradient, nearly all of it
    storage = tensor.untyped_storage()
    return storage._cdata, storage.nbytes()


def module_path(name):
    """Return a module's name without what DDP, FSDP, checkpointing and torch.compile wrap around it."""
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


def prefixed(prefixes, model, path):
    """Return a module's path with what tells its model from others."""
    return ".".join(part for part in (prefixes.get(model), path) if part)


class PackedTensor:
    """A saved tensor in the graph's hands; the graph lets go of it when backward has used it.

    A compiled graph is given all of its tensors before it runs, and frees each after its last use: until then
    they are held by what was unpacked alone.
    """

    __slots__ = ("key", "saved", "tensor")

    def __init__(self, tensor, key, saved):
        self.tensor, self.key, self.saved = tensor, key, saved

    def __del__(self):
        weakref.finalize(self.tensor, self.saved.released, self.key).atexit = False


class RepeatedBlocks:
    """Modules of one type in a list, as a transformer's layers: what each saves, and what it is given."""

    def __init__(self):
        self.types = collections.defaultdict(set)  # by model and pattern: "blocks.*"
        self.bytes = collections.defaultdict(collections.Counter)  # by pattern and path
        self.inputs = collections.defaultdict(dict)  # by pattern and storage

    def rows(self, prefixes):
        """Return a row for every list of at least two, the largest first; `prefixes` are by model."""
        rows = [
            {
                "pattern": prefixed(prefixes, *pattern),
                "type": next(iter(self.types[pattern])),
                "count": len(paths),
                "bytes": sum(paths.values()),
                "largest": max(paths.values()),
                "inputs": sum(self.inputs[pattern].values()),
            }
            for pattern, paths in self.bytes.items()
            if len(paths) > 1 and len(self.types[pattern]) == 1
        ]
        return sorted(rows, key=lambda row: (-row["bytes"], row["pattern"]))


class SavedTensors:
    """Counts what autograd saves between `start` and `finish`; `changed(phase)` is called at every change.

    `is_here(tensor)` says whether it is on the device, `ignored(key)` whether a storage is no activation: a
    weight, a buffer, the optimizer's.
    """

    def __init__(self, torch, is_here, ignored, changed):
        self.torch, self.is_here, self.ignored, self.changed = torch, is_here, ignored, changed
        self.live = {}  # storage: [how many hold it, bytes, owner]
        self.patterns = {}  # storage: lists of blocks that it was saved in
        self.by_owner = collections.Counter()
        self.total = 0
        self.count = 0
        self.in_backward = False
        self.blocks = RepeatedBlocks()
        self.paths = {}  # id of a root module: {id of a module: path}
        self.models = {}  # id of a module: id of the first root that it is a part of
        self.roots = []
        self.batch = {}  # storages given to a root module
        self.casts = {}  # half-precision copies of weights, by storage
        self.weight_shapes = {}
        self.error = None
        self.closed = True
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def start(self):
        self._hooks.__enter__()
        self.closed = False
        self._disable = self.torch._C._autograd._saved_tensors_hooks_disable
        self.torch._C._autograd._saved_tensors_hooks_disable = self._give_way

    def finish(self):
        if not self.closed:
            self.closed = True
            self.torch._C._autograd._saved_tensors_hooks_disable = self._disable
            self._hooks.__exit__(None, None, None)

    def _give_way(self, message, fail_if_non_empty=True):
        """Leave before a part of PyTorch that refuses to run under such hooks, as torch.func does."""
        disable = self._disable
        if fail_if_non_empty:
            self.finish()
            self.error = "the step uses a part of PyTorch that allows no hooks on saved tensors"
            disable(message)
        else:
            disable(message, fail_if_non_empty)

    def _pack(self, tensor):
        if self.closed:
            return tensor
        try:
            return self._saved(tensor)
        except Exception as error:  # noqa: BLE001  the program's step must not fail for being looked at
            self.error = "{}: {}".format(type(error).__name__, error)
            return tensor

    def _unpack(self, packed):
        if not isinstance(packed, PackedTensor):
            return packed
        if not self.closed and not self.in_backward:
            self.in_backward = True
            self.torch.autograd.Variable._execution_engine.queue_callback(self._backward_ended)
        return packed.tensor

    def _backward_ended(self):
        self.in_backward = False
        if not self.closed:
            self.changed("update")

    def released(self, key):
        entry = self.live.get(key)
        if entry is None or self.closed:
            return
        if entry[0] > 1:
            entry[0] -= 1
            return
        self.changed("backward" if self.in_backward else "forward")  # the level before it falls
        del self.live[key]
        self.total -= entry[1]
        self.by_owner[entry[2]] -= entry[1]

    def _saved(self, tensor):
        self.count += 1
        if not self.is_here(tensor):
            return tensor
        key, size = storage_of(tensor)
        owner, chain = self._owner()
        if key in self.live:
            self.live[key][0] += 1
            self._count_blocks(key, 0, chain)
            return PackedTensor(tensor, key, self)
        if self.ignored(key) or key in self.batch or self._is_weight(tensor, key, chain):
            return tensor
        if self._is_cast(tensor):
            owner = None
            self.casts[key] = size
        self.live[key] = [1, size, owner]
        self.total += size
        self.by_owner[owner] += size
        self.patterns[key] = set()
        self._count_blocks(key, size if owner else 0, chain)
        packed = PackedTensor(tensor, key, self)
        self.changed("backward" if self.in_backward else "forward")
        return packed

    def _owner(self):
        """Return who saves, and the frames of its modules from the inside out: (module, arguments)."""
        frame = sys._getframe(3)
        special, chain = None, []
        while frame is not None:
            code = frame.f_code
            if code.co_name == "_call_impl":
                values = frame.f_locals
                if isinstance(values.get("self"), self.torch.nn.Module):
                    chain.append((values["self"], (values.get("args", ()), values.get("kwargs", {}))))
            elif not chain and "_aot_autograd" in code.co_filename:
                special = COMPILED
            elif code.co_name == "cross_entropy" and code.co_filename.endswith("functional.py"):
                special = special or CROSS_ENTROPY
            frame = frame.f_back
        if not chain:
            return Owner(None, "outside of modules", special or "function"), chain
        self._meet(*chain[-1])
        module = chain[0][0]
        return Owner(*self._place(chain, module), special or type(module).__name__), chain

    def _meet(self, root, arguments):
        """Learn the names of a root module's parts, and what batch it was given."""
        if id(root) not in self.models:  # a part of another root is called alone to be computed again
            self.roots.append(root)  # which also keeps the id its own
            self.paths[id(root)] = {id(part): module_path(name) for name, part in root.named_modules()}
            for part in self.paths[id(root)]:
                self.models.setdefault(part, id(root))
            for parameter in root.parameters():
                self.weight_shapes.setdefault(tuple(parameter.shape), parameter.dtype)
        for tensor in tensors_in(self.torch, arguments):
            key, size = storage_of(tensor)
            if self.is_here(tensor) and not tensor.requires_grad and key not in self.live:
                self.batch.setdefault(key, size)

    def _place(self, chain, module):
        """Return the id of the model that calls a module, and the module's path there."""
        model = self.models[id(chain[-1][0])]
        return model, self.paths[model].get(id(module), "")

    @staticmethod
    def _is_weight(tensor, key, chain):
        """Whether it is a weight that FSDP has gathered: by now a parameter of the module that runs."""
        for module, _ in chain[:1]:
            for parameter in module._parameters.values():
                if parameter is not None and storage_of(parameter)[0] == key:
                    return True
        return False

    def _is_cast(self, tensor):
        """Whether it has the form in which a product or convolution saves autocast's copy of a weight."""
        shape = tuple(tensor.shape)
        if len(shape) == 2:
            transposed = tensor.stride()[0] == 1 and tensor.stride()[1] == shape[0]
            shape = shape[::-1] if transposed else None
        known = self.weight_shapes.get(shape) if shape and len(shape) >= 2 else None
        return known is not None and known != tensor.dtype and tensor.dtype.is_floating_point

    def _count_blocks(self, key, size, chain):
        """Add a new storage to the blocks that it was saved in, and learn what those were given."""
        if self.in_backward:  # a recomputed activation is no second one
            return
        for module, arguments in chain:
            model, path = self._place(chain, module)
            if not path.rpartition(".")[2].isdigit() or not module._modules:
                continue
            pattern = model, ".".join("*" if part.isdigit() else part for part in path.split("."))
            if size:
                self.patterns[key].add(pattern)
            self.blocks.types[pattern].add(type(module).__name__)
            self.blocks.bytes[pattern][path] += size
            for tensor in tensors_in(self.torch, arguments):
                given, length = storage_of(tensor)
                saved = given in self.live
                outside = saved and pattern not in self.patterns[given]
                if not outside and not self.ignored(given) and given not in self.batch:
                    # Memory that nobody saves is used again, and with it the key.
                    self.blocks.inputs[pattern].setdefault((given, None if saved else path), length)


def tensors_in(torch, value, depth=6, visited=None):
    """Yield the tensors inside nested lists, dictionaries and plain objects; modules are not entered."""
    visited = set() if visited is None else visited
    if isinstance(value, torch.Tensor):
        yield value
        return
    if depth == 0 or id(value) in visited or isinstance(value, (str, bytes, int, float, type(None))):
        return
    visited.add(id(value))
    if isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, (list, tuple, set)):
        parts = list(value)
    elif isinstance(value, (torch.nn.Module, *NOT_ENTERED)):
        return
    else:
        parts = list(getattr(value, "__dict__", {}).values())
    for part in parts:
        for tensor in tensors_in(torch, part, depth - 1, visited):
            yield tensor
