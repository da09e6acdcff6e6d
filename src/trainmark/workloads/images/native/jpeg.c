/* A window of a JPEG at the size that is trained: decodes the rows and columns that it needs and no more,
   resizes them, and writes them flipped or not. */

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h> /* the codes */

#include "jpeg.h"
#include "resize.h"

#ifndef JCS_EXTENSIONS
#error "this is not libjpeg-turbo"
#endif

typedef struct {
    struct jpeg_error_mgr base;
    jmp_buf escape;
    char *why; /* JMSG_LENGTH_MAX bytes of the caller's */
} Errors;

/* Everything that has to be freed, whatever happens. */
typedef struct {
    struct jpeg_decompress_struct image;
    Errors errors;
    Taps rows, columns;
    uint8_t *pixels;
    float *sums;
} Work;

/* The error manager is wholly ours: libjpeg's own prints to stderr, for which an archive that was not
   compiled for shared libraries could not be linked. */
#define JCOPYRIGHT_SHORT ""
#define JVERSION ""
#define JMESSAGE(code, string) string,
static const char *const MESSAGES[] = {
#include <jerror.h>
    NULL};

static void fail(j_common_ptr image) {
    Errors *errors = (Errors *)image->err;
    const char *words = errors->base.msg_code < JMSG_LASTMSGCODE ? MESSAGES[errors->base.msg_code] : "unknown";
    const int *with = errors->base.msg_parm.i;
    if (strstr(words, "%s"))
        snprintf(errors->why, JMSG_LENGTH_MAX, words, errors->base.msg_parm.s);
    else
        snprintf(errors->why, JMSG_LENGTH_MAX, words, with[0], with[1], with[2], with[3], with[4], with[5]);
    longjmp(errors->escape, 1);
}

/* Data that is missing or wrong is an error; what decoders in the field bear is not. */
static void warn(j_common_ptr image, int level) {
    if (level >= 0) return;
    switch (image->err->msg_code) {
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
        fail(image);
    }
}

static void be_silent(j_common_ptr image) { (void)image; }

static void forget(j_common_ptr image) { image->err->num_warnings = image->err->msg_code = 0; }

static void open_image(Work *work, const uint8_t *data, size_t bytes) {
    jpeg_create_decompress(&work->image);
    jpeg_mem_src(&work->image, data, bytes);
    jpeg_read_header(&work->image, TRUE);
}

static void begin_work(Work *work, char *why) {
    memset(work, 0, sizeof *work);
    work->image.err = &work->errors.base;
    work->errors.base.error_exit = fail;
    work->errors.base.reset_error_mgr = forget;
    work->errors.base.emit_message = warn;
    work->errors.base.output_message = be_silent;
    work->errors.why = why;
}

static void end_work(Work *work) {
    jpeg_destroy_decompress(&work->image);
    free(work->rows.first);
    free(work->columns.first);
    free(work->pixels);
    free(work->sums);
}

static void *claim(Work *work, size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory) ERREXIT1(&work->image, JERR_OUT_OF_MEMORY, 0);
    return memory;
}

static void cmyk_to_rgb(uint8_t *row, int width, int inverted) {
    for (uint8_t *pixel = row; pixel < row + 4 * (size_t)width; pixel += 4) {
        int key = inverted ? pixel[3] : 255 - pixel[3];
        for (int colour = 0; colour < 3; colour++) {
            int ink = inverted ? pixel[colour] : 255 - pixel[colour];
            pixel[colour] = (uint8_t)((ink * key + 127) / 255);
        }
    }
}

/* Powers of two by the DCT itself, as long as the window stays at least as large as the output. */
static int shrink(const Window *window, int size) {
    int by = 1;
    while (by < 8 && window->width >= 2.0 * by * size && window->height >= 2.0 * by * size) by *= 2;
    return by;
}

