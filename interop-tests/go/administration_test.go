package interop

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/Azure/go-amqp"
)

// forever is the longest duration that the service knows.
const forever = "P10675199DT2H48M5.4775807S"

// leadsTo checks the end of an absolute address, and takes it away.
func (o *administrator) leadsTo(address **string, name string) {
	o.Helper()
	if *address == nil || !strings.HasSuffix(**address, "/"+name) || !strings.Contains(**address, "://") {
		o.Fatalf("wanted an absolute address of %s, found %s", name, said(*address))
	}
	*address = nil
}

func TestS271_a_queue_has_the_properties_that_it_was_made_with(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	wanted := admin.QueueProperties{
		LockDuration: of("PT45S"), MaxSizeInMegabytes: of(int32(2048)),
		RequiresDuplicateDetection: of(true), RequiresSession: of(true),
		DefaultMessageTimeToLive: of("P1DT2H3M4.5S"), DeadLetteringOnMessageExpiration: of(true),
		DuplicateDetectionHistoryTimeWindow: of("PT7M"), MaxDeliveryCount: of(int32(7)),
		EnableBatchedOperations: of(false), Status: of(admin.EntityStatusActive),
		AutoDeleteOnIdle: of("P1D"), EnablePartitioning: of(false),
		UserMetadata: of("<mine> & \"ü\""), MaxMessageSizeInKilobytes: of(int64(512)),
		AuthorizationRules: []admin.AuthorizationRule{
			rule("speaker", admin.AccessRightSend),
			rule("all", admin.AccessRightManage, admin.AccessRightSend, admin.AccessRightListen),
		},
	}
	for _, found := range []admin.QueueProperties{o.createQueue("s271", &wanted), o.queue("s271")} {
		o.same(found, wanted)
	}

	// What can be changed.
	changed := o.queue("s271")
	changed.LockDuration, changed.MaxSizeInMegabytes = of("PT10S"), of(int32(1024))
	changed.DefaultMessageTimeToLive, changed.DeadLetteringOnMessageExpiration = of(forever), of(false)
	changed.DuplicateDetectionHistoryTimeWindow, changed.MaxDeliveryCount = of("PT1M"), of(int32(3))
	changed.EnableBatchedOperations, changed.AutoDeleteOnIdle = of(true), of(forever)
	changed.UserMetadata, changed.MaxMessageSizeInKilobytes = of("other"), of(int64(256))
	changed.Status = of(admin.EntityStatusSendDisabled)
	o.same(o.updateQueue("s271", changed), changed)
	o.same(o.queue("s271"), changed)
	o.condition(o.sender("s271").try(inSession("x", 1)), entityDisabled)
}

func TestS272_a_queue_without_properties_has_the_services_defaults(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	o.createQueue("S272", nil)
	found := o.queue("s272")
	o.same(len(found.AuthorizationRules), 0)
	found.AuthorizationRules = nil
	// How large a message may be is the broker's to say.
	o.same(*found.MaxMessageSizeInKilobytes > 0, true)
	found.MaxMessageSizeInKilobytes = nil
	o.same(found, admin.QueueProperties{
		LockDuration: of("PT1M"), MaxSizeInMegabytes: of(int32(1024)), RequiresDuplicateDetection: of(false),
		RequiresSession: of(false), DefaultMessageTimeToLive: of(forever),
		DeadLetteringOnMessageExpiration: of(false), DuplicateDetectionHistoryTimeWindow: of("PT10M"),
		MaxDeliveryCount: of(int32(10)), EnableBatchedOperations: of(true),
		Status: of(admin.EntityStatusActive), AutoDeleteOnIdle: of(forever), EnablePartitioning: of(false),
	})
	o.roundTrip("s272")
}

func TestS273_a_topic_has_the_properties_that_it_was_made_with(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	wanted := admin.TopicProperties{
		MaxSizeInMegabytes: of(int32(2048)), RequiresDuplicateDetection: of(true),
		DefaultMessageTimeToLive: of("PT1H"), DuplicateDetectionHistoryTimeWindow: of("PT30S"),
		EnableBatchedOperations: of(false), Status: of(admin.EntityStatusActive), AutoDeleteOnIdle: of("PT5M"),
		EnablePartitioning: of(false), SupportOrdering: of(true), UserMetadata: of("mine"),
		MaxMessageSizeInKilobytes: of(int64(512)),
		AuthorizationRules:        []admin.AuthorizationRule{rule("listener", admin.AccessRightListen)},
	}
	for _, found := range []admin.TopicProperties{o.createTopic("s273", &wanted), o.topic("s273")} {
		o.same(found, wanted)
	}
	changed := o.topic("s273")
	changed.DefaultMessageTimeToLive, changed.UserMetadata = of("PT2H"), of("other")
	changed.AutoDeleteOnIdle, changed.Status = of(forever), of(admin.EntityStatusDisabled)
	limit, cancel := within(deadline)
	defer cancel()
	answer, err := o.admin.UpdateTopic(limit, "s273", changed, nil)
	o.must(err)
	o.same(answer.TopicProperties, changed)
	o.same(o.topic("s273"), changed)
	o.condition(o.sender("s273").try(text(1)), entityDisabled)
}

