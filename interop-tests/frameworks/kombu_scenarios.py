"""kombu by its transport `azureservicebus`: connections, queues, producers and consumers as a program of its own would have them."""

from __future__ import annotations

import socket
import sys
import time
import uuid
from datetime import datetime, timezone
from decimal import Decimal

from azure.core.exceptions import ResourceNotFoundError
from kombu import Connection, Consumer, Exchange, Producer, Queue

from stage import HERE, HOST, KEY, KEY_NAME, NAMESPACE, Failure, Play, Scene, check, wait

PLAY = Play("kombu", absent={
    "S432": "no tries of its own: see S451",
    "S433": "the transport has no delay",
    "S434": "the transport does not dead-letter",
    "S436": "kombu has no worker",
    "S441": "an application's own affair: Celery's is S441 of celery",
    "S443": "no chains",
    "S445": "no timetable",
    "S447": "one message a send",
})

URL = f"azureservicebus://{KEY_NAME}:{KEY}@{NAMESPACE}"


def connection(url: str = URL, **options) -> Connection:
    return Connection(url, transport_options={"wait_time_seconds": 1, "retry_total": 2, **options})


def take(channel, queues: list[Queue], count: int, handle, no_ack: bool = False, prefetch: int = 0, seconds: float = 40) -> None:
    """Consumes until `handle` has had `count` messages."""
    had = 0

    def on_message(message) -> None:
        nonlocal had
        had += 1
        handle(message)

    with Consumer(channel, queues, on_message=on_message, no_ack=no_ack, accept=["json", "text/plain"]) as consumer:
        if prefetch:
            consumer.qos(prefetch_count=prefetch)
        deadline = time.monotonic() + seconds
        while had < count:
            if time.monotonic() > deadline:
                raise Failure(f"{had} messages of {count} after {seconds:.0f} s")
            try:
                channel.connection.client.drain_events(timeout=2)
            except socket.timeout:
                pass


def nothing(channel, queue: Queue, seconds: float = 2) -> None:
    check(queue(channel).get() is None, f"there is a message in {queue.name}")


@PLAY.scenario("S431")
def work_goes_through(scene: Scene) -> None:
    exchange = Exchange("work", type="direct")
    queue = Queue(scene.queue, exchange, routing_key="key")
    bodies = [
        {"number": 1, "text": "ä ☃", "list": [1, 2.5, None, True]}, "a text", [1, 2, 3], {"when": datetime.now(timezone.utc)},
        {"id": uuid.uuid4(), "sum": Decimal("1.50")}, {"large": "x" * 300_000},
    ]
    with connection() as link:
        producer = Producer(link.channel(), exchange)
        for body in bodies:
            producer.publish(
                body, routing_key="key", declare=[queue], headers={"kind": type(body).__name__}, correlation_id="c", priority=3,
                content_type=None, compression="zlib" if "large" in body else None,
            )
        producer.publish(b"\x00\xff", routing_key="key", content_type="application/x-bytes", content_encoding="binary")
        found = []

        def handle(message) -> None:
            found.append((message.payload if message.content_type != "application/x-bytes" else message.body, message.headers,
                          message.properties.get("correlation_id"), message.properties.get("priority")))
            message.ack()

        take(link.channel(), [queue], len(bodies) + 1, handle)
    check([each[0] for each in found[:-1]] == bodies, f"the bodies were {[each[0] for each in found[:-1]]}")
    check(bytes(found[-1][0]) == b"\x00\xff", f"the bytes were {found[-1][0]!r}")
    check(all(each[2:] == ("c", 3) for each in found[:-1]), "a property was lost")
    check([each[1]["kind"] for each in found[:-1]] == [type(body).__name__ for body in bodies], "a header was lost")
    scene.wait_until_empty()