static void decode(Work *work, const Window *window, int size, uint8_t *out) {
    struct jpeg_decompress_struct *image = &work->image;
    int inverted = image->saw_Adobe_marker, by = shrink(window, size);
    int four = image->jpeg_color_space == JCS_CMYK || image->jpeg_color_space == JCS_YCCK;
    image->out_color_space = four ? JCS_CMYK : JCS_EXT_RGBX;
    image->scale_num = 1;
    image->scale_denom = (unsigned)by;
    jpeg_calc_output_dimensions(image);

    int wide = (int)image->output_width, high = (int)image->output_height;
    int low_x = 0, high_x = wide, low_y = 0, high_y = high;
    if (window->inside) {
        low_x = (int)window->left / by, low_y = (int)window->top / by;
        high_x = ((int)(window->left + window->width) + by - 1) / by;
        high_y = ((int)(window->top + window->height) + by - 1) / by;
        if (high_x > wide) high_x = wide;
        if (high_y > high) high_y = high;
    }
    if (!make_taps(&work->columns, window->left / by, window->width / by, low_x, high_x, size) ||
        !make_taps(&work->rows, window->top / by, window->height / by, low_y, high_y, size))
        ERREXIT1(image, JERR_OUT_OF_MEMORY, 0);
    int left = work->columns.low, right = work->columns.high, top = work->rows.low, bottom = work->rows.high;

    jpeg_start_decompress(image);
    /* One more on either side: chroma is interpolated from its neighbours. */
    JDIMENSION begin = (JDIMENSION)(left > 0 ? left - 1 : 0);
    JDIMENSION width = (JDIMENSION)(right < wide ? right + 1 : wide) - begin;
    jpeg_crop_scanline(image, &begin, &width);
    size_t stride = 4 * (size_t)width;
    work->pixels = claim(work, stride * (size_t)(bottom - top));
    work->sums = claim(work, sizeof(float) * 4 * (size_t)(right - left));
    if (top) jpeg_skip_scanlines(image, (JDIMENSION)top);

    int have = top;
    for (int place = 0; place < size; place++) {
        int first = work->rows.first[place], count = work->rows.count;
        while (have < first + count) {
            JSAMPROW row = work->pixels + stride * (size_t)(have - top);
            if (!jpeg_read_scanlines(image, &row, 1)) ERREXIT(image, JERR_INPUT_EMPTY);
            if (four) cmyk_to_rgb(row, (int)width, inverted);
            have++;
        }
        const uint8_t *source = work->pixels + stride * (size_t)(first - top) + 4 * (size_t)(left - (int)begin);
        sum_rows(work->sums, source, stride, work->rows.share + (size_t)place * count, count,
                 4 * (size_t)(right - left));
        sum_columns(out + (size_t)3 * size * place, work->sums, &work->columns, left, size, window->flip);
    }
}

/* All return 0, or 1 with the reason in `why`. */
EXPORT int trainmark_jpeg_size(const uint8_t *data, size_t bytes, int *size, char *why) {
    Work work;
    begin_work(&work, why);
    int failed = setjmp(work.errors.escape);
    if (!failed) {
        open_image(&work, data, bytes);
        size[0] = (int)work.image.image_width;
        size[1] = (int)work.image.image_height;
    }
    end_work(&work);
    return failed;
}

int decode_chosen(const uint8_t *data, size_t bytes, Choose choose, const void *with, int size, uint8_t *out,
                  char *why) {
    Work work;
    begin_work(&work, why);
    int failed = setjmp(work.errors.escape);
    if (!failed) {
        open_image(&work, data, bytes);
        Window window = choose((int)work.image.image_width, (int)work.image.image_height, with);
        decode(&work, &window, size, out);
    }
    end_work(&work);
    return failed;
}

static Window as_given(int width, int height, const void *window) {
    (void)width, (void)height;
    return *(const Window *)window;
}

EXPORT int trainmark_jpeg_decode(const uint8_t *data, size_t bytes, const Window *window, int size, uint8_t *out,
                                 char *why) {
    return decode_chosen(data, bytes, as_given, window, size, out, why);
}
