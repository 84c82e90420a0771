// The steps (../../README.md) with one version of azservicebus: `program amqp|websockets PREFIX`.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/coder/websocket"
)

const soon = 15 * time.Second

// A client is one of a program: its calls fail the step that is under way.
type client struct {
	*azservicebus.Client
	admin  *admin.Client
	prefix string
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func got[T any](value T, err error) T {
	must(err)
	return value
}

func check(condition bool, format string, values ...any) {
	if !condition {
		panic(fmt.Errorf(format, values...))
	}
}

func text(message string) *azservicebus.Message {
	return &azservicebus.Message{Body: []byte(message)}
}

func (c *client) send(ctx context.Context, queue string, messages ...*azservicebus.Message) {
	sender := got(c.NewSender(c.prefix+"-"+queue, nil))
	for _, message := range messages {
		must(sender.SendMessage(ctx, message, nil))
	}
	must(sender.Close(ctx))
}

func (c *client) receiver(queue string, options *azservicebus.ReceiverOptions) *azservicebus.Receiver {
	return got(c.NewReceiverForQueue(c.prefix+"-"+queue, options))
}

type receiving interface {
	ReceiveMessages(context.Context, int, *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
}

// next has as many messages, which may come in several answers.
func next(ctx context.Context, receiver receiving, count int) []*azservicebus.ReceivedMessage {
	limit, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	var found []*azservicebus.ReceivedMessage
	for len(found) < count {
		found = append(found, got(receiver.ReceiveMessages(limit, count-len(found), nil))...)
	}
	return found
}

func (c *client) empty(ctx context.Context, queue string) {
	receiver := c.receiver(queue, nil)
	left := got(receiver.PeekMessages(ctx, 10, nil))
	check(len(left) == 0, "%d messages are left", len(left))
	must(receiver.Close(ctx))
}

// one sends a message to a queue and receives it.
func (c *client) one(ctx context.Context, queue string) (*azservicebus.Receiver, *azservicebus.ReceivedMessage) {
	c.send(ctx, queue, text("one"))
	receiver := c.receiver(queue, nil)
	return receiver, next(ctx, receiver, 1)[0]
}

var steps = map[string]func(*client, context.Context){
	"send": func(c *client, ctx context.Context) {
		message := text("one")
		message.ApplicationProperties = map[string]any{"number": int64(7)}
		c.send(ctx, "send", message)
		receiver := c.receiver("send", nil)
		received := next(ctx, receiver, 1)[0]
		check(string(received.Body) == "one", "the body is %q", received.Body)
		check(received.ApplicationProperties["number"] == int64(7), "the properties are %v", received.ApplicationProperties)
		must(receiver.CompleteMessage(ctx, received, nil))
		must(receiver.Close(ctx))
	},
	"batch": func(c *client, ctx context.Context) {
		sender := got(c.NewSender(c.prefix+"-batch", nil))
		batch := got(sender.NewMessageBatch(ctx, nil))
		for number := range 20 {
			must(batch.AddMessage(text(fmt.Sprint(number)), nil))
		}
		must(sender.SendMessageBatch(ctx, batch, nil))
		must(sender.Close(ctx))
		receiver := c.receiver("batch", nil)
		for number, message := range next(ctx, receiver, 20) {
			check(string(message.Body) == fmt.Sprint(number), "message %d is %q", number, message.Body)
			must(receiver.CompleteMessage(ctx, message, nil))
		}
		must(receiver.Close(ctx))
		c.empty(ctx, "batch")
	},
	"receive-and-delete": func(c *client, ctx context.Context) {
		c.send(ctx, "receive-and-delete", text("one"), text("two"))
		receiver := c.receiver("receive-and-delete", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
		next(ctx, receiver, 2)
		must(receiver.Close(ctx))
		c.empty(ctx, "receive-and-delete")
	},
	"complete": func(c *client, ctx context.Context) {
		receiver, message := c.one(ctx, "complete")
		must(receiver.CompleteMessage(ctx, message, nil))
		must(receiver.Close(ctx))
		c.empty(ctx, "complete")
	},
	"abandon": func(c *client, ctx context.Context) {
		receiver, message := c.one(ctx, "abandon")
		must(receiver.AbandonMessage(ctx, message, nil))
		again := next(ctx, receiver, 1)[0]
		// The client counts from one.
		check(again.DeliveryCount == 2, "the delivery count is %d", again.DeliveryCount)
		must(receiver.CompleteMessage(ctx, again, nil))
		must(receiver.Close(ctx))
	},
	"defer": func(c *client, ctx context.Context) {
		receiver, message := c.one(ctx, "defer")
		must(receiver.DeferMessage(ctx, message, nil))
		deferred := got(receiver.ReceiveDeferredMessages(ctx, []int64{*message.SequenceNumber}, nil))
		check(len(deferred) == 1 && string(deferred[0].Body) == "one", "%d messages", len(deferred))
		must(receiver.CompleteMessage(ctx, deferred[0], nil))
		must(receiver.Close(ctx))
		c.empty(ctx, "defer")
	},
	"dead-letter": func(c *client, ctx context.Context) {
		receiver, message := c.one(ctx, "dead-letter")
		reason, description := "a reason", "a description"
		must(receiver.DeadLetterMessage(ctx, message, &azservicebus.DeadLetterOptions{Reason: &reason, ErrorDescription: &description}))
		must(receiver.Close(ctx))
		dead := c.receiver("dead-letter", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
		letter := next(ctx, dead, 1)[0]
		check(letter.DeadLetterReason != nil && *letter.DeadLetterReason == reason, "another reason")
		check(letter.DeadLetterErrorDescription != nil && *letter.DeadLetterErrorDescription == description, "another description")
		must(dead.CompleteMessage(ctx, letter, nil))
		must(dead.Close(ctx))
	},
	"schedule": func(c *client, ctx context.Context) {
		sender := got(c.NewSender(c.prefix+"-schedule", nil))
		numbers := got(sender.ScheduleMessages(ctx, []*azservicebus.Message{text("one")}, time.Now().Add(time.Second), nil))
		check(len(numbers) == 1, "the numbers are %v", numbers)
		must(sender.Close(ctx))
		receiver := c.receiver("schedule", nil)
		must(receiver.CompleteMessage(ctx, next(ctx, receiver, 1)[0], nil))
		must(receiver.Close(ctx))
	},
	"cancel": func(c *client, ctx context.Context) {
		sender := got(c.NewSender(c.prefix+"-cancel", nil))
		messages := []*azservicebus.Message{text("one"), text("two")}
		numbers := got(sender.ScheduleMessages(ctx, messages, time.Now().Add(time.Hour), nil))
		must(sender.CancelScheduledMessages(ctx, numbers, nil))
		must(sender.Close(ctx))
		c.empty(ctx, "cancel")
	},
	"peek": func(c *client, ctx context.Context) {
		c.send(ctx, "peek", text("one"), text("two"))
		receiver := c.receiver("peek", nil)
		messages := got(receiver.PeekMessages(ctx, 2, nil))
		check(len(messages) == 2 && string(messages[1].Body) == "two", "%d messages", len(messages))
		must(receiver.Close(ctx))
	},
	"renew": func(c *client, ctx context.Context) {
		receiver, message := c.one(ctx, "renew")
		before := *message.LockedUntil
		time.Sleep(100 * time.Millisecond)
		must(receiver.RenewMessageLock(ctx, message, nil))
		check(message.LockedUntil.After(before), "the lock ends no later")
		must(receiver.CompleteMessage(ctx, message, nil))
		must(receiver.Close(ctx))
	},
	"session": func(c *client, ctx context.Context) {
		id := "a"
		message := text("one")
		message.SessionID = &id
		c.send(ctx, "session", message)
		receiver := got(c.AcceptSessionForQueue(ctx, c.prefix+"-session", id, nil))
		received := next(ctx, receiver, 1)[0]
		check(received.SessionID != nil && *received.SessionID == id, "another session")
		must(receiver.SetSessionState(ctx, []byte("a state"), nil))
		state := got(receiver.GetSessionState(ctx, nil))
		check(string(state) == "a state", "the state is %q", state)
		must(receiver.RenewSessionLock(ctx, nil))
		must(receiver.CompleteMessage(ctx, received, nil))
		must(receiver.Close(ctx))
	},
	"next-session": func(c *client, ctx context.Context) {
		id := "b"
		message := text("one")
		message.SessionID = &id
		c.send(ctx, "next-session", message)
		receiver := got(c.AcceptNextSessionForQueue(ctx, c.prefix+"-next-session", nil))
		check(receiver.SessionID() == id, "the session is %q", receiver.SessionID())
		must(receiver.CompleteMessage(ctx, next(ctx, receiver, 1)[0], nil))
		must(receiver.Close(ctx))
	},
	"rules": func(c *client, ctx context.Context) {
		topic := c.prefix + "-topic"
		c.rules(ctx, topic)
		sender := got(c.NewSender(topic, nil))
		for _, color := range []string{"blue", "red"} {
			message := text(color)
			message.ApplicationProperties = map[string]any{"color": color}
			must(sender.SendMessage(ctx, message, nil))
		}
		must(sender.Close(ctx))
		receiver := got(c.NewReceiverForSubscription(topic, "subscription", nil))
		message := next(ctx, receiver, 1)[0]
		check(string(message.Body) == "red", "the message is %q", message.Body)
		must(receiver.CompleteMessage(ctx, message, nil))
		must(receiver.Close(ctx))
	},
	"unknown": func(c *client, ctx context.Context) {
		sender := got(c.NewSender(c.prefix+"-unknown", nil))
		err := sender.SendMessage(ctx, text("one"), nil)
		check(err != nil, "no error")
		var known *azservicebus.Error
		// Some versions have no code for it.
		check(errors.As(err, &known) || strings.Contains(err.Error(), "could not be found"), "%v", err)
	},
}

// rules adds a rule for red, lists the rules, and removes the one for everything.
func (c *client) rules(ctx context.Context, topic string) {
	name := "red"
	options := &admin.CreateRuleOptions{Name: &name, Filter: &admin.SQLFilter{Expression: "color = 'red'"}}
	got(c.admin.CreateRule(ctx, topic, "subscription", options))
	var names []string
	for pager := c.admin.NewListRulesPager(topic, "subscription", nil); pager.More(); {
		for _, rule := range got(pager.NextPage(ctx)).Rules {
			names = append(names, rule.Name)
		}
	}
	check(slices.Contains(names, name), "the rules are %v", names)
	got(c.admin.DeleteRule(ctx, topic, "subscription", "$Default", nil))
}

func (c *client) step(name string) (err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("%w", failure.(error))
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	steps[name](c, ctx)
	return nil
}

func main() {
	connectionString := os.Getenv("CONNECTION_STRING")
	// No retries: what fails first must be seen.
	options := &azservicebus.ClientOptions{RetryOptions: azservicebus.RetryOptions{MaxRetries: -1}}
	if os.Args[1] == "websockets" {
		options.NewWebSocketConn = func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			socket, _, err := websocket.Dial(ctx, args.Host, &websocket.DialOptions{Subprotocols: []string{"amqp"}})
			if err != nil {
				return nil, err
			}
			return websocket.NetConn(context.Background(), socket, websocket.MessageBinary), nil
		}
	}
	c := &client{
		Client: got(azservicebus.NewClientFromConnectionString(connectionString, options)),
		admin:  got(admin.NewClientFromConnectionString(connectionString, nil)),
		prefix: os.Args[2],
	}
	for _, name := range strings.Fields(os.Getenv("STEPS")) {
		if err := c.step(name); err != nil {
			fmt.Printf("STEP %s failed %s\n", name, strings.Join(strings.Fields(err.Error()), " "))
		} else {
			fmt.Printf("STEP %s passed\n", name)
		}
	}
}
