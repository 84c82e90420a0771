// Package interop meets a running broker with the official Go SDK, azservicebus, as it comes.
//
// This file is what every scenario needs: a connection of its own, calls with a deadline that end the scenario when
// they fail, and readings of messages and errors. The scenarios are numbered as in ../scenarios.md.
package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const (
	// deadline is the time that anything may take that should happen at once.
	deadline = 20 * time.Second
	// atOnce is the time that a grant may take that is not waited for.
	atOnce = 2 * time.Second
)

type (
	message  = azservicebus.Message
	received = azservicebus.ReceivedMessage
)

// bench is a scenario's connection.
type bench struct {
	*testing.T
	client *azservicebus.Client
}

// begin connects a scenario that runs beside others.
func begin(t *testing.T) *bench {
	t.Parallel()
	return connect(t)
}

// connect opens a connection that ends with the scenario, by the transport that the suite was told to take.
func connect(t *testing.T) *bench {
	t.Helper()
	switch transport := os.Getenv("INTEROP_TRANSPORT"); transport {
	case "":
		return connectWith(t, environment(t, "JITNEY_CONNECTION_STRING"), nil)
	case "amqps":
		endpoint := open(t)
		return endpoint.with(t, rootName, endpoint.key)
	case "wss":
		endpoint := open(t)
		return connectWith(t, keyedString(endpoint.amqp, rootName, endpoint.key),
			&azservicebus.ClientOptions{NewWebSocketConn: webSocket(endpoint.trust(t), transport, "AMQPWSB10")})
	default:
		t.Fatalf("there is no transport %s", transport)
		return nil
	}
}

// quickly are the retries of all clients here.
var quickly = azservicebus.RetryOptions{
	MaxRetries: 5, RetryDelay: 50 * time.Millisecond, MaxRetryDelay: time.Second,
}

// connectWith opens a connection by its connection string; retries are quick where the options say nothing else.
func connectWith(t *testing.T, text string, options *azservicebus.ClientOptions) *bench {
	t.Helper()
	chosen := azservicebus.ClientOptions{}
	if options != nil {
		chosen = *options
	}
	chosen.RetryOptions = quickly
	client, err := azservicebus.NewClientFromConnectionString(text, &chosen)
	if err != nil {
		t.Fatalf("no client: %v", err)
	}
	b := &bench{T: t, client: client}
	t.Cleanup(b.close)
	return b
}

// another opens a second connection.
func (b *bench) another() *bench {
	b.Helper()
	return connect(b.T)
}

func (b *bench) close() {
	limit, cancel := within(5 * time.Second)
	defer cancel()
	_ = b.client.Close(limit)
}

func environment(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: see ../README.md", name)
	}
	return value
}

func within(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), limit)
}

// Sending

// sender is an SDK's sender whose failures end the scenario.
type sender struct {
	b     *bench
	inner *azservicebus.Sender
}

func (b *bench) sender(entity string) *sender {
	b.Helper()
	inner, err := b.client.NewSender(entity, nil)
	b.must(err)
	return &sender{b, inner}
}

func (s *sender) try(each *message) error {
	limit, cancel := within(deadline)
	defer cancel()
	return s.inner.SendMessage(limit, each, nil)
}

func (s *sender) send(messages ...*message) {
	s.b.Helper()
	for _, each := range messages {
		s.b.must(s.try(each))
	}
}

func (s *sender) sendAnnotated(each *azservicebus.AMQPAnnotatedMessage) {
	s.b.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	s.b.must(s.inner.SendAMQPAnnotatedMessage(limit, each, nil))
}

func (s *sender) tryBatch(messages ...*message) error {
	limit, cancel := within(deadline)
	defer cancel()
	batch, err := s.inner.NewMessageBatch(limit, nil)
	if err != nil {
		return err
	}
	for _, each := range messages {
		if err := batch.AddMessage(each, nil); err != nil {
			return err
		}
	}
	return s.inner.SendMessageBatch(limit, batch, nil)
}

// sendBatch sends messages as one batch.
func (s *sender) sendBatch(messages ...*message) {
	s.b.Helper()
	s.b.must(s.tryBatch(messages...))
}

func (s *sender) schedule(at time.Time, messages ...*message) []int64 {
	s.b.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	numbers, err := s.inner.ScheduleMessages(limit, messages, at, nil)
	s.b.must(err)
	return numbers
}

func (s *sender) tryCancel(numbers ...int64) error {
	limit, cancel := within(deadline)
	defer cancel()
	return s.inner.CancelScheduledMessages(limit, numbers, nil)
}

