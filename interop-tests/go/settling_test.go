package interop

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func TestS20_an_abandoned_message_comes_again_before_the_next(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s20", 2)
	receiver := b.receiver("s20")
	first := receiver.one()
	receiver.abandon(first)
	next := receiver.receive(2)
	b.same(numbers(next), span(1, 2))
	b.same(count(first), 0)
	b.same(counts(next), []int{1, 0})
	b.same(first.LockToken == next[0].LockToken, false)
}

func TestS21_an_abandon_changes_the_properties_named(t *testing.T) {
	b := begin(t)
	sent := with("attempt", int32(0))
	sent.ApplicationProperties["kept"] = "kept"
	b.send("s21", sent)
	receiver := b.receiver("s21")
	receiver.abandonWith(receiver.one(), map[string]any{"attempt": int32(1), "added": "new"})
	again := receiver.one()
	b.same(again.ApplicationProperties,
		map[string]any{"attempt": int32(1), "kept": "kept", "added": "new"})
	receiver.abandonWith(again, map[string]any{"attempt": int32(2)})
	b.same(receiver.one().ApplicationProperties["attempt"], int32(2))
}

func TestS22_a_dead_letter_carries_its_reason_and_description(t *testing.T) {
	b := begin(t)
	b.send("s22", titled("subject", with("key", "value")))
	receiver := b.receiver("s22")
	each := receiver.one()
	receiver.buryWith(each, why())
	receiver.nothing()
	dead := b.deadLetters("s22").one()
	b.same(said(dead.DeadLetterReason), "why")
	b.same(said(dead.DeadLetterErrorDescription), "because")
	b.same(string(dead.Body), "value")
	b.same(said(dead.Subject), "subject")
	b.same(dead.ApplicationProperties["key"], "value")
	b.same(*dead.SequenceNumber, *each.SequenceNumber)
}

func TestS23_a_message_is_dead_lettered_without_a_reason_or_with_properties(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s23", 2)
	receiver := b.receiver("s23")
	messages := receiver.receive(2)
	receiver.bury(messages[0])
	options := why()
	options.PropertiesToModify = map[string]any{"attempt": int32(1)}
	receiver.buryWith(messages[1], options)
	dead := b.deadLetters("s23").receive(2)
	b.same(bodies(dead), []string{"1", "2"})
	// The SDK says an empty reason for none, and the broker takes it for none.
	b.same(reasons(dead), []string{"(none)", "why"})
	b.same(dead[1].ApplicationProperties["attempt"], int32(1))
}

func TestS24_the_third_failed_delivery_is_the_last(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s24", 1)
	receiver := b.receiver("s24")
	for wanted := range 3 {
		each := receiver.one()
		b.same(count(each), wanted)
		receiver.abandon(each)
	}
	receiver.nothing()
	dead := b.deadLetters("s24").one()
	b.same(said(dead.DeadLetterReason), "MaxDeliveryCountExceeded")
	b.same(said(dead.DeadLetterErrorDescription),
		"Message could not be consumed after 3 delivery attempts.")
}

func TestS25_one_delivery_is_all_there_is(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s25", 1)
	receiver := b.receiver("s25")
	receiver.abandon(receiver.one())
	b.same(reasons(b.deadLetters("s25").receive(1)), []string{"MaxDeliveryCountExceeded"})
}

func TestS26_a_lock_that_has_expired_frees_the_message_and_is_lost(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s26", 1)
	receiver := b.receiver("s26")
	first := receiver.one()
	start := time.Now()
	second := receiver.oneWithin(15 * time.Second)
	b.same(time.Since(start) >= 4*time.Second, true)
	b.same(count(second), 1)
	b.same(first.LockToken == second.LockToken, false)
	b.code(receiver.tryComplete(first), azservicebus.CodeLockLost)
	receiver.complete(second)
	receiver.nothing()
}

func TestS27_a_renewed_lock_lasts(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s27", 1)
	receiver := b.receiver("s27")
	each := receiver.one()
	for range 4 {
		receiver.nothingFor(2 * time.Second)
		until := *each.LockedUntil
		b.must(receiver.tryRenew(each))
		b.same(each.LockedUntil.After(until), true)
		b.near(*each.LockedUntil, time.Now().Add(5*time.Second), 2*time.Second)
	}
	receiver.complete(each)
	receiver.nothing()
}

func TestS28_a_lock_that_is_gone_cannot_be_renewed(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s28", 2)
	receiver := b.receiver("s28")
	messages := receiver.receive(2)
	receiver.complete(messages[0])
	b.code(receiver.tryRenew(messages[0]), azservicebus.CodeLockLost)
	receiver.oneWithin(15 * time.Second)
	b.code(receiver.tryRenew(messages[1]), azservicebus.CodeLockLost)
}

