"""What a device can do at best, measured when the training is over."""


def peaks_of(training):
    """What the device can do at best: in arithmetic, and in memory where the framework was taught to ask."""
    peaks = {"peak_flops": training.peak_flops()}
    if hasattr(training, "peak_bandwidth"):
        peaks["peak_bandwidth"] = training.peak_bandwidth()
    return peaks
