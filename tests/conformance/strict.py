"""Holds a value to the TypedDicts of a client library, and refuses keys that they do not have."""

import functools
import sys
import typing

import pydantic
import typing_extensions


def faults(kind, value, extra=()) -> list[str]:
    """What is wrong with `value` as a `kind`; `extra` names keys that are taken although the type lacks them."""
    try:
        consume(adapter(kind).validate_python(drop(value, frozenset(extra))))
    except pydantic.ValidationError as error:
        # Of a union every member complains; the shortest complaint is the nearest member's.
        lines = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:6]]
        return ["; ".join(lines)]
    return []


@functools.cache
def adapter(kind) -> pydantic.TypeAdapter:
    for each in dicts(kind, set()):
        if typing_extensions.is_typeddict(each):
            each.__pydantic_config__ = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True)
        else:
            # The models of answers are taken in requests too, and would take any key.
            each.model_config = {**each.model_config, "extra": "forbid"}
            each.model_rebuild(force=True)
    return pydantic.TypeAdapter(kind)


def dicts(kind, seen):
    """Every TypedDict and model that a type is made of."""
    if kind in seen:
        return
    try:
        seen.add(kind)
    except TypeError:
        return
    if typing_extensions.is_typeddict(kind):
        yield kind
        for each in typing_extensions.get_type_hints(kind, vars(sys.modules[kind.__module__])).values():
            yield from dicts(each, seen)
    elif isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
        for field in kind.model_fields.values():
            yield from dicts(field.annotation, seen)
        yield kind
    for each in typing.get_args(kind):
        yield from dicts(each, seen)


def consume(value):
    """Iterables are checked only when somebody iterates."""
    if isinstance(value, dict):
        for each in value.values():
            consume(each)
    elif not isinstance(value, (str, bytes)) and hasattr(value, "__iter__"):
        for each in value:
            consume(each)


def drop(value, names):
    if isinstance(value, dict):
        return {key: drop(each, names) for key, each in value.items() if key not in names}
    if isinstance(value, list):
        return [drop(each, names) for each in value]
    return value
