"""Reads a .beton with FFCV, and writes the same samples with its DatasetWriter and one worker."""

import hashlib
import json
import sys
from pathlib import Path

import ffcv.fields.rgb_image
import numpy as np
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import CenterCropRGBImageDecoder, IntDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.reader import Reader
from ffcv.writer import DatasetWriter
from PIL import Image


class Samples:
    def __init__(self, plan):
        self.plan = plan

    def __len__(self):
        return len(self.plan)

    def __getitem__(self, place):
        global picture
        picture = np.frombuffer(Path(self.plan[place]["file"]).read_bytes(), np.uint8)
        return Image.open(self.plan[place]["file"]).convert("RGB"), self.plan[place]["label"]


# FFCV has no field for a JPEG that is there already: its own would encode the pixels once more.
ffcv.fields.rgb_image.encode_jpeg = lambda image, quality: picture


def main():
    root, out, plan = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(Path(sys.argv[3]).read_text())
    writer = DatasetWriter(
        str(out / "train.beton"),
        {"image": RGBImageField(write_mode="jpg"), "label": IntField()},
        num_workers=1,
    )
    writer.from_indexed_dataset(Samples(plan))

    reader = Reader(str(root / "train.beton"))
    data = np.fromfile(root / "train.beton", np.uint8)
    sizes = {int(one["ptr"]): int(one["size"]) for one in reader.alloc_table}
    read = []
    for row in reader.metadata:
        pointer = int(row["f0"]["data_ptr"])
        stored = data[pointer : pointer + sizes[pointer]].tobytes()
        read.append((int(row["f1"]), hashlib.sha256(stored).hexdigest()))
    loader = Loader(
        str(root / "train.beton"),
        batch_size=1,
        num_workers=1,
        order=OrderOption.SEQUENTIAL,
        pipelines={"image": [CenterCropRGBImageDecoder((32, 32), 1)], "label": [IntDecoder()]},
    )
    decoded = []
    for pixels, label in loader:
        assert pixels.std() > 1
        decoded.append(int(label[0][0]))
    print(json.dumps({"read": read, "decoded": decoded}))


if __name__ == "__main__":
    main()
