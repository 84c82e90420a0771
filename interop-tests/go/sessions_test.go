package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func TestS101_a_named_session_brings_its_messages_and_no_others_in_order(t *testing.T) {
	b := begin(t)
	b.sendTo("s101", "a", "b", "a", "b", "a")
	for id, wanted := range map[string][]string{"a": {"1", "3", "5"}, "b": {"2", "4"}} {
		receiver := b.session("s101", id)
		b.same(receiver.id(), id)
		b.near(receiver.inner.LockedUntil(), time.Now().Add(time.Minute), 5*time.Second)
		messages := receiver.receive(len(wanted))
		b.same(bodies(messages), wanted)
		for _, each := range messages {
			b.same(said(each.SessionID), id)
		}
		receiver.nothing()
	}
}

func TestS102_the_next_session_is_that_of_the_message(t *testing.T) {
	b := begin(t)
	b.sendTo("s102", "x")
	receiver := b.nextSession("s102")
	b.same(receiver.id(), "x")
	b.same(bodies(receiver.receive(1)), []string{"1"})
}

func TestS103_two_have_the_two_sessions_and_a_third_has_none(t *testing.T) {
	b := begin(t)
	b.sendTo("s103", "x", "y")
	first, second := b.nextSession("s103"), b.another().nextSession("s103")
	b.same(sorted([]string{first.id(), second.id()}), []string{"x", "y"})
	for _, each := range []*session{first, second} {
		b.same(sessionIDs(each.receive(1)), []string{each.id()})
	}
	b.another().noNextSession("s103", 3*time.Second)
}

func TestS104_the_wait_for_a_session_ends_when_it_was_asked_to(t *testing.T) {
	b := begin(t)
	// One of these at least ends with the broker's answer (noneGranted).
	var waits []<-chan func() (*session, error)
	for range 6 {
		waits = append(waits, b.another().awaited("s104", 4*time.Second))
	}
	start, answered := time.Now(), 0
	for _, each := range waits {
		_, err := (<-each)()
		b.same(noneGranted(err), true)
		if hasCode(err, azservicebus.CodeTimeout) {
			answered++
		}
	}
	b.near(time.Now(), start.Add(4*time.Second), time.Second)
	b.same(answered > 0, true)
}

// awaited is a wait for a next session that goes on aside.
func (b *bench) awaited(entity string, wait time.Duration) <-chan func() (*session, error) {
	granted := make(chan func() (*session, error), 1)
	go func() {
		limit, cancel := within(wait)
		defer cancel()
		accepted, err := b.tryNextSession(limit, entity)
		granted <- func() (*session, error) { return accepted, err }
	}()
	return granted
}

// grantedAtOnce is the session that a wait aside ends with.
func (b *bench) grantedAtOnce(granted <-chan func() (*session, error)) *session {
	b.Helper()
	select {
	case result := <-granted:
		accepted, err := result()
		b.must(err)
		return accepted
	case <-time.After(atOnce):
		b.Fatalf("no session within %v", atOnce)
		return nil
	}
}

func TestS105_a_session_that_comes_while_one_waits_is_granted(t *testing.T) {
	b := begin(t)
	waiting := b.another().awaited("s105", deadline)
	// By then the wait has reached the broker.
	b.session("s105", "other").nothing()
	b.sendTo("s105", "late")
	receiver := b.grantedAtOnce(waiting)
	b.same(receiver.id(), "late")
	b.same(bodies(receiver.receive(1)), []string{"1"})
}

func TestS106_a_session_that_becomes_free_while_one_waits_is_granted(t *testing.T) {
	b := begin(t)
	b.sendTo("s106", "x", "x")
	first := b.session("s106", "x")
	first.complete(first.one())
	waiting := b.another().awaited("s106", deadline)
	b.session("s106", "other").nothing()
	first.close()
	receiver := b.grantedAtOnce(waiting)
	b.same(receiver.id(), "x")
	b.same(bodies(receiver.receive(1)), []string{"2"})
}

