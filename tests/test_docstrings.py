"""Docstrings of all names in the API reference are complete by numpydoc's own checks; the others are a sentence."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
from numpydoc.validate import validate

from bemkl.inference.problem import PairStrategy, WeightStrategy
from bemkl.inference.protocols import Likelihood, Stack

REFERENCE = Path(__file__).parents[1] / "docs" / "api.md"
# Checks that are not made, and why.
IGNORED = {
    "ES01",  # an extended summary is written where there is more to say
    "EX01",  # examples are on what users call, not on every name
    "SA01",  # "See also" sections would repeat the reference
    "SS05",  # takes plural nouns ("Labels as ...") for verbs
}
# What a protocol asks is one sentence with shapes, there and in what implements it.
IGNORED_IN_PROTOCOLS = IGNORED | {"PR01", "RT01"}


PROTOCOLS = (Likelihood, Stack, PairStrategy, WeightStrategy)


def listed_names():
    """Yield the module and the dotted name of everything in the reference."""
    module = ""
    for line in REFERENCE.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.fullmatch(r"   ((?:\w+\.)?\w+)", line):
            yield module, match[1]


def documented_names():
    """Yield the full name of every listed function, class and member, and whether it is a protocol's."""
    for module, listed in listed_names():
        *inner, name = f"{module}.{listed}".split(".")
        thing = getattr(import_module(".".join(inner)), name)
        is_protocol = getattr(thing, "_is_protocol", False)
        yield f"{thing.__module__}.{thing.__qualname__}", is_protocol
        for owner in inspect.getmro(thing) if inspect.isclass(thing) else ():
            for member, value in vars(owner).items() if owner.__module__.startswith("bemkl") else ():
                # scikit-learn adds its own methods for the routing of metadata.
                routing = member.startswith("set_") and member.endswith("_request")
                documented = inspect.isroutine(value) or isinstance(value, property)
                if documented and not routing and not member.startswith("_"):
                    asked = any(member in vars(protocol) for protocol in protocols_of(thing))
                    yield f"{owner.__module__}.{owner.__qualname__}.{member}", is_protocol or asked


def protocols_of(thing):
    """Return the protocols whose members a class has."""
    members = {protocol: [name for name in vars(protocol) if not name.startswith("_")] for protocol in PROTOCOLS}
    return [protocol for protocol, names in members.items() if all(hasattr(thing, name) for name in names)]


@pytest.mark.parametrize(("name", "is_protocol"), sorted(set(documented_names())))
def test_docstring(name, is_protocol):
    ignored = IGNORED_IN_PROTOCOLS if is_protocol else IGNORED
    findings = [f"{code}: {text}" for code, text in validate(name)["errors"] if code not in ignored]
    assert not findings
