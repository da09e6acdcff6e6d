"""What the compiled programs say of their instructions: the primitive of JAX, FLOP and bytes.

XLA puts the HLO of the programs that ran into the plane `/host:metadata` of a profile. A kernel knows only
its instruction (`loop_add_fusion.3`); the instruction knows `jit(step)/transpose(jvp(dense))/dot_general`.
The numbers of fields are those of xla/service/hlo.proto and xla/xla_data.proto.
"""

import collections
import re

from trainmark.inside.profiler.xplane import last_text, stats, text
from trainmark.inside.wire import WireError, grouped, read_varint

# `operator` is the scope of the program and what is computed there: "jit(step)/jvp(Dense_0)/dot_general".
Instruction = collections.namedtuple("Instruction", "operator flop traffic")
Raw = collections.namedtuple(
    "Raw", "name opcode operator target shapes window dilation kernel_input contracting operands called"
)
# What a fusion is about, first to last: the matrix product rather than the bias after it.
MAIN_OPCODES = (
    ("convolution",),
    ("dot", "ragged-dot"),
    ("custom-call",),
    ("scatter", "select-and-scatter", "gather", "sort"),
    ("reduce-window", "reduce"),
)
PRIMITIVES = {"convolution": "conv_general_dilated", "dot": "dot_general", "ragged-dot": "ragged_dot_general"}
# These compute nothing; a fusion of nothing else is a copy.
NO_ARITHMETIC = frozenset(
    "parameter constant iota broadcast bitcast copy transpose reshape convert tuple get-tuple-element slice"
    " dynamic-slice dynamic-update-slice concatenate pad reverse bitcast-convert".split()
)
ELEMENT_BITS = {
    **{1: 8, 2: 8, 3: 16, 4: 32, 5: 64, 6: 8, 7: 16, 8: 32, 9: 64, 10: 16, 11: 32, 12: 64, 15: 64, 16: 16},
    **{18: 128, 19: 8, 20: 8, 21: 4, 22: 4, 23: 8, 24: 8, 25: 8, 28: 8, 29: 8},
}
BACKWARD = "transpose("  # of JAX: the gradient of what it encloses
CONTRACTING = re.compile(r'"lhs_contracting_dimensions":\[([^\]]*)\]')


class Programs:
    """The instructions of all programs of a profile, by program and name."""

    def __init__(self, space):
        self._by_program, self._by_module, self._by_kernel = {}, {}, {}
        for plane in space.planes:
            if plane.name == "/host:metadata":
                for number, (name, raw_stats) in plane.events.items():
                    values = stats(plane, raw_stats)
                    proto = values.get("Hlo Proto", values.get("hlo_proto"))
                    if isinstance(proto, memoryview):
                        self._add(name.partition("(")[0], values.get("program_id", number), proto)

    def _add(self, module, program, proto):
        try:
            instructions = read(proto)
        except WireError:  # a newer form: the names of instructions are left
            return
        self._by_program[program] = instructions
        self._by_module.setdefault(module, {}).update(instructions)
        for name, instruction in instructions.items():
            self._by_kernel[_symbol(name)] = instruction

    def instruction(self, stat_values, kernel):
        """Return the instruction that an event ran, None where it is not known.

        A kernel that a CUDA graph replays may have no annotation; XLA's own are named by their instruction.
        """
        name = stat_values.get("hlo_op")
        if name is None:
            return self._by_kernel.get(_symbol(kernel))
        program = self._by_program.get(stat_values.get("program_id"), {})
        return program.get(name) or self._by_module.get(stat_values.get("hlo_module"), {}).get(name)


def read(proto):
    """Return the Instruction of each name in a serialized HloProto."""
    computations = {}
    for module in grouped(proto).get(1, ()):
        for computation in grouped(module).get(3, ()):
            parts = grouped(computation)
            computations[parts.get(5, [0])[-1]] = dict(map(_instruction, parts.get(2, ())))
    result = {}
    for instructions in computations.values():
        users = _users(instructions)
        for identity, raw in instructions.items():
            flop = _flop(raw, instructions, computations)
            operands = [instructions[operand] for operand in raw.operands if operand in instructions]
            traffic = sum(_size(shape) for one in [raw] + operands for shape in one.shapes)
            operator = _operator(raw, computations, operands, users.get(identity, []))
            result[raw.name] = Instruction(operator, flop, traffic)
    return result


def _users(instructions):
    users = {}
    for raw in instructions.values():
        for operand in raw.operands:
            users.setdefault(operand, []).append(raw)
    return users


def _symbol(name):
    return re.sub(r"[^A-Za-z0-9]", "_", name)


def _operator(raw, computations, operands, users):
    """Name what an instruction computes, after the scope in which the program asked for it.

    The last part of XLA's own name is not to be trusted: a transpose that layout assignment put before a
    convolution is named as the convolution. Passes that rewrite an instruction may leave it without a name:
    then it has the scope that is common to what it takes and to what uses its result.
    """
    main = _main(raw, computations)
    source = (main.operator or raw.operator).partition(";")[0]
    if main.opcode == "custom-call":
        return source or main.target
    scope = source.rpartition("/")[0] or _common_scope(_scopes(operands), _scopes(users))
    primitive = PRIMITIVES.get(main.opcode, main.opcode)
    return "{}/{}".format(scope, primitive) if scope else primitive


