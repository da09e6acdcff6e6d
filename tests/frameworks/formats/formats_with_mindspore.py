"""Reads MindRecord files with MindDataset, and writes the same rows with FileWriter."""

import hashlib
import json
import sys
from pathlib import Path

import mindspore.dataset as ds
from mindspore.mindrecord import FileWriter

root, out, plan = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(Path(sys.argv[3]).read_text())
shards = sorted(path for path in root.glob("train.mindrecord*") if path.suffix != ".db")
read = []
rows = ds.MindDataset([str(shard) for shard in shards], ["data", "label", "file_name"], 1, shuffle=False)
for picture, label, _ in rows.create_tuple_iterator(num_epochs=1, output_numpy=True):
    read.append((int(label), hashlib.sha256(picture.tobytes()).hexdigest()))

writer = FileWriter(str(out / "train.mindrecord"), shard_num=len(shards))
fields = {"file_name": {"type": "string"}, "label": {"type": "int64"}, "data": {"type": "bytes"}}
writer.add_schema(fields, "images")
writer.add_index(["file_name", "label"])
writer.write_raw_data(
    [
        {"file_name": one["name"], "label": one["label"], "data": Path(one["file"]).read_bytes()}
        for one in plan
    ]
)
writer.commit()
print(json.dumps({"read": read}))