func TestS30_a_message_is_completed_on_another_connection_by_its_lock_token(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s30", 1)
	other := b.another()
	each := other.receiver("s30").one()
	other.close()
	receiver := b.receiver("s30")
	// Without its raw form a message is settled by its lock token.
	receiver.complete(&received{LockToken: each.LockToken})
	receiver.nothing()
	b.same(bodies(receiver.peekAll()), []string{})
}

// postponed sends messages, receives and defers them.
func (b *bench) postponed(receiver *receiver, queue string, count int) {
	b.Helper()
	b.sendNumbered(queue, count)
	receiver.postpone(receiver.receive(count)...)
}

func TestS53_deferred_messages_are_received_by_their_numbers(t *testing.T) {
	b := begin(t)
	receiver := b.receiver("s53")
	b.postponed(receiver, "s53", 3)
	receiver.nothing()
	messages := append(receiver.ask(1), receiver.ask(2, 3)...)
	b.same(numbers(messages), span(1, 3))
	b.same(bodies(messages), texts(1, 3))
	for _, each := range messages {
		b.same(each.State, azservicebus.MessageStateDeferred)
		b.same(each.LockedUntil.After(time.Now()), true)
		receiver.complete(each)
	}
	b.same(bodies(receiver.peekAll()), []string{})
}

func TestS54_deferred_messages_are_received_and_deleted(t *testing.T) {
	b := begin(t)
	b.postponed(b.receiver("s54"), "s54", 2)
	receiver := b.deleting("s54")
	b.same(bodies(receiver.ask(1, 2)), texts(1, 2))
	b.same(bodies(receiver.peekAll()), []string{})
	_, err := receiver.tryAsk(1, 2)
	b.code(err, azservicebus.CodeNotFound)
}

func TestS55_deferred_messages_are_received_all_or_not_at_all(t *testing.T) {
	b := begin(t)
	receiver := b.receiver("s55")
	b.postponed(receiver, "s55", 3)
	b.same(numbers(b.another().receiver("s55").ask(1)), span(1, 1))
	for _, wanted := range [][]int64{{3, 4}, {5, 6, 7}, {1}} {
		_, err := receiver.tryAsk(wanted...)
		b.code(err, azservicebus.CodeNotFound)
	}
	b.same(numbers(receiver.ask(3)), span(3, 3))
}

func TestS56_deferred_messages_are_settled_by_their_lock_tokens(t *testing.T) {
	b := begin(t)
	receiver := b.receiver("s56")
	b.postponed(receiver, "s56", 3)
	messages := receiver.ask(1, 2, 3)
	receiver.abandon(messages[0])
	receiver.buryWith(messages[1], why())
	b.must(receiver.tryRenew(messages[2]))
	b.same(messages[2].LockedUntil.After(time.Now()), true)
	receiver.postpone(messages[2])
	receiver.nothing()
	b.same(bodies(receiver.ask(1, 3)), []string{"1", "3"})
	letter := b.deadLetters("s56").one()
	b.same(string(letter.Body), "2")
	b.same(said(letter.DeadLetterReason), "why")
	b.same(said(letter.DeadLetterErrorDescription), "because")
}

func TestS57_a_deferred_message_can_be_peeked(t *testing.T) {
	b := begin(t)
	receiver := b.receiver("s57")
	b.postponed(receiver, "s57", 1)
	seen := receiver.peekAll()
	b.same(numbers(seen), span(1, 1))
	b.same(states(seen), []azservicebus.MessageState{azservicebus.MessageStateDeferred})
}

func TestS58_a_deferred_message_does_not_expire(t *testing.T) {
	b := begin(t)
	b.send("s58", living(2*time.Second, "kept"))
	receiver := b.receiver("s58")
	receiver.postpone(receiver.one())
	b.deadLetters("s58").nothingFor(4 * time.Second)
	b.same(bodies(receiver.ask(1)), []string{"kept"})
}

func TestS59_a_deferral_changes_the_properties_named(t *testing.T) {
	b := begin(t)
	sent := with("attempt", int32(0))
	sent.ApplicationProperties["kept"] = true
	b.send("s59", sent)
	receiver := b.receiver("s59")
	receiver.postponeWith(receiver.one(), map[string]any{"attempt": int32(1)})
	again := receiver.ask(1)[0]
	b.same(again.ApplicationProperties, map[string]any{"attempt": int32(1), "kept": true})
	receiver.abandonWith(again, map[string]any{"attempt": int32(2)})
	b.same(receiver.ask(1)[0].ApplicationProperties["attempt"], int32(2))
}
