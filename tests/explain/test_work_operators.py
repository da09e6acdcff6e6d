"""FLOP and bytes of single operators, computed by hand."""

from __future__ import annotations

import pytest

from trainmark.explain import convolutions, operator_cost, traffic
from trainmark.explain.operator_cost import OperatorCost
from trainmark.explain.profile import Operands

HALF, FLOAT, LONG = "c10::BFloat16", "float", "long int"


def operands(*shapes, kind: str = FLOAT, values=()):
    return Operands(tuple(shapes), (kind,) * len(shapes), tuple(values))


@pytest.mark.parametrize(
    ("name", "given", "cost"),
    [
        ("aten::mm", operands((4, 8), (8, 16)), OperatorCost(2 * 4 * 8 * 16, 4 * (32 + 128 + 64))),
        ("aten::mm", operands((4, 8), (8, 16), (4, 16)), OperatorCost(2 * 4 * 8 * 16, 4 * (32 + 128 + 64))),
        (
            "aten::addmm",
            operands((16,), (4, 8), (8, 16), kind=HALF),
            OperatorCost(1024, 2 * (16 + 32 + 128 + 64)),
        ),
        ("aten::bmm", operands((3, 4, 8), (3, 8, 16)), OperatorCost(3 * 1024, 3 * 4 * (32 + 128 + 64))),
        ("aten::mv", operands((4, 8), (8,)), OperatorCost(64, 4 * (32 + 8 + 4))),
        (
            "aten::mkldnn_linear",
            operands((2, 3, 8), (16, 8)),
            OperatorCost(2 * 6 * 8 * 16, 4 * (48 + 128 + 96)),
        ),
        ("aten::mm", operands((4, 8), (9, 16)), None),
        ("aten::mm", operands((4, 8), None), None),
        ("aten::mm", operands((4, 8), (8, 16), kind="unheard of"), OperatorCost(1024, None)),
    ],
)
def test_products(name, given, cost):
    assert operator_cost.PRODUCTS[name](given) == cost


def test_a_product_of_inductors_template_has_its_result_last():
    given = operands((16,), (4, 8), (8, 16), (4, 16), None, kind=HALF)
    assert operator_cost.template(given) == OperatorCost(1024, 2 * (16 + 32 + 128 + 64))
    assert operator_cost.template(operands((4, 8), (9, 16), (4, 16))) is None


CUDNN = convolutions.FORWARD["aten::cudnn_convolution"]


def convolved(given, weight, padding, stride, dilation):
    values = ("", "", *(str(list(setting)) for setting in (padding, stride, dilation)), "1")
    return operands(given, weight, None, None, None, None, kind=HALF, values=values)


def test_a_convolution_counts_every_output_with_its_filter():
    given = convolved((2, 3, 224, 224), (64, 3, 7, 7), (3, 3), (2, 2), (1, 1))
    result = 2 * 64 * 112 * 112
    moved = 2 * (2 * 3 * 224 * 224 + 64 * 147 + result)
    assert convolutions.forward(CUDNN, {})(given) == OperatorCost(2 * result * 147, moved)


def test_a_dilated_convolution_reaches_further():
    given = convolved((1, 1, 9, 9), (1, 1, 3, 3), (0, 0), (1, 1), (2, 2))
    assert convolutions.result_shape(given, CUDNN) == (1, 1, 5, 5)


def test_a_grouped_convolution_has_filters_of_its_group_alone():
    given = convolved((1, 16, 8, 8), (16, 4, 3, 3), (1, 1), (1, 1), (1, 1))
    cost = convolutions.forward(CUDNN, {})(given)
    assert cost is not None
    assert cost.flop == 2 * 16 * 64 * 36


