package orders

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"example/jitneytest"
)

func connect(t *testing.T) (context.Context, *azservicebus.Client) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	namespace := jitneytest.NewNamespace(t)
	options := &azservicebus.ClientOptions{CustomEndpoint: namespace.Endpoint}
	client, err := azservicebus.NewClientFromConnectionString(namespace.ConnectionString, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		client.Close(context.Background())
	})
	return ctx, client
}

func send(t *testing.T, ctx context.Context, client *azservicebus.Client, queue, body string) {
	sender, err := client.NewSender(queue, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sender.SendMessage(ctx, &azservicebus.Message{Body: []byte(body)}, nil); err != nil {
		t.Fatal(err)
	}
}

func TestAnOrderIsReceived(t *testing.T) {
	t.Parallel()
	ctx, client := connect(t)
	send(t, ctx, client, "orders", "hello")
	receiver, err := client.NewReceiverForQueue("orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := receiver.ReceiveMessages(ctx, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body := string(messages[0].Body); body != "hello" {
		t.Fatalf("got %q", body)
	}
	if err := receiver.CompleteMessage(ctx, messages[0], nil); err != nil {
		t.Fatal(err)
	}
}

func TestAnOrderStaysInTheQueue(t *testing.T) {
	t.Parallel()
	ctx, client := connect(t)
	send(t, ctx, client, "orders", "stays")
	receiver, err := client.NewReceiverForQueue("orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := receiver.PeekMessages(ctx, 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) != 1 || string(messages[0].Body) != "stays" {
		t.Fatalf("got %v", messages)
	}
}
