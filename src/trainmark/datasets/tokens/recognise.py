"""Whether a folder holds tokens or pictures, and in which form."""

from __future__ import annotations

from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.datasets.index import DATASET
from trainmark.datasets.tokens import bert_records
from trainmark.workloads.tokens import dataset
from trainmark.workloads.tokens.formats import mlm
from trainmark.workloads.tokens.formats.mapped import UnfitTokens

#: What `convert --to` takes for tokens; `tfrecord` is a name of pictures too, and is decided by the source.
TOKEN_FORMATS = ("llmc", "nanogpt", "megatron", "arrow", "mlm")
ENDINGS = (".bin", ".arrow", mlm.SUFFIX)
NAMES = ("dataset_dict.json", "state.json")


def is_token_set(path: Path) -> bool:
    """Whether a folder holds token files, or is to hold them and is unfinished."""
    if not path.is_dir() or (path / DATASET).exists():
        return False
    if (path / dataset.UNFINISHED / dataset.META).exists():
        return True
    try:
        names = dataset.names_in(str(path))
    except UnfitTokens as error:
        raise UserError(str(error)) from error
    return any(name in NAMES or name.endswith(ENDINGS) for name in names) or bert_records.holds(path)


def format_of(path: Path) -> str:
    """Return the format of a folder of tokens; UserError, in one sentence, where it has none."""
    if not path.is_dir():
        raise UserError(f"{path} does not exist; name the folder of a set.")
    try:
        if bert_records.holds(path) and not (path / dataset.UNFINISHED).exists():
            return bert_records.NAME
        return str(dataset.detect(str(path)))
    except UnfitTokens as error:
        raise UserError(str(error)) from error
