/* Records the kernels, copies and CUDA calls of a process with CUPTI's activity API.
 *
 * The driver loads this library where CUDA_INJECTION64_PATH names it, and calls InitializeInjection. A program
 * with hooks calls trainmark_profile_start and trainmark_profile_stop; for any other, TRAINMARK_CUPTI_FILE,
 * TRAINMARK_CUPTI_AFTER and TRAINMARK_CUPTI_SECONDS say where to, how long after the start of the process and for
 * how long to record.
 *
 * CUPTI is opened at run time, the one that the program has loaded already first. Fields that are read stand at
 * the same place in the records of CUDA 12.0 to 13.x: newer ones only append.
 *
 * The file is a sequence of `struct record` in the byte order of the machine; one of type NAME or DEVICE is
 * followed by `bytes` bytes of text, and stands before those that refer to it. The first one has the time at which
 * recording began, by CUPTI's clock and in `end` by CLOCK_MONOTONIC; the devices follow it, the last one is of
 * type END.
 */
#define _GNU_SOURCE
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define BUFFER_BYTES ((size_t)8 << 20)
#define FILE_BUFFER_BYTES ((size_t)1 << 20)
#define CALLS 4096 /* more than there are callback ids in either domain */
#define NOT_RECORDED UINT32_MAX

enum type { HEADER = 0x544d4355, NAME = 1, DEVICE, KERNEL, COPY, MEMSET, RUNTIME, DRIVER, END };

struct record {
  uint32_t type;
  uint32_t name; /* number of a name; the kind of a copy */
  uint64_t start;
  uint64_t end;
  uint32_t correlation;
  uint32_t device;
  uint32_t place; /* stream of device work, thread of a call */
  uint32_t graph;
  uint64_t graph_node;
  uint64_t bytes;
};

static struct {
  CUptiResult (*register_callbacks)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc);
  CUptiResult (*enable)(CUpti_ActivityKind);
  CUptiResult (*disable)(CUpti_ActivityKind);
  CUptiResult (*flush)(uint32_t);
  CUptiResult (*next_record)(uint8_t *, size_t, CUpti_Activity **);
  CUptiResult (*dropped_records)(CUcontext, uint32_t, size_t *);
  CUptiResult (*timestamp)(uint64_t *);
  CUptiResult (*callback_name)(CUpti_CallbackDomain, uint32_t, const char **);
  CUptiResult (*thread_id_type)(CUpti_ActivityThreadIdType);
  CUptiResult (*result_string)(CUptiResult, const char **);
} cupti;

static const CUpti_ActivityKind KINDS[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,  CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,            CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,
};
#define KIND_COUNT (sizeof KINDS / sizeof *KINDS)

/* Calls that take no time worth knowing, and come by the thousand; polling threads make millions. */
static const char *const UNRECORDED[] = {
    "cudaGet",      "cudaSetDevice", "cudaPeek",  "cudaDeviceGet", "cudaEventQuery", "cudaStreamIsCapturing",
    "cudaFuncGet",  "cudaPointerGet", "cudaStreamGet", "__cuda", "cudaOccupancy", "cudaEventCreate",
    "cudaEventDestroy", "cudaStreamQuery", "cuGet", "cuCtxGet", "cuCtxSetCurrent", "cuCtxPush", "cuCtxPop",
    "cuDeviceGet",  "cuDeviceCanAccessPeer", "cuDevicePrimaryCtx", "cuEventQuery", "cuEventCreate", "cuEventDestroy",
    "cuFuncGet",    "cuFuncSet", "cuPointerGet", "cuStreamQuery", "cuStreamGet", "cuStreamIsCapturing",
    "cuModuleGet",  "cuKernelGet", "cuLibraryGet", "cuOccupancy", "cuDriverGet", "cuMemGet",
    "cuThreadExchangeStreamCaptureMode", "cudaThreadExchangeStreamCaptureMode",
};

static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER; /* one start or stop at a time */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER; /* guards all that follows */
static FILE *file;
static uint64_t written, dropped, failed_writes, failed_buffers;
static struct { uint64_t hash; char *text; uint32_t number; } *table;
static size_t table_size, names;
static uint32_t call_names[2][CALLS];

