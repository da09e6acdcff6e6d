"""What the loop must know of a workload, whatever the framework: options, data, costs, metrics, tensors."""


class TrainingSpec:
    """One workload; its programs are modules of `package`, one a framework. A family's own class has these:

    name, unit, package            of the workload, of a sample, of its programs
    metrics                        by name: which is "better", "higher" or "lower", its "title", and if it
                                   is a "share" of 1; or "higher" or "lower" alone
    axes                           options that a checkpoint belongs to, beside those of every workload
    parse(arguments, program)      options, settled for the number of ranks in the environment
    settle(options, world_size)    the same for another number of ranks
    check(options)                 raises Refusal for what can be had in no framework
    flops_per_sample(options)      of forward and backward pass
    bytes_per_sample(options)      the fewest that a step moves
    hardware_flops_per_sample(options), flops_by_convention(options)
                                   with what is computed twice; as other codes count, by their names: None
                                   where a family does not say
    feed(options)                  stored data, None where the data are synthetic
    evaluation(totals, samples)    facts of an evaluation, and its metrics, from what `evaluate` counted
    shapes(options)                of every tensor by its canonical name
    is_statistic(name)             whether each rank keeps that tensor to itself
    observe(options, training)     what is compared with the reference, as JSON
    refusals                       a table of `refusal.py`, for programs that `loop.run_program` runs

    A feed has `training(epoch, first)`, `evaluation()`, `endless()`, `steps_per_epoch`, `validation_samples`,
    `open(training)`, `close()`, and facts of the data for `run_start` and `run_end`: `start_facts()` and
    `end_facts()`.
    """

    def hardware_flops_per_sample(self, opt):
        return None

    def flops_by_convention(self, opt):
        return None

    def reached(self, values, targets):
        """Whether every metric that has a target is as good as that."""
        return all(
            values[name] >= target if self.better(name) == "higher" else values[name] <= target
            for name, target in targets.items()
        )

    def better(self, name):
        metric = self.metrics[name]
        return metric if isinstance(metric, str) else metric["better"]
