/* A whole batch in one call: threads of C's own read, draw, decode and resize, and Python is not in their way. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jpeg.h"
#include "window.h"

#define MOST_THREADS 256

typedef struct {
    const char *path; /* of a file of its own, or NULL */
    int64_t file;     /* else the descriptor of its shard */
    uint64_t offset, size;
    int64_t index; /* in the split; negative where there is no image */
} Record;

typedef struct {
    const Record *records;
    int count, size, training;
    double least;
    uint64_t key;
    uint8_t *out, *made;
    atomic_int next;
} Batch;

static int read_whole(const Record *record, uint8_t *data) {
    int file = record->path ? open(record->path, O_RDONLY | O_CLOEXEC) : (int)record->file;
    if (file < 0) return 0;
    size_t have = 0;
    while (have < record->size) {
        ssize_t more = pread(file, data + have, record->size - have, (off_t)(record->offset + have));
        if (more <= 0) break;
        have += (size_t)more;
    }
    if (record->path) close(file);
    return have == record->size;
}

/* A JPEG that was cut short is bad wherever the window lies: the end marker must be there. */
static int is_whole_jpeg(const uint8_t *data, size_t bytes) {
    if (bytes < 4 || memcmp(data, "\xff\xd8\xff", 3)) return 0;
    for (const uint8_t *at = data + bytes; (at = memrchr(data, 0xd9, (size_t)(at - data)));)
        if (at > data && at[-1] == 0xff) return 1;
    return 0;
}

static void *work(void *given) {
    Batch *batch = given;
    uint8_t *data = NULL;
    size_t room = 0;
    char why[WHY_BYTES];
    for (int place; (place = atomic_fetch_add(&batch->next, 1)) < batch->count;) {
        const Record *record = batch->records + place;
        if (record->index < 0) continue;
        if (record->size > room) {
            uint8_t *more = realloc(data, record->size);
            if (!more) continue;
            data = more, room = record->size;
        }
        if (!read_whole(record, data) || !is_whole_jpeg(data, record->size)) continue;
        Draw draw = {batch->training, batch->size, batch->least, batch->key, (uint64_t)record->index};
        uint8_t *out = batch->out + (size_t)3 * batch->size * batch->size * place;
        batch->made[place] = !decode_chosen(data, record->size, drawn_window, &draw, batch->size, out, why);
    }
    free(data);
    return NULL;
}

/* `made` says of each place whether it is there; what is not, for whatever reason, is the caller's to look at. */
EXPORT void trainmark_jpeg_batch(const Record *records, int count, int size, int training, double least,
                                 uint64_t key, int threads, uint8_t *out, uint8_t *made) {
    Batch batch = {records, count, size, training, least, key, out, made, 0};
    pthread_t crew[MOST_THREADS];
    int hired = 0;
    memset(made, 0, (size_t)count);
    while (hired < threads - 1 && hired < MOST_THREADS && !pthread_create(crew + hired, NULL, work, &batch))
        hired++;
    work(&batch);
    while (hired) pthread_join(crew[--hired], NULL);
}

EXPORT void trainmark_jpeg_window(int width, int height, int training, int size, double least,
                                  uint64_t key, uint64_t index, Window *window) {
    Draw draw = {training, size, least, key, index};
    *window = drawn_window(width, height, &draw);
}
