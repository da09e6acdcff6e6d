"""Reads OFRecord parts with OneFlow's reader, and writes the same records with its protocol buffers."""

import hashlib
import json
import struct
import sys
from pathlib import Path

import oneflow as flow
import oneflow.core.record.record_pb2 as ofrecord

root, out, plan = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(Path(sys.argv[3]).read_text())
parts = sorted(root.glob("part-*"))
reader = flow.nn.OFRecordReader(
    str(root), batch_size=1, data_part_num=len(parts), part_name_suffix_length=5, random_shuffle=False
)
pictures = flow.nn.OFRecordBytesDecoder("encoded")
labels = flow.nn.OFRecordRawDecoder("class/label", shape=[], dtype=flow.int32)
read = []
for _ in plan:
    record = reader()
    picture = bytes(pictures(record).numpy()[0])
    read.append((int(labels(record).numpy()), hashlib.sha256(picture).hexdigest()))


def feature(value):
    if isinstance(value, int):
        return ofrecord.Feature(int32_list=ofrecord.Int32List(value=[value]))
    value = value.encode() if isinstance(value, str) else value
    return ofrecord.Feature(bytes_list=ofrecord.BytesList(value=[value]))


for number, part in enumerate(parts):
    with (out / part.name).open("wb") as file:
        for record in plan:
            if record["shard"] != number:
                continue
            folder, _, name = record["name"].rpartition("/")
            values = {
                "encoded": Path(record["file"]).read_bytes(),
                "class/label": record["label"],
                "class/text": folder,
                "filename": name,
                "format": "JPEG",
                "height": record["height"],
                "width": record["width"],
            }
            content = ofrecord.OFRecord(
                feature={key: feature(value) for key, value in values.items()}
            ).SerializeToString(deterministic=True)
            file.write(struct.pack("q", len(content)) + content)
print(json.dumps({"read": read}))
