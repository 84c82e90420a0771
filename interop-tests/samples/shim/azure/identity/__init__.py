"""Stands in for `azure.identity`: there is no Entra ID here to ask. Its credentials are the emulator's key. See ../../../README.md."""

import os

from azure.core.credentials import AzureNamedKeyCredential


def DefaultAzureCredential() -> AzureNamedKeyCredential:  # noqa: N802, the name is the samples'
    return AzureNamedKeyCredential(os.environ["SERVICEBUS_SAS_POLICY"], os.environ["SERVICEBUS_SAS_KEY"])


EnvironmentCredential = DefaultAzureCredential
