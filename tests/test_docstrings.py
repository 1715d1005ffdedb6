"""Docstrings of all names in the API reference are complete by numpydoc's own checks; the others are a sentence."""

import inspect

import pytest
from numpydoc.validate import validate
from test_docs import documented

from bemkl.inference.problem import PairStrategy, WeightStrategy
from bemkl.inference.protocols import Likelihood, Stack

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


def documented_names():
    """Yield the full name of every listed function, class and member, and whether it is a protocol's."""
    for thing in documented().values():
        is_protocol = getattr(thing, "_is_protocol", False)
        yield f"{thing.__module__}.{thing.__qualname__}", is_protocol
        for owner in inspect.getmro(thing) if inspect.isclass(thing) else ():
            for member, value in vars(owner).items() if owner.__module__.startswith("bemkl") else ():
                # scikit-learn adds its own methods for the routing of metadata.
                routing = member.startswith("set_") and member.endswith("_request")
                described = inspect.isroutine(value) or isinstance(value, property)
                if described and not routing and not member.startswith("_"):
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
