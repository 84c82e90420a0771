"""S271 to S276 and S281 to S284: what administrators write down is there, and what cannot be is refused."""

from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.servicebus.exceptions import MessagingEntityDisabledError
from azure.servicebus.management import (
    CorrelationRuleFilter,
    EntityStatus,
    FalseRuleFilter,
    QueueProperties,
    RuleProperties,
    SqlRuleAction,
    SqlRuleFilter,
    TrueRuleFilter,
)

import both
from conftest import of
from descriptions import FOREVER, access, near, refused, said, told, with_keys

# What a queue is that was made without properties; how large a message may be is the broker's to say.
QUEUE = {
    "authorization_rules": [], "auto_delete_on_idle": FOREVER, "availability_status": "Available",
    "dead_lettering_on_message_expiration": False, "default_message_time_to_live": FOREVER,
    "duplicate_detection_history_time_window": timedelta(minutes=10), "enable_batched_operations": True, "enable_express": False,
    "enable_partitioning": False, "forward_dead_lettered_messages_to": None, "forward_to": None,
    "lock_duration": timedelta(minutes=1), "max_delivery_count": 10, "max_size_in_megabytes": 1024,
    "requires_duplicate_detection": False, "requires_session": False, "status": EntityStatus.ACTIVE, "user_metadata": None,
}
SUBSCRIPTION = {
    "auto_delete_on_idle": FOREVER, "availability_status": "Available", "dead_lettering_on_filter_evaluation_exceptions": True,
    "dead_lettering_on_message_expiration": False, "default_message_time_to_live": FOREVER, "enable_batched_operations": True,
    "forward_dead_lettered_messages_to": None, "forward_to": None, "lock_duration": timedelta(minutes=1),
    "max_delivery_count": 10, "requires_session": False, "status": EntityStatus.ACTIVE, "user_metadata": None,
}


async def test_s271_a_queue_has_the_properties_that_it_was_made_with(administrator, secured):
    wanted = {
        **QUEUE, "authorization_rules": [access("speaker", "Send"), access("all", "Manage", "Send", "Listen")],
        "auto_delete_on_idle": timedelta(days=1), "dead_lettering_on_message_expiration": True,
        "default_message_time_to_live": timedelta(days=1, hours=2, minutes=3, seconds=4.5),
        "duplicate_detection_history_time_window": timedelta(minutes=7), "enable_batched_operations": False,
        "lock_duration": timedelta(seconds=45), "max_delivery_count": 7, "max_message_size_in_kilobytes": 2048,
        "max_size_in_megabytes": 2048, "requires_duplicate_detection": True, "requires_session": True,
        "user_metadata": '<mine> & "ü"',
    }
    asked = {name: value for name, value in wanted.items() if value is not None and name != "availability_status"}
    assert told(await administrator.create_queue("s271", **asked)) == with_keys(wanted)
    found = await administrator.get_queue("s271")
    assert (found.name, told(found)) == ("s271", with_keys(wanted))

    # What can be changed: some of it in the properties, some by name.
    found.lock_duration, found.default_message_time_to_live = timedelta(seconds=10), FOREVER
    found.auto_delete_on_idle, found.user_metadata = "P10675199DT2H48M5.4775807S", "other"
    changed = {
        "dead_lettering_on_message_expiration": False, "duplicate_detection_history_time_window": timedelta(minutes=1),
        "enable_batched_operations": True, "max_delivery_count": 3, "max_message_size_in_kilobytes": 1024,
        "max_size_in_megabytes": 1024, "status": EntityStatus.SEND_DISABLED,
    }
    await administrator.update_queue(found, **changed)
    assert told(await administrator.get_queue("s271")) == with_keys({
        **wanted, **changed, "lock_duration": timedelta(seconds=10), "default_message_time_to_live": FOREVER,
        "auto_delete_on_idle": FOREVER, "user_metadata": "other",
    })
    with pytest.raises(MessagingEntityDisabledError):
        await secured.queue("s271").send(*of("x", "1"))


async def test_s271_what_excludes_duplicate_detection_comes_back_too(administrator):
    wanted = {"enable_express": True, "enable_partitioning": True}
    made = await administrator.create_queue("s271b", **wanted)
    for found in (made, await administrator.get_queue("s271b")):
        assert {name: value for name, value in told(found).items() if name in wanted} == wanted


async def test_s272_a_queue_without_properties_has_the_services_defaults(administrator, secured):
    await administrator.create_queue("S272")
    found = told(await administrator.get_queue("s272"))
    assert found.pop("max_message_size_in_kilobytes") > 0
    assert found == QUEUE
    queue = secured.queue("s272")
    await queue.send("works")
    assert [str(each) for each in await queue.take(1)] == ["works"]


