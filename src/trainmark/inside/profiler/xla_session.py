"""What the profilers of JAX and TensorFlow share: both leave an XSpace in a folder."""

import bisect
import collections
import glob
import os
import re
import shutil
import tempfile

from trainmark.inside.profiler import chrome, xplane
from trainmark.inside.profiler.hlo import Programs

TIMING, DETAIL = "timing", "detail"
USER_ANNOTATIONS, ALL_OF_HOST = 1, 2  # levels of the host tracer


class XlaProfiler:
    """A backend of Capture; a framework adds how to start, stop and wait."""

    def __init__(self):
        self._folder = None
        self._lost = {}

    def passes(self):
        return TIMING, DETAIL

    def start(self, pass_name):
        """Begin a pass with a device that has nothing to do.

        Frames of Python are recorded in the detail pass alone: they cost most. On a CPU the host's own
        events are the operators, which both passes need.
        """
        self.wait()
        self._folder = tempfile.mkdtemp(prefix="trainmark-profile-")
        is_detail = pass_name == DETAIL
        level = USER_ANNOTATIONS if self.on_gpu() and not is_detail else ALL_OF_HOST
        self.start_trace(self._folder, level, with_frames=is_detail)

    def stop(self, pass_name, path):
        """End a pass when the device has done all that it was given, and write its trace."""
        folder, self._folder = self._folder, None
        try:
            self.wait()
            self.stop_trace()
            files = glob.glob(os.path.join(folder, "**", "*.xplane.pb"), recursive=True)
            if len(files) != 1:
                raise RuntimeError("the profiler left {} profiles where one was expected".format(len(files)))
            with open(files[0], "rb") as file:
                data = file.read()
            self._lost[pass_name] = convert(data, path, os.getpid())
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def facts(self):
        device = "cuda" if self.on_gpu() else "cpu"
        facts = {"device": device, "profiler": "XLA", "lost_records": dict(self._lost)}
        return dict(facts, **self.framework_facts())

    def memory(self):
        """Nothing: the profile does not tell what holds the peak of memory."""


# Of a thunk, after its successors where they ran in the same thread; releases before 0.5 have none.
END_MARK = "end: "
# Of a program: events that start thunks, and one that waits for the last of them.
EXECUTION = "ThunkExecutor::Execute"
# The work is counted once, with the thunk's own event.
WORK = ("flop", "traffic")
# The executor takes as long from one thunk to the next.
LEAST_GAP_NS = 10000

Thunk = collections.namedtuple("Thunk", "thread name start end args flow")


def asynchronous(thunks, marks, executions, thread):
    """Yield the time of programs in which no thunk's event runs, as that of the thunk that goes on.

    The event of a convolution or matrix product may end when the pool has it. A gap belongs to the last thunk
    before it that has FLOP and whose end is not marked yet; else to the last one that has not ended.
    """
    ordered = sorted(thunks, key=lambda thunk: (thunk.start, thunk.end))
    starts = [thunk.start for thunk in ordered]
    for begin, finish in _union(executions):
        own = ordered[bisect.bisect_left(starts, begin) : bisect.bisect_left(starts, finish)]
        pending = []
        busy_until = last = None
        for thunk in own:
            if busy_until is not None and thunk.start - busy_until > LEAST_GAP_NS:
                pending = [earlier for earlier in pending if marks.get(earlier.flow, finish) > busy_until]
                yield _later(_cause(pending) or last, thread, busy_until, thunk.start)
            busy_until = thunk.end if busy_until is None else max(busy_until, thunk.end)
            last = thunk
            pending.append(thunk)
        if busy_until is not None and finish - busy_until > LEAST_GAP_NS:
            yield _later(_cause(pending) or last, thread, busy_until, finish)


def _cause(pending):
    with_flop = [thunk for thunk in pending if thunk.args.get("flop")]
    return (with_flop or pending or [None])[-1]