@PLAY.scenario("S435")
def a_consumer_is_killed(scene: Scene) -> None:
    with connection(peek_lock_seconds=10) as link:
        queue = Queue(scene.queue)
        link.SimpleQueue(scene.queue).put({"number": 1})
        dying = scene.start(sys.executable, str(HERE / "programs" / "kombu_consumer.py"), URL=URL)
        [taken] = scene.wait_for("taken")
        dying.kill()
        found = []
        take(link.channel(), [queue], 1, lambda message: (found.append((message.payload, time.time())), message.ack()))
    check(found[0][0] == {"number": 1}, f"it got {found[0][0]}")
    check(found[0][1] > taken["at"] + 8, f"it came again after {found[0][1] - taken['at']:.1f} s, before the lock could end")
    scene.wait_until_empty()


@PLAY.scenario("S437", alone=True)
def the_broker_is_killed(scene: Scene) -> None:
    with connection() as link:
        queue = Queue(scene.queue)
        channel = link.channel()
        producer = Producer(channel)
        policy = {"interval_start": 0.2, "interval_max": 1, "max_retries": 20}
        publish = {"routing_key": scene.queue, "retry": True, "retry_policy": policy}
        producer.publish({"number": 0}, declare=[queue], **publish)
        found = []

        def handle(message) -> None:
            found.append(message.payload["number"])
            message.ack()

        take(channel, [queue], 1, handle)
        for number in range(1, 4):
            producer.publish({"number": number}, **publish)
        scene.house.broker.kill()
        scene.house.broker.start()
        producer.publish({"number": 4}, **publish)
        take(channel, [queue], 4, handle)
    check(sorted(found) == [0, 1, 2, 3, 4], f"it got {found}")
    scene.wait_until_empty()


@PLAY.scenario("S438")
def longer_than_the_lock(scene: Scene) -> None:
    with connection(peek_lock_seconds=10, use_lock_renewal=True, max_lock_renewal_duration=60) as link:
        queue = Queue(scene.queue)
        link.SimpleQueue(scene.queue).put({"number": 1})
        held = []
        take(link.channel(), [queue], 1, held.append)
        deadline = time.monotonic() + 14
        with connection() as other:
            channel = other.channel()
            while time.monotonic() < deadline:
                nothing(channel, queue)
        held[0].ack()
        scene.wait_until_empty()


@PLAY.scenario("S439")
def queues_are_made_counted_purged_deleted(scene: Scene) -> None:
    with connection(queue_name_prefix="own-") as link:
        channel = link.channel()
        # Signs that a queue's name cannot have are replaced.
        exchange = Exchange(scene.queue)
        queue = Queue(f"{scene.queue}@host:1", exchange, routing_key="key")(channel)
        gone: list[int] = []
        queue.declare()
        queue.declare()
        producer = Producer(channel, exchange, routing_key="key")
        for number in range(12):
            producer.publish({"number": number})
        with scene.client() as client:
            with client.get_queue_receiver(f"own-{scene.queue}_host_1") as receiver:
                check(len(receiver.peek_messages(100)) == 12, "the queue is not called as it should be")
        count = channel.queue_declare(queue.name, passive=True).message_count
        check(count == 12, f"it counts {count}")
        # One purge ends with the first short answer of the SDK's, whatever is still there, and does not count what was on its way then.
        wait(lambda: gone.append(queue.purge()) or not channel.queue_declare(queue.name, passive=True).message_count, "it is empty")
        check(sum(gone) <= 12, f"it purged {gone}")
        queue.delete()
        try:
            channel.queue_mgmt_service.get_queue(f"own-{scene.queue}_host_1")
            raise Failure("the queue is still there")
        except ResourceNotFoundError:
            pass
        # And made again.
        queue.declare()
        producer.publish({"number": 1})
        take(channel, [queue], 1, lambda message: message.ack())
        queue.delete()


