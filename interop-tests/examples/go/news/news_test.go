package news

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"example/jitneytest"
)

func TestNewsReachTheSubscription(t *testing.T) {
	ctx, namespace := t.Context(), jitneytest.NewNamespace(t)
	options := &azservicebus.ClientOptions{CustomEndpoint: namespace.Endpoint}
	client, err := azservicebus.NewClientFromConnectionString(namespace.ConnectionString, options)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(ctx)
	sender, err := client.NewSender("news", nil)
	if err != nil {
		t.Fatal(err)
	}
	receiver, err := client.NewReceiverForSubscription("news", "eu", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sender.SendMessage(ctx, &azservicebus.Message{Body: []byte("published")}, nil); err != nil {
		t.Fatal(err)
	}
	messages, err := receiver.ReceiveMessages(ctx, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body := string(messages[0].Body); body != "published" {
		t.Fatalf("got %q", body)
	}
}
