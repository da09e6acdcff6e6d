"""TensorFlow: tf.data over TFRecord, decoding only the crop.

The crop is drawn in the graph rather than by `sample_distorted_bounding_box`, which draws the height
uniformly instead of the area, and the aspect instead of its logarithm.
"""

import numpy as np
import tensorflow as tf

from trainmark.workloads.common import chance
from trainmark.workloads.images import sampling
from trainmark.workloads.images.samples import OwnLoader
from trainmark.workloads.images.sampling import PADDING

FILES_AT_ONCE = 16
SHUFFLED = 4096  # records in the shuffle buffer, beside the order of the files
FEATURES = {
    "image/encoded": tf.io.FixedLenFeature([], tf.string),
    "image/class/label": tf.io.FixedLenFeature([], tf.int64),
}
MEAN, DEVIATION = tf.constant(sampling.MEAN), tf.constant(sampling.DEVIATION)


class Images(OwnLoader):
    formats, repeatable = ("tfrecord",), True

    def training(self, epoch, first=0):
        """This rank's share, shuffled by file and within a buffer."""
        opt, seed = self.opt, chance.key(self.opt.seed, epoch)
        steps = self.training_steps()
        files = [
            self.train.shards[file] for file in sampling.epoch_order(len(self.train.shards), opt.seed, epoch)
        ]
        records = self._share(self._records(files), self.train.count)
        records = records.shuffle(
            min(SHUFFLED, self.train.count), seed=seed >> 1, reshuffle_each_iteration=False
        )
        keys = tf.constant([seed & 0x7FFFFFFF, seed >> 33], tf.int32)
        records = records.enumerate().skip(first * opt.batch).take((steps - first) * opt.batch)
        images = records.map(
            lambda at, record: training_image(record, (at * opt.world_size + opt.rank), keys, opt.image_size),
            num_parallel_calls=self._parallel(),
        )
        return iter(self._batches(images))

    def evaluation(self):
        opt = self.opt
        images = self._share(self._records(self.val.shards), self.val.count).map(
            lambda record: evaluation_image(record, opt.image_size), num_parallel_calls=self._parallel()
        )
        missing = self.evaluation_batches() * opt.batch - len(self.evaluation_share())
        blank = (np.zeros((opt.image_size, opt.image_size, 3), np.float32), np.int64(PADDING))
        padding = tf.data.Dataset.from_tensors(blank).repeat(missing)
        return iter(self._batches(images.concatenate(padding)))

    def _parallel(self):
        return self.opt.workers or tf.data.AUTOTUNE

    def _records(self, files):
        return tf.data.Dataset.from_tensor_slices(files).interleave(
            tf.data.TFRecordDataset,
            cycle_length=min(FILES_AT_ONCE, len(files)),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )

    def _share(self, records, count):
        """Every world_size-th record: exact, whatever the number of files."""
        return records.take(count).shard(self.opt.world_size, self.opt.rank)

    def _batches(self, images):
        batches = images.batch(self.opt.batch, drop_remainder=True).map(
            lambda image, label: (self._normalised(image), label), num_parallel_calls=tf.data.AUTOTUNE
        )
        options = tf.data.Options()
        options.deterministic = True
        options.threading.private_threadpool_size = max(1, self.opt.workers)
        return batches.prefetch(2).with_options(options)

    def _normalised(self, images):
        images = (images - MEAN) / DEVIATION
        return tf.transpose(images, [0, 3, 1, 2]) if self.opt.layout == "NCHW" else images


def parse(record):
    example = tf.io.parse_single_example(record, FEATURES)
    return example["image/encoded"], example["image/class/label"] - 1


def training_image(record, place, keys, size):
    data, label = parse(record)
    draws = tf.random.stateless_uniform(
        [sampling.ATTEMPTS, 4], tf.stack([keys[0], keys[1] ^ tf.cast(place, tf.int32)])
    )
    left, top, wide, high = training_box(tf.image.extract_jpeg_shape(data), draws)
    image = tf.image.decode_and_crop_jpeg(data, tf.stack([top, left, high, wide]), channels=3)
    image = tf.image.resize(image, [size, size])
    flip = tf.random.stateless_uniform([], tf.stack([keys[1], keys[0] ^ tf.cast(place, tf.int32)])) < 0.5
    image = tf.cond(flip, lambda: tf.reverse(image, [1]), lambda: image)
    return tf.ensure_shape(image, [size, size, 3]), label


def training_box(shape, draws):
    """`augment.training_window` in the graph: all ten attempts at once, the first that fits."""
    height, width = tf.cast(shape[0], tf.float32), tf.cast(shape[1], tf.float32)
    low, high = sampling.AREA
    area = width * height * (low + (high - low) * draws[:, 0])
    low, high = sampling.LOG_ASPECT
    aspect = tf.exp(low + (high - low) * draws[:, 1])
    wide, high = tf.round(tf.sqrt(area * aspect)), tf.round(tf.sqrt(area / aspect))
    fits = (wide > 0) & (wide <= width) & (high > 0) & (high <= height)
    first = tf.argmax(tf.cast(fits, tf.int32))
    lowest, highest = sampling.ASPECT
    wide = tf.where(fits[first], wide[first], tf.minimum(width, tf.round(height * highest)))
    high = tf.where(fits[first], high[first], tf.minimum(height, tf.round(width / lowest)))
    left = tf.where(fits[first], tf.floor(draws[first, 2] * (width - wide + 1)), tf.floor((width - wide) / 2))
    top = tf.where(
        fits[first], tf.floor(draws[first, 3] * (height - high + 1)), tf.floor((height - high) / 2)
    )
    return [tf.cast(value, tf.int32) for value in (left, top, wide, high)]


def evaluation_image(record, size):
    """Cut first, then resized: the same pixels as the other way round, but for the very edge."""
    data, label = parse(record)
    shape = tf.cast(tf.image.extract_jpeg_shape(data)[:2], tf.float32)
    short = round(size * sampling.RESIZE)
    scale = tf.reduce_min(shape) / short
    begin = tf.round((tf.floor(shape / scale) - size) / 2) * scale
    window = tf.cast(tf.round(tf.concat([begin, tf.repeat(size * scale, 2)], 0)), tf.int32)
    image = tf.image.decode_and_crop_jpeg(data, window, channels=3)
    return tf.ensure_shape(tf.image.resize(image, [size, size]), [size, size, 3]), label