func TestS107_a_wait_that_was_given_up_locks_nothing(t *testing.T) {
	b := begin(t)
	other := b.another()
	limit, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := other.tryNextSession(limit, "s107")
		ended <- err
	}()
	b.session("s107", "other").nothing()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		b.Fatalf("wanted a cancelled wait, got %v", err)
	}
	b.sendTo("s107", "x")
	receiver := b.freed("s107", "x", atOnce)
	b.same(bodies(receiver.receive(1)), []string{"1"})
}

func TestS108_a_session_that_never_was_is_granted_once(t *testing.T) {
	b := begin(t)
	receiver := b.session("s108", "new")
	_, err := b.another().trySession("s108", "new")
	b.condition(err, sessionCannotBeLocked)
	b.sendTo("s108", "new")
	b.same(bodies(receiver.receive(1)), []string{"1"})
}

func TestS109_a_session_that_is_locked_elsewhere_is_refused_until_it_is_free(t *testing.T) {
	b := begin(t)
	receiver, other := b.session("s109", "x"), b.another()
	start := time.Now()
	_, err := other.trySession("s109", "x")
	b.condition(err, sessionCannotBeLocked)
	b.same(time.Since(start) < 5*time.Second, true)
	receiver.close()
	other.freed("s109", "x", atOnce)
}

func TestS110_a_renewed_session_lasts(t *testing.T) {
	b := begin(t)
	other := b.another()
	b.sendTo("s110", "x")
	receiver := b.session("s110", "x")
	each := receiver.one()
	for range 4 {
		receiver.nothingFor(2 * time.Second)
		_, err := other.trySession("s110", "x")
		b.condition(err, sessionCannotBeLocked)
		until := receiver.inner.LockedUntil()
		b.must(receiver.tryRenew())
		b.same(receiver.inner.LockedUntil().After(until), true)
		b.near(receiver.inner.LockedUntil(), time.Now().Add(5*time.Second), 2*time.Second)
	}
	receiver.complete(each)
	b.same(bodies(receiver.peekAll()), []string{})
}

func TestS111_a_session_that_expires_is_lost_and_what_was_received_counts(t *testing.T) {
	b := begin(t)
	b.sendTo("s111", "x")
	receiver := b.session("s111", "x")
	start := time.Now()
	each := receiver.one()
	next := b.another().freed("s111", "x", 15*time.Second)
	b.same(time.Since(start) >= 4*time.Second, true)
	// The SDK tries to settle for half a minute, and to accept the session again by itself; it tells what that came to.
	limit, cancel := within(time.Second)
	defer cancel()
	b.same(receiver.inner.CompleteMessage(limit, each, nil) == nil, false)
	b.condition(receiver.tryRenew(), sessionCannotBeLocked)
	_, err := receiver.tryState()
	b.condition(err, sessionCannotBeLocked)
	again := next.one()
	b.same(string(again.Body), "1")
	b.same(count(again), 1)
}

func TestS113_a_session_that_is_closed_is_free_at_once_and_nothing_is_counted(t *testing.T) {
	b := begin(t)
	b.sendTo("s113", "x", "x", "x")
	receiver := b.session("s113", "x")
	receiver.receive(2)
	receiver.close()
	again := b.freed("s113", "x", atOnce).receive(3)
	b.same(bodies(again), texts(1, 3))
	b.same(counts(again), []int{0, 0, 0})
}

func TestS115_an_abandoned_message_comes_again_first(t *testing.T) {
	b := begin(t)
	b.sendTo("s115", "x", "x", "x")
	receiver := b.session("s115", "x")
	receiver.abandon(receiver.one())
	again := receiver.receive(3)
	b.same(numbers(again), span(1, 3))
	b.same(counts(again), []int{1, 0, 0})
}