func TestS274_a_subscription_has_the_properties_that_it_was_made_with(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	o.createTopic("s274", nil)
	first := admin.RuleProperties{
		Name: "first", Filter: &admin.SQLFilter{Expression: "n = 1"},
		Action: &admin.SQLAction{Expression: "SET seen = 'yes'"},
	}
	wanted := admin.SubscriptionProperties{
		LockDuration: of("PT45S"), RequiresSession: of(true), DefaultMessageTimeToLive: of("PT1H"),
		DeadLetteringOnMessageExpiration:                of(true),
		EnableDeadLetteringOnFilterEvaluationExceptions: of(false), MaxDeliveryCount: of(int32(7)),
		Status: of(admin.EntityStatusActive), AutoDeleteOnIdle: of("PT5M"), EnableBatchedOperations: of(false),
		UserMetadata: of("mine"), DefaultRule: &first,
	}
	answer := o.createSubscription("s274", "a", &wanted)
	// The rule is there for itself.
	wanted.DefaultRule = nil
	answer.DefaultRule = nil
	o.same(answer, wanted)
	o.same(o.subscription("s274", "a"), wanted)
	rules, _ := o.rules("s274/a").list(0)
	o.same(rules, map[string]admin.RuleProperties{"first": first})

	changed := o.subscription("s274", "a")
	changed.LockDuration, changed.MaxDeliveryCount = of("PT10S"), of(int32(1))
	changed.DefaultMessageTimeToLive, changed.AutoDeleteOnIdle = of(forever), of(forever)
	changed.DeadLetteringOnMessageExpiration = of(false)
	changed.EnableDeadLetteringOnFilterEvaluationExceptions = of(true)
	changed.EnableBatchedOperations, changed.UserMetadata = of(true), of("other")
	limit, cancel := within(deadline)
	defer cancel()
	// The SDK sends no status of a subscription.
	updated, err := o.admin.UpdateSubscription(limit, "s274", "a", changed, nil)
	o.must(err)
	o.same(updated.SubscriptionProperties, changed)
	o.same(o.subscription("s274", "a"), changed)

	plain := o.createSubscription("s274", "plain", nil)
	o.same(plain, admin.SubscriptionProperties{
		LockDuration: of("PT1M"), RequiresSession: of(false), DefaultMessageTimeToLive: of(forever),
		DeadLetteringOnMessageExpiration:                of(false),
		EnableDeadLetteringOnFilterEvaluationExceptions: of(true), MaxDeliveryCount: of(int32(10)),
		Status: of(admin.EntityStatusActive), AutoDeleteOnIdle: of(forever), EnableBatchedOperations: of(true),
	})
	rules, _ = o.rules("s274/plain").list(0)
	o.same(rules, map[string]admin.RuleProperties{
		"$Default": {Name: "$Default", Filter: &admin.TrueFilter{}},
	})
}

