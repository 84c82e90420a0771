"""What administrators tell and are told, as plain values that can be compared."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import HttpResponseError
from azure.servicebus.management import AuthorizationRule, CorrelationRuleFilter, FalseRuleFilter

from secured import key

# The longest time that the service knows.
FOREVER = timedelta(days=10675199, hours=2, minutes=48, seconds=5, microseconds=477581)


def access(name: str, *rights: str) -> AuthorizationRule:
    """A rule with keys of its own, always the same ones for a name."""
    return AuthorizationRule(
        type="SharedAccessAuthorizationRule", claim_type="SharedAccessKey", claim_value="None", rights=list(rights),
        key_name=name, primary_key=key(f"primary {name}"), secondary_key=key(f"secondary {name}"),
    )


def told(properties) -> dict:
    """All that is told of an entity but its name; the times of its keys are checked, and left out."""
    plain = {name: value for name, value in properties.items() if name != "name"}
    if "authorization_rules" in plain:
        plain["authorization_rules"] = [told_rule(each) for each in plain["authorization_rules"] or []]
    return plain


def told_rule(rule: AuthorizationRule) -> dict:
    plain = dict(vars(rule))
    for time in ("created_at_utc", "modified_at_utc"):
        if plain.pop(time) is not None:
            near(getattr(rule, time), 60)
    return plain


def with_keys(properties: dict) -> dict:
    """Properties as they are asked for, in the shape of `told`."""
    return {**properties, "authorization_rules": [told_rule(each) for each in properties.get("authorization_rules", [])]}


def said(part):
    """A filter or an action: its kind, and what it says."""
    if part is None or isinstance(part, FalseRuleFilter):
        # How the broker writes "never" down is its own affair.
        return part and "FalseRuleFilter"
    plain = {name: value for name, value in vars(part).items() if name != "requires_preprocessing" and value not in (None, {})}
    name = "properties" if isinstance(part, CorrelationRuleFilter) else "parameters"
    plain[name] = {each: (type(value), value) for each, value in (getattr(part, name) or {}).items()}
    return type(part).__name__, plain


def near(moment: datetime, seconds: float, expected: datetime | None = None) -> None:
    """Asserts that it was then, or is now, more or less."""
    assert abs(moment - (expected or datetime.now(timezone.utc))) < timedelta(seconds=seconds), moment


@contextmanager
def refused(status: int, kind: type[HttpResponseError] = HttpResponseError, match: str | None = None):
    """Asserts that a request is answered so."""
    with pytest.raises(kind, match=match) as caught:
        yield
    assert caught.value.status_code == status
