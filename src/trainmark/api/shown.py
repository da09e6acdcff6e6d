"""What results of the API have in common: a page, a dictionary, and a data frame of what is a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainmark.base.errors import UserError
from trainmark.view import html, terminal
from trainmark.view.blocks import Page

if TYPE_CHECKING:
    import pandas


class Shown:
    """A subject that prints as a terminal shows it, and shows its page in a notebook."""

    def page(self) -> Page:
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return what the command prints with --json."""
        raise NotImplementedError

    def __str__(self) -> str:
        return terminal.render(self.page())

    def _repr_html_(self) -> str:
        return html.notebook(self.page())


class Tabular:
    """A subject that is a table: one dictionary a row."""

    def rows(self) -> list[dict[str, Any]]:
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        try:
            import pandas
        except ImportError as error:
            raise UserError("a data frame needs pandas; pip install pandas.") from error
        return pandas.DataFrame(self.rows())
