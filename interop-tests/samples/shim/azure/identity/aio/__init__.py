"""The asynchronous half of the stand-in."""

import os

from azure.core.credentials import AzureNamedKeyCredential


class DefaultAzureCredential(AzureNamedKeyCredential):
    def __init__(self):
        super().__init__(os.environ["SERVICEBUS_SAS_POLICY"], os.environ["SERVICEBUS_SAS_KEY"])

    async def __aenter__(self):
        return self

    async def __aexit__(self, *details):
        pass

    async def close(self) -> None:
        """There is nothing to close; samples do."""


EnvironmentCredential = DefaultAzureCredential