def test_a_transposed_convolution_counts_every_input_with_its_filter():
    values = ("", "", "", "[2, 2]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "1")
    given = operands((2, 16, 8, 8), (16, 32, 2, 2), *(None,) * 7, values=values)
    assert convolutions.result_shape(given, convolutions.GENERAL) == (2, -1, 16, 16)
    cost = convolutions.forward(convolutions.GENERAL, {})(given)
    assert cost is not None
    assert cost.flop == 2 * 2 * 16 * 64 * 128


def test_without_settings_the_backward_pass_tells_the_size():
    given = operands((2, 3, 8, 8), (4, 3, 3, 3))
    gradient = operands((2, 4, 4, 4), (2, 3, 8, 8), (4, 3, 3, 3))
    assert convolutions.forward(CUDNN, {})(given) is None
    results = convolutions.seen_results([gradient, gradient])
    cost = convolutions.forward(CUDNN, results)(given)
    assert cost is not None
    assert cost.flop == 2 * 2 * 4 * 16 * 27


def test_two_sizes_for_the_same_operands_tell_nothing():
    small, large = (operands((2, 4, side, side), (2, 3, 8, 8), (4, 3, 3, 3)) for side in (4, 8))
    assert convolutions.seen_results([small, large]) == {}


@pytest.mark.parametrize(
    ("mask", "count"), [("[True, True, False]", 2), ("[False, True, False]", 1), ("", 2)]
)
def test_backward_is_a_product_for_each_gradient_that_was_asked_for(mask, count):
    values = ("",) * 10 + (mask,) if mask else ()
    given = operands((2, 4, 4, 4), (2, 3, 8, 8), (4, 3, 3, 3), *(None,) * 8, values=values)
    assert convolutions.backward(given) == OperatorCost(
        count * 2 * 128 * 27, count * 4 * (128 + 2 * 3 * 64 + 4 * 27)
    )


def attended(name: str, causal: str):
    place = operator_cost.FORWARD_CAUSAL[name]
    values = [""] * 8
    values[place] = causal
    return operands((2, 4, 6, 8), (2, 2, 6, 8), (2, 2, 6, 8), *(None,) * 5, kind=HALF, values=values)


@pytest.mark.parametrize(
    ("causal", "flop"), [("False", 2 * 2 * 4 * 36 * 16), ("True", 2 * 2 * 4 * 21 * 16), ("", None)]
)
@pytest.mark.parametrize("name", operator_cost.FORWARD_CAUSAL)
def test_attention_counts_the_pairs_that_its_mask_leaves(name, causal, flop):
    moved = 2 * (2 * 384 + 2 * 192)
    assert operator_cost.ATTENTION[name](attended(name, causal)) == OperatorCost(flop, moved)


def test_backward_of_attention_is_twice_its_forward():
    name = "aten::_scaled_dot_product_flash_attention_backward"
    values = [""] * 12
    values[11] = "False"
    shapes = ((2, 4, 6, 8), (2, 4, 6, 8), (2, 4, 6, 8), (2, 4, 6, 8))
    given = operands(*shapes, *(None,) * 8, kind=HALF, values=values)
    # Reads three operands, the result and its gradient; writes three gradients.
    assert operator_cost.ATTENTION[name](given) == OperatorCost(2 * 2 * 2 * 4 * 36 * 16, 2 * 8 * 384)


@pytest.mark.parametrize(
    ("name", "given", "moved"),
    [
        ("aten::add", operands((4, 8), (8,)), 4 * (32 + 8 + 32)),
        ("aten::add_", operands((4, 8), (4, 8)), 4 * 3 * 32),
        ("aten::mul", operands((4, 1), (1, 8)), 4 * (4 + 8 + 32)),
        ("aten::eq", operands((4, 8), (4, 8)), 4 * 64 + 32),
        ("aten::relu", Operands(((4, 8),), (HALF,)), 2 * 64),
    ],
)
def test_elementwise_operators_read_operands_and_write_their_broadcast(name, given, moved):
    assert traffic.elementwise(name)(given) == OperatorCost(None, moved)


def test_shapes_that_do_not_broadcast_are_not_guessed():
    assert traffic.elementwise("aten::add")(operands((4, 8), (5,))) is None


@pytest.mark.parametrize(
    ("name", "given", "moved"),
    [
        ("aten::native_batch_norm", operands((2, 4, 8, 8), (4,), (4,)), 4 * 2 * 512),
        ("aten::native_layer_norm_backward", operands((6, 8), (6, 8)), 4 * 3 * 48),
        ("aten::copy_", Operands(((4, 8), (4, 8)), (HALF, FLOAT)), 32 * 6),
        ("aten::fill_", operands((4, 8)), 128),
        ("aten::embedding", Operands(((100, 8), (3, 5)), (FLOAT, LONG)), 2 * 15 * 32 + 15 * 8),
        (
            "aten::embedding_dense_backward",
            Operands(((15, 8), (15,), None), (FLOAT, LONG, "Scalar"), ("", "", "100")),
            4 * 120 + 120 + 4 * 800,
        ),
    ],
)
def test_bytes_of_norms_and_copies(name, given, moved):
    assert traffic.TRAFFIC[name](given) == OperatorCost(None, moved)


@pytest.mark.parametrize(
    ("name", "lists", "moved"),
    [
        ("aten::_fused_adamw_", 4, 7),
        ("aten::_fused_sgd_", 3, 5),
        ("aten::_foreach_addcdiv_", 3, 4),
        ("aten::_foreach_lerp_", 2, 3),
        ("aten::_foreach_sqrt", 1, 2),
    ],
)
def test_optimizers_move_each_list_once_and_write_their_results(name, lists, moved):
    shapes = ((4, 8), (8,)) * lists
    given = Operands(shapes, (traffic.LIST,) * len(shapes))
    assert traffic.listed(name, 4)(given) == OperatorCost(None, moved * 4 * 40)
    assert traffic.listed(name, None)(given) == OperatorCost(None, None)


def test_lists_whose_shapes_were_not_recorded_are_not_counted():
    assert traffic.listed("aten::_foreach_add_", 4)(Operands(((), ()), (traffic.LIST,) * 2)) is None