static void put(const struct record *record, const char *text) {
  if (fwrite(record, sizeof *record, 1, file) != 1) failed_writes++;
  if (text != NULL && record->bytes > 0 && fwrite(text, record->bytes, 1, file) != 1) failed_writes++;
  written++;
}

static void forget_names(void) {
  for (size_t i = 0; i < table_size; i++) free(table[i].text);
  free(table);
  table = NULL;
  table_size = names = 0;
  memset(call_names, 0, sizeof call_names);
}

static int grow_table(void) {
  size_t size = table_size ? table_size * 2 : 1024;
  void *memory = calloc(size, sizeof *table);
  if (memory == NULL) return 0;
  __typeof__(table) old = table;
  size_t old_size = table_size;
  table = memory;
  table_size = size;
  for (size_t i = 0; i < old_size; i++) {
    if (old[i].text == NULL) continue;
    size_t slot = old[i].hash & (size - 1);
    while (table[slot].text != NULL) slot = (slot + 1) & (size - 1);
    table[slot] = old[i];
  }
  free(old);
  return 1;
}

/* Returns the number of a name, from 1, and writes the name the first time; 0 without memory for it. */
static uint32_t number_of(const char *text) {
  if (text == NULL) return 0;
  if (names * 2 >= table_size && !grow_table()) return 0;
  uint64_t hash = 1469598103934665603u; /* FNV-1a */
  for (const char *c = text; *c; c++) hash = (hash ^ (unsigned char)*c) * 1099511628211u;
  size_t slot = hash & (table_size - 1);
  for (; table[slot].text != NULL; slot = (slot + 1) & (table_size - 1))
    if (table[slot].hash == hash && strcmp(table[slot].text, text) == 0) return table[slot].number;
  char *copy = strdup(text);
  if (copy == NULL) return 0;
  table[slot].hash = hash;
  table[slot].text = copy;
  table[slot].number = (uint32_t)++names;
  put(&(struct record){.type = NAME, .name = (uint32_t)names, .bytes = strlen(text)}, text);
  return (uint32_t)names;
}

static uint32_t number_of_call(int is_driver, CUpti_CallbackId id) {
  const char *name = NULL;
  CUpti_CallbackDomain domain = is_driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
  if (id < CALLS && call_names[is_driver][id] != 0) return call_names[is_driver][id];
  if (cupti.callback_name(domain, id, &name) != CUPTI_SUCCESS) name = NULL;
  uint32_t number = number_of(name != NULL ? name : is_driver ? "cuUnknown" : "cudaUnknown");
  for (size_t i = 0; name != NULL && i < sizeof UNRECORDED / sizeof *UNRECORDED; i++)
    if (strncmp(name, UNRECORDED[i], strlen(UNRECORDED[i])) == 0) number = NOT_RECORDED;
  if (id < CALLS) call_names[is_driver][id] = number;
  return number;
}

static void put_activity(const CUpti_Activity *activity) {
  struct record record = {0};
  switch (activity->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const CUpti_ActivityKernel9 *kernel = (const void *)activity;
      record = (struct record){KERNEL, number_of(kernel->name), kernel->start, kernel->end, kernel->correlationId,
                               kernel->deviceId, kernel->streamId, kernel->graphId, kernel->graphNodeId, 0};
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const CUpti_ActivityMemcpy5 *copy = (const void *)activity;
      record = (struct record){COPY, copy->copyKind, copy->start, copy->end, copy->correlationId,
                               copy->deviceId, copy->streamId, copy->graphId, copy->graphNodeId, copy->bytes};
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const CUpti_ActivityMemcpyPtoP4 *copy = (const void *)activity;
      record = (struct record){COPY, copy->copyKind, copy->start, copy->end, copy->correlationId,
                               copy->deviceId, copy->streamId, copy->graphId, copy->graphNodeId, copy->bytes};
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const CUpti_ActivityMemset4 *set = (const void *)activity;
      record = (struct record){MEMSET, 0, set->start, set->end, set->correlationId,
                               set->deviceId, set->streamId, set->graphId, set->graphNodeId, set->bytes};
      break;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const CUpti_ActivityAPI *call = (const void *)activity;
      int is_driver = activity->kind == CUPTI_ACTIVITY_KIND_DRIVER;
      record = (struct record){is_driver ? DRIVER : RUNTIME, number_of_call(is_driver, call->cbid), call->start,
                               call->end, call->correlationId, 0, call->threadId, 0, 0, 0};
      if (record.name == NOT_RECORDED) return;
      break;
    }
    default:
      return;
  }
  put(&record, NULL);
}

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *size, size_t *most_records) {
  void *memory = NULL;
  *most_records = 0; /* as many as fit */
  if (posix_memalign(&memory, 64, BUFFER_BYTES) != 0) memory = NULL;
  *buffer = memory;
  *size = memory != NULL ? BUFFER_BYTES : 0;
  if (memory == NULL) __atomic_add_fetch(&failed_buffers, 1, __ATOMIC_RELAXED);
}

