"""Each change predicts what its arithmetic says, and is silent where it does not apply."""

from dataclasses import replace

import pytest
from builders_what_if import A100, H200, MS, USUAL, gpu_step

from trainmark.explain.explanation import MeasuredPeaks
from trainmark.explain.what_if.changes import predict
from trainmark.explain.what_if.changes.batch import largest_factor
from trainmark.explain.what_if.changes.compiler import fused_bytes
from trainmark.explain.what_if.situation import StepPart, TrainingSettings

B200 = replace(H200, title="B200", flops={"bf16": 2250e12}, bandwidth=8e12)


def predicted(situation, name):
    return next((what_if for what_if in predict(situation) if what_if.name == name), None)


def test_a_graph_leaves_a_microsecond_of_each_launch_gap():
    step = gpu_step(idle={"launch": 30 * MS}, gaps={"launch": 500})
    assert predicted(step, "graph").seconds == pytest.approx(step.step - 30 * MS + 0.5 * MS)


def test_a_captured_step_is_not_captured_again():
    step = gpu_step(idle={"launch": 30 * MS}, settings=TrainingSettings(framework="pytorch", cuda_graph=True))
    assert predicted(step, "graph") is None


def test_what_no_gap_shows_is_not_advised_to_be_captured():
    assert predicted(gpu_step(), "graph") is None


def test_a_chain_of_two_operations_saves_a_third_of_its_bytes_and_longer_ones_more():
    assert fused_bytes(1) == 1
    assert fused_bytes(2) == pytest.approx(0.7)
    assert fused_bytes(10) < fused_bytes(3) < fused_bytes(2)


def test_a_compiler_brings_slow_kernels_to_what_their_bytes_need():
    slow = replace(USUAL["normalisation"], alone=60 * MS, busy=60 * MS)
    gain = gpu_step(normalisation=slow).step - gpu_step().step
    assert predicted(gpu_step(normalisation=slow), "compile").seconds < predicted(
        gpu_step(), "compile"
    ).seconds + (gain / 4)


def test_a_compiler_shortens_what_it_can_fuse_and_nothing_else():
    step = gpu_step()
    left = sum(part.alone for part in step.parts if part.name not in ("normalisation", "elementwise"))
    assert left < predicted(step, "compile").seconds < step.step


def test_an_update_that_is_compiled_with_the_model_passes_over_its_state_once():
    chain = replace(USUAL["optimiser"], alone=20 * MS, busy=20 * MS, launches=60)
    own = TrainingSettings(
        framework="pytorch", precision="bf16", batch=8, optimizer="adamw", compiles_update=True
    )
    stock = replace(own, compiles_update=False)
    step = gpu_step(optimiser=chain, settings=own, parameters=100_000_000)
    once = (28 + 12) * 1e8 / (0.85 * 4e12)
    saved = predicted(replace(step, settings=stock), "compile").seconds - predicted(step, "compile").seconds
    assert saved == pytest.approx(20 * MS - once)
    assert "The update, compiled as well: 1.18 ms." in predicted(step, "compile").why
    assert "update" not in predicted(replace(step, settings=stock), "compile").why
    fused = gpu_step(settings=own, parameters=100_000_000)
    assert predicted(fused, "compile").seconds == pytest.approx(
        predicted(replace(fused, settings=stock), "compile").seconds
    )


def test_inductor_spares_the_kernels_that_change_the_layout_and_xla_does_not_say():
    turned = replace(USUAL["convolution"], alone=60 * MS, busy=60 * MS, layout_copies=15 * MS)
    saved = {}
    for framework in ("pytorch", "tensorflow"):
        settings = TrainingSettings(framework=framework, precision="tf32", layout="NCHW")
        step = gpu_step(convolution=turned, settings=settings)
        saved[framework] = step.step - predicted(step, "compile").seconds
    assert saved["pytorch"] - saved["tensorflow"] == pytest.approx(15 * MS)


