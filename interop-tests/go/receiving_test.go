package interop

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func TestS18_a_locked_message_is_nobody_elses(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s18", 1)
	receiver, other := b.receiver("s18"), b.receiver("s18")
	each := receiver.one()
	other.nothing()
	receiver.complete(each)
	other.nothing()
}

func TestS19_receive_and_delete_leaves_nothing_behind(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s19", 3)
	receiver := b.deleting("s19")
	messages := receiver.receive(3)
	b.same(bodies(messages), texts(1, 3))
	b.same(bodies(receiver.peekAll()), []string{})
	b.refused("not settleable", func() error { return receiver.tryComplete(messages[0]) })
}

func TestS31_what_a_closed_receiver_held_comes_back_when_its_lock_ends(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s31", 3)
	other := b.another()
	other.receiver("s31").one()
	other.close()
	receiver := b.receiver("s31")
	rest := receiver.receiveWithin(2, 3*time.Second)
	b.same(bodies(rest), []string{"2", "3"})
	receiver.complete(rest...)
	held := receiver.oneWithin(15 * time.Second)
	b.same(string(held.Body), "1")
	b.same(count(held), 1)
}

func TestS32_what_comes_when_nobody_asks_is_given_back_uncounted(t *testing.T) {
	b := begin(t)
	idle, receiver := b.receiver("s32"), b.receiver("s32")
	// What this wait asked for stays asked for: the SDK releases what comes of it.
	idle.nothingFor(200 * time.Millisecond)
	b.send("s32", text(1))
	each := receiver.oneWithin(5 * time.Second)
	b.same(string(each.Body), "1")
	b.same(count(each), 0)
	idle.nothing()
	receiver.complete(each)
}

func TestS33_a_receive_on_an_empty_queue_waits_and_the_next_one_works(t *testing.T) {
	b := begin(t)
	receiver := b.receiver("s33")
	receiver.nothingFor(2 * time.Second)
	b.send("s33", text("late"))
	late := receiver.one()
	b.same(string(late.Body), "late")
	receiver.complete(late)
}

func TestS34_a_waiting_receive_gets_what_is_sent(t *testing.T) {
	b := begin(t)
	receiver, sender := b.receiver("s34"), b.another().sender("s34")
	// Both links are open.
	receiver.nothingFor(100 * time.Millisecond)
	sender.send(text("first"))
	receiver.complete(receiver.one())

	arrived := make(chan error, 1)
	go func() {
		limit, cancel := within(15 * time.Second)
		defer cancel()
		_, err := receiver.inner.ReceiveMessages(limit, 1, nil)
		arrived <- err
	}()
	sender.send(text("now"))
	select {
	case err := <-arrived:
		b.must(err)
	case <-time.After(2 * time.Second):
		b.Fatal("nothing came within 2 s")
	}
}

func TestS35_two_receivers_share_200_messages(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s35", 200)
	limit, cancel := within(deadline)
	defer cancel()
	type delivery struct {
		body string
		err  error
	}
	deliveries := make(chan delivery, 200)
	for range 2 {
		receiver := b.another().receiver("s35")
		go func() {
			for limit.Err() == nil {
				messages, err := receiver.inner.ReceiveMessages(limit, 10, nil)
				for _, each := range messages {
					err = errors.Join(err, receiver.tryComplete(each))
					deliveries <- delivery{string(each.Body), err}
				}
				if err != nil && len(messages) == 0 && !errors.Is(err, context.Canceled) {
					deliveries <- delivery{"", err}
				}
			}
		}()
	}
	seen := map[string]int{}
	for range 200 {
		each := <-deliveries
		b.must(each.err)
		seen[each.body]++
	}
	cancel()
	b.same(len(seen), 200)
	b.same(bodies(b.receiver("s35").peekAll()), []string{})
}

func TestS36_a_receive_brings_no_more_than_it_asked_for(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s36", 10)
	receiver := b.receiver("s36")
	limit, cancel := within(deadline)
	defer cancel()
	messages, err := receiver.inner.ReceiveMessages(limit, 4, nil)
	b.must(err)
	if len(messages) < 1 || len(messages) > 4 {
		b.Fatalf("%d messages", len(messages))
	}
	messages = append(messages, receiver.receive(10-len(messages))...)
	b.same(numbers(messages), span(1, 10))
}

func TestS37_messages_are_completed_in_reverse_order(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s37", 20)
	receiver := b.receiver("s37")
	messages := receiver.receive(20)
	slices.Reverse(messages)
	receiver.complete(messages...)
	b.same(bodies(receiver.peekAll()), []string{})
}

