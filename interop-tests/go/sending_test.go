package interop

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

func TestS07_a_body_keeps_its_kind_and_its_content(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s07"), b.deleting("s07")
	for _, body := range []azservicebus.AMQPAnnotatedMessageBody{
		{Data: [][]byte{{0, 1, 255}}},
		{Data: [][]byte{{1}, {2, 3}, {4}}},
		{Data: [][]byte{{}}},
		{Value: "text"},
		{Value: int64(4_000_000_000)},
		{Value: int32(-1)},
		{Value: true},
		{Value: map[string]any{"key": []any{int64(1), "two"}}},
		{Sequence: [][]any{{int64(1), "two", nil}}},
		{Sequence: [][]any{{int64(1)}, {"two"}}},
	} {
		sender.sendAnnotated(&azservicebus.AMQPAnnotatedMessage{Body: body})
		b.same(receiver.one().RawAMQPMessage.Body, body)
	}
}

func TestS08_every_property_comes_back_with_its_value_and_type(t *testing.T) {
	b := begin(t)
	given := func(value string) *string { return &value }
	at := time.Date(2026, 2, 3, 4, 5, 6, 789_000_000, time.UTC)
	life := 10 * time.Minute
	properties := map[string]any{
		"string": "ü", "empty": "", "true": true, "false": false, "byte": int8(-1), "short": int16(-2),
		"int": int32(-3), "long": int64(1) << 40, "ubyte": uint8(1), "ushort": uint16(2), "uint": uint32(3),
		"ulong": uint64(1) << 63, "float": float32(0.5), "double": 1.5, "bytes": []byte{0, 255},
		"uuid": amqp.UUID{0: 128, 15: 5}, "null": nil, "time": at,
	}
	b.send("s08", &message{
		Body: []byte("all"), MessageID: given("id-1"), CorrelationID: given("correlation"),
		ContentType: given("text/plain"), Subject: given("subject"), To: given("to"), ReplyTo: given("reply-to"),
		ReplyToSessionID: given("reply-to-session"), PartitionKey: given("key"), TimeToLive: &life,
		ApplicationProperties: properties,
	})
	each := b.receiver("s08").one()
	b.same(each.MessageID, "id-1")
	for _, pair := range [][2]string{
		{said(each.CorrelationID), "correlation"}, {said(each.ContentType), "text/plain"},
		{said(each.Subject), "subject"}, {said(each.To), "to"}, {said(each.ReplyTo), "reply-to"},
		{said(each.ReplyToSessionID), "reply-to-session"}, {said(each.PartitionKey), "key"},
		{said(each.SessionID), "(none)"},
	} {
		b.same(pair[0], pair[1])
	}
	b.same(*each.TimeToLive, life)
	found := each.ApplicationProperties
	moment, isTime := found["time"].(time.Time)
	b.same(isTime && moment.Equal(at), true)
	delete(found, "time")
	delete(properties, "time")
	b.same(found, properties)
}

func TestS09_sections_of_the_senders_own_come_back(t *testing.T) {
	b := begin(t)
	b.sender("s09").sendAnnotated(&azservicebus.AMQPAnnotatedMessage{
		Header:              &azservicebus.AMQPAnnotatedMessageHeader{Durable: true, Priority: 9},
		DeliveryAnnotations: map[any]any{"my-delivery": "delivery"},
		MessageAnnotations:  map[any]any{"my-annotation": int64(7)},
		Footer:              map[any]any{"my-footer": "foot"},
		Properties: &azservicebus.AMQPAnnotatedMessageProperties{
			MessageID: uint64(7), CorrelationID: amqp.UUID{1, 2, 3}, UserID: []byte("user"),
		},
		Body: azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{[]byte("annotated")}},
	})
	raw := b.receiver("s09").one().RawAMQPMessage
	b.same(raw.Header.Durable, true)
	b.same(raw.Header.Priority, uint8(9))
	b.same(raw.DeliveryAnnotations["my-delivery"], "delivery")
	b.same(raw.MessageAnnotations["my-annotation"], int64(7))
	b.same(raw.Footer["my-footer"], "foot")
	b.same(raw.Properties.MessageID, uint64(7))
	b.same(raw.Properties.CorrelationID, amqp.UUID{1, 2, 3})
	b.same(raw.Properties.UserID, []byte("user"))
}

func TestS10_a_batch_of_100_arrives_in_order(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s10", 100)
	receiver := b.receiver("s10")
	messages := receiver.receive(100)
	b.same(bodies(messages), texts(1, 100))
	b.same(numbers(messages), span(1, 100))

	// And one that is as large as the broker lets it be, of several kinds of messages.
	limit, cancel := within(deadline)
	defer cancel()
	sender := b.sender("s10")
	batch, err := sender.inner.NewMessageBatch(limit, nil)
	b.must(err)
	b.must(batch.AddAMQPAnnotatedMessage(&azservicebus.AMQPAnnotatedMessage{
		Body: azservicebus.AMQPAnnotatedMessageBody{Value: "value"},
	}, nil))
	for err == nil {
		err = batch.AddMessage(ofSize(10_000), nil)
	}
	b.same(errors.Is(err, azservicebus.ErrMessageTooLarge), true)
	b.same(batch.NumBytes() > 200*1024, true)
	b.must(sender.inner.SendMessageBatch(limit, batch, nil))
	messages = receiver.receive(int(batch.NumMessages()))
	b.same(messages[0].RawAMQPMessage.Body.Value, "value")
	for _, each := range messages[1:] {
		b.same(each.Body, pattern(10_000))
	}
}

