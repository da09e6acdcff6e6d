"""Waiting for a module that somebody else will import."""

from __future__ import annotations

import subprocess
import sys


def python(program: str, folder) -> str:
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


PROGRAM = """
from trainmark.inside.hooks.attach import when_imported
when_imported("package.inner", {call})
import package
print("outer")
import package.inner
print(package.inner.__spec__.name, package.inner.VALUE)
"""


def test_the_call_comes_once_the_module_is_executed(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").touch()
    (tmp_path / "package/inner.py").write_text("VALUE = 1", encoding="utf-8")
    call = 'lambda module: setattr(module, "VALUE", module.VALUE + 1)'
    assert python(PROGRAM.format(call=call), tmp_path).split() == ["outer", "package.inner", "2"]


def test_a_hook_that_fails_leaves_the_import_alone(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").touch()
    (tmp_path / "package/inner.py").write_text("VALUE = 1", encoding="utf-8")
    printed = python(PROGRAM.format(call="lambda module: module.absent"), tmp_path)
    assert "package.inner 1" in printed and "package.inner is not watched" in printed


def test_the_sitecustomize_behind_ours_runs_too(tmp_path, monkeypatch):
    from trainmark.inside import hooks

    (tmp_path / "sitecustomize.py").write_text('print("site of the user")', encoding="utf-8")
    ours = f"{hooks.__path__[0]}/injected"
    monkeypatch.setenv("PYTHONPATH", f"{ours}:{tmp_path}")
    printed = python("import sitecustomize; print(sitecustomize.__file__)", tmp_path)
    assert printed.split("\n")[0] == "site of the user"
    assert str(tmp_path) in printed


def test_several_hooks_may_wait_for_one_module(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").touch()
    (tmp_path / "package/inner.py").write_text("VALUE = 1", encoding="utf-8")
    second = 'when_imported("package.inner", lambda module: print("second"))'
    first = 'lambda module: print("first", module.VALUE)'
    assert python(PROGRAM.format(call=f"{first})\n({second}"), tmp_path).split()[:4] == [
        "outer",
        "first",
        "1",
        "second",
    ]
