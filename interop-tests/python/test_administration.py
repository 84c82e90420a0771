"""S277 to S280, S285, S286, S288 to S290, and S168 to S170: what administrators do, and what messages make of it."""

from datetime import timedelta

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessagingEntityDisabledError
from azure.servicebus.management import ApiVersion, CorrelationRuleFilter, SqlRuleAction, SqlRuleFilter, TrueRuleFilter

import both
from conftest import Queue, bodies, not_there, numbers, of, receive, soon
from descriptions import access, near, refused, said, told


def numbered(body: str, n: int, **properties) -> ServiceBusMessage:
    return ServiceBusMessage(body, application_properties={"n": n, **properties})


async def round_trip(queue: Queue) -> None:
    await queue.send("there")
    assert bodies(await queue.take(1)) == ["there"]


async def rules(administrator, topic: str, name: str) -> dict:
    """The rules of a subscription: what they say, by name."""
    return {rule.name: (said(rule.filter), said(rule.action)) for rule in await both.listed(administrator, "list_rules", topic, name)}


async def counts(administrator, name: str) -> list[int]:
    """Active, dead-lettered, scheduled, to be forwarded, not forwarded, and all."""
    found = await administrator.get_queue_runtime_properties(name)
    return [
        found.active_message_count, found.dead_letter_message_count, found.scheduled_message_count,
        found.transfer_message_count, found.transfer_dead_letter_message_count, found.total_message_count,
    ]


async def test_s277_rules_made_by_an_administrator_are_at_work_at_once(administrator, secured):
    await administrator.create_topic("s277")
    await administrator.create_subscription("s277", "a")
    topic = secured.topic("s277")
    await topic.send(numbered("before", 1))
    await administrator.create_rule(
        "s277", "a", "small", filter=SqlRuleFilter("n < @limit", {"@limit": 10}), action=SqlRuleAction("SET size = 'small'")
    )
    await administrator.delete_rule("s277", "a", "$Default")
    await topic.send(numbered("small", 1))
    await topic.send(numbered("large", 20))
    rule = await administrator.get_rule("s277", "a", "small")
    rule.filter, rule.action = CorrelationRuleFilter(properties={"n": 20}), None
    await administrator.update_rule("s277", "a", rule)
    await topic.send(numbered("again", 1))
    await topic.send(numbered("twenty", 20))
    await administrator.delete_rule("s277", "a", "small")
    await topic.send(numbered("after", 20))
    messages = await topic.subscription("a").take(3)
    assert bodies(messages) == ["before", "small", "twenty"]
    # The copy of a rule with an action names the rule.
    small = {b"n": 1, b"size": b"small", b"RuleName": b"small"}
    assert [each.application_properties for each in messages] == [{b"n": 1}, small, {b"n": 20}]


async def test_s278_counts_sizes_and_times_tell_what_is_there(administrator, secured):
    await administrator.create_queue("s278")
    fresh = await administrator.get_queue_runtime_properties("s278")
    near(fresh.created_at_utc, 60)
    near(fresh.updated_at_utc, 60)
    assert (fresh.name, fresh.size_in_bytes, fresh.total_message_count, fresh.accessed_at_utc.year) == ("s278", 0, 0, 1)

    queue = secured.queue("s278")
    await queue.send(*"123456", bytes(100 * 1024))
    await queue.schedule(soon(3600), "later", "later")
    async with queue.receiver() as receiver:
        messages = await receive(receiver, 4)
        await receiver.complete_message(messages[0])
        await receiver.dead_letter_message(messages[1])
        await receiver.defer_message(messages[2])
        # One is locked, one deferred, three are free: all count as active.
        assert await counts(administrator, "s278") == [5, 1, 2, 0, 0, 8]
    found = await administrator.get_queue_runtime_properties("s278")
    assert 100 * 1024 < found.size_in_bytes < 110 * 1024
    near(found.accessed_at_utc, 60)

    await administrator.update_queue(await administrator.get_queue("s278"), max_delivery_count=5)
    after = await administrator.get_queue_runtime_properties("s278")
    assert after.created_at_utc == fresh.created_at_utc and after.updated_at_utc > fresh.updated_at_utc
    listed = await both.listed(administrator, "list_queues_runtime_properties")
    assert {each.total_message_count for each in listed if each.name == "s278"} == {8}