func TestS275_entities_are_listed_in_pages(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	var names []string
	for index := range 7 {
		names = append(names, fmt.Sprintf("s275-%d", index))
		o.createQueue(names[index], &admin.QueueProperties{MaxDeliveryCount: of(int32(index + 1))})
		o.createTopic("s275t-"+fmt.Sprint(index), nil)
		if index > 0 {
			o.createSubscription("s275t-0", fmt.Sprint("sub-", index), nil)
		}
	}
	limit, cancel := within(deadline)
	defer cancel()
	// Other scenarios make and delete queues meanwhile: these seven come, once each and in order.
	for _, size := range []int32{0, 100, 33} {
		var found []string
		queues := o.admin.NewListQueuesPager(&admin.ListQueuesOptions{MaxPageSize: size})
		for queues.More() {
			page, err := queues.NextPage(limit)
			o.must(err)
			o.same(size == 0 || len(page.Queues) <= int(size), true)
			for _, each := range page.Queues {
				if strings.HasPrefix(each.QueueName, "s275-") && !slices.Contains(found, each.QueueName) {
					found = append(found, each.QueueName)
					o.same(fmt.Sprint("s275-", *each.MaxDeliveryCount-1), each.QueueName)
				}
			}
		}
		o.same(found, names)
	}
	topics, pages := 0, o.admin.NewListTopicsPager(&admin.ListTopicsOptions{MaxPageSize: 5})
	for pages.More() {
		page, err := pages.NextPage(limit)
		o.must(err)
		for _, each := range page.Topics {
			if strings.HasPrefix(each.TopicName, "s275t-") {
				topics++
			}
		}
	}
	o.same(topics >= 7, true)

	// Nothing else touches this topic: its pages are exact.
	var found []string
	sizes := []int{}
	subscriptions := o.admin.NewListSubscriptionsPager("s275t-0",
		&admin.ListSubscriptionsOptions{MaxPageSize: 4})
	for subscriptions.More() {
		page, err := subscriptions.NextPage(limit)
		o.must(err)
		sizes = append(sizes, len(page.Subscriptions))
		for _, each := range page.Subscriptions {
			o.same(each.TopicName, "s275t-0")
			found = append(found, each.SubscriptionName)
		}
	}
	o.same(sizes, []int{4, 2})
	o.same(found, []string{"sub-1", "sub-2", "sub-3", "sub-4", "sub-5", "sub-6"})
	empty := o.admin.NewListSubscriptionsPager("s275t-1", nil)
	page, err := empty.NextPage(limit)
	o.must(err)
	o.same(len(page.Subscriptions), 0)
}

func TestS276_every_filter_and_action_comes_back_as_it_was_made(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	o.createTopic("s276", nil)
	o.createSubscription("s276", "a", nil)
	book := o.rules("s276/a")
	moment := time.Date(2026, 2, 3, 4, 5, 6, 789_000_000, time.UTC)
	wanted := map[string]admin.RuleProperties{}
	for _, each := range []admin.RuleProperties{
		{Name: "true", Filter: &admin.TrueFilter{}},
		{Name: "false", Filter: &admin.FalseFilter{}},
		{Name: "sql", Filter: &admin.SQLFilter{Expression: "color = 'r<e>d & \"ü\"' AND n <> 1"}},
		{Name: "parameters", Filter: &admin.SQLFilter{
			Expression: "n = @n AND f > @f AND s = @s AND b = @b AND t > @t",
			Parameters: map[string]any{"@n": int64(-5), "@f": 1.5, "@s": "ü", "@b": true, "@t": moment},
		}},
		{Name: "fields", Filter: &admin.CorrelationFilter{
			ContentType: of("ct"), CorrelationID: of("c"), MessageID: of("m"), ReplyTo: of("r"),
			ReplyToSessionID: of("rs"), SessionID: of("x"), Subject: of("s"), To: of("t"),
		}},
		{Name: "properties", Filter: &admin.CorrelationFilter{
			ApplicationProperties: map[string]any{
				"string": "ü", "number": int64(7), "double": 0.25, "yes": true, "time": moment,
			},
		}},
		{Name: "action", Filter: &admin.TrueFilter{},
			Action: &admin.SQLAction{Expression: "SET seen = 'yes'; REMOVE secret"}},
		{Name: "action-parameters", Filter: &admin.SQLFilter{Expression: "n = 7"}, Action: &admin.SQLAction{
			Expression: "SET seen = @seen", Parameters: map[string]any{"@seen": "by parameter"},
		}},
	} {
		wanted[each.Name] = each
		book.create(each.Name, each.Filter, each.Action)
		o.same(book.get(each.Name).RuleProperties, each)
	}
	book.delete("$Default")
	for size, pages := range map[int32]int{3: 3, 0: 2} {
		found, in := book.list(size)
		o.same(found, wanted)
		o.same(in, pages)
	}

	limit, cancel := within(deadline)
	defer cancel()
	other := wanted["sql"]
	other.Filter, other.Action = &admin.FalseFilter{}, &admin.SQLAction{Expression: "REMOVE n"}
	updated, err := o.admin.UpdateRule(limit, "s276", "a", other)
	o.must(err)
	o.same(updated.RuleProperties, other)
	o.same(book.get("sql").RuleProperties, other)
	// The name of the default rule is free again.
	book.create("$Default", &admin.SQLFilter{Expression: "n = 8"}, nil)
	o.same(book.get("$Default").Filter, &admin.SQLFilter{Expression: "n = 8"})
}

