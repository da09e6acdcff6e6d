"""Reads a RecordIO file with MXNet's reader and its iterator, and writes the same with its writer."""

import hashlib
import json
import sys
from pathlib import Path

import mxnet as mx

root, out, plan = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(Path(sys.argv[3]).read_text())
reader = mx.recordio.MXIndexedRecordIO(str(root / "train.idx"), str(root / "train.rec"), "r")
read = []
for key in reader.keys:
    header, picture = mx.recordio.unpack(reader.read_idx(key))
    read.append((int(header.label), hashlib.sha256(picture).hexdigest()))

writer = mx.recordio.MXIndexedRecordIO(str(out / "train.idx"), str(out / "train.rec"), "w")
for number, record in enumerate(plan):
    header = mx.recordio.IRHeader(0, record["label"], number, 0)
    writer.write_idx(number, mx.recordio.pack(header, Path(record["file"]).read_bytes()))
writer.close()

batches = mx.io.ImageRecordIter(
    path_imgrec=str(root / "train.rec"),
    path_imgidx=str(root / "train.idx"),
    data_shape=(3, 32, 32),
    batch_size=1,
    preprocess_threads=1,
)
decoded = [int(batch.label[0].asnumpy()[0]) for batch in batches]
print(json.dumps({"read": read, "decoded": decoded}))