func (s *sender) cancel(numbers ...int64) {
	s.b.Helper()
	s.b.must(s.tryCancel(numbers...))
}

func (s *sender) close() {
	s.b.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	s.b.must(s.inner.Close(limit))
}

// send sends messages singly to a queue or topic.
func (b *bench) send(entity string, messages ...*message) {
	b.Helper()
	sender := b.sender(entity)
	sender.send(messages...)
	sender.close()
}

// sendNumbered sends messages with bodies 1, 2, 3… in one batch.
func (b *bench) sendNumbered(entity string, count int) {
	b.Helper()
	sender := b.sender(entity)
	sender.sendBatch(numbered(count)...)
	sender.close()
}

// sendTo sends messages with bodies 1, 2, 3… to these message sessions.
func (b *bench) sendTo(entity string, sessions ...string) {
	b.Helper()
	sender := b.sender(entity)
	for index, id := range sessions {
		sender.send(inSession(id, strconv.Itoa(index+1)))
	}
	sender.close()
}

func text(body any) *message {
	return &message{Body: []byte(fmt.Sprint(body))}
}

func inSession(id string, body any) *message {
	each := text(body)
	each.SessionID = &id
	return each
}

func identified(id string, body any) *message {
	each := text(body)
	each.MessageID = &id
	return each
}

func keyed(key string, body any) *message {
	each := text(body)
	each.PartitionKey = &key
	return each
}

// living is a message with a time to live.
func living(life time.Duration, body any) *message {
	each := text(body)
	each.TimeToLive = &life
	return each
}

// with is a message with one application property, and its value as the body.
func with(name string, value any) *message {
	each := text(value)
	each.ApplicationProperties = map[string]any{name: value}
	return each
}

func titled(subject string, each *message) *message {
	each.Subject = &subject
	return each
}

// numbered makes messages whose bodies are 1, 2, 3…
func numbered(count int) []*message {
	messages := make([]*message, count)
	for index := range messages {
		messages[index] = text(index + 1)
	}
	return messages
}

func pattern(size int) []byte {
	bytes := make([]byte, size)
	for index := range bytes {
		bytes[index] = byte(index * 31 % 251)
	}
	return bytes
}

func ofSize(size int) *message {
	return &message{Body: pattern(size)}
}

// Receiving

// settling is what Receiver and SessionReceiver have in common.
type settling interface {
	ReceiveMessages(
		context.Context, int, *azservicebus.ReceiveMessagesOptions,
	) ([]*received, error)
	ReceiveDeferredMessages(
		context.Context, []int64, *azservicebus.ReceiveDeferredMessagesOptions,
	) ([]*received, error)
	PeekMessages(context.Context, int, *azservicebus.PeekMessagesOptions) ([]*received, error)
	CompleteMessage(context.Context, *received, *azservicebus.CompleteMessageOptions) error
	AbandonMessage(context.Context, *received, *azservicebus.AbandonMessageOptions) error
	DeferMessage(context.Context, *received, *azservicebus.DeferMessageOptions) error
	DeadLetterMessage(context.Context, *received, *azservicebus.DeadLetterOptions) error
	Close(context.Context) error
}

// receiver is an SDK's receiver whose failures end the scenario; those whose names begin with try return them.
type receiver struct {
	b     *bench
	inner settling
}

// receiver receives from a queue, or a subscription named topic/subscription, by peek-lock.
func (b *bench) receiver(entity string) *receiver {
	b.Helper()
	return b.receiverWith(entity, azservicebus.ReceiverOptions{})
}

// deleting receives in receive-and-delete mode.
func (b *bench) deleting(entity string) *receiver {
	b.Helper()
	mode := azservicebus.ReceiveModeReceiveAndDelete
	return b.receiverWith(entity, azservicebus.ReceiverOptions{ReceiveMode: mode})
}

func (b *bench) deadLetters(entity string) *receiver {
	b.Helper()
	queue := azservicebus.SubQueueDeadLetter
	return b.receiverWith(entity, azservicebus.ReceiverOptions{SubQueue: queue})
}

func (b *bench) receiverWith(entity string, options azservicebus.ReceiverOptions) *receiver {
	b.Helper()
	var inner *azservicebus.Receiver
	var err error
	if topic, subscription, found := strings.Cut(entity, "/"); found {
		inner, err = b.client.NewReceiverForSubscription(topic, subscription, &options)
	} else {
		inner, err = b.client.NewReceiverForQueue(entity, &options)
	}
	b.must(err)
	return &receiver{b, inner}
}

// receive receives exactly so many messages, in one call if they all come: the SDK releases what arrives between two calls, and
// so changes the order.
func (r *receiver) receive(count int) []*received {
	r.b.Helper()
	return r.receiveWithin(count, deadline)
}