/* Called by a thread of CUPTI's, or by that of a flush. */
static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
  CUpti_Activity *activity = NULL;
  size_t lost = 0;
  (void)size;
  pthread_mutex_lock(&writing);
  if (file != NULL) {
    while (valid > 0 && cupti.next_record(buffer, valid, &activity) == CUPTI_SUCCESS) put_activity(activity);
    if (cupti.dropped_records(context, stream, &lost) == CUPTI_SUCCESS) dropped += lost;
  }
  pthread_mutex_unlock(&writing);
  free(buffer);
}

static void *open_cupti(void) {
  static const char *const loaded[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
  static const char *const placed[] = {
      "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
      "/usr/local/cuda/lib64/libcupti.so",
  };
  const char *chosen = getenv("TRAINMARK_CUPTI_LIBRARY");
  void *library = NULL;
  for (size_t i = 0; library == NULL && i < sizeof loaded / sizeof *loaded; i++)
    library = dlopen(loaded[i], RTLD_LAZY | RTLD_NOLOAD);
  if (library == NULL && chosen != NULL && *chosen) library = dlopen(chosen, RTLD_LAZY);
  for (size_t i = 0; library == NULL && i < sizeof loaded / sizeof *loaded; i++)
    library = dlopen(loaded[i], RTLD_LAZY);
  for (size_t i = 0; library == NULL && i < sizeof placed / sizeof *placed; i++)
    library = dlopen(placed[i], RTLD_LAZY);
  return library;
}

/* Returns what is wrong, NULL when CUPTI can be called. */
static const char *load_cupti(void) {
  static int loaded;
  static char missing[128];
  if (loaded) return NULL;
  void *library = open_cupti();
  if (library == NULL) return "libcupti.so of CUDA 12 or 13 is not to be found";
  const struct { void *place; const char *name; } functions[] = {
      {&cupti.register_callbacks, "cuptiActivityRegisterCallbacks"},
      {&cupti.enable, "cuptiActivityEnable"},
      {&cupti.disable, "cuptiActivityDisable"},
      {&cupti.flush, "cuptiActivityFlushAll"},
      {&cupti.next_record, "cuptiActivityGetNextRecord"},
      {&cupti.dropped_records, "cuptiActivityGetNumDroppedRecords"},
      {&cupti.timestamp, "cuptiGetTimestamp"},
      {&cupti.callback_name, "cuptiGetCallbackName"},
      {&cupti.thread_id_type, "cuptiSetThreadIdType"},
      {&cupti.result_string, "cuptiGetResultString"},
  };
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *symbol = dlsym(library, functions[i].name);
    if (symbol == NULL) {
      snprintf(missing, sizeof missing, "libcupti has no %s", functions[i].name);
      return missing;
    }
    memcpy(functions[i].place, &symbol, sizeof symbol);
  }
  loaded = 1;
  return NULL;
}

static const char *described(CUptiResult result) {
  const char *text = NULL;
  return cupti.result_string(result, &text) == CUPTI_SUCCESS && text != NULL ? text : "CUPTI failed";
}

