"""The main of every ResNet-50 workload: refuse, answer, train, or show what the training does.

A framework's file gives `Training`, whose methods are its dialect of the same few verbs:

    Training(opt)                  builds model, optimiser and ranks on the device
    .batches()                     an endless stream of what `step` takes
    .place(images, labels)         such a batch from host arrays: float32 as (images, 3, rows, columns), int64
    .step(images, labels, rate)    forward, backward and update; gives the rank's own loss, waits for nothing
    .read(loss)                    a function that gives the loss as a number, once the device has passed it
    .clock()                       a clock for the probe, None where a step is over when its call returns
    .memory()                      the most bytes that were in use so far
    .device_name()                 as the framework calls it
    .peak_flops()                  FLOP/s of a large matrix product in the step's precision
    .parameters()                  how many numbers are trained, as the framework counts them
    .load(tensors)                 sets every tensor by its canonical name, and the momenta to zero
    .tensors()                     every tensor by its canonical name, as arrays on the host
    .close()                       leaves the other ranks in order
    .gradient_clock                optional: tells computing from waiting for other ranks

Runs inside every framework's interpreter: standard library only, Python 3.7+; numpy where it compares.
"""

import json
import sys
import time

from trainmark import probe
from trainmark.workloads.resnet50.shared import gradient_clock, options, recipe
from trainmark.workloads.resnet50.shared.own_address import Doorkeeper


def main(framework, training, check, facts):
    """`check(options)` raises Refusal; `facts()` tells the framework's version and the devices it sees."""
    program = "trainmark.workloads.resnet50." + framework
    opt = options.parse(sys.argv[1:], program)
    if opt.check:
        _answer(program, check, facts)
        return
    try:
        check(opt)
    except options.Refusal as refusal:
        sys.stderr.write("refused: {}\n".format(refusal))
        sys.exit(options.REFUSED)
    probe.show_stacks_on_request()  # also of a rank that waits for another which never came
    with Doorkeeper():
        begun = training(opt)
    if opt.conform:
        _conform(opt, begun, facts)
    else:
        _train(opt, begun, framework, facts)
    begun.close()


def _train(opt, training, framework, facts):
    stream = training.batches()
    waiting = getattr(training, "gradient_clock", gradient_clock.Untimed())
    run = probe.start(
        unit="images",
        clock=training.clock(),
        framework=framework,
        workload="resnet50",
        device_name=training.device_name(),
        flops_per_sample=recipe.flops_per_image(opt.image_size),
        **facts(),
    )
    for index in range(opt.steps):
        asked = time.monotonic()
        images, labels = next(stream)
        waited = time.monotonic() - asked
        rate = recipe.learning_rate(index, opt.global_batch, opt.training_images)
        waiting.begin()
        loss = training.step(images, labels, rate)
        run.step(
            opt.batch,
            loss=training.read(loss),
            lr=rate,
            data_wait=waited,
            memory=training.memory(),
            **waiting.times(),
        )
    run.end(peak_flops=training.peak_flops(), **(waiting.facts() if opt.rank == 0 else {}))


def _conform(opt, training, facts):
    from trainmark.workloads.resnet50.shared import conformance

    observed = conformance.observe(opt, training)
    conformance.write(opt.conform.replace("{rank}", str(opt.rank)), dict(observed, **facts()))


def _answer(program, check, facts):
    """First a line of facts, then for each command line on standard input a line with null or the reason."""
    print(json.dumps(facts()), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        opt = options.parse(asked["arguments"], program)
        opt.world_size = asked["world_size"]
        try:
            check(opt)
            print("null", flush=True)
        except options.Refusal as refusal:
            print(json.dumps(str(refusal)), flush=True)


def peak_flops(product, side, clock):
    """The best of several square matrix products on the clock of the device."""
    best = float("inf")
    for _ in range(8):
        begin = clock.seconds(clock.mark(), wait=True)
        product()
        best = min(best, clock.seconds(clock.mark(), wait=True) - begin)
    return 2 * side**3 / best