func (r *receiver) receiveWithin(count int, wait time.Duration) []*received {
	r.b.Helper()
	limit, cancel := within(wait)
	defer cancel()
	patience := azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: wait}
	var messages []*received
	for len(messages) < count {
		more, err := r.inner.ReceiveMessages(limit, count-len(messages), &patience)
		if err != nil {
			r.b.Fatalf("%d of %d messages within %v: %v", len(messages), count, wait, err)
		}
		messages = append(messages, more...)
	}
	return messages
}

func (r *receiver) one() *received {
	r.b.Helper()
	return r.receive(1)[0]
}

func (r *receiver) oneWithin(wait time.Duration) *received {
	r.b.Helper()
	return r.receiveWithin(1, wait)[0]
}

// nothing checks that no message arrives for a second.
func (r *receiver) nothing() {
	r.b.Helper()
	r.nothingFor(time.Second)
}

// nothingFor checks that no message arrives for a while. This is also how a scenario lets time pass.
func (r *receiver) nothingFor(wait time.Duration) {
	r.b.Helper()
	limit, cancel := within(wait)
	defer cancel()
	for limit.Err() == nil {
		messages, err := r.inner.ReceiveMessages(limit, 1, nil)
		if len(messages) > 0 {
			r.b.Fatalf("%v arrived", bodies(messages))
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			r.b.Fatalf("a receive failed: %v", err)
		}
	}
}

// try receives one message, or tells why not.
func (r *receiver) try() error {
	limit, cancel := within(deadline)
	defer cancel()
	_, err := r.inner.ReceiveMessages(limit, 1, nil)
	return err
}

// failure is why nothing can be received any more. A receive that loses its link may end without an error: the next
// one, which opens another, has it.
func (r *receiver) failure() error {
	limit, cancel := within(deadline)
	defer cancel()
	for {
		messages, err := r.inner.ReceiveMessages(limit, 1, nil)
		if err != nil || len(messages) > 0 {
			return err
		}
	}
}

func (r *receiver) tryAsk(numbers ...int64) ([]*received, error) {
	limit, cancel := within(deadline)
	defer cancel()
	return r.inner.ReceiveDeferredMessages(limit, numbers, nil)
}

// ask receives deferred messages by their numbers.
func (r *receiver) ask(numbers ...int64) []*received {
	r.b.Helper()
	messages, err := r.tryAsk(numbers...)
	r.b.must(err)
	return messages
}

func (r *receiver) tryComplete(each *received) error {
	limit, cancel := within(deadline)
	defer cancel()
	return r.inner.CompleteMessage(limit, each, nil)
}

func (r *receiver) complete(messages ...*received) {
	r.b.Helper()
	for _, each := range messages {
		r.b.must(r.tryComplete(each))
	}
}

func (r *receiver) abandon(messages ...*received) {
	r.b.Helper()
	for _, each := range messages {
		r.abandonWith(each, nil)
	}
}

func (r *receiver) abandonWith(each *received, properties map[string]any) {
	r.b.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	options := azservicebus.AbandonMessageOptions{PropertiesToModify: properties}
	r.b.must(r.inner.AbandonMessage(limit, each, &options))
}

// postpone defers messages.
func (r *receiver) postpone(messages ...*received) {
	r.b.Helper()
	for _, each := range messages {
		r.postponeWith(each, nil)
	}
}

func (r *receiver) postponeWith(each *received, properties map[string]any) {
	r.b.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	options := azservicebus.DeferMessageOptions{PropertiesToModify: properties}
	r.b.must(r.inner.DeferMessage(limit, each, &options))
}

// bury dead-letters messages without a word.
func (r *receiver) bury(messages ...*received) {
	r.b.Helper()
	for _, each := range messages {
		r.buryWith(each, nil)
	}
}

func (r *receiver) buryWith(each *received, options *azservicebus.DeadLetterOptions) {
	r.b.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	r.b.must(r.inner.DeadLetterMessage(limit, each, options))
}

// why are the reason and the description of most dead letters here.
func why() *azservicebus.DeadLetterOptions {
	reason, description := "why", "because"
	return &azservicebus.DeadLetterOptions{Reason: &reason, ErrorDescription: &description}
}

func (r *receiver) tryRenew(each *received) error {
	limit, cancel := within(deadline)
	defer cancel()
	inner, ok := r.inner.(*azservicebus.Receiver)
	if !ok {
		return errors.New("a message's lock is renewed by its session")
	}
	return inner.RenewMessageLock(limit, each, nil)
}

