"""Hugging Face `datasets` on disk: Arrow streams `data-*.arrow` with a column `input_ids`, read and written.

A folder has `state.json`, which lists the files, and `dataset_info.json`; a set of several splits has one
such folder for each, and `dataset_dict.json` that names them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trainmark.base.errors import UserError
from trainmark.data.files import whole_file, write_whole
from trainmark.workloads.tokens import dataset

NAME = "arrow"
COLUMN = "input_ids"
ROW = 1024  # tokens of a row that we write
ROWS_OF_BATCH = 1024
VALUE = {"dtype": "int32", "_type": "Value"}
FEATURES = {COLUMN: {"feature": VALUE, "_type": "Sequence"}}

Array = npt.NDArray[Any]


def import_pyarrow() -> Any:
    """Return the package; UserError where it is not installed."""
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise UserError("Arrow files need pyarrow; pip install pyarrow.") from error
    return pyarrow


def splits(root: Path) -> dict[str, list[Path]]:
    """Return the files of each split, by our names of them."""
    if not (root / "dataset_dict.json").exists():
        return {"train": files_of(root)}
    names = _json(root / "dataset_dict.json").get("splits")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UserError(f"{root / 'dataset_dict.json'} lists no splits.")
    by_split = {split: dataset.of_split(names, split)[:1] for split in dataset.ALIASES}
    return {split: files_of(root / name) for split, named in by_split.items() for name in named}


def files_of(folder: Path) -> list[Path]:
    """Return what state.json lists, in that order."""
    listed = _json(folder / "state.json").get("_data_files")
    try:
        names = [entry["filename"] for entry in listed or []]
    except (TypeError, KeyError):
        names = []
    if not names or not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise UserError(f"{folder / 'state.json'} lists no data files.")
    return [folder / name for name in names]


def count(files: list[Path]) -> int:
    return sum(len(ids) for path in files for ids in _columns(path))


def read(files: list[Path]) -> Iterator[Array]:
    for path in files:
        yield from _columns(path)


def _columns(path: Path) -> Iterator[Array]:
    """Yield the ids of each batch of one file, rows one behind the other."""
    pa = import_pyarrow()
    try:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            if COLUMN not in stream.schema.names:
                raise UserError(f"{path} has no column '{COLUMN}'.")
            for batch in stream:
                column = batch.column(batch.schema.get_field_index(COLUMN))
                if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
                    raise UserError(f"{path}: '{COLUMN}' is {column.type}, no list of ids.")
                if not pa.types.is_integer(column.type.value_type):
                    raise UserError(f"{path}: '{COLUMN}' has no whole numbers.")
                ids = column.flatten()
                if ids.null_count:
                    raise UserError(f"{path}: '{COLUMN}' has missing ids.")
                yield ids.to_numpy()
    except (OSError, pa.ArrowInvalid) as error:
        raise UserError(f"{path} is no whole Arrow stream: {error}.") from error


def write(path: Path, pieces: Iterator[Array]) -> None:
    """Write one file of a split."""
    pa = import_pyarrow()
    schema = pa.schema(
        [(COLUMN, pa.list_(pa.int32()))],
        metadata={"huggingface": json.dumps({"info": {"features": FEATURES}})},
    )
    path.parent.mkdir(exist_ok=True)
    with whole_file(path) as file, pa.ipc.new_stream(file, schema) as stream:
        for ids in _batches(pieces):
            offsets = np.minimum(np.arange(0, len(ids) + ROW, ROW), len(ids)).astype(np.int32)
            rows = pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids.astype(np.int32)))
            stream.write_batch(pa.record_batch([rows], schema=schema))


def _batches(pieces: Iterator[Array]) -> Iterator[Array]:
    """Yield the same ids in batches of whole rows; only the last may end within a row."""
    left: Array = np.empty(0, np.int32)
    for piece in pieces:
        left = np.concatenate([left, piece])
        while len(left) >= ROW * ROWS_OF_BATCH:
            yield left[: ROW * ROWS_OF_BATCH]
            left = left[ROW * ROWS_OF_BATCH :]
    if len(left):
        yield left


def finish(root: Path, files: dict[str, int]) -> None:
    """Write what `datasets.load_from_disk` reads first; `files` has how many each split has."""
    for split, total in files.items():
        state: dict[str, Any] = {
            "_data_files": [{"filename": file_name(number, total)} for number in range(total)],
            "_fingerprint": f"trainmark-{split}",
            "_format_columns": None,
            "_format_kwargs": {},
            "_format_type": None,
            "_output_all_columns": False,
            "_split": None,
        }
        info = {"citation": "", "description": "", "features": FEATURES, "homepage": "", "license": ""}
        for name, value in (("state.json", state), ("dataset_info.json", info)):
            write_whole(root / split / name, (json.dumps(value, indent=1) + "\n").encode())
    write_whole(root / "dataset_dict.json", (json.dumps({"splits": list(files)}) + "\n").encode())


def file_name(number: int, total: int) -> str:
    return f"data-{number:05d}-of-{total:05d}.arrow"


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} is damaged ({error}).") from error
    if not isinstance(value, dict):
        raise UserError(f"{path} is no JSON object.")
    return value