// worker takes the next session, completes all of it, and goes on until there is none.
func worker(b *bench, entity string, note func(id, body string)) error {
	for {
		limit, cancel := within(3 * time.Second)
		accepted, err := b.tryNextSession(limit, entity)
		cancel()
		if noneGranted(err) {
			return nil
		}
		if err != nil {
			return err
		}
		limit, cancel = within(500 * time.Millisecond)
		for limit.Err() == nil {
			messages, err := accepted.inner.ReceiveMessages(limit, 5, nil)
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				cancel()
				return err
			}
			for _, each := range messages {
				note(accepted.id(), string(each.Body))
				if err := accepted.tryComplete(each); err != nil {
					cancel()
					return err
				}
			}
		}
		cancel()
		limit, cancel = within(deadline)
		err = accepted.inner.Close(limit)
		cancel()
		if err != nil {
			return err
		}
	}
}

func TestS116_three_workers_take_ten_sessions_each_in_order(t *testing.T) {
	b := begin(t)
	var all []*message
	wanted := map[string][]string{}
	for body := range 200 {
		id := fmt.Sprintf("session-%d", body%10)
		all = append(all, inSession(id, body))
		wanted[id] = append(wanted[id], strconv.Itoa(body))
	}
	b.sender("s116").sendBatch(all...)
	var guard sync.Mutex
	seen := map[string][]string{}
	ended := make(chan error, 3)
	for range 3 {
		connection := b.another()
		go func() {
			ended <- worker(connection, "s116", func(id, body string) {
				guard.Lock()
				defer guard.Unlock()
				seen[id] = append(seen[id], body)
			})
		}()
	}
	for range 3 {
		b.must(<-ended)
	}
	b.same(seen, wanted)
}

func TestS117_what_comes_to_a_session_that_is_held_goes_to_its_holder(t *testing.T) {
	b := begin(t)
	receiver := b.session("s117", "x")
	receiver.nothingFor(100 * time.Millisecond)
	b.sendTo("s117", "x", "x", "x")
	b.another().noNextSession("s117", 3*time.Second)
	b.same(sorted(bodies(receiver.receive(3))), texts(1, 3))
}

func TestS118_a_session_has_a_state_of_its_own(t *testing.T) {
	b := begin(t)
	x, y := b.session("s118", "x"), b.session("s118", "y")
	b.same(x.state() == nil, true)
	for _, state := range [][]byte{{0, 255, 1}, {2}, nil, {3}} {
		x.setState(state)
		b.same(x.state(), state)
		b.same(y.state() == nil, true)
	}
	// Zero bytes are what the SDK sends for nil.
	x.setState([]byte{})
	b.same(x.state() == nil, true)
}

func TestS119_a_state_stays_without_messages_too(t *testing.T) {
	b := begin(t)
	for _, state := range [][]byte{{1, 2, 3}, pattern(200 * 1024)} {
		receiver := b.freed("s119", "idle", atOnce)
		receiver.setState(state)
		receiver.close()
		again := b.freed("s119", "idle", atOnce)
		b.same(again.state(), state)
		again.close()
	}
}

// sessionsOf lists the sessions of a queue, in order of their names, and says in how many pages they came.
func (b *bench) sessionsOf(queue string, updated *time.Time) ([]string, int, error) {
	limit, cancel := within(deadline)
	defer cancel()
	options := azservicebus.ListSessionsOptions{SessionStateUpdatedAfter: updated}
	found, pages := []string{}, 0
	for pager := b.client.NewListSessionsForQueuePager(queue, &options); pager.More(); pages++ {
		page, err := pager.NextPage(limit)
		if err != nil {
			return nil, 0, err
		}
		found = append(found, page.Sessions...)
	}
	return sorted(found), pages, nil
}

func (b *bench) listed(queue string, updated *time.Time) []string {
	b.Helper()
	found, _, err := b.sessionsOf(queue, updated)
	b.must(err)
	return found
}

func TestS120_sessions_with_messages_or_state_are_listed(t *testing.T) {
	b := begin(t)
	b.sendTo("s120", "a", "b", "b", "c", "e")
	d := b.session("s120", "d")
	d.setState([]byte("state"))
	e := b.session("s120", "e")
	e.complete(e.one())
	c := b.session("s120", "c")
	locked := c.one()
	b.same(b.another().listed("s120", nil), []string{"a", "b", "c", "d"})
	c.complete(locked)
	d.setState(nil)
	b.same(b.listed("s120", nil), []string{"a", "b"})
}

