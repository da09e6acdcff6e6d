"""PyTorch: DataLoader with worker processes and Pillow, the plain way; reads a set of any format."""

import torch

from trainmark.workloads.images.samples import PillowLoader


class Images(PillowLoader):
    def loader(self, samples):
        return torch.utils.data.DataLoader(
            samples,
            batch_size=self.opt.batch,
            num_workers=self.opt.workers,
            pin_memory=self.opt.device == "cuda",
            worker_init_fn=_one_thread,
        )


def _one_thread(_):
    torch.set_num_threads(1)