@pytest.mark.parametrize(
    "settings",
    [
        TrainingSettings(framework="jax"),
        TrainingSettings(framework="pytorch", compiler="compile"),
        TrainingSettings(framework="CUDA"),  # a program of which nothing but its kernels is known
    ],
)
def test_what_is_compiled_or_has_no_compiler_is_not_compiled(settings):
    assert predicted(gpu_step(settings=settings), "compile") is None


def test_a_larger_batch_shares_the_optimiser_and_is_told_for_as_many_samples_as_now():
    step = gpu_step(optimiser=StepPart("optimiser", 20 * MS, 20 * MS, 4))
    twice = predicted(step, "batch ×2").seconds
    assert step.step / 2 < twice <= step.step - 10 * MS


def test_a_larger_batch_shares_the_reading_of_weights_where_they_are_most_of_the_bytes():
    few = gpu_step(convolution=replace(USUAL["convolution"], flop=1e10, bytes=2e8), parameters=30_000_000)
    many = gpu_step()
    gain_few, gain_many = (1 - predicted(step, "batch ×2").seconds / step.step for step in (few, many))
    assert gain_few > gain_many + 0.1


def test_a_larger_batch_hides_launch_gaps_under_longer_kernels():
    late, early = gpu_step(idle={"launch": 30 * MS}), gpu_step()
    assert predicted(late, "batch ×2").seconds == pytest.approx(predicted(early, "batch ×2").seconds)


def test_of_short_kernels_a_quarter_is_the_start_and_the_rest_grows_with_the_batch():
    short = replace(USUAL["elementwise"], alone=1 * MS, busy=1 * MS, launches=1000)
    brief, none = gpu_step(elementwise=short), gpu_step(elementwise=replace(short, alone=0.0, busy=0.0))
    share = predicted(brief, "batch ×2").seconds - predicted(none, "batch ×2").seconds
    assert share == pytest.approx((0.25 / 2 + 0.75) * MS)


def test_a_larger_batch_hides_communication_under_longer_kernels():
    step = gpu_step(communication=StepPart("communication", 40 * MS, 100 * MS, 10), overlap=60 * MS)
    alone = gpu_step(overlap=60 * MS)
    assert predicted(step, "batch ×2").seconds == pytest.approx(predicted(alone, "batch ×2").seconds)


def test_a_slow_loader_is_as_slow_for_each_sample_of_a_larger_batch():
    free, slow = gpu_step(), gpu_step(idle={"loader": 50 * MS})
    assert predicted(slow, "batch ×2").seconds - predicted(free, "batch ×2").seconds == pytest.approx(50 * MS)


def test_the_largest_batch_is_what_memory_leaves_beside_weights():
    step = gpu_step(memory=20 << 30, fixed_memory=10 << 30, device_memory=140 << 30)
    assert largest_factor(step) == 8
    assert predicted(step, "largest batch").how.startswith("the largest batch_size")


def test_a_batch_that_cannot_grow_is_not_advised():
    full = gpu_step(memory=130 << 30, fixed_memory=10 << 30, device_memory=140 << 30)
    assert predicted(full, "batch ×2") is None


def test_channels_last_saves_the_kernels_that_change_the_layout():
    turned = replace(USUAL["convolution"], alone=60 * MS, busy=60 * MS, layout_copies=15 * MS)
    step = gpu_step(
        convolution=turned, settings=TrainingSettings(framework="pytorch", precision="amp", layout="NCHW")
    )
    what_if = predicted(step, "channels last")
    assert what_if.seconds == pytest.approx(step.step - 15 * MS)
    assert "channels_last" in what_if.how


def test_channels_last_brings_batch_norm_to_what_its_bytes_need():
    turned = replace(USUAL["convolution"], alone=60 * MS, busy=60 * MS, layout_copies=15 * MS)
    slow = replace(USUAL["normalisation"], alone=50 * MS, busy=50 * MS)
    step = gpu_step(convolution=turned, normalisation=slow, settings=TrainingSettings(layout="NCHW"))
    at_best = 10 * MS * 1.6 / 0.85
    assert predicted(step, "channels last").seconds == pytest.approx(step.step - 15 * MS - 50 * MS + at_best)


