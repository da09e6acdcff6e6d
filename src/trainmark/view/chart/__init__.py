"""Charts: axes, marks and panels as plain values, drawn as SVG without a library."""
