/* The triangle filter that Pillow calls BILINEAR, in two passes.

   Weights are floats and pixels stay floats between the passes, rows first: that pass runs along whole rows,
   which any compiler turns into vectors, and leaves the other the fewest rows. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef float Pixel __attribute__((vector_size(16)));
typedef int32_t Whole __attribute__((vector_size(16)));
typedef uint8_t Bytes __attribute__((vector_size(4)));

/* The source pixels of each output pixel along one axis. */
typedef struct {
    int count;    /* source pixels of an output pixel, the same for all: some weigh nothing */
    int *first;   /* the first of them, for each output pixel */
    float *share; /* their weights */
    int low, high; /* the source pixels that are used at all */
} Taps;

/* The triangle filter, widened where the image shrinks: `begin` and `extent` are the window, `low` and
   `high` the source pixels that may be used. 0 where there is no memory. */
static int make_taps(Taps *taps, double begin, double extent, int low, int high, int size) {
    double scale = extent / size, reach = scale > 1 ? scale : 1;
    int count = (int)(2 * reach);
    if (count < 2 * reach) count++;
    if (count > high - low) count = high - low;
    taps->count = count;
    taps->first = malloc(size * (sizeof(int) + count * sizeof(float)));
    if (!taps->first) return 0;
    taps->share = (float *)(taps->first + size);
    taps->low = high, taps->high = low;
    for (int place = 0; place < size; place++) {
        double centre = begin + (place + 0.5) * scale, sum = 0;
        int first = (int)(centre - reach + 0.5);
        float *share = taps->share + (size_t)place * count;
        if (first > high - count) first = high - count;
        if (first < low) first = low;
        for (int tap = 0; tap < count; tap++) {
            double away = (first + tap + 0.5 - centre) / reach;
            double weight = 1 - (away < 0 ? -away : away);
            share[tap] = weight > 0 ? (float)weight : 0;
            sum += share[tap];
        }
        for (int tap = 0; tap < count; tap++) share[tap] /= (float)sum;
        taps->first[place] = first;
        if (first < taps->low) taps->low = first;
        if (first + count > taps->high) taps->high = first + count;
    }
    return 1;
}

/* One row of output before its columns are resized: the weighted sum of source rows. */
static void sum_rows(float *restrict sum, const uint8_t *source, size_t stride, const float *share, int count,
                     size_t values) {
    const uint8_t *restrict row = source;
    for (size_t at = 0; at < values; at++) sum[at] = share[0] * row[at];
    int tap = 1;
    for (; tap + 1 < count; tap += 2) {
        const uint8_t *restrict one = source + tap * stride, *restrict two = one + stride;
        float first = share[tap], second = share[tap + 1];
        for (size_t at = 0; at < values; at++) sum[at] += first * one[at] + second * two[at];
    }
    if (tap < count) {
        const uint8_t *restrict last = source + tap * stride;
        for (size_t at = 0; at < values; at++) sum[at] += share[tap] * last[at];
    }
}

/* `count` is a constant wherever this is inlined: the loop over the taps is gone. Four bytes are stored where
   three are meant: the fourth is the next pixel's, written after it. */
static inline __attribute__((always_inline)) void sum_taps(uint8_t *out, const Pixel *pixels, const Taps *taps,
                                                           int count, int size, int flip) {
    for (int column = 0; column < size; column++) {
        int place = flip ? size - 1 - column : column;
        const float *share = taps->share + (size_t)place * count;
        const Pixel *source = pixels + taps->first[place];
        Pixel sum = source[0] * share[0] + 0.5f;
        for (int tap = 1; tap < count; tap++) sum += source[tap] * share[tap];
        Bytes bytes = __builtin_convertvector(__builtin_convertvector(sum, Whole), Bytes);
        memcpy(out + 3 * column, &bytes, column + 1 < size ? 4 : 3);
    }
}

static void sum_columns(uint8_t *out, const float *sums, const Taps *taps, int left, int size, int flip) {
    const Pixel *pixels = (const Pixel *)sums - left;
    switch (taps->count) {
    case 2: sum_taps(out, pixels, taps, 2, size, flip); break;
    case 3: sum_taps(out, pixels, taps, 3, size, flip); break;
    case 4: sum_taps(out, pixels, taps, 4, size, flip); break;
    default: sum_taps(out, pixels, taps, taps->count, size, flip);
    }
}
