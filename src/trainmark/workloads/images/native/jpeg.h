/* What is decoded, and how. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define WHY_BYTES 256 /* JMSG_LENGTH_MAX is 200 */

typedef struct {
    double left, top, width, height; /* what becomes the output, in pixels of the image */
    int flip, inside;                /* inside: pixels beyond it do not bleed in */
} Window;

/* The window of an image of this size. */
typedef Window (*Choose)(int width, int height, const void *with);

int decode_chosen(const uint8_t *data, size_t bytes, Choose choose, const void *with, int size, uint8_t *out,
                  char *why);