def _later(thunk, thread, start, end):
    args = {key: value for key, value in thunk.args.items() if key not in WORK}
    return thunk._replace(thread=thread, start=start, end=end, args=args)


def _union(intervals):
    """Return intervals that do not overlap and cover the same time."""
    union = []
    for start, end in sorted(intervals):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end))
        else:
            union.append((start, end))
    return union


DEVICE_PLANE = re.compile(r"/device:GPU:(\d+)")
STREAM = re.compile(r"Stream #(\d+)")
DROPPED = re.compile(r"(\d+) events dropped")
SIZE = re.compile(r"(?:size|num_bytes):(\d+)")
# "$train.py:31 main" as the Python tracer of XLA writes a frame
FRAME = re.compile(r"\$(?:(.*\.py):(\d+)|(\S+)) (.*)")
# "gradient_tape/matmul/MatMul:MatMul", an operator of TensorFlow: its name in the graph and its type
TENSORFLOW_OPERATOR = re.compile(r"([\w.][\w./\->]*):([A-Z_]\w*)")
GRAPH_NAME = re.compile(r" \(CudaGraph:\d+\)$")
# Stages of every call of a compiled function, of a microsecond each.
CALL_STAGES = (
    "ParseArguments",
    "Handle input",
    "AllocateOutputBuffers",
    "Wait for donation",
    "Wait for usage",
)
SINCE_1970_NS = 10**17


def convert(data, path, process):
    """Write the serialized XSpace as a Chrome trace at `path`; return how many events were dropped."""
    space = _from_zero(xplane.read(data))
    programs = Programs(space)
    lost = sum(int(count) for warning in space.warnings for count in DROPPED.findall(warning))
    gpus = {int(DEVICE_PLANE.match(plane.name).group(1)): plane for plane in _gpu_planes(space)}
    names = [
        _device_name(gpus[number]) if number in gpus else "" for number in range(max(gpus, default=-1) + 1)
    ]
    facts = {"trainmark_source": "xla"}
    if space.errors:
        facts["trainmark_errors"] = space.errors
    with chrome.TraceWriter(path, names, _start(space), facts) as writer:
        for number, plane in sorted(gpus.items()):
            _write_device(writer, plane, number, programs)
        for plane in space.planes:
            if plane.name.startswith("/host:") and plane.name != "/host:metadata":
                _write_host(writer, plane, process, programs, bool(gpus))
        writer.lost = lost
    return lost


def _from_zero(space):
    """Return the space with times since its first line: those since 1970 are rounded as a float."""
    first = min((line.start_ns for plane in space.planes for line in plane.lines), default=0)
    if first < SINCE_1970_NS:
        return space
    planes = [
        plane._replace(lines=[line._replace(start_ns=line.start_ns - first) for line in plane.lines])
        for plane in space.planes
    ]
    return space._replace(planes=planes)


def _gpu_planes(space):
    return [plane for plane in space.planes if DEVICE_PLANE.match(plane.name)]


def _device_name(plane):
    values = xplane.stats(plane, plane.raw_stats)
    return (
        values.get("gpu_device_name") or values.get("device_type_string") or values.get("device_vendor") or ""
    )


def _start(space):
    for plane in space.planes:
        start = xplane.stats(plane, plane.raw_stats).get("profile_start_time")
        if start is not None:
            return start
    return 0


def _times(event):
    return event.start_ps // 1000, (event.start_ps + event.duration_ps) // 1000


def _write_device(writer, plane, number, programs):
    for line in plane.lines:
        stream = STREAM.match(line.name)  # not "CUPTI overhead" or a derived line such as "XLA Ops"
        if stream is None:
            continue
        before = None
        for event in xplane.events(plane, line):
            ran = event.stats.get("hlo_module"), event.stats.get("hlo_op")
            first = ran[1] is None or ran != before
            _write_device_event(writer, event, number, int(stream.group(1)), programs, first)
            before = ran