async def test_s273_a_topic_has_the_properties_that_it_was_made_with(administrator, secured):
    wanted = {
        "authorization_rules": [access("listener", "Listen")], "auto_delete_on_idle": timedelta(minutes=5),
        "default_message_time_to_live": timedelta(hours=1), "duplicate_detection_history_time_window": timedelta(seconds=30),
        "enable_batched_operations": False, "enable_express": False, "enable_partitioning": False,
        "filtering_messages_before_publishing": False, "max_message_size_in_kilobytes": 2048, "max_size_in_megabytes": 2048,
        "requires_duplicate_detection": True, "support_ordering": True, "user_metadata": "mine",
    }
    rest = {"availability_status": "Available", "size_in_bytes": 0, "status": EntityStatus.ACTIVE}
    assert told(await administrator.create_topic("s273", **wanted)) == with_keys({**wanted, **rest})
    found = await administrator.get_topic("s273")
    assert (found.name, told(found)) == ("s273", with_keys({**wanted, **rest}))

    changed = {
        "auto_delete_on_idle": FOREVER, "default_message_time_to_live": timedelta(hours=2), "user_metadata": "other",
        "duplicate_detection_history_time_window": timedelta(minutes=2), "enable_batched_operations": True,
        "max_message_size_in_kilobytes": 1024, "max_size_in_megabytes": 1024, "support_ordering": False,
        "status": EntityStatus.DISABLED, "authorization_rules": [access("speaker", "Send")],
    }
    await administrator.update_topic(found, **changed)
    assert told(await administrator.get_topic("s273")) == with_keys({**wanted, **rest, **changed})
    with pytest.raises(MessagingEntityDisabledError):
        await secured.topic("s273").send("1")


async def test_s274_a_subscription_has_the_properties_that_it_was_made_with(administrator, secured):
    await administrator.create_topic("s274")
    wanted = {
        **SUBSCRIPTION, "auto_delete_on_idle": timedelta(minutes=5), "dead_lettering_on_filter_evaluation_exceptions": False,
        "dead_lettering_on_message_expiration": True, "default_message_time_to_live": timedelta(hours=1),
        "enable_batched_operations": False, "lock_duration": timedelta(seconds=45), "max_delivery_count": 7,
        "requires_session": True, "user_metadata": "mine",
    }
    asked = {name: value for name, value in wanted.items() if value is not None and name != "availability_status"}
    assert told(await administrator.create_subscription("s274", "a", **asked)) == wanted
    found = await administrator.get_subscription("s274", "a")
    assert (found.name, told(found)) == ("a", wanted)

    changed = {
        "auto_delete_on_idle": FOREVER, "dead_lettering_on_filter_evaluation_exceptions": True,
        "dead_lettering_on_message_expiration": False, "default_message_time_to_live": FOREVER,
        "enable_batched_operations": True, "lock_duration": timedelta(seconds=10), "max_delivery_count": 1,
        "status": EntityStatus.RECEIVE_DISABLED, "user_metadata": "other",
    }
    await administrator.update_subscription("s274", found, **changed)
    assert told(await administrator.get_subscription("s274", "a")) == {**wanted, **changed}
    with pytest.raises(MessagingEntityDisabledError):
        async with secured.topic("s274").subscription("a").session("x"):
            pass

    # The SDK gives a subscription no first rule: the true filter it is.
    assert told(await administrator.create_subscription("s274", "plain")) == SUBSCRIPTION
    (rule,) = await both.listed(administrator, "list_rules", "s274", "plain")
    assert (rule.name, said(rule.filter), said(rule.action)) == ("$Default", said(TrueRuleFilter()), None)