func TestS277_rules_made_by_an_administrator_are_at_work_at_once(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	o.createTopic("s277", nil)
	o.createSubscription("s277", "a", nil)
	book, sender := o.rules("s277/a"), o.sender("s277")
	send := func(body string, n int) { sender.send(having(map[string]any{"n": n}, body)) }
	send("before", 1)
	book.create("small", &admin.SQLFilter{
		Expression: "n < @limit", Parameters: map[string]any{"@limit": 10},
	}, &admin.SQLAction{Expression: "SET size = 'small'"})
	book.delete("$Default")
	send("small", 1)
	send("large", 20)
	limit, cancel := within(deadline)
	defer cancel()
	_, err := o.admin.UpdateRule(limit, "s277", "a", admin.RuleProperties{
		Name: "small", Filter: &admin.CorrelationFilter{ApplicationProperties: map[string]any{"n": 20}},
	})
	o.must(err)
	send("again", 1)
	send("twenty", 20)
	book.delete("small")
	send("after", 20)
	messages := o.held("s277/a")
	o.same(bodies(messages), []string{"before", "small", "twenty"})
	o.same(messages[1].ApplicationProperties["size"], "small")
	o.same(messages[2].ApplicationProperties, map[string]any{"n": int64(20)})
}

func TestS278_counts_sizes_and_times_tell_what_is_there(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	before := time.Now()
	o.createQueue("s278", nil)
	fresh := o.queueCounts("s278")
	o.near(fresh.CreatedAt, before, 10*time.Second)
	o.near(fresh.UpdatedAt, before, 10*time.Second)
	o.same([]int64{fresh.SizeInBytes, fresh.TotalMessageCount}, []int64{0, 0})

	o.sendNumbered("s278", 6)
	o.send("s278", ofSize(100*1024))
	o.sender("s278").schedule(later(time.Hour), numbered(2)...)
	receiver := o.receiver("s278")
	messages := receiver.receive(4)
	receiver.complete(messages[0])
	receiver.bury(messages[1])
	receiver.postpone(messages[2])
	counts := o.queueCounts("s278")
	// One is locked, one deferred, three are free: all count as active.
	o.same([]int32{counts.ActiveMessageCount, counts.DeadLetterMessageCount, counts.ScheduledMessageCount,
		counts.TransferMessageCount, counts.TransferDeadLetterMessageCount}, []int32{5, 1, 2, 0, 0})
	o.same(counts.TotalMessageCount, int64(8))
	o.same(counts.SizeInBytes > 100*1024 && counts.SizeInBytes < 110*1024, true)
	o.near(counts.AccessedAt, time.Now(), 20*time.Second)

	o.updateQueue("s278", o.queue("s278"))
	o.same(o.queueCounts("s278").UpdatedAt.Before(fresh.UpdatedAt), false)
	o.same(o.queueCounts("s278").CreatedAt, fresh.CreatedAt)
	limit, cancel := within(deadline)
	defer cancel()
	pager := o.admin.NewListQueuesRuntimePropertiesPager(nil)
	found := 0
	for pager.More() {
		page, err := pager.NextPage(limit)
		o.must(err)
		for _, each := range page.QueueRuntimeProperties {
			if each.QueueName == "s278" {
				found++
				o.same(each.TotalMessageCount, int64(8))
			}
		}
	}
	o.same(found > 0, true)
}

func TestS279_counts_of_topics_and_subscriptions(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	o.createTopic("s279", nil)
	for _, name := range []string{"a", "b"} {
		o.createSubscription("s279", name, nil)
	}
	o.rules("s279/b").create("sql", &admin.SQLFilter{Expression: "n = 1"}, nil)
	o.rules("s279/b").create("correlation", &admin.CorrelationFilter{Subject: of("s")}, nil)
	o.sendNumbered("s279", 3)
	o.sender("s279").schedule(later(time.Hour), text(4))
	receiver := o.receiver("s279/a")
	messages := receiver.receive(2)
	receiver.complete(messages[0])
	receiver.bury(messages[1])

	limit, cancel := within(deadline)
	defer cancel()
	topic, err := o.admin.GetTopicRuntimeProperties(limit, "s279", nil)
	o.must(err)
	o.same([]int32{topic.SubscriptionCount, topic.ScheduledMessageCount, topic.SQLFilterCount,
		topic.CorrelationFilterCount}, []int32{2, 1, 3, 1})
	o.same(topic.SizeInBytes > 0, true)
	o.near(topic.CreatedAt, time.Now(), 20*time.Second)
	wanted := map[string][]int64{"a": {2, 1, 1}, "b": {3, 3, 0}}
	pager := o.admin.NewListSubscriptionsRuntimePropertiesPager("s279", nil)
	found := map[string][]int64{}
	for pager.More() {
		page, err := pager.NextPage(limit)
		o.must(err)
		for _, each := range page.SubscriptionRuntimeProperties {
			found[each.SubscriptionName] = []int64{each.TotalMessageCount,
				int64(each.ActiveMessageCount), int64(each.DeadLetterMessageCount)}
		}
	}
	o.same(found, wanted)
	single, err := o.admin.GetSubscriptionRuntimeProperties(limit, "s279", "a", nil)
	o.must(err)
	o.same([]int32{single.ActiveMessageCount, single.DeadLetterMessageCount}, []int32{1, 1})
}