func TestS38_dead_letters_are_peeked_completed_abandoned_and_deferred(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s38", 3)
	receiver := b.receiver("s38")
	receiver.bury(receiver.receive(3)...)
	dead := b.deadLetters("s38")
	b.same(bodies(dead.peekAll()), texts(1, 3))
	letters := dead.receive(3)
	dead.complete(letters[0])
	dead.abandon(letters[1])
	dead.postpone(letters[2])
	b.same(bodies(dead.receive(1)), []string{"2"})
	b.same(bodies(dead.ask(*letters[2].SequenceNumber)), []string{"3"})
	b.same(bodies(dead.peekAll()), []string{"2", "3"})
}

func TestS39_nothing_is_sent_to_a_dead_letter_queue(t *testing.T) {
	b := begin(t)
	sender := b.sender("s39/$DeadLetterQueue")
	b.refused("", func() error { return sender.try(text(1)) })
}

func TestS40_dead_letters_neither_expire_nor_are_dead_lettered(t *testing.T) {
	b := begin(t)
	b.send("s40", text(1))
	receiver, dead := b.receiver("s40"), b.deadLetters("s40")
	receiver.bury(receiver.one())
	letter := dead.one()
	receiver.nothingFor(4 * time.Second)
	for range 12 {
		dead.abandon(letter)
		letter = dead.one()
	}
	dead.complete(letter)
	b.same(bodies(dead.peekAll()), []string{})
}

func TestS41_an_expired_message_is_gone(t *testing.T) {
	b := begin(t)
	b.send("s41", living(time.Second, "short"), text("long"))
	dead := b.deadLetters("s41")
	dead.nothingFor(2 * time.Second)
	b.same(bodies(b.receiver("s41").receive(1)), []string{"long"})
	b.same(bodies(dead.peekAll()), []string{})
}

func TestS42_an_expired_message_is_dead_lettered_where_the_queue_says_so(t *testing.T) {
	b := begin(t)
	b.send("s42", living(time.Second, 1))
	letter := b.deadLetters("s42").one()
	b.same(said(letter.DeadLetterReason), "TTLExpiredException")
	b.same(said(letter.DeadLetterErrorDescription), "The message expired and was dead lettered.")
}

func TestS43_the_queues_time_to_live_bounds_the_messages(t *testing.T) {
	b := begin(t)
	b.send("s43", text(1), living(time.Hour, 2))
	receiver := b.receiver("s43")
	for _, each := range receiver.receive(2) {
		b.same(*each.TimeToLive, 2*time.Second)
		receiver.abandon(each)
	}
	b.same(bodies(b.deadLetters("s43").receive(2)), []string{"1", "2"})
}

func TestS44_a_message_may_expire_while_it_is_locked(t *testing.T) {
	b := begin(t)
	b.send("s44", living(time.Second, 1))
	receiver := b.receiver("s44")
	each := receiver.one()
	receiver.nothingFor(2 * time.Second)
	receiver.complete(each)
}

func TestS60_a_peek_sees_every_state_and_changes_none(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s60"), b.receiver("s60")
	sender.sendBatch(numbered(3)...)
	sender.schedule(later(time.Hour), text(4))
	receiver.postpone(receiver.receive(2)[1])
	for range 2 {
		seen := receiver.peekAll()
		b.same(numbers(seen), span(1, 4))
		b.same(bodies(seen), texts(1, 4))
		b.same(states(seen), []azservicebus.MessageState{
			azservicebus.MessageStateActive, azservicebus.MessageStateDeferred,
			azservicebus.MessageStateActive, azservicebus.MessageStateScheduled,
		})
		for _, each := range seen {
			b.same(each.LockToken, [16]byte{})
		}
	}
	active := receiver.one()
	b.same(string(active.Body), "3")
	b.same(count(active), 0)
}

func TestS61_a_peek_goes_on_where_the_last_one_ended(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s61", 10)
	receiver := b.receiver("s61")
	b.same(numbers(receiver.peek(3, 4)), span(4, 6))
	// The SDK goes on from a peek without a number only.
	rest := []int64{}
	for page := receiver.peek(3, 0); len(page) > 0; page = receiver.peek(3, 0) {
		rest = append(rest, numbers(page)...)
	}
	b.same(rest, span(1, 10))
}

func TestS62_a_peek_into_an_empty_queue_finds_nothing(t *testing.T) {
	b := begin(t)
	b.same(bodies(b.receiver("s62").peek(10, 0)), []string{})
}

func TestS63_600_messages_are_peeked_page_by_page(t *testing.T) {
	b := begin(t)
	sender := b.sender("s63")
	for first := 1; first <= 600; first += 100 {
		var batch []*message
		for number := first; number < first+100; number++ {
			batch = append(batch, titled(texts(number, number)[0], ofSize(1000)))
		}
		sender.sendBatch(batch...)
	}
	seen := b.receiver("s63").peekAll()
	b.same(numbers(seen), span(1, 600))
	b.same(subjects(seen), texts(1, 600))
	for _, each := range seen {
		b.same(each.Body, pattern(1000))
	}
}
