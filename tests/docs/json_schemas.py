"""JSON Schemas of what the commands print, made from the tables of docs/scripts.md.

Write them anew with `python tests/docs/json_schemas.py`.
"""

import json
import re

from doc_pages import ROOT, code, page, table

FOLDER = ROOT / "docs" / "schema"
OBJECTS = re.compile(r"^### `([\w.\[\]]+)`\n(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
TYPES = {"list": "array"}  # the other words of the page are JSON Schema's own


def schemas():
    """The schema of each command's output, by the command's name."""
    tables = dict(OBJECTS.findall(page("docs/scripts.md")))
    return {
        path.partition("[")[0]: {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": f"trainmark {path.partition('[')[0]} (JSON)",
            **schema_of(path, tables),
        }
        for path in tables
        if "." not in path
    }


def schema_of(path, tables):
    """Of the values at a path such as `report.results[]`; names that are not listed may come."""
    rows = {name: row["type"].split(" or ") for row in table(tables[path]) for name in code(row["name"])}
    properties = {name: property_of(f"{path}.{name}", kinds, tables) for name, kinds in rows.items()}
    whole = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "array", "items": whole} if path.endswith("[]") else whole


def property_of(path, kinds, tables):
    types = [TYPES.get(kind, kind) for kind in kinds]
    inner = next((schema_of(name, tables) for name in (path, f"{path}[]") if name in tables), {})
    return {**inner, "type": types[0] if len(types) == 1 else types}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, schema in schemas().items():
        (FOLDER / f"{name}.json").write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")
