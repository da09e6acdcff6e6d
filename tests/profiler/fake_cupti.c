/* Plays CUPTI to the library under test: the same functions, records and buffers, without a GPU.
 * The structs are those of NVIDIA's headers. */
#define _GNU_SOURCE
#include <cupti.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define STEP_NS 1000

static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static uint8_t *buffer;
static size_t size, used, dropped;
static int enabled[CUPTI_ACTIVITY_KIND_COUNT];
static uint32_t correlation;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel9) + 40; /* newer ones are longer */
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy5);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    default: return sizeof(CUpti_ActivityAPI);
  }
}

static void hand_over(void) {
  if (buffer == NULL) return;
  complete(NULL, 0, buffer, size, used);
  buffer = NULL;
}

static void *room_for(CUpti_ActivityKind kind) {
  size_t bytes = (size_of(kind) + 7) / 8 * 8;
  size_t most = 0;
  if (!enabled[kind]) return NULL;
  if (buffer != NULL && used + bytes > size) hand_over();
  if (buffer == NULL) {
    request(&buffer, &size, &most);
    used = 0;
  }
  if (buffer == NULL) {
    dropped++;
    return NULL;
  }
  CUpti_Activity *record = (CUpti_Activity *)(void *)(buffer + used);
  memset(record, 0, bytes);
  record->kind = kind;
  used += bytes;
  return record;
}

static void call(CUpti_ActivityKind kind, CUpti_CallbackId id, uint64_t start) {
  CUpti_ActivityAPI *record = room_for(kind);
  if (record == NULL) return;
  record->cbid = id;
  record->start = start;
  record->end = start + 100;
  record->threadId = (uint32_t)syscall(SYS_gettid);
  record->correlationId = correlation;
}

static void kernel(const char *name, uint64_t start, uint64_t node) {
  CUpti_ActivityKernel9 *record = room_for(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  if (record == NULL) return;
  record->name = name;
  record->start = start;
  record->end = start + 500;
  record->correlationId = correlation;
  record->streamId = 7;
  record->graphId = node ? 3 : 0;
  record->graphNodeId = node;
}

/* One step of a program: a kernel, a call that is not recorded, a graph of two, two copies and a memset. */
EXPORT void fake_step(void) {
  uint64_t start = now();
  correlation++;
  call(CUPTI_ACTIVITY_KIND_RUNTIME, 211, start);
  call(CUPTI_ACTIVITY_KIND_RUNTIME, 17, start + 150);
  kernel("_Z4gemmIfEvPT_i", start + STEP_NS, 0);
  correlation++;
  call(CUPTI_ACTIVITY_KIND_RUNTIME, 311, start + 200);
  kernel("relu", start + 2 * STEP_NS, 41);
  kernel("_Z4gemmIfEvPT_i", start + 3 * STEP_NS, 42);
  correlation++;
  call(CUPTI_ACTIVITY_KIND_DRIVER, 276, start + 400);
  CUpti_ActivityMemcpy5 *copy = room_for(CUPTI_ACTIVITY_KIND_MEMCPY);
  if (copy != NULL) {
    copy->copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    copy->bytes = 4096;
    copy->start = start + 4 * STEP_NS;
    copy->end = copy->start + 700;
    copy->correlationId = correlation;
    copy->streamId = 9;
  }
  CUpti_ActivityMemcpyPtoP4 *peer = room_for(CUPTI_ACTIVITY_KIND_MEMCPY2);
  if (peer != NULL) {
    peer->copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
    peer->bytes = 128;
    peer->deviceId = 1;
    peer->start = start + 4 * STEP_NS;
    peer->end = peer->start + 10;
  }
  CUpti_ActivityMemset4 *set = room_for(CUPTI_ACTIVITY_KIND_MEMSET);
  if (set != NULL) {
    set->bytes = 64;
    set->start = start + 5 * STEP_NS;
    set->end = set->start + 5;
  }
}

EXPORT void fake_drop(size_t records) { dropped += records; }

EXPORT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc first,
                                                  CUpti_BuffersCallbackCompleteFunc second) {
  request = first;
  complete = second;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (getenv("FAKE_CUPTI_REFUSES") != NULL) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  enabled[kind] = 1;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  enabled[kind] = 0;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  if (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) hand_over();
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t *data, size_t valid, CUpti_Activity **record) {
  uint8_t *next = data;
  if (*record != NULL) next = (uint8_t *)*record + (size_of((*record)->kind) + 7) / 8 * 8;
  if (next >= data + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = (CUpti_Activity *)(void *)next;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *records) {
  (void)context;
  (void)stream;
  *records = dropped;
  dropped = 0;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetTimestamp(uint64_t *timestamp) {
  *timestamp = now();
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char **name) {
  (void)domain;
  *name = id == 211   ? "cudaLaunchKernel_v7000"
          : id == 17  ? "cudaGetDevice_v3020"
          : id == 311 ? "cudaGraphLaunch_ptsz_v10000"
                      : "cuMemcpyHtoDAsync_v2";
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  (void)type;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char **text) {
  *text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "unknown";
  return CUPTI_SUCCESS;
}
