"""Stands in for `azure.identity`: there is no Entra ID here to ask. Its credentials are the emulator's key. See ../../../README.md."""

import os

from azure.core.credentials import AzureNamedKeyCredential


class DefaultAzureCredential(AzureNamedKeyCredential):
    def __init__(self):
        super().__init__(os.environ["SERVICEBUS_SAS_POLICY"], os.environ["SERVICEBUS_SAS_KEY"])

    def __enter__(self):
        return self

    def __exit__(self, *details):
        pass


EnvironmentCredential = DefaultAzureCredential