async def test_s275_entities_are_listed_in_pages(administrator):
    for index in range(7):
        await administrator.create_queue(f"s275-{index}", max_delivery_count=index + 1)
        await administrator.create_topic(f"s275t-{index}")
        if index:
            await administrator.create_subscription("s275t-0", f"sub-{index}")
    names = [f"s275-{index}" for index in range(7)]
    # Other scenarios make and delete queues meanwhile: these seven come, once each and in order.
    for size in (100, 33, 5, 4):
        pages = await both.pages(administrator, "list_queues", max_page_size=size)
        found = [each for page in pages for each in page if each.name.startswith("s275-")]
        # An entity that another scenario deletes between two pages moves what follows back by one place.
        assert sorted(each.name for each in found) == [each.name for each in found]
        assert set(names) == {each.name for each in found}
        assert all(each.name == f"s275-{each.max_delivery_count - 1}" for each in found)
        assert all(len(page) == size for page in pages[:-1]) and len(pages[-1]) <= size
    topics = [each.name for each in await both.listed(administrator, "list_topics", max_page_size=5)]
    assert {f"s275t-{index}" for index in range(7)} <= set(topics)

    # Nothing else touches this topic: its pages are exact.
    pages = await both.pages(administrator, "list_subscriptions", "s275t-0", max_page_size=4)
    assert [[each.name for each in page] for page in pages] == [["sub-1", "sub-2", "sub-3", "sub-4"], ["sub-5", "sub-6"]]
    pages = await both.pages(administrator, "list_subscriptions", "s275t-0", max_page_size=3)
    assert [[each.name for each in page] for page in pages if page] == [["sub-1", "sub-2", "sub-3"], ["sub-4", "sub-5", "sub-6"]]
    assert [each.name for each in await both.listed(administrator, "list_subscriptions", "s275t-0", start_index=4)] == ["sub-5", "sub-6"]
    assert await both.listed(administrator, "list_subscriptions", "s275t-1") == []


MOMENT = datetime(2026, 2, 3, 4, 5, 6, tzinfo=timezone.utc)
RULES = {
    "true": (TrueRuleFilter(), None),
    "false": (FalseRuleFilter(), None),
    "sql": (SqlRuleFilter("color = 'r<e>d & \"ü\"' AND n <> 1"), None),
    "parameters": (
        SqlRuleFilter(
            "n = @n AND l = @l AND f > @f AND s = @s AND b = @b AND t > @t AND d = @d",
            {"@n": -5, "@l": 2**40, "@f": 1.5, "@s": "ü", "@b": True, "@t": MOMENT, "@d": timedelta(hours=3)},
        ),
        None,
    ),
    "fields": (
        CorrelationRuleFilter(
            content_type="ct", correlation_id="c", label="s", message_id="m", reply_to="r", reply_to_session_id="rs",
            session_id="x", to="t",
        ),
        None,
    ),
    "properties": (
        CorrelationRuleFilter(properties={
            "string": "ü", "number": 7, "long": 2**40, "double": 0.25, "yes": True, "time": MOMENT, "span": timedelta(hours=3),
        }),
        None,
    ),
    "action": (TrueRuleFilter(), SqlRuleAction("SET seen = 'yes'; REMOVE secret")),
    "action-parameters": (SqlRuleFilter("n = 7"), SqlRuleAction("SET seen = @seen", {"@seen": "by parameter"})),
}


async def test_s276_every_filter_and_action_comes_back_as_it_was_made(administrator):
    await administrator.create_topic("s276")
    await administrator.create_subscription("s276", "a")
    for name, (filter, action) in RULES.items():
        made = await administrator.create_rule("s276", "a", name, filter=filter, action=action)
        for rule in (made, await administrator.get_rule("s276", "a", name)):
            assert (rule.name, said(rule.filter), said(rule.action)) == (name, said(filter), said(action))
            near(rule.created_at_utc, 60)
    await administrator.delete_rule("s276", "a", "$Default")
    for size in (100, 3):
        pages = await both.pages(administrator, "list_rules", "s276", "a", max_page_size=size)
        assert [len(page) for page in pages] == ([8] if size == 100 else [3, 3, 2])
        found = {rule.name: (said(rule.filter), said(rule.action)) for page in pages for rule in page}
        assert found == {name: (said(filter), said(action)) for name, (filter, action) in RULES.items()}

    rule = await administrator.get_rule("s276", "a", "sql")
    rule.filter, rule.action = FalseRuleFilter(), SqlRuleAction("REMOVE n")
    await administrator.update_rule("s276", "a", rule)
    changed = await administrator.get_rule("s276", "a", "sql")
    assert (said(changed.filter), said(changed.action)) == (said(rule.filter), said(rule.action))
    # The name of the default rule is free again.
    await administrator.create_rule("s276", "a", "$Default", filter=SqlRuleFilter("n = 8"))
    assert said((await administrator.get_rule("s276", "a", "$Default")).filter) == said(SqlRuleFilter("n = 8"))


