"""What a token may do."""

from __future__ import annotations

from enum import Enum


class Role(str, Enum):
    """`push` may send runs only, `read` may see everything, `admin` both, and the audit log."""

    READ = "read"
    PUSH = "push"
    ADMIN = "admin"

    def may(self, needed: Role) -> bool:
        return self in (needed, Role.ADMIN)