async def test_s279_counts_of_topics_and_subscriptions(administrator, secured):
    await administrator.create_topic("s279")
    for name in "ab":
        await administrator.create_subscription("s279", name)
    await administrator.create_rule("s279", "b", "sql", filter=SqlRuleFilter("n = 1"))
    await administrator.create_rule("s279", "b", "correlation", filter=CorrelationRuleFilter(label="s"))
    topic = secured.topic("s279")
    await topic.send(*"123")
    await topic.schedule(soon(3600), "4")
    async with topic.subscription("a").receiver() as receiver:
        messages = await receive(receiver, 2)
        await receiver.complete_message(messages[0])
        await receiver.dead_letter_message(messages[1])

    found = await administrator.get_topic_runtime_properties("s279")
    assert (found.name, found.subscription_count, found.scheduled_message_count) == ("s279", 2, 1)
    assert (found.sql_filter_count, found.correlation_filter_count) == (3, 1)
    assert found.size_in_bytes > 0
    near(found.created_at_utc, 60)
    near(found.accessed_at_utc, 60)
    listed = await both.listed(administrator, "list_topics_runtime_properties")
    assert {each.subscription_count for each in listed if each.name == "s279"} == {2}

    single = await administrator.get_subscription_runtime_properties("s279", "a")
    listed = await both.listed(administrator, "list_subscriptions_runtime_properties", "s279")
    assert [
        (each.name, each.total_message_count, each.active_message_count, each.dead_letter_message_count)
        for each in [single, *listed]
    ] == [("a", 2, 1, 1), ("a", 2, 1, 1), ("b", 3, 3, 0)]


async def test_s280_what_is_deleted_is_gone_with_its_messages_and_links(administrator, secured):
    await administrator.create_queue("s280")
    queue = secured.queue("s280")
    await queue.send("1", "2")
    async with queue.sender() as sender, queue.receiver() as receiver:
        await sender.send_messages(ServiceBusMessage("3"))
        await receive(receiver, 1)
        await administrator.delete_queue("s280")
        with not_there():
            await sender.send_messages(ServiceBusMessage("4"))
        with not_there():
            await receiver.receive_messages(max_wait_time=20)
    with refused(404, ResourceNotFoundError):
        await administrator.get_queue("s280")

    # One of that name that is made again is another.
    await administrator.create_queue("s280")
    await queue.send("new")
    messages = await queue.take(1)
    assert (bodies(messages), numbers(messages)) == (["new"], [1])

    await administrator.create_topic("s280t")
    for name in "ab":
        await administrator.create_subscription("s280t", name)
    topic = secured.topic("s280t")
    await topic.send("1")
    await administrator.delete_subscription("s280t", "a")
    with not_there():
        await topic.subscription("a").take(1)
    assert bodies(await topic.subscription("b").take(1)) == ["1"]
    await administrator.delete_topic("s280t")
    with not_there():
        await topic.subscription("b").take(1)
    with not_there():
        await topic.send("2")


async def test_s285_changes_are_at_work_at_once(administrator, secured):
    made = await administrator.create_queue("s285")
    queue = secured.queue("s285")
    async with queue.sender() as sender, queue.receiver() as receiver:
        await sender.send_messages([ServiceBusMessage("1"), ServiceBusMessage("2")])
        await receiver.abandon_message((await receive(receiver, 1))[0])
        await administrator.update_queue(made, max_delivery_count=2)
        await receiver.abandon_message((await receive(receiver, 1))[0])
        (dead,) = await queue.take_dead(1)
        assert (str(dead), dead.dead_letter_reason) == ("1", "MaxDeliveryCountExceeded")

        await administrator.update_queue(await administrator.get_queue("s285"), lock_duration=timedelta(seconds=20))
        (each,) = await receive(receiver, 1)
        near(each.locked_until_utc, 15, soon(20))
        await receiver.complete_message(each)

        await administrator.update_queue(await administrator.get_queue("s285"), status="Disabled")
        with pytest.raises(MessagingEntityDisabledError):
            await sender.send_messages(ServiceBusMessage("3"))
        with pytest.raises(MessagingEntityDisabledError):
            await receiver.receive_messages(max_wait_time=20)
        await administrator.update_queue(await administrator.get_queue("s285"), status="Active")
        await sender.send_messages(ServiceBusMessage("4"))
        assert bodies(await receive(receiver, 1)) == ["4"]