func TestS11_small_and_large_messages_come_back_byte_for_byte(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s11"), b.deleting("s11")
	for _, size := range []int{1, 64 * 1024, 200 * 1024} {
		sender.send(ofSize(size))
		b.same(receiver.one().Body, pattern(size))
	}
}

func TestS12_a_message_that_is_too_large_is_refused_and_the_sender_goes_on(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s12"), b.receiver("s12")
	for _, err := range []error{
		sender.try(ofSize(100 * 1024)), sender.tryBatch(ofSize(100 * 1024)),
	} {
		if !errors.Is(err, azservicebus.ErrMessageTooLarge) {
			b.Fatalf("wanted %v, got %v", azservicebus.ErrMessageTooLarge, err)
		}
	}
	receiver.nothing()
	sender.send(text("small"))
	b.same(bodies(receiver.receive(1)), []string{"small"})
}

func TestS13_2000_messages_of_two_senders_arrive_once_and_in_order(t *testing.T) {
	b := begin(t)
	failures := make(chan error, 2)
	for _, name := range []string{"0", "1"} {
		sender := b.another().sender("s13")
		go func() {
			for first := 1; first <= 1000; first += 50 {
				var batch []*message
				for body := first; body < first+50; body++ {
					batch = append(batch, titled(name, text(body)))
				}
				if err := sender.tryBatch(batch...); err != nil {
					failures <- err
					return
				}
			}
			failures <- nil
		}()
	}
	receiver := b.receiver("s13")
	seen := map[string][]string{}
	for total := 0; total < 2000; total += 100 {
		messages := receiver.receive(100)
		for _, each := range messages {
			seen[*each.Subject] = append(seen[*each.Subject], string(each.Body))
		}
		receiver.complete(messages...)
	}
	b.must(<-failures)
	b.must(<-failures)
	b.same(seen, map[string][]string{"0": texts(1, 1000), "1": texts(1, 1000)})
	b.same(bodies(receiver.peekAll()), []string{})
}

func TestS15_numbers_are_given_in_the_order_sent(t *testing.T) {
	b := begin(t)
	sender := b.sender("s15")
	sender.send(numbered(3)...)
	sender.sendBatch(text(4), text(5), text(6))
	sender.send(text(7))
	messages := b.receiver("s15").receive(7)
	b.same(bodies(messages), texts(1, 7))
	b.same(numbers(messages), span(1, 7))
}

func TestS16_the_enqueued_time_is_that_of_the_send_and_stays(t *testing.T) {
	b := begin(t)
	sender := b.sender("s16")
	before := time.Now()
	sender.send(text(1))
	took := time.Since(before)
	receiver := b.receiver("s16")
	first := receiver.one()
	b.near(*first.EnqueuedTime, before.Add(took/2), took/2+time.Second)
	receiver.abandon(first)
	second := receiver.one()
	b.same(*second.EnqueuedTime, *first.EnqueuedTime)
	b.same(*second.SequenceNumber, *first.SequenceNumber)
}

func TestS17_a_message_tells_its_number_times_lock_and_count(t *testing.T) {
	b := begin(t)
	b.send("s17", living(10*time.Minute, 1))
	each := b.receiver("s17").one()
	b.same(*each.SequenceNumber, int64(1))
	b.same(*each.EnqueuedSequenceNumber, int64(0))
	b.same(count(each), 0)
	b.same(each.State, azservicebus.MessageStateActive)
	b.same(each.LockToken == [16]byte{}, false)
	b.same(*each.TimeToLive, 10*time.Minute)
	b.same(each.ExpiresAt.Sub(*each.EnqueuedTime), 10*time.Minute)
	b.same(*each.RawAMQPMessage.Properties.CreationTime, *each.EnqueuedTime)
	b.same(*each.RawAMQPMessage.Properties.AbsoluteExpiryTime, *each.ExpiresAt)
	b.near(*each.EnqueuedTime, time.Now(), 3*time.Second)
	b.near(*each.LockedUntil, time.Now().Add(30*time.Second), 3*time.Second)
}

func TestS64_a_queue_that_takes_nothing_still_gives(t *testing.T) {
	b := begin(t)
	b.condition(b.sender("s64").try(text(1)), entityDisabled)
	b.receiver("s64").nothing()
}

func TestS65_a_queue_that_gives_nothing_still_takes(t *testing.T) {
	b := begin(t)
	b.send("s65", text(1))
	b.condition(b.receiver("s65").try(), entityDisabled)
}

func TestS66_a_disabled_queue_neither_takes_nor_gives(t *testing.T) {
	b := begin(t)
	b.condition(b.sender("s66").try(text(1)), entityDisabled)
	b.condition(b.receiver("s66").try(), entityDisabled)
}

// fill sends messages of 100 KiB until one is refused, and returns how many were not.
func (s *sender) fill() int {
	s.b.Helper()
	for accepted := range 30 {
		if err := s.try(titled(fmt.Sprint(accepted+1), ofSize(100*1024))); err != nil {
			s.b.condition(err, amqp.ErrCondResourceLimitExceeded)
			return accepted
		}
	}
	s.b.Fatal("30 messages were accepted")
	return 0
}

func TestS67_a_full_queue_refuses_and_takes_again_when_there_is_room(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s67"), b.receiver("s67")
	accepted := sender.fill()
	b.same(subjects(receiver.peekAll()), texts(1, accepted))
	receiver.complete(receiver.receive(5)...)
	sender.send(titled(fmt.Sprint(accepted+1), ofSize(100*1024)))
	b.same(subjects(receiver.peekAll()), texts(6, accepted+1))
}
