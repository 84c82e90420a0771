"""Stands in for what a sample cannot have on this machine: TLS to the service's own port. See ../README.md.

The SDK leaves TLS out when the connection string says `UseDevelopmentEmulator=true`. Samples that name a host and a credential
instead have no way to say so; here the same switch becomes the default of the client's constructor.
"""

import functools

import azure.servicebus
import azure.servicebus.aio


def without_tls(client) -> None:
    constructor = client.__init__

    @functools.wraps(constructor)
    def changed(self, *args, **kwargs):
        kwargs.setdefault("use_tls", False)
        constructor(self, *args, **kwargs)

    client.__init__ = changed


without_tls(azure.servicebus.ServiceBusClient)
without_tls(azure.servicebus.aio.ServiceBusClient)
