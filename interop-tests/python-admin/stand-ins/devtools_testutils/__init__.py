"""In the place of the Azure SDK's machinery for tests, which is published nowhere: it records and plays back, and here all is live."""

from __future__ import annotations

import functools
import inspect
import os

from azure.servicebus._base_handler import ServiceBusSharedKeyCredential
from azure.servicebus.aio._base_handler_async import ServiceBusSharedKeyCredential as AsyncCredential

# What a test may ask for, by the name of its parameter.
GIVEN = {
    "servicebus_connection_str": os.environ.get("ADMIN_CONNECTION_STRING"),
    "servicebus_fully_qualified_namespace": os.environ.get("ADMIN_NAMESPACE"),
    "servicebus_sas_policy": os.environ.get("ADMIN_KEY_NAME"),
    "servicebus_sas_key": os.environ.get("ADMIN_KEY"),
}


class AzureMgmtRecordedTestCase:
    """Nothing is recorded."""


class PowerShellPreparer:
    """Gives a test the parameters that it asks for by name."""

    def __init__(self, _service: str, **_fakes: str):
        pass

    def __call__(self, test):
        asked = inspect.signature(test).parameters
        takes_more = any(each.kind is each.VAR_KEYWORD for each in asked.values())
        given = {name: value for name, value in GIVEN.items() if takes_more or name in asked}
        if inspect.iscoroutinefunction(test):
            async def filled(self):
                await test(self, **given)
        else:
            def filled(self):
                test(self, **given)
        filled.__name__, filled.__doc__ = test.__name__, test.__doc__
        filled.pytestmark = list(getattr(test, "pytestmark", []))
        return filled


CachedResourceGroupPreparer = functools.partial(PowerShellPreparer, "group")


def recorded_by_proxy(test):
    """Leaves a test as it is."""
    return test


def get_credential(is_async: bool = False):
    """A key, where the recordings were made with an identity."""
    kind = AsyncCredential if is_async else ServiceBusSharedKeyCredential
    return kind(GIVEN["servicebus_sas_policy"], GIVEN["servicebus_sas_key"])


def set_custom_default_matcher(**_options) -> None:
    """There is nothing to match."""