func (r *receiver) close() {
	r.b.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	r.b.must(r.inner.Close(limit))
}

func (r *receiver) tryPeek(count int, from int64) ([]*received, error) {
	limit, cancel := within(deadline)
	defer cancel()
	options := azservicebus.PeekMessagesOptions{}
	if from > 0 {
		options.FromSequenceNumber = &from
	}
	return r.inner.PeekMessages(limit, count, &options)
}

// peek looks at messages from a number, or with 0 from where the last such peek ended.
func (r *receiver) peek(count int, from int64) []*received {
	r.b.Helper()
	messages, err := r.tryPeek(count, from)
	r.b.must(err)
	return messages
}

// peekAll is everything that a peek from the first message sees, page by page.
func (r *receiver) peekAll() []*received {
	r.b.Helper()
	var seen []*received
	for next := int64(1); ; next = *seen[len(seen)-1].SequenceNumber + 1 {
		page := r.peek(100, next)
		if len(page) == 0 {
			return seen
		}
		seen = append(seen, page...)
	}
}

// Sessions

// session is a receiver of one message session.
type session struct {
	receiver
	inner *azservicebus.SessionReceiver
}

func (b *bench) trySession(entity, id string) (*session, error) {
	limit, cancel := within(deadline)
	defer cancel()
	var inner *azservicebus.SessionReceiver
	var err error
	if topic, subscription, found := strings.Cut(entity, "/"); found {
		inner, err = b.client.AcceptSessionForSubscription(limit, topic, subscription, id, nil)
	} else {
		inner, err = b.client.AcceptSessionForQueue(limit, entity, id, nil)
	}
	return b.sessionOf(inner), err
}

// session accepts a session by its name.
func (b *bench) session(entity, id string) *session {
	b.Helper()
	accepted, err := b.trySession(entity, id)
	b.must(err)
	return accepted
}

// freed accepts a session that is being given up: it tries until the session is granted.
func (b *bench) freed(entity, id string, wait time.Duration) *session {
	b.Helper()
	for start := time.Now(); ; {
		accepted, err := b.trySession(entity, id)
		if err == nil {
			return accepted
		}
		b.condition(err, sessionCannotBeLocked)
		if time.Since(start) > wait {
			b.Fatalf("session %s is still locked after %v", id, wait)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func (b *bench) tryNextSession(limit context.Context, entity string) (*session, error) {
	var inner *azservicebus.SessionReceiver
	var err error
	if topic, subscription, found := strings.Cut(entity, "/"); found {
		inner, err = b.client.AcceptNextSessionForSubscription(limit, topic, subscription, nil)
	} else {
		inner, err = b.client.AcceptNextSessionForQueue(limit, entity, nil)
	}
	return b.sessionOf(inner), err
}

// nextSession accepts the next session.
func (b *bench) nextSession(entity string) *session {
	b.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	accepted, err := b.tryNextSession(limit, entity)
	b.must(err)
	return accepted
}

// noNextSession checks that the wait for a next session ends without one, when it was asked to.
func (b *bench) noNextSession(entity string, wait time.Duration) {
	b.Helper()
	limit, cancel := within(wait)
	defer cancel()
	start := time.Now()
	_, err := b.tryNextSession(limit, entity)
	if !noneGranted(err) {
		b.Fatalf("wanted no session, got %v", err)
	}
	if took := time.Since(start); took < wait-time.Second || took > wait+time.Second {
		b.Fatalf("a wait of %v took %v", wait, took)
	}
}

// noneGranted tells the end of a wait from failures. The SDK asks the broker to give up first, but by as little as a
// random part of a hundredth of the wait: at times its own deadline is before the broker's answer.
func noneGranted(err error) bool {
	return hasCode(err, azservicebus.CodeTimeout) || errors.Is(err, context.DeadlineExceeded)
}

func (b *bench) sessionOf(inner *azservicebus.SessionReceiver) *session {
	return &session{receiver{b, inner}, inner}
}

func (s *session) id() string {
	return s.inner.SessionID()
}

func (s *session) tryRenew() error {
	limit, cancel := within(deadline)
	defer cancel()
	return s.inner.RenewSessionLock(limit, nil)
}

func (s *session) tryState() ([]byte, error) {
	limit, cancel := within(deadline)
	defer cancel()
	return s.inner.GetSessionState(limit, nil)
}

func (s *session) state() []byte {
	s.b.Helper()
	state, err := s.tryState()
	s.b.must(err)
	return state
}

func (s *session) setState(state []byte) {
	s.b.Helper()
	limit, cancel := within(deadline)
	defer cancel()
	s.b.must(s.inner.SetSessionState(limit, state, nil))
}
