"""The main of every ResNet-50 workload: refuse, answer, train, or show what the training does.

A framework's file gives `Training`, whose methods are its dialect of the same few verbs:

    Training(opt)                  builds model, optimiser and ranks on the device
    .batches()                     an endless stream of synthetic ones that `step` takes
    .place(images, labels)         such a batch from host arrays: float32 as (images, 3, rows, columns), int64
    .feed(batches)                 such batches from a loader's: uint8 as (images, rows, columns, 3), int64
    .own_images()                  the framework's own loader, see `workloads/images/own/`
    .step(images, labels, rate, kept=1.0)
                                   forward, backward and update; gives the rank's own loss, waits for nothing.
                                   Where the recipe has mixup, an image keeps this share of itself and takes
                                   the rest from the one that stands as far from the other end of the batch
    .read(loss)                    a function that gives the loss as a number, once the device has passed it
    .evaluate(images, labels)      a function that gives how many are right, and right within five, by the
                                   running statistics; a label of -1 is no image
    .total(numbers)                a few floats added up over all ranks; waits for all of them
    .clock()                       a clock for the probe, None where a step is over when its call returns
    .memory()                      the most bytes that were in use so far
    .device_name()                 as the framework calls it
    .peak_flops()                  FLOP/s of a large matrix product in the step's precision
    .peak_bandwidth()              bytes/s, read and written, of a large copy; not in every framework
    .parameters()                  how many numbers are trained, as the framework counts them
    .load(tensors, momenta=None, rest=None)
                                   sets every tensor by its canonical name; without the others the momenta are
                                   zero and the rest as at the start
    .tensors()                     every tensor by its canonical name, as arrays on the host
    .momenta()                     the optimiser's memory of every trained tensor, likewise
    .rest()                        what else the next step depends on (the loss scale, …), as plain numbers
    .close()                       leaves the other ranks in order
    .fallbacks()                   optional: what it could not do as it should here, a sentence each
    .gradient_clock                optional: tells computing from waiting for other ranks
    .allocate(shape, dtype)        optional: host memory that the device likes to read, for the loader

Runs inside every framework's interpreter: standard library only, Python 3.7+; numpy where it compares.
"""

import json
import sys
import time

from trainmark import probe
from trainmark.workloads.resnet50.shared import ending, finish, gradient_clock, memory_cap, options, recipe
from trainmark.workloads.resnet50.shared.feed import Feed
from trainmark.workloads.resnet50.shared.own_address import Doorkeeper

LONG_ENOUGH = 5.0  # seconds, for a peak
COPIES = 16  # of a device's memory, one behind the other: what the first waits for weighs little


def main(framework, training, check, facts):
    """`check(options)` raises Refusal; `facts()` tells the framework's version and the devices it sees."""
    program = "trainmark.workloads.resnet50." + framework
    opt = options.parse(sys.argv[1:], program)
    if opt.check:
        _answer(framework, program, check, facts)
        return
    try:
        options.check_asked(opt, framework)
        check(opt)
    except options.Refusal as refusal:
        sys.stderr.write("refused: {}\n".format(refusal))
        sys.exit(options.REFUSED)
    memory_cap.on_host(opt)
    memory_cap.on_card(opt)
    probe.show_stacks_on_request()  # also of a rank that waits for another which never came
    with Doorkeeper():
        begun = training(opt)
    if opt.conform:
        _conform(opt, begun, facts)
    elif opt.by_epochs:
        finish.train(opt, begun, framework, facts)
    else:
        _train(opt, begun, framework, facts)
    begun.close()


def _train(opt, training, framework, facts):
    feed = Feed(opt).open(training) if opt.data == "images" else None
    stream = feed.endless() if feed else training.batches()
    waiting = getattr(training, "gradient_clock", gradient_clock.Untimed())
    run = probe.start(
        unit="images",
        clock=training.clock(),
        framework=framework,
        workload="resnet50",
        device_name=training.device_name(),
        flops_per_sample=recipe.flops_per_image(opt.image_size),
        bytes_per_sample=options.bytes_per_image(opt),
        **facts(),
    )
    for index in range(opt.steps):
        asked = time.monotonic()
        images, labels = next(stream)
        waited = time.monotonic() - asked
        rate = opt.recipe.learning_rate(index, opt.global_batch, opt.training_images)
        waiting.begin()
        loss = training.step(images, labels, rate, finish.kept_share(opt, index))
        run.step(
            opt.batch,
            loss=training.read(loss),
            lr=rate,
            data_wait=waited,
            memory=training.memory(),
            **waiting.times(),
        )
    if feed:
        feed.close()
    # Under a cap, memory is what is measured; the product would take its own.
    best = {} if opt.memory_cap else ending.peaks_of(training)
    told = dict(best, **ending.fallbacks_of(training))
    run.end(**dict(told, **(waiting.facts() if opt.rank == 0 else {})))


def _conform(opt, training, facts):
    from trainmark.workloads.resnet50.shared import conformance

    observed = conformance.observe(opt, training)
    conformance.write(opt.conform.replace("{rank}", str(opt.rank)), dict(observed, **facts()))


def _answer(framework, program, check, facts):
    """First a line of facts, then for each command line on standard input a line with null or the reason."""
    print(json.dumps(facts()), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        opt = options.settled(options.parse(asked["arguments"], program), asked["world_size"])
        try:
            options.check_asked(opt, framework)
            check(opt)
            print("null", flush=True)
        except options.Refusal as refusal:
            print(json.dumps(str(refusal)), flush=True)


def peak_flops(product, side, clock):
    """The best of several square matrix products on the clock of the device."""
    return 2 * side**3 / shortest(product, clock)


def shortest(work, clock):
    """The seconds of the quickest of several times; of fewer where they take long, as halves on some CPUs."""
    times = []
    while len(times) < 8 and sum(times) < LONG_ENOUGH:
        begin = clock.seconds(clock.mark(), wait=True)
        work()
        times.append(clock.seconds(clock.mark(), wait=True) - begin)
    return min(times)