func TestS280_what_is_deleted_is_gone_with_its_messages_and_links(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	o.createQueue("s280", nil)
	o.sendNumbered("s280", 2)
	sender, receiver := o.sender("s280"), o.receiver("s280")
	sender.send(text(3))
	receiver.one()
	o.must(o.tryDeleteQueue("s280"))
	o.condition(sender.try(text(4)), amqp.ErrCondNotFound)
	o.condition(receiver.failure(), amqp.ErrCondNotFound)
	limit, cancel := within(deadline)
	defer cancel()
	gone, err := o.admin.GetQueue(limit, "s280", nil)
	o.must(err)
	o.same(gone == nil, true)

	// One of that name that is made again is another.
	o.createQueue("s280", nil)
	o.send("s280", text("new"))
	messages := receiver.receive(1)
	o.same(bodies(messages), []string{"new"})
	o.same(numbers(messages), span(1, 1))

	o.createTopic("s280t", nil)
	o.createSubscription("s280t", "a", nil)
	o.createSubscription("s280t", "b", nil)
	_, err = o.admin.DeleteSubscription(limit, "s280t", "a", nil)
	o.must(err)
	o.notFound(o.receiver("s280t/a").try())
	o.receiver("s280t/b").nothingFor(100 * time.Millisecond)
	_, err = o.admin.DeleteTopic(limit, "s280t", nil)
	o.must(err)
	o.notFound(o.receiver("s280t/b").try())
	o.notFound(o.sender("s280t").try(text(1)))
}

func TestS281_what_is_not_there_is_not_found(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	o.createTopic("s281", nil)
	o.createSubscription("s281", "a", nil)
	limit, cancel := within(deadline)
	defer cancel()
	queue, err := o.admin.GetQueue(limit, "s281-no-such", nil)
	o.must(err)
	counts, err := o.admin.GetQueueRuntimeProperties(limit, "s281-no-such", nil)
	o.must(err)
	topic, err := o.admin.GetTopic(limit, "s281-no-such", nil)
	o.must(err)
	subscription, err := o.admin.GetSubscription(limit, "s281", "no-such", nil)
	o.must(err)
	orphan, err := o.admin.GetSubscription(limit, "s281-no-such", "a", nil)
	o.must(err)
	o.same(queue == nil && counts == nil && topic == nil && subscription == nil && orphan == nil, true)
	o.same(o.rules("s281/a").get("no-such") == nil, true)

	o.status(o.tryUpdateQueue("s281-no-such", admin.QueueProperties{}), http.StatusNotFound, "404")
	o.status(o.tryDeleteQueue("s281-no-such"), http.StatusNotFound, "404")
	_, err = o.admin.DeleteTopic(limit, "s281-no-such", nil)
	o.status(err, http.StatusNotFound, "404")
	_, err = o.admin.DeleteSubscription(limit, "s281", "no-such", nil)
	o.status(err, http.StatusNotFound, "404")
	_, err = o.tryCreateSubscription("s281-no-such", "a", nil)
	o.status(err, http.StatusNotFound, "404")
	o.status(o.rules("s281/a").tryDelete("no-such"), http.StatusNotFound, "404")
	o.status(o.rules("s281/no-such").tryCreate("r", &admin.TrueFilter{}, nil), http.StatusNotFound, "404")
	_, err = o.admin.NewListSubscriptionsPager("s281-no-such", nil).NextPage(limit)
	o.status(err, http.StatusNotFound, "404")
}