def test_eager_batch_norm_gains_little_from_bfloat16_in_pytorch():
    eager = gpu_step(settings=TrainingSettings(framework="pytorch", precision="tf32"))
    compiled = gpu_step(settings=TrainingSettings(framework="pytorch", precision="tf32", compiler="compile"))
    difference = predicted(eager, "bf16").seconds - predicted(compiled, "bf16").seconds
    assert difference == pytest.approx(12 * MS * (0.85 - 0.5))


def test_pytorchs_own_batch_norm_in_bfloat16_is_slower_than_cudnns_with_channels_first():
    last, first = (
        predicted(
            gpu_step(settings=TrainingSettings(framework="pytorch", precision="tf32", layout=layout)), "bf16"
        )
        for layout in ("NHWC", "NCHW")
    )
    assert first.seconds - last.seconds == pytest.approx(12 * MS * (1.34 - 0.85))


def test_transposing_takes_as_long_with_half_of_the_bytes():
    settings = TrainingSettings(framework="pytorch", precision="tf32", layout="NCHW")
    copies = StepPart("copy", 10 * MS, 10 * MS, 100)
    turned = replace(copies, layout_copies=8 * MS)
    plain, transposing = (
        predicted(gpu_step(copy=part, settings=settings), "bf16").seconds for part in (copies, turned)
    )
    assert transposing - plain == pytest.approx(4 * MS)


def test_attention_in_bfloat16_is_flash_attention_however_slow_it_is_in_float32():
    settings = TrainingSettings(framework="pytorch", precision="tf32")
    slow = StepPart("attention", 38 * MS, 38 * MS, 48, flop=9e11, bytes=7e9, bound="arithmetic")
    what_if = predicted(gpu_step(attention=slow, settings=settings), "bf16")
    without = predicted(gpu_step(settings=settings), "bf16")
    assert what_if.seconds - without.seconds == pytest.approx(9e11 / (0.27 * 2 * 700e12), rel=0.01)
    assert "Attention by a flash kernel" in what_if.why


def test_where_no_peak_was_measured_those_of_the_datasheet_are_taken():
    step = replace(
        gpu_step(settings=TrainingSettings(precision="fp32")), peaks=MeasuredPeaks(), product_peaks={}
    )
    assert (step.product_peak("fp32"), step.product_peak("bf16")) == (67e12, 989.5e12)
    assert predicted(step, "bf16").seconds < 0.6 * step.step


def test_bfloat16_is_predicted_from_float32_alone():
    assert predicted(gpu_step(), "bf16") is None
    assert (
        predicted(gpu_step(settings=TrainingSettings(framework="pytorch", precision="fp32")), "bf16")
        is not None
    )


def test_bfloat16_in_place_of_tf32_gives_less_than_the_peaks_promise_and_more_than_nothing():
    step = gpu_step(settings=TrainingSettings(framework="pytorch", precision="tf32"))
    bound = [part for part in step.parts if part.bound == "arithmetic"]
    saved = step.step - predicted(step, "bf16").seconds
    products = sum(part.alone for part in bound)
    assert 0.4 * products < saved < 0.5 * step.step


def test_a_step_of_shorter_kernels_waits_for_a_host_that_is_as_slow_as_before():
    float32 = TrainingSettings(framework="pytorch", precision="fp32")
    host = 50 * MS
    assert predicted(gpu_step(settings=float32, host=host), "bf16").seconds >= host


def test_an_optimiser_of_many_launches_is_predicted_as_one_pass_over_its_state():
    loose = gpu_step(
        optimiser=StepPart("optimiser", 15 * MS, 15 * MS, 900), settings=TrainingSettings(optimizer="adamw")
    )
    one_pass = 28 * 25e6 / (0.85 * 4e12)
    assert predicted(loose, "fused optimiser").seconds == pytest.approx(
        loose.step - 15 * MS + one_pass, rel=0.01
    )


def test_a_fused_optimiser_is_not_fused_again():
    assert predicted(gpu_step(), "fused optimiser") is None


