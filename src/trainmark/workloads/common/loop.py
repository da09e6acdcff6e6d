"""The main of every program: refuse, answer, train, or show what the training does."""

import json
import sys

from trainmark import probe
from trainmark.workloads.common import epochs, memory_cap, profiled, run
from trainmark.workloads.common.ranks.own_address import AddressGuard
from trainmark.workloads.common.refusal import REFUSED, Refusal


def main(spec, framework, training, check, facts):
    """Run one framework's program: its class `training` on the workload `spec`, see `common/training.py`.

    `check(options)` raises Refusal; `facts()` returns the framework's version and the devices it sees.
    """
    program = "{}.{}".format(spec.package, framework)
    opt = spec.parse(sys.argv[1:], program)
    if opt.check:
        _answer(spec, program, check, facts)
        return
    try:
        spec.check(opt)
        check(opt)
    except Refusal as refusal:
        sys.stderr.write("refused: {}\n".format(refusal))
        sys.exit(REFUSED)
    opt.framework = framework
    memory_cap.on_host(opt)
    memory_cap.on_card(opt)
    probe.show_stacks_on_request()  # also of a rank that waits for another which never came
    with AddressGuard():
        begun = training(opt)
    if opt.conform:
        observed = dict(spec.observe(opt, begun), **facts())
        with open(opt.conform.replace("{rank}", str(opt.rank)), "w") as file:
            json.dump(observed, file)
    elif opt.by_epochs:
        epochs.train(spec, opt, begun, framework, facts)
    else:
        _train(spec, opt, begun, framework, facts)
    begun.close()


def _train(spec, opt, training, framework, facts):
    feed = spec.feed(opt)
    stream = feed.open(training).endless() if feed else training.batches()
    record = run.start(spec, opt, training, framework, facts)
    for index in range(opt.steps):
        run.take_step(record, opt, training, stream, index, opt.epoch_samples)
    if feed and not profiled.is_requested():
        feed.close()
    # Under a cap, memory is what is measured; the product would take its own.
    run.end(record, opt, training, {} if opt.memory_cap else training.peaks())
    if profiled.is_requested():
        profiled.take_steps(opt, training, stream, has_loader=bool(feed))
        if feed:
            feed.close()


def _answer(spec, program, check, facts):
    """First a line of facts, then for each command line on standard input a line with null or the reason."""
    print(json.dumps(facts()), flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        opt = spec.settle(spec.parse(question["arguments"], program), question["world_size"])
        try:
            spec.check(opt)
            check(opt)
            print("null", flush=True)
        except Refusal as refusal:
            print(json.dumps(str(refusal)), flush=True)
