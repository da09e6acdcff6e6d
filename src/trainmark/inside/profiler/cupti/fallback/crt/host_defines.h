/* Stands in for NVIDIA's header of this name, which is in the wheel of nvcc: the headers of CUPTI include it,
 * and need of it only that these words mean nothing to a C compiler. */
#ifndef TRAINMARK_HOST_DEFINES_H
#define TRAINMARK_HOST_DEFINES_H
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __host__
#define __device__
#define CUDARTAPI
#define CUDARTAPI_CDECL
#endif