def test_no_step_is_shorter_than_the_communication_it_hides():
    step = gpu_step(communication=StepPart("communication", 40 * MS, 90 * MS, 10))
    assert predicted(step, "communication hidden").seconds == pytest.approx(90 * MS)


def test_twice_the_bandwidth_halves_exposed_communication():
    step = gpu_step(communication=StepPart("communication", 40 * MS, 50 * MS, 10))
    assert predicted(step, "link ×2").seconds == pytest.approx(step.step - 20 * MS)


def test_communication_comes_out_where_the_computing_over_it_gets_shorter():
    several = gpu_step(communication=StepPart("communication", 0.0, 50 * MS, 10), overlap=50 * MS)
    single = gpu_step(overlap=50 * MS)
    assert several.step == single.step
    assert single.step > predicted(several, "compile").seconds > predicted(single, "compile").seconds


def test_every_class_at_its_floor_keeps_idle_time_and_classes_without_one():
    step = gpu_step(idle={"loader": 5 * MS})
    assert predicted(step, "floors").seconds == pytest.approx(step.step - (2 + 2 + 0.1) * MS)


def test_floors_are_those_of_the_device_whatever_the_host_takes():
    step = gpu_step(idle={"stream order": 5 * MS})
    assert predicted(replace(step, host=step.step), "floors").seconds == predicted(step, "floors").seconds


def test_another_gpu_that_waits_for_the_host_says_so():
    step = gpu_step(others=(B200,))
    free, bound = (predicted(replace(step, host=host), "on B200") for host in (1 * MS, step.step))
    assert bound.seconds > free.seconds
    assert "There the host sets the step" in bound.why
    assert "host sets" not in free.why


def test_another_gpu_follows_the_peaks_that_bound_each_class():
    step = gpu_step(others=(A100, H200))
    slower = predicted(step, "on A100 80GB SXM")
    ratio = slower.seconds / step.step
    assert 4.8 / 2.039 < ratio < 989.5 / 312
    assert predicted(step, "on H200 SXM") is None


def test_a_throttled_device_is_predicted_at_its_highest_clock():
    step = gpu_step(clock=0.5)
    assert predicted(step, "full clock").seconds == pytest.approx(step.step - 21 * MS)
    assert predicted(gpu_step(clock=0.995), "full clock") is None


def test_synchronisation_takes_its_launch_gaps_along_where_the_host_is_quick_enough():
    idle = {"synchronisation": 5 * MS, "launch": 4 * MS}
    quick = gpu_step(idle=idle, host=20 * MS)
    unknown = gpu_step(idle=idle)
    assert predicted(quick, "no synchronisation").seconds == pytest.approx(quick.step - 9 * MS)
    assert predicted(unknown, "no synchronisation").seconds == pytest.approx(unknown.step - 5 * MS)


def test_a_suite_gets_the_option_and_a_users_program_the_line_to_write():
    ours = gpu_step(
        settings=TrainingSettings(framework="pytorch", command="trainmark run quick", workload="resnet50")
    )
    own = gpu_step(settings=TrainingSettings(framework="pytorch"))
    eager = TrainingSettings(framework="pytorch", command="trainmark run gpt2", workload="gpt2")
    launches = gpu_step(idle={"launch": 30 * MS}, settings=eager)
    assert predicted(launches, "graph").how == "trainmark run gpt2 --set compile=reduce-overhead"
    in_words = predicted(launches, "no launch gaps")
    assert in_words.how.startswith("fewer and larger kernels") and not in_words.is_line
    assert predicted(ours, "compile").how == "trainmark run quick --set compile=true"
    assert predicted(own, "compile").how == "model = torch.compile(model)"
    assert predicted(own, "compile").is_line
    two_ranks = gpu_step(communication=StepPart("communication", 10 * MS, 10 * MS, 5), settings=ours.settings)
    without_setting = predicted(two_ranks, "communication hidden").how
    assert without_setting.endswith("(model, bucket_cap_mb=10)  # no setting of resnet50 does it")
