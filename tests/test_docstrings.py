"""Docstrings of all public names are complete by numpydoc's own checks."""

import importlib
import inspect
import pkgutil

import pytest
from numpydoc.validate import validate

import bemkl

# Checks that are not made, and why.
IGNORED = {
    "ES01",  # an extended summary is written where there is more to say
    "EX01",  # examples are on what users call, not on every name
    "SA01",  # "See also" sections would repeat the module's own list
    "SS05",  # takes plural nouns ("Labels as ...") for verbs
}
# A protocol's method is one sentence; the sections are in the implementations.
IGNORED_IN_PROTOCOLS = IGNORED | {"PR01", "RT01"}


def public_names():
    """Yield the full name of every public function, class and member of the package, and whether it is a protocol's."""
    for module_info in pkgutil.walk_packages(bemkl.__path__, "bemkl."):
        module = importlib.import_module(module_info.name)
        for name, thing in vars(module).items():
            if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__:
                continue
            is_protocol = getattr(thing, "_is_protocol", False)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                yield f"{module.__name__}.{name}", is_protocol
            if inspect.isclass(thing):
                for member, value in vars(thing).items():
                    # scikit-learn adds its own methods for the routing of metadata.
                    if member.startswith("set_") and member.endswith("_request"):
                        continue
                    if not member.startswith("_") and (inspect.isroutine(value) or isinstance(value, property)):
                        yield f"{module.__name__}.{name}.{member}", is_protocol


@pytest.mark.parametrize(("name", "is_protocol"), sorted(public_names()))
def test_docstring(name, is_protocol):
    ignored = IGNORED_IN_PROTOCOLS if is_protocol else IGNORED
    findings = [f"{code}: {text}" for code, text in validate(name)["errors"] if code not in ignored]
    assert not findings