func TestS282_what_is_there_cannot_be_made_again(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	o.createQueue("s282", &admin.QueueProperties{MaxDeliveryCount: of(int32(7))})
	o.createTopic("s282t", nil)
	o.createSubscription("s282t", "a", nil)
	o.rules("s282t/a").create("r", &admin.FalseFilter{}, nil)
	o.status(o.tryCreateQueue("s282", nil), http.StatusConflict, "409")
	// A queue and a topic share their names, whatever the case.
	o.status(o.tryCreateQueue("S282T", nil), http.StatusConflict, "409")
	o.status(o.tryCreateTopic("s282", nil), http.StatusConflict, "409")
	_, err := o.tryCreateSubscription("s282t", "A", nil)
	o.status(err, http.StatusConflict, "409")
	o.status(o.rules("s282t/a").tryCreate("r", &admin.TrueFilter{}, nil), http.StatusConflict, "409")
	o.same(*o.queue("s282").MaxDeliveryCount, int32(7))
	o.same(o.rules("s282t/a").get("r").Filter, &admin.FalseFilter{})
}

func TestS283_what_cannot_be_is_refused_and_changes_nothing(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	for element, wrong := range map[string]admin.QueueProperties{
		"LockDuration":                        {LockDuration: of("PT10M")},
		"DefaultMessageTimeToLive":            {DefaultMessageTimeToLive: of("never")},
		"MaxDeliveryCount":                    {MaxDeliveryCount: of(int32(0))},
		"DuplicateDetectionHistoryTimeWindow": {DuplicateDetectionHistoryTimeWindow: of("P8D")},
		"AutoDeleteOnIdle":                    {AutoDeleteOnIdle: of("PT1M")},
		"Status":                              {Status: of(admin.EntityStatus("Asleep"))},
		"UserMetadata":                        {UserMetadata: of(strings.Repeat("x", 1025))},
	} {
		err := o.tryCreateQueue("s283-wrong", &wrong)
		o.status(err, http.StatusBadRequest, "SubCode=40000")
		o.status(err, http.StatusBadRequest, element)
	}
	o.status(o.tryCreateQueue("s283-wrong", &admin.QueueProperties{ForwardTo: of("s283-wrong")}),
		http.StatusBadRequest, "")
	o.status(o.tryCreateQueue("s283/"+strings.Repeat("x", 260), nil), http.StatusBadRequest, "")
	limit, cancel := within(deadline)
	defer cancel()
	made, err := o.admin.GetQueue(limit, "s283-wrong", nil)
	o.must(err)
	o.same(made == nil, true)

	before := o.createQueue("s283", nil)
	for _, change := range []func(*admin.QueueProperties){
		func(each *admin.QueueProperties) { each.RequiresSession = of(true) },
		func(each *admin.QueueProperties) { each.RequiresDuplicateDetection = of(true) },
		func(each *admin.QueueProperties) { each.EnablePartitioning = of(true) },
		func(each *admin.QueueProperties) { each.LockDuration = of("PT0.5S") },
	} {
		changed := before
		changed.MaxDeliveryCount = of(int32(3))
		change(&changed)
		o.status(o.tryUpdateQueue("s283", changed), http.StatusBadRequest, "")
	}
	o.same(o.queue("s283"), before)

	o.createTopic("s283t", nil)
	o.createSubscription("s283t", "a", nil)
	book := o.rules("s283t/a")
	for _, filter := range []admin.RuleFilter{
		&admin.SQLFilter{Expression: "SELECT * FROM"}, &admin.SQLFilter{Expression: ""},
		&admin.CorrelationFilter{},
	} {
		o.status(book.tryCreate("bad", filter, nil), http.StatusBadRequest, "")
	}
	o.status(book.tryCreate("bad", &admin.TrueFilter{}, &admin.SQLAction{Expression: "JUMP"}),
		http.StatusBadRequest, "")
	rules, _ := book.list(0)
	o.same(len(rules), 1)
}

func TestS284_the_namespace_tells_of_itself(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	limit, cancel := within(deadline)
	defer cancel()
	found, err := o.admin.GetNamespaceProperties(limit, nil)
	o.must(err)
	o.same(found.Name == "", false)
	o.same(slices.Contains([]string{"Standard", "Premium"}, found.SKU), true)
	o.same(found.CreatedTime.After(time.Now()), false)
}