async def test_s286_a_queue_is_made_to_forward_and_not_to(administrator, secured):
    with refused(400):
        await administrator.create_queue("s286", forward_to="s286-no-such")
    for name in ("s286b", "s286d"):
        await administrator.create_queue(name)
    await administrator.create_queue("s286", forward_to="s286b", forward_dead_lettered_messages_to="s286d")
    await administrator.create_topic("s286t")
    absolute = f"sb://{secured.secured.address}/s286b"
    await administrator.create_subscription("s286t", "a", forward_to=absolute, forward_dead_lettered_messages_to="s286d")
    for found in (await administrator.get_queue("s286"), await administrator.get_subscription("s286t", "a")):
        assert found.forward_to == absolute
        assert found.forward_dead_lettered_messages_to == f"sb://{secured.secured.address}/s286d"
    queue, topic = secured.queue("s286"), secured.topic("s286t")
    await queue.send("queue")
    await topic.send("topic")
    assert bodies(await secured.queue("s286b").take(2)) == ["queue", "topic"]

    # Without a target it keeps what it gets, and its dead letters.
    await administrator.update_queue(await administrator.get_queue("s286"), forward_to=None, forward_dead_lettered_messages_to=None)
    found = await administrator.get_queue("s286")
    assert (found.forward_to, found.forward_dead_lettered_messages_to) == (None, None)
    await queue.send("kept")
    async with queue.receiver() as receiver:
        await receiver.dead_letter_message((await receive(receiver, 1))[0])
    assert bodies(await queue.take_dead(1)) == ["kept"]


async def test_s288_administration_on_every_port_with_tls_and_without(secured):
    broker = secured.secured.broker
    hosts = [f"localhost:{broker.amqp_port}", f"localhost:{broker.http_port}", f"{secured.secured.address}:5671"]
    for index, host in enumerate(hosts):
        for scheme in ("https", "http"):
            administrator = secured.administrator(secured.secured.connection_string(host=host))
            both.redirect(administrator, f"{scheme}://{host}")
            name = f"s288-{index}-{scheme}"
            await administrator.create_queue(name)
            await round_trip(secured.queue(name))
            await administrator.delete_queue(name)


async def test_s288_every_version_of_the_api(secured):
    for version in ApiVersion:
        administrator = secured.administrator(api_version=version)
        name = f"s288-{version.value}"
        made = await administrator.create_queue(name, max_delivery_count=7)
        await administrator.update_queue(made, lock_duration=timedelta(seconds=30))
        found = await administrator.get_queue(name)
        assert (found.max_delivery_count, found.lock_duration) == (7, timedelta(seconds=30))
        assert name in [each.name for each in await both.listed(administrator, "list_queues")]
        await administrator.delete_queue(name)


async def test_s288_the_emulators_connection_string(suite_administrator, client):
    await suite_administrator.create_queue("s288")
    await round_trip(Queue(client, "s288"))
    await suite_administrator.delete_queue("s288")


async def test_s289_names_may_have_slashes_and_other_signs(administrator, secured):
    for name in ("s289/orders/new", "s289.a-b_c", "s289~ü"):
        await administrator.create_queue(name)
        assert (await administrator.get_queue(name)).name == name
        assert name in [each.name for each in await both.listed(administrator, "list_queues")]
        await round_trip(secured.queue(name))
        await administrator.delete_queue(name)
        with refused(404, ResourceNotFoundError):
            await administrator.get_queue(name)
    await administrator.create_topic("s289/topic")
    await administrator.create_subscription("s289/topic", "a.b-c_d")
    await administrator.create_rule("s289/topic", "a.b-c_d", "a.rule-b_c")
    with refused(400):
        await administrator.create_rule("s289/topic", "a.b-c_d", "a rule & more")
    assert list(await rules(administrator, "s289/topic", "a.b-c_d")) == ["$Default", "a.rule-b_c"]
    await administrator.delete_rule("s289/topic", "a.b-c_d", "$Default")
    await secured.topic("s289/topic").send("there")
    assert bodies(await secured.topic("s289/topic").subscription("a.b-c_d").take(1)) == ["there"]


