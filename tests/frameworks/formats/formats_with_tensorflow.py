"""Reads TFRecord files with tf.data, and writes the same records with tf.io.TFRecordWriter."""

import hashlib
import json
import sys
from pathlib import Path

import tensorflow as tf

root, out, plan = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(Path(sys.argv[3]).read_text())
shards = sorted(path for path in root.glob("train-*-of-*") if path.suffix != ".idx")
keys = {
    "image/encoded": tf.io.FixedLenFeature([], tf.string),
    "image/class/label": tf.io.FixedLenFeature([], tf.int64),
}
read = []
for record in tf.data.TFRecordDataset([str(shard) for shard in shards]):
    example = tf.io.parse_single_example(record, keys)
    picture = example["image/encoded"].numpy()
    assert tf.io.decode_jpeg(picture).shape[2] == 3
    read.append((int(example["image/class/label"]) - 1, hashlib.sha256(picture).hexdigest()))


def feature(value):
    if isinstance(value, int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
    value = value.encode() if isinstance(value, str) else value
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


for number, shard in enumerate(shards):
    with tf.io.TFRecordWriter(str(out / shard.name)) as writer:
        for record in plan:
            if record["shard"] != number:
                continue
            folder, _, name = record["name"].rpartition("/")
            values = {
                "image/encoded": Path(record["file"]).read_bytes(),
                "image/class/label": record["label"] + 1,
                "image/class/synset": folder,
                "image/filename": name,
                "image/format": "JPEG",
                "image/colorspace": "RGB",
                "image/channels": 3,
                "image/height": record["height"],
                "image/width": record["width"],
            }
            features = tf.train.Features(feature={key: feature(value) for key, value in values.items()})
            writer.write(tf.train.Example(features=features).SerializeToString(deterministic=True))
print(json.dumps({"read": read}))
