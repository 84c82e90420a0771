// The steps (../../README.md) with one version of azure-service-bus-go: `program amqp|websockets PREFIX`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	servicebus "github.com/Azure/azure-service-bus-go"
)

const soon = 15 * time.Second

// A client is one of a program: its calls fail the step that is under way.
type client struct {
	*servicebus.Namespace
	prefix string
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// closed takes the error of a client's end. The broker ends the connection below a WebSocket when AMQP is closed, and this client waits for the
// other side to close the WebSocket first.
func closed(err error) {
	if err == nil || !strings.Contains(err.Error(), "failed to close WebSocket") {
		must(err)
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

func text(message string) *servicebus.Message {
	return servicebus.NewMessageFromString(message)
}

func (c *client) queue(name string, options ...servicebus.QueueOption) *servicebus.Queue {
	return got(c.NewQueue(c.prefix+"-"+name, options...))
}

type receiving interface {
	ReceiveOne(context.Context, servicebus.Handler) error
}

// receive has a message handled.
func receive(ctx context.Context, receiver receiving, handle func(context.Context, *servicebus.Message)) {
	limit, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	must(receiver.ReceiveOne(limit, handler(handle)))
}

func handler(handle func(context.Context, *servicebus.Message)) servicebus.HandlerFunc {
	return func(ctx context.Context, message *servicebus.Message) (err error) {
		// A failed check must not end a goroutine of the client.
		defer func() {
			if failure := recover(); failure != nil {
				err = failure.(error)
			}
		}()
		handle(ctx, message)
		return nil
	}
}

func complete(ctx context.Context, message *servicebus.Message) {
	must(message.Complete(ctx))
}

func empty(ctx context.Context, queue *servicebus.Queue) {
	_, err := queue.PeekOne(ctx)
	check(errors.As(err, &servicebus.ErrNoMessages{}), "there is a message, or an error: %v", err)
}

var steps = map[string]func(*client, context.Context){
	"send": func(c *client, ctx context.Context) {
		queue := c.queue("send")
		message := text("one")
		message.UserProperties = map[string]any{"number": int64(7)}
		must(queue.Send(ctx, message))
		receive(ctx, queue, func(ctx context.Context, message *servicebus.Message) {
			check(string(message.Data) == "one", "the body is %q", message.Data)
			check(message.UserProperties["number"] == int64(7), "the properties are %v", message.UserProperties)
			complete(ctx, message)
		})
		closed(queue.Close(ctx))
	},
	"batch": func(c *client, ctx context.Context) {
		queue := c.queue("batch")
		var messages []*servicebus.Message
		for number := range 20 {
			messages = append(messages, text(fmt.Sprint(number)))
		}
		must(queue.SendBatch(ctx, servicebus.NewMessageBatchIterator(servicebus.StandardMaxMessageSizeInBytes, messages...)))
		for number := range 20 {
			receive(ctx, queue, func(ctx context.Context, message *servicebus.Message) {
				check(string(message.Data) == fmt.Sprint(number), "message %d is %q", number, message.Data)
				complete(ctx, message)
			})
		}
		empty(ctx, queue)
		closed(queue.Close(ctx))
	},
	"receive-and-delete": func(c *client, ctx context.Context) {
		queue := c.queue("receive-and-delete", servicebus.QueueWithReceiveAndDelete())
		must(queue.Send(ctx, text("one")))
		receive(ctx, queue, func(context.Context, *servicebus.Message) {})
		empty(ctx, queue)
		closed(queue.Close(ctx))
	},
	"complete": func(c *client, ctx context.Context) {
		queue := c.queue("complete")
		must(queue.Send(ctx, text("one")))
		receive(ctx, queue, complete)
		empty(ctx, queue)
		closed(queue.Close(ctx))
	},
	"abandon": func(c *client, ctx context.Context) {
		queue := c.queue("abandon")
		must(queue.Send(ctx, text("one")))
		receive(ctx, queue, func(ctx context.Context, message *servicebus.Message) { must(message.Abandon(ctx)) })
		receive(ctx, queue, func(ctx context.Context, message *servicebus.Message) {
			// The client counts from one.
			check(message.DeliveryCount == 2, "the delivery count is %d", message.DeliveryCount)
			complete(ctx, message)
		})
		closed(queue.Close(ctx))
	},
	"defer": func(c *client, ctx context.Context) {
		queue := c.queue("defer")
		must(queue.Send(ctx, text("one")))
		var number int64
		receive(ctx, queue, func(ctx context.Context, message *servicebus.Message) {
			number = *message.SystemProperties.SequenceNumber
			must(message.Defer(ctx))
		})
		must(queue.ReceiveDeferredWithMode(ctx, handler(complete), servicebus.PeekLockMode, number))
		empty(ctx, queue)
		closed(queue.Close(ctx))
	},
	"dead-letter": func(c *client, ctx context.Context) {
		queue := c.queue("dead-letter")
		must(queue.Send(ctx, text("one")))
		receive(ctx, queue, func(ctx context.Context, message *servicebus.Message) {
			must(message.DeadLetter(ctx, errors.New("a description")))
		})
		dead := queue.NewDeadLetter()
		receive(ctx, dead, complete)
		closed(dead.Close(ctx))
		closed(queue.Close(ctx))
	},
	"schedule": func(c *client, ctx context.Context) {
		queue := c.queue("schedule")
		numbers := got(queue.ScheduleAt(ctx, time.Now().Add(time.Second), text("one")))
		check(len(numbers) == 1, "the numbers are %v", numbers)
		receive(ctx, queue, complete)
		closed(queue.Close(ctx))
	},
	"cancel": func(c *client, ctx context.Context) {
		queue := c.queue("cancel")
		numbers := got(queue.ScheduleAt(ctx, time.Now().Add(time.Hour), text("one"), text("two")))
		must(queue.CancelScheduled(ctx, numbers...))
		empty(ctx, queue)
		closed(queue.Close(ctx))
	},
	"peek": func(c *client, ctx context.Context) {
		queue := c.queue("peek")
		must(queue.Send(ctx, text("one")))
		must(queue.Send(ctx, text("two")))
		messages := got(queue.Peek(ctx))
		for _, body := range []string{"one", "two"} {
			message := got(messages.Next(ctx))
			check(string(message.Data) == body, "the body is %q", message.Data)
		}
		closed(queue.Close(ctx))
	},
	"renew": func(c *client, ctx context.Context) {
		queue := c.queue("renew")
		must(queue.Send(ctx, text("one")))
		receive(ctx, queue, func(ctx context.Context, message *servicebus.Message) {
			must(queue.RenewLocks(ctx, message))
			complete(ctx, message)
		})
		closed(queue.Close(ctx))
	},
	"session": func(c *client, ctx context.Context) {
		id := "a"
		c.session(ctx, "session", id, &id, func(session *servicebus.MessageSession) {
			must(session.SetState(ctx, []byte("a state")))
			state := got(session.State(ctx))
			check(string(state) == "a state", "the state is %q", state)
			must(session.RenewLock(ctx))
		})
	},
	"next-session": func(c *client, ctx context.Context) {
		c.session(ctx, "next-session", "b", nil, func(session *servicebus.MessageSession) {
			check(*session.SessionID() == "b", "the session is %q", *session.SessionID())
		})
	},
	"rules": func(c *client, ctx context.Context) {
		topic := got(c.NewTopic(c.prefix + "-topic"))
		manager := topic.NewSubscriptionManager()
		got(manager.PutRule(ctx, "subscription", "red", servicebus.SQLFilter{Expression: "color = 'red'"}))
		rules := got(manager.ListRules(ctx, "subscription"))
		check(slices.ContainsFunc(rules, func(rule *servicebus.RuleEntity) bool { return rule.Name == "red" }), "%d rules", len(rules))
		must(manager.DeleteRule(ctx, "subscription", "$Default"))
		for _, color := range []string{"blue", "red"} {
			message := text(color)
			message.UserProperties = map[string]any{"color": color}
			must(topic.Send(ctx, message))
		}
		subscription := got(topic.NewSubscription("subscription"))
		receive(ctx, subscription, func(ctx context.Context, message *servicebus.Message) {
			check(string(message.Data) == "red", "the message is %q", message.Data)
			complete(ctx, message)
		})
		closed(subscription.Close(ctx))
		closed(topic.Close(ctx))
	},
	"unknown": func(c *client, ctx context.Context) {
		err := c.queue("unknown").Send(ctx, text("one"))
		check(err != nil, "no error")
		check(strings.Contains(err.Error(), "could not be found"), "%v", err)
	},
}

// session sends a message to a session and receives it; `use` is called with the session.
func (c *client) session(ctx context.Context, name, id string, accepted *string, use func(*servicebus.MessageSession)) {
	queue := c.queue(name)
	message := text("one")
	message.SessionID = &id
	must(queue.Send(ctx, message))
	receiver := queue.NewSession(accepted)
	limit, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	var session *servicebus.MessageSession
	handled := false
	must(receiver.ReceiveOne(limit, servicebus.NewSessionHandler(
		handler(func(ctx context.Context, message *servicebus.Message) {
			check(message.SessionID != nil && *message.SessionID == id, "another session")
			use(session)
			complete(ctx, message)
			handled = true
			session.Close()
		}),
		func(opened *servicebus.MessageSession) error {
			session = opened
			return nil
		},
		func() {},
	)))
	check(handled, "no message")
	closed(receiver.Close(ctx))
	closed(queue.Close(ctx))
}

func (c *client) step(name string) (err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("%w", failure.(error))
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	steps[name](c, ctx)
	return nil
}

func main() {
	options := []servicebus.NamespaceOption{servicebus.NamespaceWithConnectionString(os.Getenv("CONNECTION_STRING"))}
	if os.Args[1] == "websockets" {
		options = append(options, servicebus.NamespaceWithWebSocket())
	}
	c := &client{Namespace: got(servicebus.NewNamespace(options...)), prefix: os.Args[2]}
	for _, name := range strings.Fields(os.Getenv("STEPS")) {
		if err := c.step(name); err != nil {
			fmt.Printf("STEP %s failed %s\n", name, strings.Join(strings.Fields(err.Error()), " "))
		} else {
			fmt.Printf("STEP %s passed\n", name)
		}
	}
}
