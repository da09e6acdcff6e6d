"""Reads RecordIO and TFRecord with DALI, with the index files that lie beside them."""

import hashlib
import json
import sys
from pathlib import Path

from nvidia.dali import fn, pipeline_def, tfrecord

rec, records, count = Path(sys.argv[1]), Path(sys.argv[2]), len(json.loads(Path(sys.argv[3]).read_text()))


@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def from_rec():
    picture, label = fn.readers.mxnet(path=[str(rec / "train.rec")], index_path=[str(rec / "train.idx")])
    return picture, label


@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def from_tfrecord():
    shards = sorted(path for path in records.glob("train-*-of-*") if path.suffix != ".idx")
    features = fn.readers.tfrecord(
        path=[str(shard) for shard in shards],
        index_path=[f"{shard}.idx" for shard in shards],
        features={
            "image/encoded": tfrecord.FixedLenFeature((), tfrecord.string, ""),
            "image/class/label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
        },
    )
    return features["image/encoded"], features["image/class/label"]


def read(pipeline, first):
    pipeline.build()
    out = []
    for _ in range(count):
        picture, label = pipeline.run()
        content = picture.as_array()[0].tobytes()
        out.append((int(label.as_array().reshape(-1)[0]) - first, hashlib.sha256(content).hexdigest()))
    return out


print(json.dumps({"read": read(from_rec(), 0), "tfrecord": read(from_tfrecord(), 1)}))
