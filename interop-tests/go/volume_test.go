package interop

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

func TestS309_1000_messages_are_held_by_one_link(t *testing.T) {
	b := begin(t)
	b.sendNumbered("s309", 1000)
	receiver := b.receiver("s309")
	messages := receiver.receive(1000)
	b.same(numbers(messages), span(1, 1000))
	rand.Shuffle(len(messages), func(i, k int) { messages[i], messages[k] = messages[k], messages[i] })
	// Twenty at once: one after another may take longer than a lock lasts.
	failures := make(chan error, 20)
	for part := range slices.Chunk(messages, 50) {
		go func() {
			var failure error
			for _, each := range part {
				failure = errors.Join(failure, receiver.tryComplete(each))
			}
			failures <- failure
		}()
	}
	for range 20 {
		b.must(<-failures)
	}
	b.same(bodies(receiver.peekAll()), []string{})
}

// most is how many messages the service takes in a batch, about, of which the SDK knows nothing.
const most = 15_000

// fullBatch sends a batch to which messages of a size were added until no more would fit.
func (s *sender) fullBatch(size int) *azservicebus.MessageBatch {
	s.b.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	batch, err := s.inner.NewMessageBatch(limit, nil)
	s.b.must(err)
	for err == nil && batch.NumMessages() < most {
		err = batch.AddMessage(ofSize(size), nil)
	}
	if err != nil && !errors.Is(err, azservicebus.ErrMessageTooLarge) {
		s.b.Fatalf("the batch is not full, but: %v", err)
	}
	s.b.must(s.inner.SendMessageBatch(limit, batch, nil))
	return batch
}

func TestS310_a_batch_takes_what_fits(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s310"), b.deleting("s310")
	for _, size := range []int{1000, 10} {
		many := int(sender.fullBatch(size).NumMessages())
		b.Logf("%d messages of %d bytes", many, size)
		if many*size < 800*1000 && size == 1000 {
			b.Fatalf("only %d messages", many)
		}
		var last int64
		for seen := 0; seen < many; {
			messages := receiver.receiveSome(many - seen)
			for _, each := range messages {
				if *each.SequenceNumber <= last || string(each.Body) != string(pattern(size)) {
					b.Fatalf("%d comes after %d, or is not what was sent", *each.SequenceNumber, last)
				}
				last = *each.SequenceNumber
			}
			seen += len(messages)
		}
	}
	b.same(bodies(receiver.peekAll()), []string{})
}

// receiveSome receives one message at least, and so many at most.
func (r *receiver) receiveSome(most int) []*received {
	r.b.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	messages, err := r.inner.ReceiveMessages(limit, min(most, 5000), nil)
	r.b.must(err)
	return messages
}

func TestS311_a_message_may_be_as_large_as_a_batch(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s311"), b.deleting("s311")
	sender.send(ofSize(1_000_000))
	sender.sendBatch(ofSize(1_000_000))
	for range 2 {
		b.same(receiver.one().Body, pattern(1_000_000))
	}
	for _, err := range []error{sender.tryBatch(ofSize(1_100_000)), sender.try(ofSize(1_100_000))} {
		if !errors.Is(err, azservicebus.ErrMessageTooLarge) {
			b.Fatalf("it is not too large, but: %v", err)
		}
	}
	receiver.nothing()
}

func TestS312_20_MiB_come_back_byte_for_byte(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s312"), b.receiver("s312")
	sender.send(ofSize(20 << 20))
	each := receiver.one()
	if string(each.Body) != string(pattern(20<<20)) {
		b.Fatalf("%d bytes came, and not as they were sent", len(each.Body))
	}
	receiver.complete(each)
}

// scalars are values of every kind that the SDK can make; what it reads in their place, where that is another, comes second.
func scalars() [][2]any {
	long := strings.Repeat("ü€😀", 40)
	values := [][2]any{{amqp.Symbol("symbol"), "symbol"}, {1, int64(1)}}
	for _, each := range []any{
		true, false, int8(math.MinInt8), int8(math.MaxInt8), int16(math.MinInt16), int16(math.MaxInt16),
		int32(math.MinInt32), int32(-1), int32(0), int32(math.MaxInt32), int64(math.MinInt64), int64(0), int64(math.MaxInt64),
		uint8(0), uint8(math.MaxUint8), uint16(0), uint16(math.MaxUint16), uint32(0), uint32(math.MaxUint32),
		uint64(0), uint64(math.MaxUint64), float32(0), float32(math.Copysign(0, -1)), float32(math.MaxFloat32),
		float32(math.Inf(-1)), float32(math.NaN()), 0.0, math.Copysign(0, -1), math.SmallestNonzeroFloat64, math.Inf(1), math.NaN(),
		time.UnixMilli(0).UTC(), time.Date(1903, 1, 2, 3, 4, 5, 6_000_000, time.UTC), time.Date(3017, 1, 2, 3, 4, 5, 0, time.UTC),
		amqp.UUID{0: 255, 15: 1}, []byte{}, pattern(300), "", "ü€😀", long,
	} {
		values = append(values, [2]any{each, each})
	}
	return values
}