func TestS121_sessions_are_listed_by_the_time_of_their_state(t *testing.T) {
	b := begin(t)
	b.sendTo("s121", "plain")
	older, newer := b.session("s121", "old"), b.session("s121", "new")
	older.setState([]byte{1})
	older.nothing()
	between := time.Now()
	newer.nothing()
	newer.setState([]byte{2})
	b.same(b.listed("s121", &between), []string{"new"})
	b.same(b.listed("s121", nil), []string{"new", "old", "plain"})
}

func TestS122_a_long_list_of_sessions_comes_in_pages(t *testing.T) {
	b := begin(t)
	var all []*message
	var wanted []string
	for index := range 250 {
		wanted = append(wanted, fmt.Sprintf("session %03d", index))
		all = append(all, inSession(wanted[index], 1))
	}
	b.sender("s122").sendBatch(all...)
	found, pages, err := b.sessionsOf("s122", nil)
	b.must(err)
	b.same(found, wanted)
	b.same(pages > 1, true)
}

func TestS123_there_may_be_no_sessions(t *testing.T) {
	b := begin(t)
	b.same(b.listed("s123", nil), []string{})
	found, _, err := b.sessionsOf("s123b", nil)
	if err != nil {
		b.same(strings.Contains(strings.ToLower(err.Error()), "session"), true)
	} else {
		b.same(found, []string{})
	}
}

func TestS124_deferred_messages_belong_to_their_session(t *testing.T) {
	b := begin(t)
	b.sendTo("s124", "x", "x", "x")
	first := b.session("s124", "x")
	messages := first.receive(3)
	first.postpone(messages[:2]...)
	first.complete(messages[2])
	first.close()
	again := b.freed("s124", "x", atOnce)
	again.nothing()
	_, err := b.session("s124", "y").tryAsk(1)
	b.code(err, azservicebus.CodeNotFound)
	deferred := again.ask(1, 2)
	b.same(bodies(deferred), texts(1, 2))
	for _, each := range deferred {
		b.same(said(each.SessionID), "x")
		b.same(each.State, azservicebus.MessageStateDeferred)
		again.complete(each)
	}
	b.same(bodies(again.peekAll()), []string{})
}

func TestS125_a_scheduled_message_comes_to_its_session_when_it_is_due(t *testing.T) {
	b := begin(t)
	sender := b.sender("s125")
	start := time.Now()
	at := later(12 * time.Second)
	due := sender.schedule(at, inSession("x", "due"))
	sender.cancel(sender.schedule(at, inSession("x", "cancelled"))...)
	receiver := b.nextSession("s125")
	b.same(time.Since(start) >= 2*time.Second, true)
	b.same(receiver.id(), "x")
	each := receiver.one()
	b.same(string(each.Body), "due")
	b.same(*each.SequenceNumber > due[0], true)
	receiver.nothing()
}

func TestS126_a_peek_names_no_session_and_shows_all(t *testing.T) {
	b := begin(t)
	b.sendTo("s126", "a", "b", "a", "b", "b")
	b.same(bodies(b.session("s126", "a").peekAll()), texts(1, 5))
}

func TestS127_a_message_without_a_session_is_refused(t *testing.T) {
	b := begin(t)
	sender := b.sender("s127")
	b.refused("The SessionId was not set on a message", func() error { return sender.try(text(1)) })
	sender.send(inSession("x", 2))
	messages := b.session("s127", "x").receive(1)
	b.same(bodies(messages), []string{"2"})
	b.same(numbers(messages), span(1, 1))
}

func TestS128_a_receiver_without_a_session_is_refused(t *testing.T) {
	b := begin(t)
	b.refused("It is not possible for an entity that requires sessions to create a "+
		"non-sessionful message receiver", b.receiver("s128").try)
}

