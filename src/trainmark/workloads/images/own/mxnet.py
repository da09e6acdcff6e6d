"""MXNet: ImageRecordIter over RecordIO, decoded by its own OpenCV in C++ threads.

Without `seed_aug`: with it, every batch would get the same few crops. Each reader draws the same crops from
its beginning on; which image meets which follows from the shuffle, and so from the epoch.
"""

import mxnet

from trainmark.workloads.common import chance
from trainmark.workloads.images import sampling
from trainmark.workloads.images.samples import OwnLoader
from trainmark.workloads.images.sampling import PADDING

BILINEAR = 1


class Images(OwnLoader):
    formats = ("rec",)
    repeatable = False  # which image meets which crop depends on its threads

    def training(self, epoch, first=0):
        """Goes round where a part is a little shorter than the others: those images come twice."""
        seed = chance.key(self.opt.seed, epoch) >> 34
        reader = self._reader(
            self.train,
            shuffle=True,
            seed=seed,
            random_resized_crop=True,
            min_random_area=sampling.AREA[0],
            max_random_area=sampling.AREA[1],
            min_aspect_ratio=sampling.ASPECT[0],
            max_aspect_ratio=sampling.ASPECT[1],
            rand_mirror=True,
            round_batch=True,
        )
        for step in range(self.training_steps()):
            try:
                batch = reader.next()
            except StopIteration:
                reader.reset()
                batch = reader.next()
            if step >= first:  # what was trained on already is decoded all the same: there is no seeking
                yield self._shaped(batch.data[0]), batch.label[0]

    def evaluation(self):
        opt = self.opt
        reader = self._reader(
            self.val, resize=round(opt.image_size * sampling.RESIZE), rand_crop=False, round_batch=True
        )
        part = -(-self.val.count // opt.world_size)  # as its reader cuts: the last rank has what is left
        left = min(part, max(0, self.val.count - part * opt.rank))
        for _ in range(self.evaluation_batches()):
            try:
                batch = reader.next()
                images, labels = batch.data[0], batch.label[0]
            except StopIteration:
                shape = (opt.batch, 3, opt.image_size, opt.image_size)
                images, labels = mxnet.nd.zeros(shape), mxnet.nd.zeros(opt.batch)
            if left < opt.batch:  # it fills up from the beginning: not counted
                labels[max(0, left) :] = PADDING
            left -= opt.batch
            yield self._shaped(images), labels

    def _shaped(self, images):
        return images if self.opt.layout == "NCHW" else images.transpose((0, 2, 3, 1))

    def _reader(self, split, **options):
        opt = self.opt
        path = split.shards[0]
        for colour, mean, deviation in zip("rgb", sampling.MEAN, sampling.DEVIATION):
            options[f"mean_{colour}"], options[f"std_{colour}"] = mean, deviation
        return mxnet.io.ImageRecordIter(
            path_imgrec=path,
            path_imgidx=path[: -len("rec")] + "idx",
            data_shape=(3, opt.image_size, opt.image_size),
            batch_size=opt.batch,
            num_parts=opt.world_size,
            part_index=opt.rank,
            preprocess_threads=max(1, opt.workers),
            inter_method=BILINEAR,
            ctx=opt.device if opt.device == "cpu" else "gpu",
            device_id=opt.local_rank,
            verbose=False,
            **options,
        )