def _write_device_event(writer, event, device, stream, programs, first):
    """Write a kernel or copy; of several kernels of one instruction the `first` has its FLOP and bytes."""
    stats = event.stats
    if "memalloc_details" in stats or "memfree_details" in stats or "memory_residency_details" in stats:
        return
    args = {"device": device, "stream": stream, "correlation": stats.get("correlation_id", -1)}
    graph = stats.get("cuda_graph_id") or stats.get("cuda_graph_exec_id")
    if graph:
        args["graph id"] = graph
        args["graph node id"] = stats.get("cuda_graph_node_id") or graph
    copy = stats.get("memcpy_details")
    memset = stats.get("memset_details", stats.get("Memset_details"))
    details = copy or memset
    if details is not None:
        size = SIZE.search(details)
        args["bytes"] = int(size.group(1)) if size else 0
    else:
        args.update(_source(stats, programs.instruction(stats, event.name), first))
    category = chrome.KERNEL if details is None else chrome.COPY if copy else chrome.MEMSET
    start, end = _times(event)
    writer.span(category, event.name, start, end, device, stream, args)


def _source(stats, instruction, with_work=True):
    """Return what of the program an event ran, as arguments of the trace."""
    args = {}
    if "hlo_op" in stats:
        args["hlo_op"] = stats["hlo_op"]
        args["hlo_module"] = stats.get("hlo_module", "")
    if instruction is not None:
        args["operator"] = instruction.operator
        if with_work:
            args["traffic"] = instruction.traffic
            if instruction.flop is not None:
                args["flop"] = instruction.flop
    else:
        operator = stats.get("name", stats.get("tf_op"))
        if isinstance(operator, str) and not operator.startswith("XlaModule:"):
            args["operator"] = operator
    return args


def _write_host(writer, plane, process, programs, has_gpu):
    """Write the threads; on a CPU the thunks in which XLA runs the instructions are the operators."""
    thunks = []
    marks = {}  # by the flow of a thunk
    executions = []
    for thread, line in enumerate(plane.lines):
        writer.thread_name(process, thread, line.name)
        events = list(xplane.events(plane, line))
        annotated = any(event.name.startswith(("$", "trainmark_")) for event in events)
        for event in events:
            start, end = _times(event)
            if event.name.startswith(END_MARK):
                marks[event.stats.get("_c")] = end
            elif event.name.startswith(EXECUTION):
                executions.append((start, end))
            elif "correlation_id" in event.stats:
                name = GRAPH_NAME.sub("", event.name)
                args = {"correlation": event.stats["correlation_id"]}
                writer.span(chrome.api_category(name), name, start, end, process, thread, args)
            elif "hlo_op" in event.stats and not has_gpu:
                args = _source(event.stats, programs.instruction(event.stats, event.name))
                writer.span(chrome.OPERATOR, event.name, start, end, process, thread, args)
                thunks.append(Thunk(thread, event.name, start, end, args, event.stats.get("_p")))
            elif TENSORFLOW_OPERATOR.fullmatch(event.name):
                operator, kind = TENSORFLOW_OPERATOR.fullmatch(event.name).groups()
                writer.span(chrome.OPERATOR, kind, start, end, process, thread, {"operator": operator})
            elif event.name.startswith("$"):
                writer.span(chrome.PYTHON, _frame(event.name), start, end, process, thread)
            elif annotated and "::" not in event.name and not event.name.startswith(CALL_STAGES):
                writer.span(chrome.ANNOTATION, event.name, start, end, process, thread)
    pool = len(plane.lines)
    for thunk in asynchronous(thunks, marks, executions, pool):
        writer.span(chrome.OPERATOR, thunk.name, thunk.start, thunk.end, process, pool, thunk.args)


def _frame(name):
    """Return a frame as Kineto writes it: `train.py(31): main`, `<built-in function len>`."""
    match = FRAME.match(name)
    if match is None:
        return name[1:]
    file, line, module, function = match.groups()
    return (
        "{}({}): {}".format(file, line, function)
        if file
        else "<{} function {}>".format("built-in" if module == "builtins" else module, function)
    )