func TestS285_changes_are_at_work_at_once(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	properties := o.createQueue("s285", nil)
	sender, receiver := o.sender("s285"), o.receiver("s285")
	sender.send(text(1), text(2))
	receiver.abandon(receiver.one())
	properties.MaxDeliveryCount = of(int32(2))
	properties = o.updateQueue("s285", properties)
	receiver.abandon(receiver.one())
	o.same(reasons(o.deadLetters("s285").receive(1)), []string{"MaxDeliveryCountExceeded"})

	properties.LockDuration = of("PT5S")
	properties = o.updateQueue("s285", properties)
	each := receiver.one()
	o.near(*each.LockedUntil, time.Now().Add(5*time.Second), 2*time.Second)
	receiver.complete(each)

	properties.Status = of(admin.EntityStatusDisabled)
	properties = o.updateQueue("s285", properties)
	o.condition(sender.try(text(3)), entityDisabled)
	o.condition(receiver.try(), entityDisabled)
	properties.Status = of(admin.EntityStatusActive)
	o.updateQueue("s285", properties)
	// The sender of before stays broken: to the SDK there is no way back from this refusal.
	o.send("s285", text(4))
	o.same(bodies(receiver.receive(1)), []string{"4"})
}

func TestS286_a_queue_is_made_to_forward_and_not_to(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	o.status(o.tryCreateQueue("s286", &admin.QueueProperties{ForwardTo: of("s286-no-such")}),
		http.StatusBadRequest, "")
	o.createQueue("s286b", nil)
	o.createQueue("s286d", nil)
	o.createQueue("s286", &admin.QueueProperties{
		ForwardTo: of("s286b"), ForwardDeadLetteredMessagesTo: of("s286d"),
	})
	absolute := "sb://" + open(t).amqp + "/s286b"
	o.createTopic("s286t", nil)
	o.createSubscription("s286t", "a", &admin.SubscriptionProperties{
		ForwardTo: of(absolute), ForwardDeadLetteredMessagesTo: of("s286d"),
	})
	found := o.queue("s286")
	o.leadsTo(&found.ForwardTo, "s286b")
	o.leadsTo(&found.ForwardDeadLetteredMessagesTo, "s286d")
	subscription := o.subscription("s286t", "a")
	o.leadsTo(&subscription.ForwardTo, "s286b")
	o.leadsTo(&subscription.ForwardDeadLetteredMessagesTo, "s286d")
	o.send("s286", text("queue"))
	o.send("s286t", text("topic"))
	o.same(bodies(o.receiver("s286b").receive(2)), []string{"queue", "topic"})

	// Without a target it keeps what it gets, and its dead letters.
	o.updateQueue("s286", found)
	o.send("s286", text("kept"))
	receiver := o.receiver("s286")
	receiver.bury(receiver.one())
	o.same(bodies(o.deadLetters("s286").receive(1)), []string{"kept"})
}

func TestS288_administration_on_every_port_with_tls_and_without(t *testing.T) {
	t.Parallel()
	endpoint := open(t)
	for index, port := range []string{endpoint.amqp, endpoint.http} {
		for kind, transport := range []policy.Transporter{over(endpoint.trust(t)), plainly{port}} {
			o := endpoint.administratorWith(t, keyedString(port, rootName, endpoint.key), transport)
			name := fmt.Sprintf("s288-%d-%d", index, kind)
			o.createQueue(name, nil)
			o.roundTrip(name)
			o.must(o.tryDeleteQueue(name))
		}
	}
	// The emulator's way: its connection string, and its port in place of HTTPS.
	o := endpoint.administratorWith(t, environment(t, "JITNEY_CONNECTION_STRING"), plainly{endpoint.http})
	o.createQueue("s288", nil)
	o.roundTrip("s288")
}

func TestS289_names_may_have_slashes_and_other_signs(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	for _, name := range []string{"s289/orders/new", "s289.a-b_c", "s289~ü"} {
		o.createQueue(name, nil)
		o.same(*o.queue(name).MaxDeliveryCount, int32(10))
		each := text(name)
		sender := o.sender(name)
		sender.send(each)
		inner, err := o.client.NewReceiverForQueue(name, nil)
		o.must(err)
		o.same(bodies((&receiver{o.bench, inner}).receive(1)), []string{name})
		o.must(o.tryDeleteQueue(name))
	}
}

