"""PyTorch: DataLoader with worker processes and Pillow, the plain way; reads a set of any format."""

import torch

from trainmark.workloads.images import dataset, samples

FORMATS = ("folder", "list", "rec", "tfrecord", "ofrecord", "mindrecord", "beton", "webdataset")
REPEATABLE = True


class Images:
    def __init__(self, opt):
        samples.check_pillow()
        self.opt = opt
        self.train = dataset.open_split(opt.dataset, "train")
        self.val = dataset.open_split(opt.dataset, "val")

    def training(self, epoch, first=0):
        return self._loader(samples.training_samples(self.opt, self.train, epoch, first))

    def evaluation(self):
        return self._loader(samples.evaluation_samples(self.opt, self.val))

    def _loader(self, of):
        return iter(
            torch.utils.data.DataLoader(
                of,
                batch_size=self.opt.batch,
                num_workers=self.opt.workers,
                pin_memory=self.opt.device == "cuda",
                worker_init_fn=_one_thread,
            )
        )


def _one_thread(_):
    torch.set_num_threads(1)
