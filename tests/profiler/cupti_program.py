"""A program of CUDA without CUDA: steps that a fake CUPTI plays. Arguments: fake library, steps, and either
`profile TRACE` with hooks of its own, or `inject LIBRARY` as the driver would."""

import ctypes
import json
import os
import sys
import time


def profile(fake, steps, trace):
    from trainmark.inside.profiler.cupti.profiler import NoProfilerError, Profiler

    profiler = Profiler("keras", "3.0")
    try:
        profiler.start("timing")
    except NoProfilerError as error:
        print(json.dumps({"error": str(error)}))
        return
    for number in range(steps):
        with profiler.annotate(f"trainmark_step#{number}"):
            fake.fake_step()
            time.sleep(float(os.environ.get("FAKE_STEP_SECONDS", "0.001")))
    fake.fake_drop(int(os.environ.get("FAKE_CUPTI_DROPS", "0")))
    profiler.stop("timing", trace)
    print(json.dumps({"passes": profiler.passes(), "facts": profiler.facts()}))


def inject(fake, steps, library):
    assert ctypes.CDLL(library).InitializeInjection() == 1
    time.sleep(0.3)  # the library's thread begins to record
    for _ in range(steps):
        fake.fake_step()


def main():
    fake = ctypes.CDLL(sys.argv[1])
    fake.fake_drop.argtypes = [ctypes.c_size_t]
    {"profile": profile, "inject": inject}[sys.argv[3]](fake, int(sys.argv[2]), sys.argv[4])


main()