func TestS168_rules_are_listed_added_and_removed(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	book := o.rules("s168/a")
	rules, _ := book.list(0)
	o.same(rules, map[string]admin.RuleProperties{
		"$Default": {Name: "$Default", Filter: &admin.TrueFilter{}},
	})
	small := admin.RuleProperties{
		Name: "small", Filter: &admin.SQLFilter{Expression: "n < 10"},
		Action: &admin.SQLAction{Expression: "SET size = 'small'"},
	}
	red := admin.RuleProperties{
		Name:   "red",
		Filter: &admin.CorrelationFilter{ApplicationProperties: map[string]any{"color": "red"}},
	}
	book.create("small", small.Filter, small.Action)
	book.create("red", red.Filter, nil)
	book.delete("$Default")
	rules, _ = book.list(0)
	o.same(rules, map[string]admin.RuleProperties{"small": small, "red": red})
	o.sender("s168").sendBatch(having(map[string]any{"n": 1}, 1), having(map[string]any{"n": 20}, 2),
		having(map[string]any{"n": 20, "color": "red"}, 3))
	messages := o.held("s168/a")
	o.same(bodies(messages), []string{"1", "3"})
	o.same(messages[0].ApplicationProperties["size"], "small")
}

func TestS169_what_is_there_what_is_not_and_what_is_no_rule_is_refused(t *testing.T) {
	t.Parallel()
	o := open(t).administrator(t)
	book := o.rules("s169/a")
	one := &admin.SQLFilter{Expression: "1=1"}
	book.create("twice", one, nil)
	o.status(book.tryCreate("twice", &admin.SQLFilter{Expression: "1=0"}, nil), http.StatusConflict, "")
	o.status(book.tryDelete("no-such"), http.StatusNotFound, "")
	o.status(book.tryCreate("bad", &admin.SQLFilter{Expression: "SELECT * FROM"}, nil),
		http.StatusBadRequest, "")
	o.status(book.tryCreate("bad2", one, &admin.SQLAction{Expression: "JUMP"}), http.StatusBadRequest, "")
	for n := range 120 {
		book.create(fmt.Sprint("rule-", n), &admin.SQLFilter{Expression: fmt.Sprint("n = ", n)}, nil)
	}
	rules, _ := book.list(0)
	o.same(len(rules), 122)
}

// S170 and what administrators made: there is one broker to kill (surviving_test.go).
func TestS170_S290_what_an_administrator_did_survives_a_kill(t *testing.T) {
	o := open(t).administrator(t)
	one := admin.RuleProperties{
		Name: "one", Filter: &admin.SQLFilter{Expression: "n = 1"},
		Action: &admin.SQLAction{Expression: "SET seen = TRUE"},
	}
	o.rules("s170/a").create("one", one.Filter, one.Action)
	o.rules("s170/a").delete("$Default")
	speaker := rule("speaker", admin.AccessRightSend)
	o.createQueue("s290", &admin.QueueProperties{
		LockDuration: of("PT45S"), RequiresSession: of(true), UserMetadata: of("mine"),
		AuthorizationRules: []admin.AuthorizationRule{speaker},
	})
	changed := o.queue("s290")
	changed.MaxDeliveryCount = of(int32(3))
	o.updateQueue("s290", changed)
	o.send("s290", inSession("x", 1))
	o.createTopic("s290t", nil)
	o.createSubscription("s290t", "a", &admin.SubscriptionProperties{DefaultRule: &one})
	o.createQueue("s290-gone", nil)
	o.createQueue("s290f", &admin.QueueProperties{ForwardTo: of("s290-gone")})
	o.must(o.tryDeleteQueue("s290-gone"))
	created := o.queueCounts("s290").CreatedAt
	revive(t)

	after := open(t).administrator(t)
	rules, _ := after.rules("s170/a").list(0)
	after.same(rules, map[string]admin.RuleProperties{"one": one})
	after.sender("s170").sendBatch(with("n", 2), with("n", 1))
	after.same(bodies(after.held("s170/a")), []string{"1"})
	after.same(after.queue("s290"), changed)
	after.same(after.queueCounts("s290").CreatedAt, created)
	after.same(bodies(after.session("s290", "x").receive(1)), []string{"1"})
	open(t).with(t, "speaker", *speaker.PrimaryKey).send("s290", inSession("y", 2))
	rules, _ = after.rules("s290t/a").list(0)
	after.same(rules, map[string]admin.RuleProperties{"one": one})
	limit, cancel := within(deadline)
	defer cancel()
	gone, err := after.admin.GetQueue(limit, "s290-gone", nil)
	after.must(err)
	after.same(gone == nil, true)
	// What forwards to it has nowhere to go.
	after.send("s290f", text("lost"))
	after.same(bodies(after.deadLetters("s290f").receive(1)), []string{"lost"})
}
