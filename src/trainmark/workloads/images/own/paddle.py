"""PaddlePaddle: paddle.io.DataLoader over the list, with worker processes and Pillow."""

import paddle

from trainmark.workloads.images.samples import PillowLoader, Samples


class Listed(paddle.io.Dataset, Samples):
    """Paddle wants its own base class; the rest is ours."""

    def __init__(self, of):
        self.__dict__.update(of.__dict__)

    __len__ = Samples.__len__
    __getitem__ = Samples.__getitem__


class Images(PillowLoader):
    formats = ("list", "folder")

    def loader(self, samples):
        return paddle.io.DataLoader(
            Listed(samples),
            batch_size=self.opt.batch,
            num_workers=self.opt.workers,
            return_list=True,
            use_shared_memory=True,
            places=paddle.CPUPlace() if self.opt.device == "cpu" else None,
        )