async def test_s281_what_is_not_there_is_not_found(administrator):
    await administrator.create_topic("s281")
    await administrator.create_subscription("s281", "a")
    queue, topic = "s281-no-such", "s281-no-such"
    for call, *arguments in (
        ("get_queue", queue), ("get_queue_runtime_properties", queue), ("delete_queue", queue),
        ("update_queue", QueueProperties(queue, **{name: None for name in [*QUEUE, "max_message_size_in_kilobytes"]})),
        ("get_topic", topic), ("get_topic_runtime_properties", topic), ("delete_topic", topic),
        ("create_subscription", topic, "a"), ("get_subscription", topic, "a"), ("get_subscription", "s281", "no-such"),
        ("get_subscription_runtime_properties", "s281", "no-such"), ("delete_subscription", "s281", "no-such"),
        ("create_rule", "s281", "no-such", "r"), ("create_rule", topic, "a", "r"), ("get_rule", "s281", "a", "no-such"),
        ("update_rule", "s281", "a", RuleProperties("no-such", filter=TrueRuleFilter(), action=None, created_at_utc=None)),
        ("delete_rule", "s281", "a", "no-such"), ("delete_rule", "s281", "no-such", "$Default"),
    ):
        with refused(404, ResourceNotFoundError, "Code>404"):
            await getattr(administrator, call)(*arguments)
    for call, *arguments in (
        ("list_subscriptions", topic), ("list_subscriptions_runtime_properties", topic), ("list_rules", "s281", "no-such"),
        ("list_rules", topic, "a"),
    ):
        with refused(404, ResourceNotFoundError):
            await both.listed(administrator, call, *arguments)


async def test_s282_what_is_there_cannot_be_made_again(administrator):
    await administrator.create_queue("s282", max_delivery_count=7)
    await administrator.create_topic("s282t")
    await administrator.create_subscription("s282t", "a")
    await administrator.create_rule("s282t", "a", "r", filter=FalseRuleFilter())
    for call, *arguments in (
        # A queue and a topic share their names, whatever the case.
        ("create_queue", "s282"), ("create_queue", "S282"), ("create_queue", "S282T"), ("create_topic", "s282"),
        ("create_topic", "s282T"), ("create_subscription", "s282t", "A"), ("create_rule", "s282t", "a", "r"),
    ):
        with refused(409, ResourceExistsError, "already exists"):
            await getattr(administrator, call)(*arguments)
    assert (await administrator.get_queue("s282")).max_delivery_count == 7
    assert said((await administrator.get_rule("s282t", "a", "r")).filter) == said(FalseRuleFilter())


async def test_s283_what_cannot_be_is_refused_and_changes_nothing(administrator):
    for element, wrong in {
        "LockDuration": {"lock_duration": timedelta(minutes=10)},
        "DefaultMessageTimeToLive": {"default_message_time_to_live": timedelta(milliseconds=1)},
        "MaxDeliveryCount": {"max_delivery_count": 0},
        "DuplicateDetectionHistoryTimeWindow": {"duplicate_detection_history_time_window": timedelta(days=8)},
        "AutoDeleteOnIdle": {"auto_delete_on_idle": timedelta(minutes=1)},
        "Status": {"status": "Asleep"},
        "UserMetadata": {"user_metadata": "x" * 1025},
    }.items():
        with refused(400, match=f"SubCode=40000.*{element}"):
            await administrator.create_queue("s283-wrong", **wrong)
    for name, wrong in (
        ("s283-wrong", {"forward_to": "s283-wrong"}), ("s283/" + "x" * 260, {}),
        ("s283-wrong", {"enable_express": True, "requires_duplicate_detection": True}),
        ("s283-wrong", {"authorization_rules": [access("twice", "Send"), access("twice", "Send")]}),
        ("s283-wrong", {"authorization_rules": [access(f"rule-{n}", "Send") for n in range(13)]}),
    ):
        with refused(400):
            await administrator.create_queue(name, **wrong)
    with refused(404, ResourceNotFoundError):
        await administrator.get_queue("s283-wrong")

    before = told(await administrator.create_queue("s283"))
    for change in (
        {"requires_session": True}, {"requires_duplicate_detection": True}, {"enable_partitioning": True},
        {"lock_duration": timedelta(milliseconds=500)},
    ):
        found = await administrator.get_queue("s283")
        with refused(400):
            await administrator.update_queue(found, max_delivery_count=3, **change)
    assert told(await administrator.get_queue("s283")) == before

    await administrator.create_topic("s283t")
    await administrator.create_subscription("s283t", "a")
    for filter, action in (
        (SqlRuleFilter("SELECT * FROM"), None), (SqlRuleFilter(""), None), (CorrelationRuleFilter(), None),
        (TrueRuleFilter(), SqlRuleAction("JUMP")),
    ):
        with refused(400):
            await administrator.create_rule("s283t", "a", "bad", filter=filter, action=action)
    assert [each.name for each in await both.listed(administrator, "list_rules", "s283t", "a")] == ["$Default"]


async def test_s284_the_namespace_tells_of_itself(administrator):
    found = await administrator.get_namespace_properties()
    assert (found.name, found.namespace_type) == ("secured", "Messaging")
    assert found.messaging_sku in ("Standard", "Premium")
    near(found.created_at_utc, 600)