func TestS129_there_are_no_sessions_on_a_queue_without_them(t *testing.T) {
	b := begin(t)
	refusal := "A sessionful message receiver cannot be created on an entity that does not " +
		"require sessions"
	b.refused(refusal, func() error {
		_, err := b.trySession("s129", "x")
		return err
	})
	b.refused(refusal, func() error {
		limit, cancel := within(deadline)
		defer cancel()
		_, err := b.tryNextSession(limit, "s129")
		return err
	})
	b.sendTo("s129", "x")
	b.same(sessionIDs(b.receiver("s129").receive(1)), []string{"x"})
}

func TestS130_dead_letters_of_sessions_are_received_without_them(t *testing.T) {
	b := begin(t)
	b.sendTo("s130", "a", "b")
	for _, id := range []string{"a", "b"} {
		receiver := b.session("s130", id)
		reason := "why " + id
		receiver.buryWith(receiver.one(), &azservicebus.DeadLetterOptions{Reason: &reason})
	}
	dead := b.deadLetters("s130")
	letters := dead.receive(2)
	b.same(sessionIDs(letters), []string{"a", "b"})
	b.same(reasons(letters), []string{"why a", "why b"})
	b.same(numbers(letters), span(1, 2))
	dead.complete(letters...)
	b.same(bodies(dead.peekAll()), []string{})
}

func TestS131_one_delivery_too_many_and_the_session_goes_on(t *testing.T) {
	b := begin(t)
	b.sendTo("s131", "x", "x")
	receiver := b.session("s131", "x")
	for wanted := range 2 {
		each := receiver.one()
		b.same(string(each.Body), "1")
		b.same(count(each), wanted)
		receiver.abandon(each)
	}
	b.same(bodies(receiver.receive(1)), []string{"2"})
	letters := b.deadLetters("s131").receive(1)
	b.same(bodies(letters), []string{"1"})
	b.same(reasons(letters), []string{"MaxDeliveryCountExceeded"})
}

func TestS132_messages_of_a_session_are_received_and_deleted(t *testing.T) {
	b := begin(t)
	b.sendTo("s132", "x", "x", "x")
	limit, cancel := within(deadline)
	defer cancel()
	inner, err := b.client.AcceptSessionForQueue(limit, "s132", "x",
		&azservicebus.SessionReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	b.must(err)
	receiver := b.sessionOf(inner)
	b.same(bodies(receiver.receive(3)), texts(1, 3))
	b.same(bodies(receiver.peekAll()), []string{})
}

func TestS133_an_expired_message_is_no_reason_to_grant_a_session(t *testing.T) {
	b := begin(t)
	each := living(time.Second, 1)
	id := "x"
	each.SessionID = &id
	b.send("s133", each)
	letters := b.deadLetters("s133").receive(1)
	b.same(sessionIDs(letters), []string{"x"})
	b.same(reasons(letters), []string{"TTLExpiredException"})
	b.noNextSession("s133", 3*time.Second)
}

func TestS135_a_batch_may_go_to_several_sessions(t *testing.T) {
	b := begin(t)
	b.sender("s135").sendBatch(inSession("a", 1), inSession("b", 2), inSession("a", 3))
	b.same(bodies(b.session("s135", "a").receive(2)), []string{"1", "3"})
	b.same(bodies(b.session("s135", "b").receive(1)), []string{"2"})
}

func TestS136_names_of_sessions_are_taken_as_they_are(t *testing.T) {
	b := begin(t)
	names := []string{"x", strings.Repeat("y", 128), "with spaces / slashes and ü ≠", "X"}
	b.sendTo("s136", names...)
	b.same(b.listed("s136", nil), sorted(slices.Clone(names)))
	for _, name := range names {
		receiver := b.session("s136", name)
		b.same(receiver.id(), name)
		b.same(sessionIDs(receiver.receive(1)), []string{name})
	}
	sender := b.sender("s136")
	b.refused("", func() error { return sender.try(inSession(strings.Repeat("z", 129), 1)) })
}
