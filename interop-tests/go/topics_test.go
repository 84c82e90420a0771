package interop

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

func TestS141_every_subscription_has_its_own_copy_with_its_own_number_and_the_topics(t *testing.T) {
	b := begin(t)
	for n := range int32(5) {
		b.send("s141", titled("subject", with("n", n+1)))
	}
	for subscription, wanted := range map[string][]int32{
		"a": {1, 2, 3, 4, 5}, "b": {1, 2, 3, 4, 5}, "odd": {1, 3, 5},
	} {
		messages := b.receiver("s141/" + subscription).receive(len(wanted))
		b.same(numbers(messages), span(1, int64(len(wanted))))
		for index, each := range messages {
			b.same(*each.EnqueuedSequenceNumber, int64(wanted[index]))
			b.same(each.ApplicationProperties, map[string]any{"n": wanted[index]})
			b.same(said(each.Subject), "subject")
		}
	}
	b.receiver("s141/odd").nothing()
}

func TestS142_a_topic_without_subscriptions_takes_what_it_gets(t *testing.T) {
	b := begin(t)
	b.send("s142", text(1))
	b.sendNumbered("s142", 2)
}

func TestS143_what_happens_at_one_subscription_does_not_at_another(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s143", 3)
	first, second := b.receiver("s143/a"), b.receiver("s143/b")
	messages := first.receive(3)
	first.complete(messages[0])
	first.postpone(messages[1])
	first.abandon(messages[2])
	others := second.receive(3)
	b.same(bodies(others), texts(1, 3))
	b.same(counts(others), []int{0, 0, 0})
	again := first.one()
	b.same(string(again.Body), "3")
	b.same(count(again), 1)
	_, err := second.tryAsk(2)
	b.code(err, azservicebus.CodeNotFound)
	b.same(bodies(first.ask(2)), []string{"2"})
	tokens := map[[16]byte]bool{}
	for _, each := range append(messages, others...) {
		tokens[each.LockToken] = true
	}
	b.same(len(tokens), 6)
}

func TestS144_a_subscription_has_a_dead_letter_queue_of_its_own(t *testing.T) {
	b := begin(t)
	b.send("s144", text(1))
	receiver := b.receiver("s144/a")
	receiver.buryWith(receiver.one(), why())
	letter := b.deadLetters("s144/a").one()
	b.same(string(letter.Body), "1")
	b.same(said(letter.DeadLetterReason), "why")
	b.same(said(letter.DeadLetterErrorDescription), "because")
	b.same(bodies(b.receiver("s144/b").receive(1)), []string{"1"})
	b.same(bodies(b.deadLetters("s144/b").peekAll()), []string{})
}

func TestS145_a_subscription_may_have_sessions(t *testing.T) {
	b := begin(t)
	b.send("s145", inSession("x", 1), inSession("y", 2), inSession("x", 3))
	b.same(sessionIDs(b.receiver("s145/plain").receive(3)), []string{"x", "y", "x"})
	x := b.session("s145/s", "x")
	b.same(bodies(x.receive(2)), []string{"1", "3"})
	x.setState([]byte{1})
	b.must(x.tryRenew())
	b.near(x.inner.LockedUntil(), time.Now().Add(time.Minute), 5*time.Second)
	next := b.nextSession("s145/s")
	b.same(next.id(), "y")
	b.same(bodies(next.receive(1)), []string{"2"})
	x.close()
	again := b.another().nextSession("s145/s")
	b.same(again.id(), "x")
	b.same(again.state(), []byte{1})
	b.same(counts(again.receive(2)), []int{0, 0})
}

func TestS146_a_message_without_a_session_is_a_dead_letter_where_they_are_required(t *testing.T) {
	b := begin(t)
	b.send("s146", text(1))
	b.same(bodies(b.receiver("s146/plain").receive(1)), []string{"1"})
	letters := b.deadLetters("s146/s").receive(1)
	b.same(bodies(letters), []string{"1"})
	b.same(reasons(letters), []string{"Session ID is null."})
}

