"""S161 to S167 and S172: rules, as config.json has them. (S168 to S170, which change them, are in test_administration.py.)"""

import asyncio
from datetime import timedelta

from azure.servicebus import ServiceBusMessage

from conftest import bodies, complete, nothing, receive

# The table of S162: subject, message id, application properties, and who gets it.
FILTERED = [
    ("subject", "m-1", {"color": "red", "size": 1}, "eq in like exists or math sys user keyword"),
    ("other", "m-2", {"color": "red", "size": 5}, "eq between in like exists paren user"),
    ("subject", "x-3", {"color": "green", "size": 10}, "ne between in exists paren"),
    (None, "m-4", {"color": "blue", "size": 11, "urgent": True}, "ne gt notin exists or paren bool"),
    (None, "m-5", {"size": 1, "urgent": False}, "isnull exists or math"),
    (None, "m-6", {"color": "Red", "note": "50% off"}, "ne notin escape paren"),
    (None, "m-7", {"note": "500", "strange name": 1}, "isnull quoted"),
    (None, "m-8", {"color": "rust", "size": "20"}, "ne notin like exists paren"),
]
FILTERS = "eq ne gt between in notin like escape isnull exists or paren math bool quoted sys user keyword".split()


def of_color(content: str, **properties) -> ServiceBusMessage:
    return ServiceBusMessage(content, application_properties=properties)


async def gets(topic, name: str, count: int) -> list:
    """What a subscription has: `count` messages and no more."""
    async with topic.subscription(name).receiver() as receiver:
        messages = await receive(receiver, count) if count else []
        await complete(receiver, messages)
        await nothing(receiver)
    return messages


async def all_get(topic, expected: dict[str, list[str]]) -> None:
    async def check(name: str) -> tuple[str, list[str]]:
        return name, bodies(await gets(topic, name, len(expected[name])))

    assert dict(await asyncio.gather(*(check(name) for name in expected))) == expected


async def test_s161_a_subscription_without_rules_takes_all(topic):
    await topic.send("1", "2")
    await all_get(topic, {"all": ["1", "2"], "every": ["1", "2"], "none": []})


async def test_s162_sql_filters_choose(topic):
    await topic.send(*(
        ServiceBusMessage(id, subject=subject, message_id=id, application_properties=properties) for subject, id, properties, _ in FILTERED
    ))
    await all_get(topic, {name: [id for _, id, _, getters in FILTERED if name in getters.split()] for name in FILTERS})


async def test_s163_correlation_filters_choose(topic):
    def made(content: str, suffix: str) -> ServiceBusMessage:
        return ServiceBusMessage(
            content, correlation_id="c" + suffix, subject="s" + suffix, message_id="m" + suffix, to="t" + suffix, reply_to="r" + suffix,
            reply_to_session_id="rs" + suffix, session_id="x" + suffix, content_type="text/plain" if suffix == "1" else "text/html",
            application_properties={"color": "red" if suffix == "1" else "blue", "size": int(suffix)},
        )

    close = ServiceBusMessage("close", subject="S1", application_properties={"color": "red", "size": "1"})
    await topic.send(made("matching", "1"), made("other", "2"), "nothing", close)
    await all_get(topic, {
        **{name: ["matching"] for name in ("id", "label", "mid", "to", "reply", "rsid", "sid", "type", "both")},
        "prop": ["matching", "close"],
    })


async def test_s164_an_action_changes_its_copy_only(topic):
    await topic.send(ServiceBusMessage("1", subject="s", application_properties={"n": 1, "secret": "x"}))
    (changed,) = await gets(topic, "act", 1)
    assert changed.subject == "changed"
    assert changed.application_properties == {b"urgent": b"yes", b"n": 2, b"RuleName": b"change"}
    (plain,) = await gets(topic, "plain", 1)
    assert plain.subject == "s"
    assert plain.application_properties == {b"n": 1, b"secret": b"x"}


async def test_s165_every_action_makes_a_copy(topic):
    await topic.send(of_color("1", n=1), of_color("2", n=2))
    messages = await gets(topic, "five", 4)
    assert sorted(bodies(messages)) == ["1", "1", "1", "2"]
    copies = [each for each in messages if str(each) == "1"]
    assert sorted(
        (each.application_properties.get(b"source", b""), each.application_properties.get(b"RuleName", b"")) for each in copies
    ) == [(b"", b""), (b"r4", b"r4"), (b"r5", b"r5")]
    assert sorted(each.sequence_number for each in messages) == [1, 2, 3, 4]
    assert {each.enqueued_sequence_number for each in copies} == {1}
    assert messages[-1].enqueued_sequence_number == 2


async def test_s166_each_message_of_a_batch_is_judged(topic):
    await topic.send_batch(of_color("1", n=1), of_color("2", n=2), of_color("3", n=1), "4")
    messages = await gets(topic, "some", 2)
    assert [(str(each), each.sequence_number) for each in messages] == [("1", 1), ("3", 2)]


async def test_s167_a_filter_may_fail(topic):
    await topic.send(of_color("2", n=2), of_color("0", n=0), "missing")
    await all_get(topic, {"strict": ["2"], "lax": ["2"]})
    (message,) = await topic.subscription("strict").take_dead(1)
    assert str(message) == "0"
    assert message.dead_letter_reason and message.dead_letter_error_description
    await topic.subscription("lax").take_dead(0)


async def test_s172_an_action_may_move_to_another_session(topic):
    await topic.send(ServiceBusMessage("1", session_id="x"))
    s = topic.subscription("s")
    assert await s.sessions() == ["moved"]
    async with s.session("moved") as receiver:
        (message,) = await receive(receiver, 1)
        assert (str(message), message.session_id) == ("1", "moved")
        await receiver.complete_message(message)


async def test_s474_an_action_sets_the_time_to_live(topic):
    await topic.send("1")
    (message,) = await gets(topic, "a", 1)
    assert message.time_to_live == timedelta(minutes=2)
