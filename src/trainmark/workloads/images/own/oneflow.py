"""OneFlow: OFRecordReader and its image operators, all in C++; each rank reads its own parts."""

import numpy as np
import oneflow as flow

from trainmark.workloads.common import chance
from trainmark.workloads.images import dataset, sampling
from trainmark.workloads.images.samples import OwnLoader
from trainmark.workloads.images.sampling import PADDING

SHUFFLED, PART = 1024, 10  # records in the shuffle buffer, but at most this part of an epoch


class Images(OwnLoader):
    formats = ("ofrecord",)
    repeatable = False  # which image meets which crop depends on the number of threads

    def __init__(self, opt):
        super().__init__(opt)
        for split in (self.train, self.val):
            if len(split.shards) < opt.world_size:
                raise dataset.UnfitImages(
                    f"{split.folder} has {len(split.shards)} parts for {opt.world_size} ranks: "
                    "convert with as many --shards as ranks, or more."
                )

    def training(self, epoch, first=0):
        """The reader is endless and knows no epochs: near the end of one, images of the next mix in."""
        opt, seed = self.opt, chance.key(self.opt.seed, epoch) >> 33
        buffer = max(1, min(SHUFFLED, self._share(self.train, opt.rank) // PART))
        read = self._reader(self.train, random_shuffle=True, shuffle_buffer_size=buffer, random_seed=seed)
        crop = flow.nn.OFRecordImageDecoderRandomCrop(
            "encoded",
            color_space="RGB",
            num_attempts=sampling.ATTEMPTS,
            random_seed=seed,
            random_area=list(sampling.AREA),
            random_aspect_ratio=list(sampling.ASPECT),
        )
        resize = flow.nn.image.Resize(target_size=[opt.image_size, opt.image_size])
        flip = flow.nn.CoinFlip(batch_size=opt.batch, random_seed=seed)
        normalise = self._normalise()
        for step in range(self.training_steps()):
            records = read()
            if step >= first:
                yield self._shaped(normalise(resize(crop(records))[0], flip())), self._labels(records)

    def evaluation(self):
        opt = self.opt
        read = self._reader(self.val, random_shuffle=False)
        decode = flow.nn.OFRecordImageDecoder("encoded", color_space="RGB")
        resize = flow.nn.image.Resize(
            resize_side="shorter", keep_aspect_ratio=True, target_size=round(opt.image_size * sampling.RESIZE)
        )
        normalise = self._normalise(crop_h=opt.image_size, crop_w=opt.image_size)
        shares = [self._share(self.val, rank) for rank in range(opt.world_size)]
        for step in range(-(-max(shares) // opt.batch)):
            records = read()
            labels = self._labels(records)
            over = step * opt.batch + opt.batch - shares[opt.rank]  # the reader begins again: not counted
            if over > 0:
                labels[max(0, opt.batch - over) :] = PADDING
            yield self._shaped(normalise(resize(decode(records))[0])), labels

    def _share(self, split, rank):
        """How many images the reader gives a rank: consecutive parts, the first ranks one part more."""
        parts, more = divmod(len(split.shards), self.opt.world_size)
        begin = rank * parts + min(rank, more)
        end = begin + parts + (rank < more)
        return int(np.count_nonzero((split.shard_of >= begin) & (split.shard_of < end)))

    def _reader(self, split, **options):
        return flow.nn.OFRecordReader(
            split.folder,
            batch_size=self.opt.batch,
            data_part_num=len(split.shards),
            part_name_suffix_length=5,
            shuffle_after_epoch=False,
            **options,
        )

    def _labels(self, records):
        return flow.nn.OFRecordRawDecoder("class/label", shape=(), dtype=flow.int32)(records)

    def _normalise(self, **crop):
        return flow.nn.CropMirrorNormalize(
            color_space="RGB",
            mean=list(sampling.MEAN),
            std=list(sampling.DEVIATION),
            output_dtype=flow.float,
            **crop,
        )

    def _shaped(self, images):
        return images if self.opt.layout == "NCHW" else images.permute(0, 2, 3, 1)
