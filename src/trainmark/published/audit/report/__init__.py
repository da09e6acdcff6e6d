"""A published report in parts: files, pages, tables, numbers."""
