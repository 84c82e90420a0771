"""A module of Testcontainers for Python: an image of Jitney. Copy this file."""

from pathlib import Path

from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy
from typing_extensions import Self


class ServiceBusContainer(DockerContainer):
    """
    A container with a broker that SDKs of Azure Service Bus use by its connection string.

    Example:

        .. doctest::

            >>> from azure.servicebus import ServiceBusClient, ServiceBusMessage

            >>> with ServiceBusContainer("jitney:latest").with_config(Path("Config.json")) as container:
            ...     with ServiceBusClient.from_connection_string(container.get_connection_string()) as client:
            ...         with client.get_queue_sender("orders") as sender:
            ...             sender.send_messages(ServiceBusMessage("hello"))
    """

    # Both take every protocol: messages, administration and health.
    AMQP_PORT = 5672
    HTTP_PORT = 5300
    # Where the emulator's image has its file, too.
    CONFIG = "/ServiceBus_Emulator/ConfigFiles/Config.json"

    def __init__(self, image: str, **kwargs) -> None:
        super().__init__(image, **kwargs)
        self.with_exposed_ports(self.AMQP_PORT, self.HTTP_PORT)
        self.waiting_for(LogMessageWaitStrategy("Emulator Service is Successfully Up!"))

    def with_config(self, config: Path | str) -> Self:
        """Starts the broker with the entities of a Config.json: its path, or its text."""
        return self.with_copy_into_container(config.encode() if isinstance(config, str) else config, self.CONFIG)

    def start(self) -> Self:
        try:
            return super().start()
        except (RuntimeError, TimeoutError) as error:
            # The broker logs to standard error.
            log = self.get_logs()[1].decode(errors="replace")
            raise RuntimeError(f"The broker has not started:\n{log}") from error

    def get_connection_string(self) -> str:
        """Returns the connection string for messages, and for administration where that does not need port 443."""
        place = f"{self.get_container_host_ip()}:{self.get_exposed_port(self.AMQP_PORT)}"
        key = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE"
        return f"Endpoint=sb://{place};{key};UseDevelopmentEmulator=true;"
