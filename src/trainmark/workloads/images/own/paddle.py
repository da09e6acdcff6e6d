"""PaddlePaddle: paddle.io.DataLoader over the list, with worker processes and Pillow."""

import paddle

from trainmark.workloads.images import dataset, samples

FORMATS = ("list", "folder")
REPEATABLE = True


class Listed(paddle.io.Dataset, samples.Samples):
    """Paddle wants its own base class; the rest is ours."""

    def __init__(self, of):
        self.__dict__.update(of.__dict__)

    __len__ = samples.Samples.__len__
    __getitem__ = samples.Samples.__getitem__


class Images:
    def __init__(self, opt):
        samples.check_pillow()
        dataset.require_format(opt.dataset, *FORMATS)
        self.opt = opt
        self.train = dataset.open_split(opt.dataset, "train")
        self.val = dataset.open_split(opt.dataset, "val")

    def training(self, epoch, first=0):
        return self._loader(samples.training_samples(self.opt, self.train, epoch, first))

    def evaluation(self):
        return self._loader(samples.evaluation_samples(self.opt, self.val))

    def _loader(self, of):
        loader = paddle.io.DataLoader(
            Listed(of),
            batch_size=self.opt.batch,
            num_workers=self.opt.workers,
            return_list=True,
            use_shared_memory=True,
            places=paddle.CPUPlace() if self.opt.device == "cpu" else None,
        )
        return iter(loader)
