"""The asynchronous half of the stand-in. A named key is the same for both."""

from azure.identity import DefaultAzureCredential, EnvironmentCredential

__all__ = ["DefaultAzureCredential", "EnvironmentCredential"]