func TestS147_messages_scheduled_on_a_topic_come_to_its_subscriptions_when_due(t *testing.T) {
	b := begin(t)
	sender := b.sender("s147")
	at := later(12 * time.Second)
	sender.schedule(at, text("scheduled"))
	sender.send(scheduledFor(at, "sent"))
	receivers := []*receiver{b.receiver("s147/a"), b.receiver("s147/b")}
	for _, each := range receivers {
		b.same(bodies(each.peekAll()), []string{})
	}
	for _, receiver := range receivers {
		messages := receiver.receive(2)
		b.same(sorted(bodies(messages)), []string{"scheduled", "sent"})
		for _, each := range messages {
			b.same(each.EnqueuedTime.Before(at), false)
			b.same(each.ScheduledEnqueueTime.Equal(at), true)
		}
		receiver.nothing()
	}
}

func TestS148_messages_scheduled_on_a_topic_are_cancelled(t *testing.T) {
	b := begin(t)
	sender := b.sender("s148")
	scheduled := sender.schedule(later(10*time.Second), numbered(3)...)
	sender.cancel(scheduled[0])
	sender.cancel(scheduled[1:]...)
	b.code(sender.tryCancel(scheduled[0]), azservicebus.CodeNotFound)
	b.receiver("s148/a").nothingFor(12 * time.Second)
}

func TestS149_nothing_is_received_from_a_topic_or_sent_to_a_subscription(t *testing.T) {
	b := begin(t)
	b.refused("", b.receiver("s149").try)
	sender := b.sender("s149/Subscriptions/a")
	b.refused("", func() error { return sender.try(text(1)) })
	b.same(bodies(b.receiver("s149/a").peekAll()), []string{})
}

func TestS150_an_unknown_subscription_is_not_found(t *testing.T) {
	b := begin(t)
	for _, entity := range []string{"s150/no-such", "no-such/a"} {
		b.notFound(b.receiver(entity).try())
	}
}

func TestS151_names_of_topics_and_subscriptions_do_not_depend_on_case(t *testing.T) {
	b := begin(t)
	b.send("S151", text(1))
	b.same(bodies(b.receiver("s151/mixed").receive(1)), []string{"1"})
}

func TestS152_locks_of_a_subscription_are_as_its_own_properties_say(t *testing.T) {
	b := begin(t)
	b.send("s152", text(1))
	receiver := b.receiver("s152/a")
	each := receiver.one()
	receiver.nothingFor(3 * time.Second)
	b.must(receiver.tryRenew(each))
	start := time.Now()
	again := receiver.one()
	b.same(time.Since(start) >= 4*time.Second, true)
	b.same(count(again), 1)
	b.same(reasons(b.deadLetters("s152/a").receive(1)), []string{"MaxDeliveryCountExceeded"})
	b.same(counts(b.receiver("s152/b").receive(1)), []int{0})
}

func TestS153_a_message_lives_as_long_as_topic_and_subscription_allow(t *testing.T) {
	b := begin(t)
	b.send("s153", text(1))
	start := time.Now()
	b.same(reasons(b.deadLetters("s153/short").receive(1)), []string{"TTLExpiredException"})
	b.same(time.Since(start) < 3*time.Second, true)
	b.same(bodies(b.receiver("s153/keep").peekAll()), []string{"1"})
	b.same(reasons(b.deadLetters("s153/keep").receive(1)), []string{"TTLExpiredException"})
	b.same(time.Since(start) > 2500*time.Millisecond, true)
	b.receiver("s153/drop").nothing()
	b.same(bodies(b.deadLetters("s153/drop").peekAll()), []string{})
}

func TestS154_a_batch_and_a_large_message_are_copied_byte_for_byte(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s154", 100)
	b.send("s154", ofSize(200*1024))
	for _, subscription := range []string{"s154/a", "s154/b", "s154/c"} {
		receiver := b.receiver(subscription)
		messages := receiver.receive(101)
		b.same(bodies(messages[:100]), texts(1, 100))
		b.same(messages[100].Body, pattern(200*1024))
		receiver.complete(messages...)
		b.same(bodies(receiver.peekAll()), []string{})
	}
}

func TestS155_what_is_disabled_is_refused(t *testing.T) {
	b := begin(t)
	b.condition(b.sender("s155").try(text(1)), entityDisabled)
	b.receiver("s155/a").nothing()
	b.send("s155b", text(1))
	b.same(bodies(b.receiver("s155b/on").receive(1)), []string{"1"})
	b.condition(b.receiver("s155b/off").try(), entityDisabled)
}

