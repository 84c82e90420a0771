package interop

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func TestS01_a_message_is_sent_received_and_completed(t *testing.T) {
	b := begin(t)
	b.send("s01", text("hello"))
	receiver := b.receiver("s01")
	each := receiver.one()
	b.same(string(each.Body), "hello")
	receiver.complete(each)
	receiver.nothing()
}

func TestS02_an_unknown_queue_is_not_found(t *testing.T) {
	b := begin(t)
	for _, err := range []error{
		b.sender("no-such-queue").try(text(1)), b.receiver("no-such-queue").try(),
	} {
		b.notFound(err)
	}
}

func TestS03_names_do_not_depend_on_case(t *testing.T) {
	b := begin(t)
	b.send("S03", text("hello"))
	b.same(bodies(b.another().receiver("s03").receive(1)), []string{"hello"})
}

func TestS04_links_of_one_connection_end_one_by_one(t *testing.T) {
	b := begin(t)
	var senders []*sender
	var receivers []*receiver
	for _, queue := range []string{"s04", "s04b", "s04b"} {
		senders = append(senders, b.sender(queue))
		receivers = append(receivers, b.receiver(queue))
	}
	for _, each := range senders {
		each.send(text(1))
	}
	for _, each := range receivers {
		each.complete(each.one())
	}
	senders[2].close()
	receivers[2].close()
	for _, each := range senders[:2] {
		each.send(text(2))
	}
	for _, each := range receivers[:2] {
		b.same(bodies(each.receive(1)), []string{"2"})
	}
}

func TestS251_a_host_name_says_which_namespace_is_meant(t *testing.T) {
	b := begin(t)
	other := elsewhere(t)
	b.send("s251", text("first"))
	other.send("s251", text("other"))
	for _, each := range []struct {
		b    *bench
		body string
	}{{b, "first"}, {other, "other"}} {
		messages := each.b.receiver("s251").receive(1)
		b.same(bodies(messages), []string{each.body})
		b.same(numbers(messages), []int64{1})
	}
	other.send("s251only", text(1))
	b.notFound(b.sender("s251only").try(text(1)))
}

// elsewhere is a client of the namespace `other`, connected to the same port.
func elsewhere(t *testing.T) *bench {
	t.Helper()
	_, rest, _ := strings.Cut(environment(t, "JITNEY_CONNECTION_STRING"), ";")
	return connectWith(t, "Endpoint=sb://other.example;"+rest, &azservicebus.ClientOptions{
		CustomEndpoint: "localhost:" + environment(t, "JITNEY_AMQP_PORT"),
	})
}
