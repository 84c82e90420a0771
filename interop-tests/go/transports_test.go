package interop

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/coder/websocket"
)

// roundTrip sends small and large messages, and completes them.
func (b *bench) roundTrip(queue string) {
	b.Helper()
	sender, receiver := b.sender(queue), b.receiver(queue)
	for _, size := range []int{1, 200 * 1024} {
		sender.send(ofSize(size))
		each := receiver.one()
		b.same(each.Body, pattern(size))
		receiver.complete(each)
	}
	sender.cancel(sender.schedule(later(time.Hour), text(1))...)
	b.same(bodies(receiver.peekAll()), []string{})
}

func TestS261_amqps_on_every_port_with_the_brokers_own_authority(t *testing.T) {
	t.Parallel()
	endpoint := open(t)
	endpoint.administrator(t).createQueue("s261", nil)
	for _, port := range []string{endpoint.amqp, endpoint.http} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			trust := endpoint.trust(t)
			trust.MinVersion, trust.MaxVersion = version, version
			b := connectWith(t, keyedString(port, rootName, endpoint.key),
				&azservicebus.ClientOptions{TLSConfig: trust})
			b.roundTrip("s261")
		}
		// The host's name by itself, and the port where the connection goes.
		trust := endpoint.trust(t)
		trust.ServerName = ""
		b := connectWith(t, keyedString("localhost", rootName, endpoint.key),
			&azservicebus.ClientOptions{TLSConfig: trust, CustomEndpoint: port})
		b.roundTrip("s261")
	}
}

func TestS262_a_client_that_does_not_trust_the_authority_is_not_served(t *testing.T) {
	t.Parallel()
	endpoint := open(t)
	b := connectWith(t, keyedString(endpoint.amqp, rootName, endpoint.key),
		&azservicebus.ClientOptions{TLSConfig: &tls.Config{ServerName: "localhost"}})
	b.refused("certificate signed by unknown authority", func() error {
		return b.sender("s262").try(text(1))
	})
}

// webSocket dials by WebSocket, in place of the SDK's wss with another scheme if need be.
func webSocket(
	trust *tls.Config, scheme, subprotocol string,
) func(context.Context, azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
	return func(ctx context.Context, wanted azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
		address := scheme + strings.TrimPrefix(wanted.Host, "wss")
		connection, _, err := websocket.Dial(ctx, address, &websocket.DialOptions{
			Subprotocols: []string{subprotocol}, HTTPClient: over(trust),
		})
		if err != nil {
			return nil, err
		}
		if connection.Subprotocol() != subprotocol {
			return nil, fmt.Errorf("subprotocol %q, wanted %q", connection.Subprotocol(), subprotocol)
		}
		// The context is the dial's: the connection outlives it.
		return websocket.NetConn(context.Background(), connection, websocket.MessageBinary), nil
	}
}

func TestS263_websockets_with_tls_and_without_on_every_port(t *testing.T) {
	t.Parallel()
	endpoint := open(t)
	endpoint.administrator(t).createQueue("s263", nil)
	trust := endpoint.trust(t)
	for _, port := range []string{endpoint.amqp, endpoint.http} {
		for _, scheme := range []string{"wss", "ws"} {
			for _, subprotocol := range []string{"amqp", "AMQPWSB10"} {
				b := connectWith(t, keyedString(port, rootName, endpoint.key),
					&azservicebus.ClientOptions{
						NewWebSocketConn: webSocket(trust, scheme, subprotocol),
					})
				b.roundTrip("s263")
			}
		}
	}
}

func TestS263_sessions_and_batches_over_a_websocket(t *testing.T) {
	t.Parallel()
	endpoint := open(t)
	endpoint.administrator(t).createQueue("s263s", &admin.QueueProperties{RequiresSession: of(true)})
	b := connectWith(t, keyedString(endpoint.amqp, rootName, endpoint.key),
		&azservicebus.ClientOptions{NewWebSocketConn: webSocket(endpoint.trust(t), "wss", "AMQPWSB10")})
	var batch []*message
	for body := range 100 {
		batch = append(batch, inSession("x", body+1))
	}
	b.sender("s263s").sendBatch(batch...)
	receiver := b.nextSession("s263s")
	messages := receiver.receive(100)
	b.same(bodies(messages), texts(1, 100))
	receiver.setState(pattern(100 * 1024))
	b.same(receiver.state(), pattern(100*1024))
	receiver.complete(messages...)
}