func TestS156_a_full_topic_takes_more_when_its_subscriptions_have_been_emptied(t *testing.T) {
	b := begin(t)
	sender := b.sender("s156")
	accepted := sender.fill()
	b.same(accepted > 0, true)
	for _, subscription := range []string{"s156/a", "s156/b"} {
		receiver := b.receiver(subscription)
		receiver.complete(receiver.receive(accepted)...)
	}
	for start := time.Now(); ; {
		err := sender.try(ofSize(100 * 1024))
		if err == nil {
			return
		}
		b.condition(err, amqp.ErrCondResourceLimitExceeded)
		b.same(time.Since(start) < 5*time.Second, true)
	}
}

func TestS157_subscriptions_are_peeked_and_listed_like_queues(t *testing.T) {
	b := begin(t)
	b.send("s157", inSession("x", 1), inSession("y", 2), inSession("x", 3))
	receiver := b.receiver("s157/a")
	receiver.postpone(receiver.receive(2)[0])
	seen := receiver.peekAll()
	b.same(bodies(seen), texts(1, 3))
	b.same(states(seen), []azservicebus.MessageState{
		azservicebus.MessageStateDeferred, azservicebus.MessageStateActive,
		azservicebus.MessageStateActive,
	})
	limit, cancel := within(deadline)
	defer cancel()
	page, err := b.client.NewListSessionsForSubscriptionPager("s157", "s", nil).NextPage(limit)
	b.must(err)
	b.same(sorted(page.Sessions), []string{"x", "y"})
}

// Forwarding

func TestS191_what_is_forwarded_has_the_number_of_its_place_and_that_of_its_origin(t *testing.T) {
	b := begin(t)
	before := time.Now()
	b.send("s191b", text(1), text(2))
	b.send("s191", text(3), text(4))
	b.sender("s191").sendBatch(text(5))
	messages := b.receiver("s191b").receive(5)
	b.same(bodies(messages), texts(1, 5))
	b.same(numbers(messages), span(1, 5))
	b.same(origins(messages[2:]), span(1, 3))
	for _, each := range messages {
		b.near(*each.EnqueuedTime, before, 5*time.Second)
	}
}

func TestS192_the_number_of_the_origin_is_that_of_the_first_queue(t *testing.T) {
	b := begin(t)
	b.send("s192c", text("c"))
	b.send("s192b", text("b"))
	b.send("s192", text("a"))
	messages := b.receiver("s192c").receive(3)
	b.same(bodies(messages), []string{"c", "b", "a"})
	b.same(numbers(messages), span(1, 3))
	b.same(origins(messages[2:]), span(1, 1))
}

func TestS193_four_times_and_no_more(t *testing.T) {
	b := begin(t)
	b.send("s193", text("five"))
	b.send("s193b", text("four"))
	b.same(bodies(b.receiver("s193f").receive(1)), []string{"four"})
	letters := b.deadLetters("s193e").receive(1)
	b.same(bodies(letters), []string{"five"})
	b.same(reasons(letters), []string{"MaxTransferHopCountExceeded"})
}

func TestS194_a_queue_that_forwards_is_not_received_from(t *testing.T) {
	b := begin(t)
	b.condition(b.receiver("s194").try(), amqp.ErrCondNotAllowed)
	_, err := b.receiver("s194").tryPeek(1, 1)
	b.condition(err, amqp.ErrCondNotAllowed)
}

func TestS195_what_cannot_be_forwarded_is_a_dead_letter(t *testing.T) {
	b := begin(t)
	b.send("s195", text(1))
	receiver := b.deadLetters("s195")
	letter := receiver.one()
	b.same(string(letter.Body), "1")
	b.same(*letter.DeadLetterReason == "", false)
	receiver.complete(letter)
	b.same(bodies(receiver.peekAll()), []string{})
}

func TestS196_what_does_not_fit_is_a_dead_letter(t *testing.T) {
	b := begin(t)
	sender := b.sender("s196")
	for _, name := range texts(11, 25) {
		sender.send(titled(name, ofSize(100*1024)))
	}
	there, dead := b.receiver("s196b").peekAll(), b.deadLetters("s196").peekAll()
	b.same(len(there) > 0 && len(dead) > 0, true)
	b.same(sorted(subjects(append(there, dead...))), texts(11, 25))
}