async def test_s168_rules_are_listed_added_and_removed(suite_administrator, topic):
    assert await rules(suite_administrator, "s168", "a") == {"$Default": (said(TrueRuleFilter()), None)}
    small = SqlRuleFilter("n < 10"), SqlRuleAction("SET size = 'small'")
    red = CorrelationRuleFilter(properties={"color": "red"})
    await suite_administrator.create_rule("s168", "a", "small", filter=small[0], action=small[1])
    await suite_administrator.create_rule("s168", "a", "red", filter=red)
    await suite_administrator.delete_rule("s168", "a", "$Default")
    for each in await both.listed(suite_administrator, "list_rules", "s168", "a"):
        near(each.created_at_utc, 60)
    assert await rules(suite_administrator, "s168", "a") == {"red": (said(red), None), "small": (said(small[0]), said(small[1]))}
    await topic.send_batch(numbered("1", 1), numbered("2", 20), numbered("3", 20, color="red"))
    messages = await topic.subscription("a").take(2)
    assert bodies(messages) == ["1", "3"]
    assert messages[0].application_properties == {b"n": 1, b"size": b"small", b"RuleName": b"small"}


async def test_s169_what_is_there_what_is_not_and_what_is_no_rule_is_refused(suite_administrator):
    one = SqlRuleFilter("1=1")
    await suite_administrator.create_rule("s169", "a", "twice", filter=one)
    with refused(409, ResourceExistsError):
        await suite_administrator.create_rule("s169", "a", "twice", filter=SqlRuleFilter("1=0"))
    with refused(404, ResourceNotFoundError):
        await suite_administrator.delete_rule("s169", "a", "no-such")
    with refused(400):
        await suite_administrator.create_rule("s169", "a", "bad", filter=SqlRuleFilter("SELECT * FROM"))
    with refused(400):
        await suite_administrator.create_rule("s169", "a", "bad2", filter=one, action=SqlRuleAction("JUMP"))
    assert await rules(suite_administrator, "s169", "a") == {"$Default": (said(TrueRuleFilter()), None), "twice": (said(one), None)}
    for n in range(120):
        await suite_administrator.create_rule("s169", "a", f"rule-{n}", filter=SqlRuleFilter(f"n = {n}"))
    assert len(await rules(suite_administrator, "s169", "a")) == 122


@pytest.mark.restart
async def test_s170_changed_rules_survive_a_kill(suite_administrator, topic, broker):
    one = SqlRuleFilter("n = 1"), SqlRuleAction("SET seen = TRUE")
    await suite_administrator.create_rule("s170", "a", "one", filter=one[0], action=one[1])
    await suite_administrator.delete_rule("s170", "a", "$Default")
    broker.kill()
    broker.start()
    assert await rules(suite_administrator, "s170", "a") == {"one": (said(one[0]), said(one[1]))}
    await topic.send_batch(numbered("2", 2), numbered("1", 1))
    messages = await topic.subscription("a").take(1)
    assert bodies(messages) == ["1"]
    assert messages[0].application_properties == {b"n": 1, b"seen": True, b"RuleName": b"one"}


@pytest.mark.restart_secured
async def test_s290_what_an_administrator_did_survives_a_kill(administrator, secured):
    speaker = access("speaker", "Send")
    await administrator.create_queue(
        "s290", lock_duration=timedelta(seconds=45), requires_session=True, user_metadata="mine", authorization_rules=[speaker]
    )
    await administrator.update_queue(await administrator.get_queue("s290"), max_delivery_count=3)
    await secured.queue("s290").send(*of("x", "1"))
    await administrator.create_topic("s290t")
    await administrator.create_subscription("s290t", "a", user_metadata="its own")
    await administrator.create_rule("s290t", "a", "one", filter=SqlRuleFilter("n = 1"))
    await administrator.create_queue("s290-gone")
    await administrator.delete_queue("s290-gone")
    queue, times = await administrator.get_queue("s290"), await administrator.get_queue_runtime_properties("s290")
    secured.secured.broker.kill()
    secured.secured.broker.start()

    after, times_after = await administrator.get_queue("s290"), await administrator.get_queue_runtime_properties("s290")
    assert told(after) == told(queue)
    assert vars(after.authorization_rules[0]) == vars(queue.authorization_rules[0])
    assert (times_after.created_at_utc, times_after.updated_at_utc) == (times.created_at_utc, times.updated_at_utc)
    await Queue(secured.keyed("speaker", speaker.primary_key), "s290").send(*of("x", "2"))
    async with secured.queue("s290").session("x") as receiver:
        assert bodies(await receive(receiver, 2)) == ["1", "2"]
    assert (await administrator.get_subscription("s290t", "a")).user_metadata == "its own"
    assert await rules(administrator, "s290t", "a") == {
        "$Default": (said(TrueRuleFilter()), None), "one": (said(SqlRuleFilter("n = 1")), None),
    }
    with refused(404, ResourceNotFoundError):
        await administrator.get_queue("s290-gone")
