"""Errors that people make when they write ResNet-50 again, each as an edit of the PyTorch workload."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import small_resnet

PYTORCH = "pytorch.py"
RECIPE, STANDARD, OPTIONS = "shared/recipe.py", "recipes/ngc-90.json", "../common/options.py"


@dataclass(frozen=True)
class Planted:
    """In `file`, each of the first words becomes the second; `ranks` is how many it takes to show."""

    file: str
    edits: tuple[tuple[str, str], ...]
    ranks: int = 1

    def plant(self, folder: Path) -> Path:
        """A copy of the workloads with this error in it, and with the small network."""
        shutil.rmtree(folder, ignore_errors=True)
        small_resnet.copy_code(small_resnet.THREE_BLOCKS, folder)
        for right, wrong in self.edits:
            small_resnet.edit(folder / small_resnet.WORKLOAD / self.file, right, wrong)
        return folder


NO_ERROR = Planted(PYTORCH, ())
PLANTED = {
    "stride in the 1x1": Planted(
        PYTORCH,
        (
            (
                "conv(inputs, width, 1), batch_norm(width)",
                "conv(inputs, width, 1, stride), batch_norm(width)",
            ),
            ("conv(width, width, 3, stride), batch_norm(width)", "conv(width, width, 3), batch_norm(width)"),
        ),
    ),
    "bias in the convolutions": Planted(
        PYTORCH, (("padding=kernel // 2, bias=False", "padding=kernel // 2"),)
    ),
    "momentum of 0.125": Planted(STANDARD, (('"momentum": 0.875', '"momentum": 0.125'),)),
    "weight decay on batch norm": Planted(
        PYTORCH, (('{"params": norms, "weight_decay": 0.0}', '{"params": norms}'),)
    ),
    "no weight decay": Planted(PYTORCH, (("else opt.recipe.weight_decay", "else 0.0"),)),
    "no label smoothing": Planted(PYTORCH, (("label_smoothing=opt.recipe.label_smoothing", ""),)),
    "batch norm epsilon of Keras": Planted(
        RECIPE, (("BATCH_NORM_EPSILON = 1e-5", "BATCH_NORM_EPSILON = 1e-3"),)
    ),
    "batch norm momentum of Keras": Planted(
        RECIPE, (("BATCH_NORM_MOMENTUM = 0.1 ", "BATCH_NORM_MOMENTUM = 0.01 "),)
    ),
    "batch norm momentum the other way round": Planted(
        RECIPE, (("BATCH_NORM_MOMENTUM = 0.1 ", "BATCH_NORM_MOMENTUM = 0.9 "),)
    ),
    "Nesterov": Planted(
        PYTORCH, (("momentum=opt.recipe.momentum,", "momentum=opt.recipe.momentum, nesterov=True,"),)
    ),
    "rate folded into the momentum": Planted(
        PYTORCH,
        (
            (
                "        self.update.rate.fill_(rate)\n",
                "        for state in self.update.optimizer.state.values():\n"
                '            state["momentum_buffer"].mul_(self.update.rate / rate)\n'
                "        self.update.rate.fill_(rate)\n",
            ),
        ),
    ),
    "the padding of TensorFlow in the stem": Planted(
        PYTORCH,
        (
            ("            conv(3, 64, 7, 2),", "            nn.ZeroPad2d((2, 3, 2, 3)), conv(3, 64, 7, 2),"),
            ("padding=kernel // 2,", "padding=kernel // 2 if kernel < 7 else 0,"),
        ),
    ),
    "no ReLU after the sum": Planted(
        PYTORCH,
        (
            (
                "return self.relu(self.bn3(self.conv3(y)) + self.shortcut(x))",
                "return self.bn3(self.conv3(y)) + self.shortcut(x)",
            ),
        ),
    ),
    "rate not scaled by the ranks": Planted(
        OPTIONS,
        (
            (
                'options.batch * getattr(options, "accumulate", 1) * world_size',
                'options.batch * getattr(options, "accumulate", 1)',
            ),
        ),
        2,
    ),
    "gradients summed over the ranks": Planted(
        PYTORCH,
        (
            (
                "self.scaler.scale(loss).backward()",
                "self.scaler.scale(loss * torch.distributed.get_world_size()).backward()",
            ),
        ),
        2,
    ),
    "gradients not exchanged": Planted(
        PYTORCH,
        (
            (
                "    if opt.world_size > 1 and opt.engine",
                "    if opt.world_size > 9 and opt.engine",
            ),
        ),
        2,
    ),
}