func TestS197_a_subscription_forwards_what_its_rules_take(t *testing.T) {
	b := begin(t)
	b.sender("s197").sendBatch(with("n", 1), with("n", 2), with("n", 3))
	messages := b.receiver("s197b").receive(2)
	b.same(bodies(messages), []string{"2", "3"})
	b.same(numbers(messages), span(1, 2))
	b.same(origins(messages), span(2, 3))
}

func TestS198_a_queue_forwards_to_a_topic(t *testing.T) {
	b := begin(t)
	b.send("s198", with("color", "red"), with("color", "blue"))
	b.same(bodies(b.receiver("s198b/all").receive(2)), []string{"red", "blue"})
	b.same(bodies(b.receiver("s198b/red").peekAll()), []string{"red"})
}

func TestS199_dead_letters_are_forwarded_and_say_where_they_come_from(t *testing.T) {
	b := begin(t)
	b.sender("s199").sendBatch(text("dead"), text("abandoned"))
	receiver := b.receiver("s199")
	messages := receiver.receive(2)
	receiver.buryWith(messages[0], why())
	receiver.abandon(messages[1])
	b.send("s199", living(time.Second, "expired"))
	letters := b.receiver("s199b").receive(3)
	b.same(bodies(letters), []string{"dead", "abandoned", "expired"})
	b.same(reasons(letters), []string{"why", "MaxDeliveryCountExceeded", "TTLExpiredException"})
	b.same(numbers(letters), span(1, 3))
	for _, each := range letters {
		b.same(said(each.DeadLetterSource), "s199")
	}
}

func TestS200_dead_letters_of_a_subscription_are_forwarded(t *testing.T) {
	b := begin(t)
	b.send("s200", text(1))
	receiver := b.receiver("s200/a")
	receiver.buryWith(receiver.one(), why())
	letter := b.receiver("s200b").one()
	b.same(string(letter.Body), "1")
	b.same(said(letter.DeadLetterReason), "why")
	b.same(strings.Contains(strings.ToLower(said(letter.DeadLetterSource)), "s200"), true)
}

func TestS201_a_scheduled_message_is_forwarded_when_it_is_due(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s201"), b.receiver("s201b")
	at := later(10 * time.Second)
	sender.schedule(at, text("due"))
	sender.cancel(sender.schedule(at, text("cancelled"))...)
	b.same(bodies(receiver.peekAll()), []string{})
	b.same(bodies(receiver.receive(1)), []string{"due"})
	b.same(time.Now().Before(at), false)
	receiver.nothing()
}

func TestS202_what_is_forwarded_needs_a_session_where_sessions_are_required(t *testing.T) {
	b := begin(t)
	b.send("s202", inSession("x", "with"), text("without"))
	b.same(bodies(b.session("s202b", "x").receive(1)), []string{"with"})
	dead := b.deadLetters("s202").peekAll()
	b.same(bodies(dead), []string{"without"})
}

func TestS203_what_is_forwarded_may_be_a_duplicate(t *testing.T) {
	b := begin(t)
	for _, queue := range []string{"s203", "s203", "s203b"} {
		b.send(queue, identified("one", queue))
	}
	b.same(bodies(b.receiver("s203b").peekAll()), []string{"s203"})
}

// Partitions

// partition is the topmost 16 bits of a message's number.
func partition(each *received) int64 {
	return *each.SequenceNumber >> 48
}

// ordinal is a message's number within its partition.
func ordinal(each *received) int64 {
	return *each.SequenceNumber & (1<<48 - 1)
}

// keysInOrder checks ten messages of the keys j and k that were sent in turn.
func (b *bench) keysInOrder(messages []*received) {
	b.Helper()
	byKey := map[string][]*received{}
	for _, each := range messages {
		byKey[said(each.PartitionKey)] = append(byKey[said(each.PartitionKey)], each)
	}
	b.same(bodies(byKey["j"]), []string{"1", "3", "5", "7", "9"})
	b.same(bodies(byKey["k"]), []string{"2", "4", "6", "8", "10"})
	ordinals := map[int64][]int64{}
	for _, each := range messages {
		b.same(partition(each) >= 0 && partition(each) <= 15, true)
		ordinals[partition(each)] = append(ordinals[partition(each)], ordinal(each))
	}
	for key := range byKey {
		of := partition(byKey[key][0])
		for _, each := range byKey[key] {
			b.same(partition(each), of)
		}
	}
	for _, each := range ordinals {
		b.same(sorted(each), span(1, int64(len(each))))
	}
}

