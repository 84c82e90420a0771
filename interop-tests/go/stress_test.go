package interop

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

// S300: whatever administrators and clients do to one another, the broker goes on, and remembers what it said.
func TestS300_administrators_work_against_clients_and_kills(t *testing.T) {
	o := open(t).administrator(t)
	o.createQueue("s300", nil)
	limit, cancel := within(8 * time.Second)
	defer cancel()
	var group sync.WaitGroup
	begin := func(work func(round int)) {
		group.Add(1)
		go func() {
			defer group.Done()
			for round := 0; limit.Err() == nil; round++ {
				work(round)
			}
		}()
	}
	// Errors are nobody's business here: most of what these do is undone by another meanwhile.
	for _, topic := range []string{"s300x", "s300y", "s300x"} {
		administrators, clients := open(t).administrator(t), o.another()
		begin(func(round int) { administrators.shakeTopic(limit, topic, round) })
		begin(func(round int) { administrators.shakeQueue(limit, topic+"-queue", round) })
		begin(func(round int) { clients.sendBriefly(limit, topic, round) })
		begin(func(int) {
			for _, entity := range []string{topic + "/a", topic + "/b", topic + "-queue"} {
				clients.receiveBriefly(limit, entity)
			}
		})
	}
	for range 2 {
		<-time.After(3 * time.Second)
		revive(t)
	}
	group.Wait()

	// No locks survive this, and what was scheduled is due by then: nothing moves any more.
	revive(t)
	before := o.census()
	revive(t)
	after := o.census()
	for name, wanted := range before {
		if found := after[name]; found != wanted {
			t.Errorf("%s was %s, and is %s", name, wanted, found)
		}
	}
	o.same(len(after), len(before))
}

// shakeTopic makes, changes and deletes a topic and its subscriptions.
func (o *administrator) shakeTopic(limit context.Context, topic string, round int) {
	_, _ = o.admin.CreateTopic(limit, topic, nil)
	_, _ = o.admin.CreateSubscription(limit, topic, "a", &admin.CreateSubscriptionOptions{
		Properties: &admin.SubscriptionProperties{RequiresSession: of(round%3 == 0)},
	})
	_, _ = o.admin.CreateSubscription(limit, topic, "b", &admin.CreateSubscriptionOptions{
		Properties: &admin.SubscriptionProperties{ForwardTo: of("s300")},
	})
	_, _ = o.admin.CreateRule(limit, topic, "a", &admin.CreateRuleOptions{
		Name: of("r"), Filter: &admin.SQLFilter{Expression: "n = 1"},
		Action: &admin.SQLAction{Expression: "SET n = 2"},
	})
	_, _ = o.admin.DeleteSubscription(limit, topic, "a", nil)
	if round%2 == 0 {
		_, _ = o.admin.DeleteTopic(limit, topic, nil)
	}
}

// shakeQueue does so to a queue.
func (o *administrator) shakeQueue(limit context.Context, queue string, round int) {
	_, _ = o.admin.CreateQueue(limit, queue, &admin.CreateQueueOptions{Properties: &admin.QueueProperties{
		RequiresSession: of(round%5 == 0), EnablePartitioning: of(round%4 == 0),
	}})
	if found, err := o.admin.GetQueue(limit, queue, nil); err == nil && found != nil {
		found.MaxDeliveryCount = of(int32(round%9 + 1))
		if round%3 == 0 {
			found.ForwardDeadLetteredMessagesTo = of("s300")
		}
		_, _ = o.admin.UpdateQueue(limit, queue, found.QueueProperties, nil)
	}
	if round%3 == 0 {
		_, _ = o.admin.DeleteQueue(limit, queue, nil)
	}
}

func (b *bench) sendBriefly(limit context.Context, topic string, round int) {
	brief, cancel := context.WithTimeout(limit, time.Second)
	defer cancel()
	for _, entity := range []string{topic, topic + "-queue"} {
		sender, err := b.client.NewSender(entity, nil)
		if err != nil {
			return
		}
		for range 10 {
			if sender.SendMessage(brief, inSession("x", round), nil) != nil {
				break
			}
		}
		_, _ = sender.ScheduleMessages(brief, numbered(2), later(100*time.Millisecond), nil)
		_ = sender.Close(brief)
	}
}

func (b *bench) receiveBriefly(limit context.Context, entity string) {
	brief, cancel := context.WithTimeout(limit, time.Second)
	defer cancel()
	receiver := b.receiver(entity)
	messages, _ := receiver.inner.ReceiveMessages(brief, 5, nil)
	for index, each := range messages {
		switch index % 3 {
		case 0:
			_ = receiver.inner.CompleteMessage(brief, each, nil)
		case 1:
			_ = receiver.inner.DeadLetterMessage(brief, each, nil)
		default:
			_ = receiver.inner.AbandonMessage(brief, each, nil)
		}
	}
	_ = receiver.inner.Close(brief)
	briefer, cancel := context.WithTimeout(limit, 300*time.Millisecond)
	defer cancel()
	if accepted, err := b.tryNextSession(briefer, entity); err == nil {
		_ = accepted.inner.Close(limit)
	}
}

// census is everything that administration tells of the namespace, but for what was used when.
func (o *administrator) census() map[string]string {
	o.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	found := map[string]string{}
	for pages := o.admin.NewListQueuesRuntimePropertiesPager(nil); pages.More(); {
		page, err := pages.NextPage(limit)
		o.must(err)
		for _, each := range page.QueueRuntimeProperties {
			each.AccessedAt = time.Time{}
			found[each.QueueName] = described(each)
		}
	}
	for pages := o.admin.NewListTopicsPager(nil); pages.More(); {
		page, err := pages.NextPage(limit)
		o.must(err)
		for _, each := range page.Topics {
			found[each.TopicName] = described(each)
			o.countSubscriptions(limit, each.TopicName, found)
		}
	}
	return found
}

func (o *administrator) countSubscriptions(limit context.Context, topic string, found map[string]string) {
	o.Helper()
	for pages := o.admin.NewListSubscriptionsRuntimePropertiesPager(topic, nil); pages.More(); {
		page, err := pages.NextPage(limit)
		o.must(err)
		for _, each := range page.SubscriptionRuntimeProperties {
			each.AccessedAt = time.Time{}
			rules, _ := (&rulebook{o, topic, each.SubscriptionName}).list(0)
			found[topic+"/"+each.SubscriptionName] = fmt.Sprint(described(each), described(rules))
		}
	}
}
