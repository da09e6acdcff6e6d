"""The loss scale of `--precision amp`: static, or halved by an overflow and doubled after steps without."""

FIRST = 2.0**16
GROWTH_STEPS = 2000


def initial(opt):
    if opt.precision != "amp":
        return 1.0
    return FIRST if opt.loss_scale == "dynamic" else opt.loss_scale
