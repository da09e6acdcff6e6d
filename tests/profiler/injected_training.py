"""A training in CUDA without CUDA that no hook knows: a fake CUPTI plays its steps; each prints a line.

Arguments: the fake library, steps. Like CUDA's driver it loads the library that the environment names.
"""

import ctypes
import os
import sys
import time

STEP_SECONDS = 0.01

fake = ctypes.CDLL(sys.argv[1])
injection = os.environ.get("CUDA_INJECTION64_PATH")
if injection:
    assert ctypes.CDLL(injection).InitializeInjection() == 1
for step in range(int(sys.argv[2])):
    fake.fake_step()
    time.sleep(STEP_SECONDS)
    print("step", step, "done", flush=True)