/* The driver, which a program that uses CUDA has loaded. */
static void *driver_function(const char *name) {
  void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return library != NULL ? dlsym(library, name) : NULL;
}

static int device_count(void) {
  CUresult (*count)(int *) = NULL;
  int devices = 0;
  void *symbol = driver_function("cuDeviceGetCount");
  memcpy(&count, &symbol, sizeof symbol);
  return count != NULL && count(&devices) == CUDA_SUCCESS ? devices : 0;
}

static void put_devices(void) {
  CUresult (*get_name)(char *, int, CUdevice) = NULL;
  void *symbol = driver_function("cuDeviceGetName");
  memcpy(&get_name, &symbol, sizeof symbol);
  for (int device = 0; get_name != NULL && device < device_count(); device++) {
    char name[256] = "";
    if (get_name(name, sizeof name - 1, device) == CUDA_SUCCESS)
      put(&(struct record){.type = DEVICE, .device = (uint32_t)device, .bytes = strlen(name)}, name);
  }
}

/* Waits for all devices on which the program has its primary context, as frameworks do. */
static void synchronize(void) {
  CUresult (*state)(CUdevice, unsigned *, int *) = NULL, (*retain)(CUcontext *, CUdevice) = NULL;
  CUresult (*release)(CUdevice) = NULL, (*push)(CUcontext) = NULL, (*pop)(CUcontext *) = NULL, (*wait)(void) = NULL;
  const struct { void *place; const char *name; } functions[] = {
      {&state, "cuDevicePrimaryCtxGetState"},     {&retain, "cuDevicePrimaryCtxRetain"},
      {&release, "cuDevicePrimaryCtxRelease_v2"}, {&push, "cuCtxPushCurrent_v2"},
      {&pop, "cuCtxPopCurrent_v2"},               {&wait, "cuCtxSynchronize"},
  };
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *symbol = driver_function(functions[i].name);
    if (symbol == NULL) return;
    memcpy(functions[i].place, &symbol, sizeof symbol);
  }
  for (int device = 0; device < device_count(); device++) {
    unsigned flags = 0;
    int active = 0;
    CUcontext context = NULL;
    if (state(device, &flags, &active) != CUDA_SUCCESS || !active) continue;
    if (retain(&context, device) != CUDA_SUCCESS) continue;
    if (push(context) == CUDA_SUCCESS) {
      wait();
      pop(&context);
    }
    release(device);
  }
}

static const char *begin(const char *path) {
  const char *problem = load_cupti();
  if (problem != NULL) return problem;
  if (file != NULL) return "a profile is being recorded already";
  CUptiResult result = cupti.register_callbacks(buffer_requested, buffer_completed);
  if (result != CUPTI_SUCCESS) return described(result);
  cupti.thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  uint64_t now = 0;
  struct timespec host = {0};
  cupti.timestamp(&now);
  clock_gettime(CLOCK_MONOTONIC, &host);
  FILE *opened = fopen(path, "wb");
  if (opened == NULL) return "the file for records cannot be written";
  setvbuf(opened, NULL, _IOFBF, FILE_BUFFER_BYTES);
  pthread_mutex_lock(&writing);
  file = opened;
  written = dropped = failed_writes = failed_buffers = 0;
  put(&(struct record){.type = HEADER, .name = sizeof(struct record), .start = now,
                       .end = (uint64_t)host.tv_sec * 1000000000u + (uint64_t)host.tv_nsec}, NULL);
  put_devices();
  pthread_mutex_unlock(&writing);
  for (size_t i = 0; i < KIND_COUNT && result == CUPTI_SUCCESS; i++) result = cupti.enable(KINDS[i]);
  if (result == CUPTI_SUCCESS) return NULL;
  for (size_t i = 0; i < KIND_COUNT; i++) cupti.disable(KINDS[i]);
  pthread_mutex_lock(&writing);
  fclose(file);
  remove(path);
  file = NULL;
  forget_names();
  pthread_mutex_unlock(&writing);
  return described(result);
}

