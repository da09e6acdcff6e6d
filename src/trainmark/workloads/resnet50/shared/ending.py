"""What a rank tells when its training is over."""


def peaks_of(training):
    """What the device can do at best: in arithmetic, and in memory where the framework was taught to ask."""
    peaks = {"peak_flops": training.peak_flops()}
    if hasattr(training, "peak_bandwidth"):
        peaks["peak_bandwidth"] = training.peak_bandwidth()
    return peaks


def fallbacks_of(training):
    """What it could not do as it should; nothing where all went well."""
    told = getattr(training, "fallbacks", list)()
    return {"fallbacks": told} if told else {}