def _scopes(instructions):
    scopes = (one.operator.partition(";")[0].rpartition("/")[0] for one in instructions)
    return [scope for scope in scopes if scope]


def _common_scope(of_operands, of_users):
    """What takes a gradient is backward; forward's results may be used there too, and say nothing of it."""
    backward = any(BACKWARD in scope for scope in of_operands)
    scopes = of_operands + of_users
    alike = [scope for scope in scopes if (BACKWARD in scope) == backward] or scopes
    common = []
    for parts in zip(*(scope.split("/") for scope in alike)):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return "/".join(common)


def _main(raw, computations):
    if raw.opcode not in ("fusion", "call"):
        return raw
    inner = [one for identity in raw.called for one in computations.get(identity, {}).values()]
    for opcodes in MAIN_OPCODES:
        for one in inner:
            if one.opcode in opcodes:
                return one
    arithmetic = [one for one in inner if one.opcode not in NO_ARITHMETIC]
    moving = [one for one in inner if one.opcode not in ("parameter", "constant", "tuple")]
    # Instructions are stored in the order of their execution: the last is nearest to the result.
    return (arithmetic or moving or [raw])[-1]


def _flop(raw, instructions, computations):
    """Count multiplications and additions of matrix products and convolutions, within a fusion too.

    None where a library is called of which nobody knows what it computes.
    """
    if raw.opcode in ("fusion", "call"):
        counts = [
            _flop(one, computations[identity], computations)
            for identity in raw.called
            if identity in computations
            for one in computations[identity].values()
        ]
        return None if None in counts else sum(counts)
    operands = [instructions[identity].shapes for identity in raw.operands if identity in instructions]
    if len(operands) < 2 or not raw.shapes or not operands[0] or not operands[1]:
        return None if raw.opcode == "custom-call" else 0
    result, left, right = raw.shapes[0], operands[0][0], operands[1][0]
    if raw.opcode == "convolution" or raw.target.startswith("__cudnn$conv"):
        return _convolution_flop(raw, result, left, right)
    if raw.opcode == "dot" or raw.target.startswith("__cublas$"):
        inner = 1
        for axis in raw.contracting:
            inner *= left[1][axis] if axis < len(left[1]) else 1
        return 2 * _elements(result) * inner
    return None if raw.opcode == "custom-call" else 0


def _convolution_flop(raw, result, left, right):
    """2 · outputs · window · input channels; the backward ones do as many as the forward one.

    A dilated input, as XLA writes dgrad of a strided convolution, is mostly zeros that are not counted.
    """
    output, kernel = result, right
    if raw.target == "__cudnn$convBackwardInput":
        output = left
    elif raw.target == "__cudnn$convBackwardFilter":
        output, kernel = right, result
    channels = kernel[1][raw.kernel_input] if raw.kernel_input < len(kernel[1]) else 1
    return 2 * _elements(output) * raw.window * channels // raw.dilation


def _elements(shape):
    product = 1
    for size in shape[1]:
        product *= size
    return product


def _size(shape):
    return _elements(shape) * ELEMENT_BITS.get(shape[0], 0) // 8


def _instruction(data):
    """Return the number of an instruction, and what it says."""
    parts = grouped(data)
    name, opcode, target = (last_text(parts, number) for number in (1, 2, 28))
    window, dilation = _window(parts[15][-1]) if 15 in parts else (1, 1)
    contracting = _all_numbers(grouped(parts[30][-1]).get(1, ())) if 30 in parts else []
    if not contracting and 43 in parts:
        contracting = _configured(parts[43][-1])
    return parts.get(35, [0])[-1], Raw(
        name=name,
        opcode=opcode,
        operator=next((text(value) for value in grouped(parts[7][-1]).get(2, ())), "") if 7 in parts else "",
        target=target,
        shapes=_shapes(parts[3][-1]) if 3 in parts else [],
        window=window,
        dilation=dilation,
        kernel_input=next(iter(grouped(parts[16][-1]).get(3, ())), 0) if 16 in parts else 0,
        contracting=contracting,
        operands=_all_numbers(parts.get(36, ())),
        called=_all_numbers(parts.get(38, ())),
    )


def _configured(config):
    """Return the contracted axes of a call of cuBLAS, which has them as JSON."""
    match = CONTRACTING.search(text(config))
    return [int(axis) for axis in re.findall(r"\d+", match.group(1))] if match else []


def _window(data):
    size = dilation = 1
    for dimension in map(grouped, grouped(data).get(1, ())):
        size *= dimension.get(1, [1])[-1]
        dilation *= max(dimension.get(6, [1])[-1], 1)
    return size, dilation


def _shapes(data):
    """Return (element type, sizes) of an array, of all of a tuple."""
    parts = grouped(data)
    inner = [shape for part in parts.get(4, ()) for shape in _shapes(part)]
    return inner or [(parts.get(2, [0])[-1], tuple(_all_numbers(parts.get(3, ()))))]


def _all_numbers(values):
    return [number for value in values for number in _numbers(value)]


def _numbers(value):
    """Return a repeated integer, packed or not."""
    if isinstance(value, int):
        return [value]
    numbers, at = [], 0
    while at < len(value):
        number, at = read_varint(value, at)
        numbers.append(number)
    return numbers
