package interop

import (
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// revive kills the broker and starts it again.
//
// There is one broker to kill. Scenarios that do so do not run beside others: Go runs them before all that do.
func revive(t *testing.T) {
	t.Helper()
	control(t, "kill")
	control(t, "start")
}

func TestS72_what_was_acknowledged_survives_a_kill(t *testing.T) {
	b := connect(t)
	b.sendNumbered("s72", 6)
	receiver := b.receiver("s72")
	messages := receiver.receive(4)
	receiver.complete(messages[0])
	receiver.postponeWith(messages[1], map[string]any{"attempt": int32(1)})
	receiver.buryWith(messages[2], why())
	b.sender("s72").schedule(later(time.Hour), text("later"))
	revive(t)

	after := connect(t)
	looking := after.receiver("s72")
	seen := looking.peekAll()
	b.same(numbers(seen), []int64{2, 4, 5, 6, 7})
	b.same(bodies(seen), []string{"2", "4", "5", "6", "later"})
	b.same(states(seen), []azservicebus.MessageState{
		azservicebus.MessageStateDeferred, azservicebus.MessageStateActive,
		azservicebus.MessageStateActive, azservicebus.MessageStateActive,
		azservicebus.MessageStateScheduled,
	})
	b.same(looking.ask(2)[0].ApplicationProperties["attempt"], int32(1))
	b.same(reasons(after.deadLetters("s72").receive(1)), []string{"why"})
	after.send("s72", text("next"))
	b.same(sorted(numbers(looking.receive(4))), []int64{4, 5, 6, 8})
}

func TestS73_a_message_that_came_due_meanwhile_arrives(t *testing.T) {
	b := connect(t)
	at := later(2 * time.Second)
	b.sender("s73").schedule(at, text("due"))
	control(t, "kill")
	<-time.After(time.Until(at))
	control(t, "start")
	b.same(bodies(connect(t).receiver("s73").receiveWithin(1, 3*time.Second)), []string{"due"})
}

func TestS74_senders_and_receivers_outlive_the_broker(t *testing.T) {
	b := connect(t)
	sender, receiver := b.sender("s74"), b.receiver("s74")
	sender.send(text("before"))
	receiver.complete(receiver.one())
	for _, body := range []string{"after", "again"} {
		revive(t)
		sender.send(text(body))
		each := receiver.one()
		b.same(string(each.Body), body)
		receiver.complete(each)
		sender.cancel(sender.schedule(later(time.Hour), text(1))...)
	}
	b.same(bodies(receiver.peekAll()), []string{})
}

func TestS74_a_receive_that_waits_outlives_the_broker(t *testing.T) {
	b := connect(t)
	receiver := b.receiver("s74")
	receiver.nothingFor(100 * time.Millisecond)
	arrived := make(chan []*received, 1)
	limit, cancel := within(deadline)
	defer cancel()
	go func() {
		var messages []*received
		// A receive ends, with nothing, when the connection does; the next one connects again.
		for len(messages) == 0 && limit.Err() == nil {
			messages, _ = receiver.inner.ReceiveMessages(limit, 1, nil)
		}
		arrived <- messages
	}()
	revive(t)
	connect(t).send("s74", text("after"))
	b.same(bodies(<-arrived), []string{"after"})
}

func TestS75_a_broker_that_is_stopped_ends_in_good_order_with_clients_connected(t *testing.T) {
	b := connect(t)
	b.send("s75", text("abandoned"))
	receiver := b.receiver("s75")
	receiver.abandon(receiver.one())
	start := time.Now()
	control(t, "stop")
	b.same(time.Since(start) < 10*time.Second, true)
	control(t, "start")
	each := receiver.one()
	b.same(string(each.Body), "abandoned")
	b.same(count(each), 1)
}

func TestS138_sessions_and_their_states_survive_a_kill(t *testing.T) {
	b := connect(t)
	b.sender("s138").sendBatch(inSession("x", "deferred"), inSession("x", "left"),
		inSession("x", "there"), inSession("z", "other"))
	x := b.session("s138", "x")
	x.postpone(x.receive(2)[0])
	x.setState([]byte{1})
	b.session("s138", "y").setState([]byte{2})
	revive(t)

	after := connect(t)
	again := after.session("s138", "x")
	b.same(again.state(), []byte{1})
	b.same(after.session("s138", "y").state(), []byte{2})
	messages := again.receive(2)
	b.same(bodies(messages), []string{"left", "there"})
	b.same(numbers(messages), span(2, 3))
	b.same(after.nextSession("s138").id(), "z")
	after.send("s138", inSession("x", "next"))
	b.same(numbers(again.receive(1)), span(5, 5))
}

func TestS139_a_session_is_accepted_again_after_a_kill(t *testing.T) {
	b := connect(t)
	b.sendTo("s139", "x")
	receiver := b.session("s139", "x")
	each := receiver.one()
	revive(t)
	// The SDK tries for half a minute to settle on a link that is gone; it never says that this was done.
	limit, cancel := within(time.Second)
	defer cancel()
	b.same(receiver.inner.CompleteMessage(limit, each, nil) == nil, false)
	// It accepts the session again by itself.
	again := receiver.one()
	b.same(string(again.Body), "1")
	b.same(again.LockToken == each.LockToken, false)
	receiver.complete(again)
	receiver.close()
	connect(t).freed("s139", "x", atOnce).nothing()
}

func TestS158_a_subscription_has_what_it_had(t *testing.T) {
	b := connect(t)
	b.sendNumbered("s158", 10)
	receiver := b.receiver("s158/a")
	copies := receiver.receive(5)
	receiver.complete(copies[:3]...)
	receiver.postpone(copies[3])
	receiver.bury(copies[4])
	b.sender("s158").schedule(later(3*time.Second), text("scheduled"))
	revive(t)

	after := connect(t)
	looking := after.receiver("s158/a")
	messages := looking.receive(6)
	b.same(bodies(messages), []string{"6", "7", "8", "9", "10", "scheduled"})
	b.same(numbers(messages), span(6, 11))
	b.same(origins(messages[:5]), span(6, 10))
	b.same(bodies(looking.ask(4)), []string{"4"})
	b.same(bodies(after.deadLetters("s158/a").receive(1)), []string{"5"})
	after.send("s158", text("new"))
	b.same(numbers(looking.receive(1)), span(12, 12))
}

func TestS188_what_is_a_duplicate_is_one_still(t *testing.T) {
	b := connect(t)
	b.send("s188", identified("one", 1))
	revive(t)
	after := connect(t)
	after.sender("s188").sendBatch(identified("one", 2), identified("two", 3))
	b.same(bodies(after.receiver("s188").peekAll()), []string{"1", "3"})
}

func TestS217_the_numbers_of_every_partition_go_on(t *testing.T) {
	b := connect(t)
	var batch []*message
	sender := b.sender("s217")
	for body := range 50 {
		sender.send(keyed([]string{"a", "b", "c", "d", "e"}[body%5], body))
	}
	receiver := b.receiver("s217")
	before := receiver.peekAll()
	receiver.complete(receiver.receive(10)...)
	kept := receiver.peekAll()
	b.same(len(kept), 40)
	revive(t)

	after := connect(t)
	looking := after.receiver("s217")
	b.same(sorted(numbers(looking.peekAll())), sorted(numbers(kept)))
	for body := range 10 {
		batch = append(batch, keyed([]string{"a", "b", "c", "d", "e"}[body%5], "new"))
	}
	after.send("s217", batch...)
	all := map[int64][]int64{}
	for _, each := range before {
		all[partition(each)] = append(all[partition(each)], ordinal(each))
	}
	for _, each := range looking.peekAll() {
		if string(each.Body) == "new" {
			all[partition(each)] = append(all[partition(each)], ordinal(each))
		}
	}
	total := 0
	for _, each := range all {
		b.same(sorted(slices.Clone(each)), span(1, int64(len(each))))
		total += len(each)
	}
	b.same(total, 60)
}

func TestS76_a_running_broker_says_that_it_is_healthy(t *testing.T) {
	b := begin(t)
	status, body := b.fetch("http://127.0.0.1:" + environment(t, "JITNEY_HTTP_PORT") + "/health")
	b.same(status, 200)
	b.same(body, `{"status":"healthy","message":"Service is healthy."}`)
}
