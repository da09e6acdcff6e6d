/* augment.py and chance.py once more, bit for bit: a test holds the two together. */

#pragma once

#include <math.h>
#include <stdint.h>

#include "jpeg.h"

typedef struct {
    int training, size; /* size: of the output, for the evaluation */
    double least;       /* share of the area, to train */
    uint64_t key;       /* of seed and epoch */
    uint64_t index;
} Draw;

#define GOLDEN 0x9E3779B97F4A7C15ull
#define ATTEMPTS 10

static uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
    return value ^ (value >> 31);
}

static double uniform(uint64_t *state) {
    *state += GOLDEN;
    return (double)(mix(*state) >> 11) * 0x1p-53;
}

/* From low on, so many parts of the way: volatile, since a fused product would round once less than Python. */
static double between(double low, double high, double part) {
    volatile double way = (high - low) * part;
    return low + way;
}

static Window centre(int width, int height, int flip) {
    double narrow = 3.0 / 4, broad = 4.0 / 3;
    int wide = width, high = height;
    if (width < narrow * height)
        high = (int)fmin(height, fmax(1, rint(width / narrow)));
    else if (width > broad * height)
        wide = (int)fmin(width, fmax(1, rint(height * broad)));
    Window window = {(width - wide) / 2, (height - high) / 2, wide, high, flip, 1};
    return window;
}

static Window training_window(int width, int height, const Draw *draw) {
    uint64_t state = mix(mix(draw->key + GOLDEN + draw->index) + GOLDEN + 1);
    int flip = uniform(&state) < 0.5;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        double area = ((double)width * height) * between(draw->least, 1.0, uniform(&state));
        double aspect = exp(between(log(3.0 / 4), log(4.0 / 3), uniform(&state)));
        double wide = rint(sqrt(area * aspect)), high = rint(sqrt(area / aspect));
        double across = uniform(&state), down = uniform(&state);
        if (wide > 0 && wide <= width && high > 0 && high <= height) {
            Window window = {floor(across * (width - wide + 1)), floor(down * (height - high + 1)), wide, high,
                             flip, 1};
            return window;
        }
    }
    return centre(width, height, flip);
}

static Window evaluation_window(int width, int height, int size) {
    int64_t brief = (int64_t)rint(size * (256.0 / 224)), wide = brief, high = brief;
    if (width <= height)
        high = brief * height / width > size ? brief * height / width : size;
    else
        wide = brief * width / height > size ? brief * width / height : size;
    double left = rint((wide - size) / 2.0), top = rint((high - size) / 2.0);
    double by_x = (double)width / wide, by_y = (double)height / high;
    Window window = {left * by_x, top * by_y, size * by_x, size * by_y, 0, 0};
    return window;
}

static Window drawn_window(int width, int height, const void *with) {
    const Draw *draw = with;
    return draw->training ? training_window(width, height, draw) : evaluation_window(width, height, draw->size);
}