static const char *finish(void) {
  if (file == NULL) return "no profile is being recorded";
  synchronize();
  cupti.flush(0);
  for (size_t i = 0; i < KIND_COUNT; i++) cupti.disable(KINDS[i]);
  cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  pthread_mutex_lock(&writing);
  put(&(struct record){.type = END, .start = written, .end = failed_buffers, .bytes = dropped}, NULL);
  if (fclose(file) != 0) failed_writes++;
  file = NULL;
  forget_names();
  pthread_mutex_unlock(&writing);
  return failed_writes == 0 ? NULL : "the records could not all be written: is the disk full?";
}

/* Both return NULL, or a sentence that says why not. */
EXPORT const char *trainmark_profile_start(const char *path) {
  pthread_mutex_lock(&control);
  const char *problem = begin(path);
  pthread_mutex_unlock(&control);
  return problem;
}

EXPORT const char *trainmark_profile_stop(void) {
  pthread_mutex_lock(&control);
  const char *problem = finish();
  pthread_mutex_unlock(&control);
  return problem;
}

/* Nanoseconds on the clock of the records, 0 without CUPTI. */
EXPORT uint64_t trainmark_profile_timestamp(void) {
  uint64_t now = 0;
  return load_cupti() == NULL && cupti.timestamp(&now) == CUPTI_SUCCESS ? now : 0;
}

/* The calling thread as the records number it. */
EXPORT uint32_t trainmark_profile_thread(void) { return (uint32_t)syscall(SYS_gettid); }

static double seconds_of(const char *variable, double otherwise) {
  const char *text = getenv(variable);
  char *rest = NULL;
  double seconds = text != NULL ? strtod(text, &rest) : otherwise;
  return text == NULL || (rest != text && *rest == '\0' && seconds >= 0) ? seconds : otherwise;
}

/* Seconds since the process was started, 0 where /proc does not tell. */
static double age(void) {
  char text[1024] = "";
  unsigned long long ticks = 0;
  struct timespec now;
  FILE *stat = fopen("/proc/self/stat", "r");
  if (stat == NULL) return 0;
  size_t length = fread(text, 1, sizeof text - 1, stat);
  fclose(stat);
  text[length] = '\0';
  char *field = strrchr(text, ')'); /* the name may hold anything; the start is the 20th field after it */
  for (int i = 0; field != NULL && i < 20; i++) field = strchr(field + 1, ' ');
  if (field == NULL || sscanf(field, "%llu", &ticks) != 1 || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - (double)ticks / (double)sysconf(_SC_CLK_TCK);
  return ticks > 0 && seconds > 0 ? seconds : 0;
}

static void wait_seconds(double seconds) {
  if (seconds <= 0) return;
  struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  while (nanosleep(&left, &left) != 0) continue;
}

static void report(const char *problem) {
  if (problem != NULL) fprintf(stderr, "trainmark: CUDA is not profiled: %s\n", problem);
}

static void *record_for_a_while(void *argument) {
  char path[4096];
  const char *base = argument;
  if (snprintf(path, sizeof path, "%s.%ld", base, (long)getpid()) >= (int)sizeof path) return NULL;
  wait_seconds(seconds_of("TRAINMARK_CUPTI_AFTER", 0) - age());
  const char *problem = trainmark_profile_start(path);
  report(problem);
  if (problem != NULL) return NULL;
  wait_seconds(seconds_of("TRAINMARK_CUPTI_SECONDS", 10));
  pthread_mutex_lock(&control);
  if (file != NULL) report(finish()); /* unless the program came to its end before */
  pthread_mutex_unlock(&control);
  return NULL;
}

static void finish_at_exit(void) {
  pthread_mutex_lock(&control);
  if (file != NULL) report(finish());
  pthread_mutex_unlock(&control);
}

/* The driver's: called once, by the first thread that initializes CUDA; not 0 is success. */
EXPORT int InitializeInjection(void) {
  static int called;
  const char *base = getenv("TRAINMARK_CUPTI_FILE");
  pthread_t thread;
  if (called++ || base == NULL || !*base) return 1;
  if (pthread_create(&thread, NULL, record_for_a_while, (void *)(uintptr_t)base) != 0) return 0;
  pthread_detach(thread);
  atexit(finish_at_exit);
  return 1;
}
