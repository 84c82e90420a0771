package interop

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// scheduledFor makes a message that an ordinary send schedules.
func scheduledFor(at time.Time, body any) *message {
	each := text(body)
	each.ScheduledEnqueueTime = &at
	return each
}

func TestS45_a_scheduled_message_arrives_at_its_time_under_a_new_number(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s45"), b.receiver("s45")
	at := later(12 * time.Second)
	b.same(sender.schedule(at, text("due")), span(1, 1))
	receiver.nothing()
	each := receiver.oneWithin(40 * time.Second)
	b.same(time.Now().Before(at), false)
	b.same(string(each.Body), "due")
	b.same(*each.SequenceNumber, int64(2))
	b.same(each.EnqueuedTime.Before(at), false)
	b.same(each.ScheduledEnqueueTime.Equal(at), true)
}

func TestS46_ten_messages_are_scheduled_in_one_call(t *testing.T) {
	b := begin(t)
	b.same(b.sender("s46").schedule(later(2*time.Second), numbered(10)...), span(1, 10))
	messages := b.receiver("s46").receive(10)
	b.same(bodies(messages), texts(1, 10))
	b.same(numbers(messages), span(11, 20))
}

func TestS47_a_message_may_be_scheduled_by_a_send(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s47"), b.receiver("s47")
	at := later(12 * time.Second)
	sender.send(scheduledFor(at, 1))
	sender.sendBatch(scheduledFor(at, 2), text("at once"))
	b.same(bodies(receiver.receive(1)), []string{"at once"})
	receiver.nothing()
	b.same(bodies(receiver.receive(2)), []string{"1", "2"})
	b.same(time.Now().Before(at), false)
}

func TestS48_a_scheduled_message_can_be_peeked(t *testing.T) {
	b := begin(t)
	at := later(time.Hour)
	wanted := b.sender("s48").schedule(at, text(1))
	seen := b.receiver("s48").peekAll()
	b.same(numbers(seen), wanted)
	b.same(states(seen), []azservicebus.MessageState{azservicebus.MessageStateScheduled})
	b.same(seen[0].ScheduledEnqueueTime.Equal(at), true)
}

func TestS49_cancelled_messages_never_arrive(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s49"), b.receiver("s49")
	scheduled := sender.schedule(later(10*time.Second), numbered(3)...)
	sender.cancel(scheduled[0])
	sender.cancel(scheduled[1:]...)
	b.same(bodies(receiver.peekAll()), []string{})
	receiver.nothingFor(12 * time.Second)
}

func TestS50_what_has_become_active_cannot_be_cancelled(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s50"), b.receiver("s50")
	scheduled := sender.schedule(later(time.Second), text(1))
	receiver.abandon(receiver.one())
	b.code(sender.tryCancel(scheduled...), azservicebus.CodeNotFound)
	b.same(bodies(receiver.receive(1)), []string{"1"})
}

func TestS51_a_time_in_the_past_is_now(t *testing.T) {
	b := begin(t)
	b.same(b.sender("s51").schedule(later(-time.Minute), text(1)), span(1, 1))
	b.same(bodies(b.receiver("s51").receiveWithin(1, 3*time.Second)), []string{"1"})
}

func TestS52_what_is_not_there_cannot_be_cancelled(t *testing.T) {
	b := begin(t)
	sender := b.sender("s52")
	scheduled := sender.schedule(later(time.Hour), numbered(2)...)
	b.code(sender.tryCancel(4711), azservicebus.CodeNotFound)
	sender.cancel(scheduled[0])
	b.code(sender.tryCancel(scheduled[0]), azservicebus.CodeNotFound)
	b.code(sender.tryCancel(scheduled...), azservicebus.CodeNotFound)
	b.same(bodies(b.receiver("s52").peekAll()), []string{"2"})
}

func TestS181_a_duplicate_is_accepted_and_takes_no_number(t *testing.T) {
	b := begin(t)
	sender := b.sender("s181")
	for body := range 5 {
		sender.send(identified("one", body+1))
	}
	sender.send(identified("other", 6))
	seen := b.receiver("s181").peekAll()
	b.same(bodies(seen), []string{"1", "6"})
	b.same(numbers(seen), span(1, 2))
}

func TestS182_what_is_forgotten_is_no_duplicate(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s182"), b.receiver("s182")
	sender.send(identified("one", 1))
	receiver.complete(receiver.one())
	sender.send(identified("one", 2))
	receiver.nothingFor(22 * time.Second)
	sender.send(identified("one", 3))
	b.same(bodies(receiver.receive(1)), []string{"3"})
}

func TestS183_duplicates_within_a_batch(t *testing.T) {
	b := begin(t)
	b.sender("s183").sendBatch(identified("1", "a"), identified("2", "b"), identified("1", "c"),
		identified("3", "d"), identified("3", "e"))
	messages := b.receiver("s183").receive(3)
	b.same(bodies(messages), []string{"a", "b", "d"})
	b.same(numbers(messages), span(1, 3))
}

func TestS184_what_is_completed_deferred_or_dead_is_remembered(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s184"), b.receiver("s184")
	ids := []string{"completed", "deferred", "dead"}
	for _, id := range ids {
		sender.send(identified(id, id))
	}
	messages := receiver.receive(3)
	receiver.complete(messages[0])
	receiver.postpone(messages[1])
	receiver.bury(messages[2])
	for _, id := range ids {
		sender.send(identified(id, id))
	}
	receiver.nothing()
	rest := receiver.peekAll()
	b.same(bodies(rest), []string{"deferred"})
	b.same(states(rest), []azservicebus.MessageState{azservicebus.MessageStateDeferred})
	b.same(bodies(b.deadLetters("s184").peekAll()), []string{"dead"})
}

func TestS185_messages_without_an_id_are_no_duplicates(t *testing.T) {
	b := begin(t)
	b.send("s185", numbered(3)...)
	b.same(bodies(b.receiver("s185").receive(3)), texts(1, 3))
}

func TestS186_a_scheduled_message_has_its_id_already(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s186"), b.receiver("s186")
	sender.schedule(later(2*time.Second), identified("one", "scheduled"))
	sender.send(identified("one", "sent"))
	b.same(bodies(receiver.receive(1)), []string{"scheduled"})
	receiver.nothing()
}

func TestS187_a_topic_has_one_memory_for_all_its_subscriptions(t *testing.T) {
	b := begin(t)
	b.send("s187", identified("one", 1), identified("one", 2))
	b.same(bodies(b.receiver("s187/a").peekAll()), []string{"1"})
	b.same(bodies(b.receiver("s187/b").peekAll()), []string{"1"})
}

func TestS189_an_id_is_the_queues_and_not_the_sessions(t *testing.T) {
	b := begin(t)
	x := inSession("x", 1)
	y := inSession("y", 2)
	id := "one"
	x.MessageID, y.MessageID = &id, &id
	b.send("s189", x, y)
	b.same(bodies(b.session("s189", "x").receive(1)), []string{"1"})
	b.session("s189", "y").nothing()
}