func inTurn() []*message {
	var messages []*message
	for body := 1; body <= 10; body++ {
		messages = append(messages, keyed([]string{"k", "j"}[body%2], body))
	}
	return messages
}

func TestS211_a_partition_key_is_one_partition_in_order(t *testing.T) {
	b := begin(t)
	b.send("s211", inTurn()...)
	b.keysInOrder(b.receiver("s211").receive(10))
}

func TestS212_a_session_is_one_partition(t *testing.T) {
	b := begin(t)
	names := []string{"session-1", "session-2", "session-3", "session-4", "session-5"}
	b.sendTo("s212", slices.Repeat(names, 3)...)
	partitions := map[int64]bool{}
	for index, name := range names {
		messages := b.session("s212", name).receive(3)
		wanted := slices.Concat(texts(index+1, index+1), texts(index+6, index+6),
			texts(index+11, index+11))
		b.same(bodies(messages), wanted)
		of := partition(messages[0])
		partitions[of] = true
		for _, each := range messages {
			b.same(partition(each), of)
		}
	}
	b.same(len(partitions) > 1, true)
	sender := b.sender("s212")
	unlike := keyed("y", 1)
	unlike.SessionID = &names[0]
	b.refused("", func() error { return sender.try(unlike) })
}

func TestS213_a_message_is_found_by_its_number_in_whichever_partition(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s213", 50)
	sender, receiver := b.sender("s213"), b.receiver("s213")
	for body := 51; body <= 100; body++ {
		sender.send(text(body))
	}
	seen := receiver.peekAll()
	b.same(sorted(bodies(seen)), sorted(texts(1, 100)))
	partitions := map[int64]bool{}
	for _, each := range seen {
		partitions[partition(each)] = true
	}
	b.same(len(partitions) >= 2, true)
	one := seen[60]
	b.same(bodies(receiver.peek(1, *one.SequenceNumber)), bodies(seen[60:61]))
	// Peeks without a number go on through all partitions too.
	rest := []int64{}
	for page := receiver.peek(30, 0); len(page) > 0; page = receiver.peek(30, 0) {
		rest = append(rest, numbers(page)...)
	}
	b.same(rest, numbers(seen))

	messages := receiver.receive(100)
	deferred, dead := messages[:10], messages[10:20]
	receiver.postpone(deferred...)
	receiver.bury(dead...)
	receiver.complete(messages[20:]...)
	again := receiver.ask(numbers(deferred)...)
	b.same(sorted(numbers(again)), sorted(numbers(deferred)))
	receiver.complete(again...)
	b.same(sorted(bodies(b.deadLetters("s213").receive(10))), sorted(bodies(dead)))
	scheduled := sender.schedule(later(time.Hour), numbered(10)...)
	b.same(sorted(numbers(receiver.peekAll())), sorted(slices.Clone(scheduled)))
	sender.cancel(scheduled...)
	b.same(bodies(receiver.peekAll()), []string{})
}

func TestS214_a_duplicate_is_one_of_the_same_partition_key(t *testing.T) {
	b := begin(t)
	with := func(key string, each *message) *message {
		each.PartitionKey = &key
		return each
	}
	b.send("s214", identified("1", 1), identified("1", 2), with("k", identified("2", 3)),
		with("k", identified("2", 4)), with("j", identified("2", 5)))
	b.same(sorted(bodies(b.receiver("s214").peekAll())), []string{"1", "3", "5"})
}

func TestS215_a_batch_with_a_partition_key_is_in_one_partition(t *testing.T) {
	b := begin(t)
	var batch []*message
	for body := range 10 {
		batch = append(batch, keyed("k", body+1))
	}
	b.sender("s215").sendBatch(batch...)
	messages := b.receiver("s215").receive(10)
	b.same(bodies(messages), texts(1, 10))
	for index, each := range messages {
		b.same(said(each.PartitionKey), "k")
		b.same(*each.SequenceNumber, *messages[0].SequenceNumber+int64(index))
		b.same(partition(each), partition(messages[0]))
	}
}

func TestS216_subscriptions_of_a_partitioned_topic_are_partitioned(t *testing.T) {
	b := begin(t)
	b.send("s216", inTurn()...)
	b.keysInOrder(b.receiver("s216/a").receive(10))
}