@PLAY.scenario("S440")
def by_routing_key(scene: Scene) -> None:
    exchange = Exchange("orders", type="topic")
    every = Queue(f"{scene.queue}-every", exchange, routing_key="orders.#")
    paid = Queue(f"{scene.queue}-paid", exchange, routing_key="orders.*.paid")
    with connection() as link:
        producer = Producer(link.channel(), exchange)
        for key in ("orders.1.made", "orders.1.paid", "orders.2.made", "bills.1.paid"):
            producer.publish({"key": key}, routing_key=key, declare=[every, paid])
        found: dict[str, list[str]] = {}
        for queue, count in ((every, 3), (paid, 1)):
            got = found.setdefault(queue.name, [])
            take(link.channel(), [queue], count, lambda message, got=got: (got.append(message.payload["key"]), message.ack()))
    check(list(found.values()) == [["orders.1.made", "orders.1.paid", "orders.2.made"], ["orders.1.paid"]], f"they got {found}")


@PLAY.scenario("S442")
def many_by_many(scene: Scene) -> None:
    count = 300
    with connection() as link:
        producer = Producer(link.channel())
        queue = Queue(scene.queue)
        queue(link.channel()).declare()
        programs = [
            scene.start(sys.executable, str(HERE / "programs" / "kombu_consumer.py"), URL=URL, SETTLE="yes") for _ in range(2)
        ]
        for number in range(count):
            producer.publish({"number": number}, routing_key=scene.queue)
        taken = scene.wait_for("taken", count, seconds=90)
        scene.wait_until_empty()
    check(sorted(each["body"]["number"] for each in taken) == list(range(count)), "not every message came once")
    check(len({each["pid"] for each in taken}) == len(programs), "one of them got nothing")


@PLAY.scenario("S444")
def without_locks(scene: Scene) -> None:
    with connection() as link:
        queue = Queue(scene.queue)
        producer = Producer(link.channel())
        for number in range(5):
            producer.publish({"number": number}, routing_key=scene.queue, declare=[queue])
        found = []
        take(link.channel(), [queue], 5, lambda message: found.append(message.payload["number"]), no_ack=True)
        check(found == list(range(5)), f"it got {found}")
        scene.wait_until_empty(seconds=2)


@PLAY.scenario("S446")
def with_an_identity(scene: Scene) -> None:
    asked = scene.house.issuer.given
    with connection(f"azureservicebus://DefaultAzureCredential@{HOST}") as link:
        box = link.SimpleQueue(scene.queue)
        box.put({"number": 1})
        message = box.get(timeout=20)
        check(message.payload == {"number": 1}, f"it got {message.payload}")
        message.ack()
        box.close()
    check(scene.house.issuer.given > asked, "no token was asked for")
    scene.wait_until_empty()


@PLAY.scenario("S451")
def rejected_and_requeued(scene: Scene) -> None:
    """The transport leaves both to the lock: the message comes again when it ends."""
    with connection(peek_lock_seconds=10) as link:
        queue = Queue(scene.queue)
        box = link.SimpleQueue(scene.queue)
        box.put({"number": 1})
        began = time.time()
        times = []

        def handle(message) -> None:
            times.append((time.time(), message.delivery_info["azure_message"].delivery_count))
            if len(times) == 1:
                message.requeue()
            elif len(times) == 2:
                message.reject()
            else:
                message.ack()

        take(link.channel(), [queue], 3, handle)
    check([count for _, count in times] == [0, 1, 2], f"the counts were {[count for _, count in times]}")
    check(times[2][0] - began > 18, f"it came three times in {times[2][0] - began:.1f} s")
    scene.wait_until_empty()


@PLAY.scenario("S452")
def a_wrong_key(scene: Scene) -> None:
    with connection(f"azureservicebus://{KEY_NAME}:wrong{KEY}@{NAMESPACE}") as link:
        try:
            link.SimpleQueue(scene.queue).put({"number": 1})
            raise Failure("a wrong key is taken")
        except Failure:
            raise
        except Exception as error:
            name = type(error).__name__
            check(name == "ClientAuthenticationError", f"it is a {name}: {error}")