// alike compares values with their types: a NaN is one, and zeros have signs.
func (b *bench) alike(found, wanted any) {
	b.Helper()
	switch wanted := wanted.(type) {
	case float64:
		number, is := found.(float64)
		b.same([]any{is, math.Float64bits(number)}, []any{true, math.Float64bits(wanted)})
	case float32:
		number, is := found.(float32)
		b.same([]any{is, math.Float32bits(number)}, []any{true, math.Float32bits(wanted)})
	case time.Time:
		moment, is := found.(time.Time)
		b.same([]any{is, moment.UTC()}, []any{true, wanted})
	default:
		b.same(found, wanted)
	}
}

func TestS321_values_of_every_kind_are_bodies(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s321"), b.deleting("s321")
	values := append(scalars(),
		[2]any{[]any{int64(1), []any{"two", map[string]any{"three": []any(nil)}}}, nil},
		[2]any{map[string]any{"list": []any{true, map[any]any{int64(1): "one"}}, "none": nil}, nil},
		[2]any{map[any]any{"text": int64(1), int64(2): "number"}, nil},
		[2]any{[]int64{math.MinInt64, 0, math.MaxInt64}, nil}, [2]any{[]string{"", "a", strings.Repeat("b", 300)}, nil},
		[2]any{[]bool{true, false}, nil}, [2]any{[]float64{0.5, -1}, nil}, [2]any{[]amqp.UUID{{1}, {2}}, nil},
	)
	for _, each := range values {
		sender.sendAnnotated(&azservicebus.AMQPAnnotatedMessage{Body: azservicebus.AMQPAnnotatedMessageBody{Value: each[0]}})
		wanted := each[1]
		if wanted == nil {
			wanted = each[0]
		}
		b.alike(receiver.one().RawAMQPMessage.Body.Value, wanted)
	}
}

func TestS322_scalars_of_every_kind_are_properties(t *testing.T) {
	b := begin(t)
	properties, wanted := map[string]any{"null": nil}, map[string]any{"null": nil}
	for index, each := range scalars() {
		name := fmt.Sprint("p", index)
		properties[name], wanted[name] = each[0], each[1]
	}
	b.send("s322", having(properties, "all"))
	found := b.deleting("s322").one().ApplicationProperties
	b.same(len(found), len(wanted))
	for name, value := range wanted {
		b.Log(name)
		b.alike(found[name], value)
	}
}

func TestS323_sections_stay_apart(t *testing.T) {
	b := begin(t)
	sender, receiver := b.sender("s323"), b.deleting("s323")
	var many [][]byte
	for each := range byte(100) {
		many = append(many, []byte{each})
	}
	for _, body := range []azservicebus.AMQPAnnotatedMessageBody{
		{Data: [][]byte{{1, 2}, {}, {3}}},
		{Data: many},
		// What is empty is read as nil.
		{Sequence: [][]any{{int64(1), "two"}, nil, {[]any{"three"}, nil}}},
	} {
		sender.sendAnnotated(&azservicebus.AMQPAnnotatedMessage{Body: body})
		b.same(receiver.one().RawAMQPMessage.Body, body)
	}
}

func TestS326_what_traces_is_carried_along(t *testing.T) {
	b := begin(t)
	properties := map[string]any{
		"Diagnostic-Id": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"traceparent":   "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"tracestate":    "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
	}
	traced := func(body string) *message { return having(properties, body) }
	sender, receiver := b.sender("s326"), b.receiver("s326")
	sender.schedule(later(time.Second), traced("scheduled"))
	scheduled := receiver.one()
	receiver.complete(scheduled)
	sender.send(traced("deferred"), traced("dead"))
	messages := receiver.receive(2)
	receiver.postpone(messages[0])
	receiver.buryWith(messages[1], why())
	deferred := receiver.ask(*messages[0].SequenceNumber)[0]
	dead := b.deadLetters("s326").one().ApplicationProperties
	delete(dead, "DeadLetterReason")
	delete(dead, "DeadLetterErrorDescription")
	b.send("s326t", traced("published"))
	for _, each := range []map[string]any{
		scheduled.ApplicationProperties, messages[0].ApplicationProperties, deferred.ApplicationProperties, dead,
		b.receiver("s326t/a").one().ApplicationProperties,
	} {
		b.same(each, properties)
	}
}

func TestS330_a_full_queue_takes_a_batch_whole_or_not_at_all(t *testing.T) {
	b := begin(t)
	sender := b.sender("s330")
	batches, scheduled := 0, 0
	for ; ; batches++ {
		large := ofSize(100 * 1024)
		if err := sender.tryBatch(large, large, large); err != nil {
			b.condition(err, amqp.ErrCondResourceLimitExceeded)
			break
		}
		if batches == 10 {
			b.Fatal("30 messages were accepted")
		}
	}
	limit, cancel := within(deadline)
	defer cancel()
	for ; ; scheduled++ {
		if _, err := sender.inner.ScheduleMessages(limit, []*message{ofSize(100 * 1024)}, later(time.Hour), nil); err != nil {
			if !strings.Contains(err.Error(), "The maximum entity size has been reached") {
				b.Fatalf("refused for another reason: %v", err)
			}
			break
		}
		if scheduled == 30 {
			b.Fatal("30 messages were scheduled")
		}
	}
	found := map[azservicebus.MessageState]int{}
	for _, each := range b.receiver("s330").peekAll() {
		found[each.State]++
	}
	b.same(found[azservicebus.MessageStateActive], 3*batches)
	b.same(found[azservicebus.MessageStateScheduled], scheduled)
}
